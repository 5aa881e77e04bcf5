"""Loops over large arrays as a function of their parts, which threads can share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adbench.tape.compiled.lowering.loops.fused_steps import Fold, FusedStep
from adbench.tape.compiled.lowering.loops.innermost_axis import BLOCK, CALL, InnermostAxis
from adbench.tape.compiled.lowering.loops.loop_nest import Pointers, Strides, in_row, part_from, write_block, write_nest
from adbench.tape.compiled.lowering.storage import Registers, Uniform
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd, literal

LEAST_WORK = 400_000
"""Instructions on vectors from which a loop is shared: 20 to 40 µs. Waking a thread takes a few."""
MOST_PARTIAL_RESULTS = 2**17
"""Partial results of a shared loop: 1 MiB."""
LEAST_COLUMNS, MOST_COLUMN_PARTS = 64, 32
"""Of loops that are shared by columns."""


@dataclass(frozen=True)
class Helpers:
    """Threads that help.

    count      threads besides the caller's
    function   the address of parallel(pool, task, shared, blocks, helpers, start)
    pool       the address of its memory
    start      a Python function that starts missing threads
    """

    count: int
    function: int
    pool: int
    start: Callable[[], None]


@dataclass(eq=False)
class ParallelLoop:
    """Loops over one or more axes, in parts: rows of the first axis, cut into blocks if the rows are long, or columns.

    columns          0, or the elements of the last axis in one part, if sums along the first axis keep rows together
    rows             indices of the first of several axes, or 1
    blocks           of each row
    partial_results  numbers that the parts write to `scratch`: the reductions that several parts share. They are added
                     in the order in which one thread adds them
    """

    code: Code
    steps: Sequence[FusedStep]
    folds: Sequence[Fold]
    lengths: Sequence[int]
    strides: Strides
    pointers: Pointers
    helpers: Helpers

    def __post_init__(self) -> None:
        folds, lengths, strides = self.folds, self.lengths, self.strides
        self.n = lengths[-1]
        self.inner = {key: s[-1] for key, s in strides.items()}
        self.least = min([self.n, *(s.length for s in self.steps if s.length)])
        moves = [strides[id(fold.target)] for fold in folds if fold.counts is None]
        adds_rows = len(lengths) > 1 and any(s[0] == 0 for s in moves) and all(s[-1] for s in moves)
        self.columns = max(LEAST_COLUMNS, math.ceil(self.n / MOST_COLUMN_PARTS / WIDTH) * WIDTH) if adds_rows else 0
        self.rows = lengths[0] if len(lengths) > 1 and not self.columns else 1
        self.blocks = math.ceil(self.least / (self.columns or BLOCK)) if self.columns or len(lengths) <= 2 else 1
        self.parts = self.rows * self.blocks
        self.shared = [k for k, fold in enumerate(folds) if self._is_shared(fold)]
        self.partial_results = len(self.shared) * self.parts

    def _row_step(self, fold: Fold) -> int:
        """By how much a reduction's target moves from row to row."""
        return self.strides[id(fold.target)][0] if self.rows > 1 else 0

    def _is_shared(self, fold: Fold) -> bool:
        """Whether several parts reduce to one number."""
        return (self.blocks > 1 or self._row_step(fold) == 0) and self.inner[id(fold.target)] == 0

    def is_worth_it(self) -> bool:
        """Whether there are enough parts and work, and each reduction is of a row, or its order does not matter."""
        if self.parts < 2 or self.partial_results > MOST_PARTIAL_RESULTS:
            return False
        for fold in self.folds:
            if self.columns:
                break
            strides = self.strides[id(fold.target)]
            in_order = len(self.lengths) <= 2 or fold.counts is not None
            if self._row_step(fold) == 0 and (any(strides) or not in_order):
                return False
        probe = InnermostAxis(Code(self.code.module), self.steps, self.folds, self.n, self.inner, self.pointers)
        vectors = math.prod(self.lengths[:-1]) * math.ceil(self.n / WIDTH)
        return vectors * probe.instructions(CALL) >= LEAST_WORK

    def write(self, scratch: Name) -> None:
        """Write the function of the parts, and its call. `scratch` has the partial results."""
        code, module = self.code, self.code.module
        outside: dict[Name, str] = dict.fromkeys(self.pointers.values(), "ptr")
        outside[scratch] = "ptr"
        operands: list[Any] = [x for step in self.steps for x in step.operands] + [f.operand for f in self.folds]
        for x in operands:
            if isinstance(x, (Uniform, Registers)):
                name = x.element if isinstance(x, Uniform) else x.elements[0]
                if name.startswith("%"):
                    outside[name] = "i1" if x.boolean else "double"
        shared = code.variable(f"[{len(outside)} x i64]")
        for slot, (name, kind) in enumerate(outside.items()):
            if kind == "i1":
                name, kind = code.emit(f"zext i1 {name} to i64"), "i64"
            code.store(name, code.emit(f"getelementptr inbounds i64, ptr {shared}, i64 {slot}"), kind)
        function = f"task{len(module.functions)}"
        task = Code(module)
        task._count = code._count  # its own names differ from those outside, which it gives to what it reads
        for slot, (name, kind) in enumerate(outside.items()):
            place = task.emit(f"getelementptr inbounds i64, ptr %shared, i64 {slot}")
            if kind == "i1":
                task.do(f"{name} = trunc i64 {task.load(place, 'i64')} to i1")
            else:
                task.do(f"{name} = load {kind}, ptr {place}, align 8")
        self._write_parts(task, scratch)
        task.do("ret void")
        module.function(f"internal void @{function}(ptr %shared, i64 %first, i64 %last)", task)
        h = self.helpers
        parallel, pool, start = (module.outside(code, ("helpers", k), k) for k in (h.function, h.pool, h.start))
        code.do(
            f"call void {parallel}(ptr {pool}, ptr @{function}, ptr {shared}, i64 {self.parts}, i64 {h.count}, "
            f"ptr {start})"
        )
        one = Simd(code, 1)
        for number, k in enumerate(self.shared):
            fold, step = self.folds[k], self._row_step(self.folds[k])

            def add(part: Name, number: int = number, fold: Fold = fold, step: int = step) -> None:
                target = self.pointers[id(fold.target)]
                if step:
                    target = code.element(target, code.emit(f"udiv i64 {part}, {self.blocks}"), step)
                place = code.element(scratch, code.emit(f"add i64 {part}, {number * self.parts}"))
                code.store(fold.how.join(one, code.load(target), code.load(place)), target)

            code.loop(self.parts, add)

    def _write_parts(self, task: Code, scratch: Name) -> None:
        steps, folds = self.steps, self.folds

        def part(number: Name) -> None:
            at, block = dict(self.pointers), number
            if self.rows > 1:
                row = number if self.blocks == 1 else task.emit(f"udiv i64 {number}, {self.blocks}")
                block = task.emit(f"urem i64 {number}, {self.blocks}")
                at = in_row(task, self.strides, self.pointers, row)
            for first, k in enumerate(self.shared):
                place = task.element(scratch, task.emit(f"add i64 {number}, {first * self.parts}"))
                task.store(literal(folds[k].how.start), place)
                at[id(folds[k].target)] = place
            if self.columns:
                start = task.emit(f"mul nuw nsw i64 {number}, {self.columns}")
                columns = part_from(task, start, self.columns, self.n, self.n)
                write_nest(task, steps, folds, self.lengths, self.strides, at, columns)
                return
            if self.blocks > 1:
                axis = InnermostAxis(task, steps, folds, self.n, self.inner, at)
                write_block(task, axis, task.emit(f"mul nuw nsw i64 {block}, {BLOCK}"))
                return
            rest = {key: s[1:] for key, s in self.strides.items()}
            write_nest(task, steps, folds, self.lengths[1:], rest, at)

        task.loop("%last", part, "%first")
