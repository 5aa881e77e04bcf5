"""Nested loops over the axes of an index space."""

from __future__ import annotations

from collections.abc import Sequence

from adbench.tape.compiled.kernels.simd import Code, Name
from adbench.tape.compiled.lowering.loops.fused_steps import Fold, Step
from adbench.tape.compiled.lowering.loops.innermost_axis import BLOCK, InnermostAxis

Strides = dict[int, Sequence[int]]
"""The id of an array -> its strides."""
Pointers = dict[int, Name]
"""The id of an array -> the address of its first element."""


def write_nest(
    code: Code,
    steps: Sequence[Step],
    folds: Sequence[Fold],
    lengths: Sequence[int],
    strides: Strides,
    at: Pointers,
    part: tuple[Name, Name] | None = None,
) -> None:
    """Write the loops over axes of these lengths; a long last axis with reductions in blocks.

    part   the first element of the last axis and the one after the last, if not all
    """
    if len(lengths) > 1:
        rest = {key: s[1:] for key, s in strides.items()}

        def row(i: Name) -> None:
            write_nest(code, steps, folds, lengths[1:], rest, in_row(code, strides, at, i), part)

        code.loop(lengths[0], row)
        return
    (n,) = lengths
    axis = InnermostAxis(code, steps, folds, n, {key: s[-1] for key, s in strides.items()}, at)
    if part or axis.least <= BLOCK or not folds:
        axis.write(*part or ())
        return
    code.loop(axis.least, lambda start: write_block(code, axis, start), step=BLOCK)


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
