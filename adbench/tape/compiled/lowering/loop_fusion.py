"""Loop fusion: neighbouring elementwise operations and reductions in one pass over arrays.

A `FusedLoops` is a set of operations over the same index space. It reads each element of an outside array once, keeps
intermediate values in registers, and writes only values that are used later. Axes along which all arrays are contiguous
become one axis. If the last axis is shorter than eight elements, the longest becomes the last.

Sums use 32 partial sums, combined every 4096 elements (see `loops.innermost_axis`). This is as accurate as numpy's
pairwise sum, and does not depend on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adbench.tape.compiled.lowering.loops.fused_steps import MAXIMUM, MINIMUM, PRODUCT, SUM, Fold, FusedStep, Reduction
from adbench.tape.compiled.lowering.loops.loop_nest import Helpers, Nest, ParallelLoop
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Shape, last_axis
from adbench.tape.compiled.trace.symbol import ALL, ANY
from adbench.tape.core.rule import Rule
from adbench.tape.machine.simd import Code, Name, literal
from adbench.tape.rules import reductions, shapes

REDUCTIONS: dict[Rule, Reduction] = {
    reductions._sum: SUM,
    shapes._sum_to: SUM,
    reductions._prod: PRODUCT,
    reductions._max: MAXIMUM,
    reductions._min: MINIMUM,
    ANY: SUM,
    ALL: SUM,
}
"""Reductions. `ANY` counts the true elements, `ALL` the false ones."""


@dataclass(eq=False)
class FusedLoops:
    """Operations over one index space, written as one loop nest.

    helpers, scratch   threads that share a large loop, if any, and memory for its partial results
    """

    code: Code
    shape: Shape
    helpers: Helpers | None = None
    scratch: Callable[[int], Name] | None = None
    steps: list[FusedStep] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)

    def emit(self) -> None:
        """Write the loops."""
        if math.prod(self.shape) == 0:
            return
        self._drop_unused()
        arrays = self._arrays()
        lengths, each = long_axis_last(*collapsed(self.shape, [_aligned(a, self.shape) for a in arrays]))
        pointers = {id(a): a.pointer(self.code) for a in arrays}
        strides = dict(zip(map(id, arrays), each, strict=True))
        nest = Nest(self.steps, self.folds, lengths, strides, pointers).summed_axis_late()
        if self.helpers is not None and self.scratch is not None:
            loop = ParallelLoop(self.code, nest, self.helpers)
            if loop.is_worth_it():
                loop.write(self.scratch(max(loop.partial_results, 1)))
                return
        nest.write(self.code)

    def _drop_unused(self) -> None:
        """Drop operations whose results are neither stored nor read."""
        read = {fold.operand for fold in self.folds if isinstance(fold.operand, int)}
        kept = []
        for step in reversed(self.steps):
            if step.stores or step.key in read:
                kept.append(step)
                read |= step.reads()
        self.steps = kept[::-1]

    def _arrays(self) -> list[Buffer]:
        arrays: dict[int, Buffer] = {}
        for step in self.steps:
            for x in (*step.operands, *step.stores):
                if isinstance(x, Buffer):
                    arrays[id(x)] = x
        for fold in self.folds:
            for y in (fold.operand, fold.target):
                if isinstance(y, Buffer):
                    arrays[id(y)] = y
        return list(arrays.values())


def sum_of(code: Code, write: Callable[..., Name], operands: Sequence[int | Location]) -> Registers:
    """The sum of write(*elements) over arrays of one shape."""
    total = code.variable("[1 x double]")
    code.store(literal(0.0), total)
    fused = FusedLoops(code, operands[0].shape)  # type: ignore[union-attr]
    fused.steps.append(FusedStep(0, write, operands))
    fused.folds.append(Fold(SUM, 0, Buffer(total, 0, (0,), fused.shape)))
    fused.emit()
    return Registers((code.load(total),), ())


def _aligned(array: Buffer, shape: Shape) -> list[int]:
    """An array's strides, broadcast to an index space."""
    lead = len(shape) - len(array.shape)
    return [0] * lead + [0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)]


def collapsed(shape: Shape, strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The index space with fewer axes: axes contiguous in every array are merged, axes of length 1 dropped."""
    lengths: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if lengths and all(k[-1] == s[axis] * n for k, s in zip(merged, strides, strict=True)):
            lengths[-1] *= n
            for k, s in zip(merged, strides, strict=True):
                k[-1] = s[axis]
        else:
            lengths.append(n)
            for k, s in zip(merged, strides, strict=True):
                k.append(s[axis])
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, merged


def long_axis_last(lengths: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """The index space in another order if its last axis is shorter than a vector: the longest axis last."""
    axis = last_axis(lengths)
    if axis == len(lengths) - 1:
        return lengths, strides
    order = [*(a for a in range(len(lengths)) if a != axis), axis]
    return [lengths[a] for a in order], [[s[a] for a in order] for s in strides]
