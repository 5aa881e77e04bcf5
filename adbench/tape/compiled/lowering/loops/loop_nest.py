"""Nested loops over the axes of an index space, in parts that threads can share, and copies of transposed matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adbench.tape.compiled.lowering.loops.fused_steps import Fold, FusedStep
from adbench.tape.compiled.lowering.loops.innermost_axis import BLOCK, CALL, InnermostAxis
from adbench.tape.compiled.lowering.storage import Buffer, Registers, Uniform
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd, literal

SHORT = 8
"""The most indices of an axis whose sums stay in registers."""
Strides = Mapping[int, Sequence[int]]
"""The id of an array -> its strides."""
Pointers = dict[int, Name]
"""The id of an array -> the address of its first element."""


@dataclass(frozen=True)
class Nest:
    """Operations over one index space, as nested loops over axes of these lengths."""

    steps: Sequence[FusedStep]
    folds: Sequence[Fold]
    lengths: Sequence[int]
    strides: Strides
    pointers: Pointers

    def row(self, code: Code, i: Name) -> Nest:
        """The loops for index i of the first axis."""
        at = {key: p if (s := self.strides[key][0]) == 0 else code.element(p, i, s) for key, p in self.pointers.items()}
        return Nest(self.steps, self.folds, self.lengths[1:], {key: s[1:] for key, s in self.strides.items()}, at)

    def innermost(self, code: Code) -> InnermostAxis:
        """The loop over the last axis."""
        strides = {key: s[-1] for key, s in self.strides.items()}
        return InnermostAxis(code, self.steps, self.folds, self.lengths[-1], strides, self.pointers)

    def write(self, code: Code, part: tuple[Name, Name] | None = None) -> None:
        """Write the loops; a long last axis with reductions in blocks.

        part   the first element of the last axis and the one after the last, if not all
        """
        axis, first = self.innermost(code), self.lengths[0]
        is_repeated = len(self.lengths) == 2 and first <= SHORT and self.is_summed(0)
        if is_repeated and axis.repeats([self.row(code, str(i)).pointers for i in range(first)]):
            write_axis(code, axis, part)
        elif len(self.lengths) > 1:
            code.loop(first, lambda i: self.row(code, i).write(code, part))
        else:
            write_axis(code, axis, part)

    def is_summed(self, axis: int) -> bool:
        """Whether there are reductions, all of them along this axis, but not along the last."""
        targets = [self.strides[id(fold.target)] for fold in self.folds]
        return bool(targets) and all(s[axis] == 0 and s[-1] != 0 for s in targets)

    def summed_axis_late(self) -> Nest:
        """The loops with a short axis of sums before the last, where its indices need no memory in between."""
        last = len(self.lengths) - 1
        for a in range(last - 1):
            if self.lengths[a] <= SHORT and self.lengths[last] >= 2 * WIDTH and self.is_summed(a):
                order = [*range(a), *range(a + 1, last), a, last]
                strides = {key: [s[k] for k in order] for key, s in self.strides.items()}
                return replace(self, lengths=[self.lengths[k] for k in order], strides=strides)
        return self


def write_axis(code: Code, axis: InnermostAxis, part: tuple[Name, Name] | None) -> None:
    """Write the innermost loop, in blocks if it is long."""
    if part or axis.least <= BLOCK or not axis.folds:
        axis.write(*part or ())
        return
    code.loop(axis.least, lambda start: axis.write(*part_from(code, start, BLOCK, axis.least, axis.n)), step=BLOCK)


def part_from(code: Code, start: Name, size: int, least: int, n: int) -> tuple[Name, Name]:
    """Where a part of an axis begins and ends; the last part, which reaches `least`, goes to the end."""
    stop = code.emit(f"add nuw nsw i64 {start}, {size}")
    is_inside = code.emit(f"icmp slt i64 {stop}, {least}")
    return start, code.emit(f"select i1 {is_inside}, i64 {stop}, i64 {n}")


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
    nest: Nest
    helpers: Helpers

    def __post_init__(self) -> None:
        folds, lengths, strides = self.nest.folds, self.nest.lengths, self.nest.strides
        self.n = lengths[-1]
        self.least = min([self.n, *(s.length for s in self.nest.steps if s.length)])
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
        return self.nest.strides[id(fold.target)][0] if self.rows > 1 else 0

    def _is_shared(self, fold: Fold) -> bool:
        """Whether several parts reduce to one number."""
        return (self.blocks > 1 or self._row_step(fold) == 0) and self.nest.strides[id(fold.target)][-1] == 0

    def is_worth_it(self) -> bool:
        """Whether there are enough parts and work, and each reduction is of a row, or its order does not matter."""
        if self.parts < 2 or self.partial_results > MOST_PARTIAL_RESULTS:
            return False
        lengths = self.nest.lengths
        for fold in () if self.columns else self.nest.folds:
            in_order = len(lengths) <= 2 or fold.counts is not None
            if self._row_step(fold) == 0 and (any(self.nest.strides[id(fold.target)]) or not in_order):
                return False
        vectors = math.prod(lengths[:-1]) * math.ceil(self.n / WIDTH)
        return vectors * self.nest.innermost(Code(self.code.module)).instructions(CALL) >= LEAST_WORK

    def write(self, scratch: Name) -> None:
        """Write the function of the parts, and its call. `scratch` has the partial results."""
        code, module, nest = self.code, self.code.module, self.nest
        outside: dict[Name, str] = dict.fromkeys(nest.pointers.values(), "ptr")
        outside[scratch] = "ptr"
        operands: list[Any] = [x for step in nest.steps for x in step.operands] + [f.operand for f in nest.folds]
        for x in operands:
            if isinstance(x, (Uniform, Registers)) and x.element.startswith("%"):
                outside[x.element] = "i1" if x.boolean else "double"
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
            fold, step = nest.folds[k], self._row_step(nest.folds[k])

            def add(part: Name, number: int = number, fold: Fold = fold, step: int = step) -> None:
                target = nest.pointers[id(fold.target)]
                if step:
                    target = code.element(target, code.emit(f"udiv i64 {part}, {self.blocks}"), step)
                place = code.element(scratch, code.emit(f"add i64 {part}, {number * self.parts}"))
                code.store(fold.how.join(one, code.load(target), code.load(place)), target)

            code.loop(self.parts, add)

    def _write_parts(self, task: Code, scratch: Name) -> None:
        def part(number: Name) -> None:
            nest, block = self.nest, number
            if self.rows > 1:
                row = number if self.blocks == 1 else task.emit(f"udiv i64 {number}, {self.blocks}")
                block = task.emit(f"urem i64 {number}, {self.blocks}")
                nest = nest.row(task, row)
            at = dict(nest.pointers)
            for first, k in enumerate(self.shared):
                place = task.element(scratch, task.emit(f"add i64 {number}, {first * self.parts}"))
                task.store(literal(nest.folds[k].how.start), place)
                at[id(nest.folds[k].target)] = place
            nest = replace(nest, pointers=at)
            if self.columns:
                start = task.emit(f"mul nuw nsw i64 {number}, {self.columns}")
                nest.write(task, part_from(task, start, self.columns, self.n, self.n))
            elif self.blocks > 1:
                start = task.emit(f"mul nuw nsw i64 {block}, {BLOCK}")
                nest.innermost(task).write(*part_from(task, start, BLOCK, self.least, self.n))
            else:
                nest.write(task)

        task.loop("%last", part, "%first")


def is_transposed(source: Buffer, target: Buffer) -> bool:
    """Whether source[:, j] and target[i, :] are contiguous, and there is a block to copy."""
    same = source.shape == target.shape and len(source.shape) == 2 and min(source.shape) >= WIDTH
    return same and not source.boolean and source.strides[0] == 1 == target.strides[1] != source.strides[1]


def copy_blocks(code: Code, source: Buffer, target: Buffer) -> list[tuple[slice, slice]]:
    """Copy all whole blocks of 8 × 8 numbers, transposed in registers; returns the parts that are left."""
    m, n = source.shape
    rows, columns = m - m % WIDTH, n - n % WIDTH
    vector, read, written = Simd(code, WIDTH), source.pointer(code), target.pointer(code)

    def across(i: Name) -> None:
        left, right = code.element(read, i), code.element(written, i, target.strides[0])

        def block(j: Name) -> None:
            first, last = code.element(left, j, source.strides[1]), code.element(right, j)
            lines = [vector.load(code.element(first, str(k * source.strides[1]))) for k in range(WIDTH)]
            for k, line in enumerate(vector.transposed(lines)):
                vector.store(line, code.element(last, str(k * target.strides[0])))

        code.loop(columns, block, step=WIDTH)

    code.loop(rows, across, step=WIDTH)
    left = [(slice(rows), slice(columns, n)), (slice(rows, m), slice(n))]
    return [part for part, is_empty in zip(left, (columns == n, rows == m), strict=True) if not is_empty]
