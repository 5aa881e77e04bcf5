"""A loop over a large array as a function of its blocks, which threads can share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adbench.tape.compiled.kernels.simd import WIDTH, Code, Name, Simd, literal
from adbench.tape.compiled.lowering.loops.fused_steps import Fold, Operand, Step
from adbench.tape.compiled.lowering.loops.innermost_axis import BLOCK, InnermostAxis
from adbench.tape.compiled.lowering.storage import Buffer, Registers, Uniform

LEAST_WORK = 400_000
"""Instructions on vectors from which a loop is shared: 20 to 40 µs. Waking a thread takes a few."""
CALL = 20
"""Instructions on vectors that take the time of a call of the C library."""


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


class ParallelLoop:
    """One loop over a single axis, block by block.

    scratch   the address of memory for this many doubles
    """

    def __init__(
        self,
        code: Code,
        steps: Sequence[Step],
        folds: Sequence[Fold],
        n: int,
        strides: dict[int, int],
        pointers: dict[int, Name],
        helpers: Helpers,
    ) -> None:
        self.code = code
        self.steps = steps
        self.folds = folds
        self.n = n
        self.strides = strides
        self.pointers = pointers
        self.helpers = helpers
        self.least = min([n, *(s.length for s in steps if s.length)])
        self.blocks = math.ceil(self.least / BLOCK)

    def is_worth_it(self) -> bool:
        """Whether the loop has enough blocks and work, and reductions to single numbers only."""
        if self.blocks < 2 or any(self.strides[id(fold.target)] for fold in self.folds):
            return False
        probe = InnermostAxis(Code(self.code.module), self.steps, self.folds, self.n, self.strides, self.pointers)
        return self.n / WIDTH * probe.instructions(CALL) >= LEAST_WORK

    def write(self, scratch: Name) -> None:
        """Write the function of the blocks, and its call. `scratch` has a double per reduction and block."""
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
        inside: dict[Name, Name] = {}
        for slot, (name, kind) in enumerate(outside.items()):
            place = task.emit(f"getelementptr inbounds i64, ptr %shared, i64 {slot}")
            inside[name] = task.load(place, "i64" if kind == "i1" else kind)
            if kind == "i1":
                inside[name] = task.emit(f"trunc i64 {inside[name]} to i1")
        self._write_blocks(task, inside, inside[scratch])
        task.do("ret void")
        module.function(f"internal void @{function}(ptr %shared, i64 %first, i64 %last)", task)
        h = self.helpers
        parallel, pool, start = (module.outside(code, ("helpers", k), k) for k in (h.function, h.pool, h.start))
        code.do(
            f"call void {parallel}(ptr {pool}, ptr @{function}, ptr {shared}, i64 {self.blocks}, i64 {h.count}, "
            f"ptr {start})"
        )
        one = Simd(code, 1)
        for k, fold in enumerate(self.folds):
            target = self.pointers[id(fold.target)]

            def add(b: Name, k: int = k, fold: Fold = fold, target: Name = target) -> None:
                place = code.element(scratch, code.emit(f"add i64 {b}, {k * self.blocks}"))
                code.store(fold.how.join(one, code.load(target), code.load(place)), target)

            code.loop(self.blocks, add)

    def _write_blocks(self, task: Code, inside: dict[Name, Name], scratch: Name) -> None:
        def moved(x: Operand) -> Operand:
            if isinstance(x, Uniform):
                return replace(x, element=inside.get(x.element, x.element))
            if isinstance(x, Registers):
                return replace(x, elements=(inside.get(x.elements[0], x.elements[0]),))
            return x

        same: dict[int, Operand] = {}

        def once(x: Operand) -> Operand:
            return x if isinstance(x, (int, Buffer)) else same.setdefault(id(x), moved(x))

        steps = [replace(step, operands=[once(x) for x in step.operands]) for step in self.steps]
        folds = [replace(fold, operand=once(fold.operand)) for fold in self.folds]  # type: ignore[arg-type]
        pointers = {key: inside[name] for key, name in self.pointers.items()}

        def block(b: Name) -> None:
            for k, fold in enumerate(folds):
                place = task.element(scratch, task.emit(f"add i64 {b}, {k * self.blocks}"))
                task.store(literal(fold.how.start), place)
                pointers[id(fold.target)] = place
            start = task.emit(f"mul nuw nsw i64 {b}, {BLOCK}")
            stop = task.emit(f"add nuw nsw i64 {start}, {BLOCK}")
            is_full = task.emit(f"icmp slt i64 {stop}, {self.least}")
            axis = InnermostAxis(task, steps, folds, self.n, self.strides, pointers)
            axis.write(start, task.emit(f"select i1 {is_full}, i64 {stop}, i64 {self.n}"))

        task.loop("%last", block, "%first")
