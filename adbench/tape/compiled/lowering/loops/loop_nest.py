"""Nested loops over the axes of an index space."""

from __future__ import annotations

from collections.abc import Sequence

from adbench.tape.compiled.lowering.loops.fused_steps import Fold, FusedStep
from adbench.tape.compiled.lowering.loops.innermost_axis import BLOCK, InnermostAxis
from adbench.tape.machine.simd import WIDTH, Code, Name

SHORT = 8
"""The most indices of an axis whose sums stay in registers."""
Strides = dict[int, Sequence[int]]
"""The id of an array -> its strides."""
Pointers = dict[int, Name]
"""The id of an array -> the address of its first element."""


def write_nest(
    code: Code,
    steps: Sequence[FusedStep],
    folds: Sequence[Fold],
    lengths: Sequence[int],
    strides: Strides,
    at: Pointers,
    part: tuple[Name, Name] | None = None,
) -> None:
    """Write the loops over axes of these lengths; a long last axis with reductions in blocks.

    part   the first element of the last axis and the one after the last, if not all
    """
    if len(lengths) == 2 and lengths[0] <= SHORT and is_summed(folds, strides, 0):
        axis = InnermostAxis(code, steps, folds, lengths[1], {key: s[-1] for key, s in strides.items()}, at)
        if axis.repeats([in_row(code, strides, at, str(i)) for i in range(lengths[0])]):
            write_axis(code, axis, part)
            return
    if len(lengths) > 1:
        rest = {key: s[1:] for key, s in strides.items()}

        def row(i: Name) -> None:
            write_nest(code, steps, folds, lengths[1:], rest, in_row(code, strides, at, i), part)

        code.loop(lengths[0], row)
        return
    write_axis(
        code, InnermostAxis(code, steps, folds, lengths[0], {key: s[-1] for key, s in strides.items()}, at), part
    )


def write_axis(code: Code, axis: InnermostAxis, part: tuple[Name, Name] | None) -> None:
    """Write the innermost loop, in blocks if it is long."""
    if part or axis.least <= BLOCK or not axis.folds:
        axis.write(*part or ())
        return
    code.loop(axis.least, lambda start: write_block(code, axis, start), step=BLOCK)


def is_summed(folds: Sequence[Fold], strides: Strides, axis: int) -> bool:
    """Whether there are reductions, all of them along this axis, but not along the last."""
    targets = [strides[id(fold.target)] for fold in folds]
    return bool(targets) and all(s[axis] == 0 and s[-1] != 0 for s in targets)


def summed_axis_late(folds: Sequence[Fold], lengths: list[int], strides: Strides) -> tuple[list[int], Strides]:
    """The index space with a short axis of sums before the last, where its indices need no memory in between."""
    for a in range(len(lengths) - 2):
        if lengths[a] <= SHORT and lengths[-1] >= 2 * WIDTH and is_summed(folds, strides, a):
            order = [*range(a), *range(a + 1, len(lengths) - 1), a, len(lengths) - 1]
            return [lengths[k] for k in order], {key: [s[k] for k in order] for key, s in strides.items()}
    return lengths, strides


def in_row(code: Code, strides: Strides, at: Pointers, i: Name) -> Pointers:
    """The addresses for index i of the first axis."""
    return {key: p if strides[key][0] == 0 else code.element(p, i, strides[key][0]) for key, p in at.items()}


def write_block(code: Code, axis: InnermostAxis, start: Name) -> None:
    """Write one block of an axis."""
    axis.write(*part_from(code, start, BLOCK, axis.least, axis.n))


def part_from(code: Code, start: Name, size: int, least: int, n: int) -> tuple[Name, Name]:
    """Where a part of an axis begins and ends; the last part, which reaches `least`, goes to the end."""
    stop = code.emit(f"add nuw nsw i64 {start}, {size}")
    is_inside = code.emit(f"icmp slt i64 {stop}, {least}")
    return start, code.emit(f"select i1 {is_inside}, i64 {stop}, i64 {n}")
