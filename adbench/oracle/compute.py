"""Makes references: picks the entries and directions, and the strongest method that works for the function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.oracle.differences import UNIT_ROUNDOFF, slope
from adbench.oracle.leaves import FloatArray, Point, argument_names, direction_signs
from adbench.oracle.reference import Direction, Entry, Known, Leaf, Reference

DIFFERENCES = "nine-point differences in double precision"

EVALUATIONS_PER_SLOPE = 60
"""Typical cost of one nine-point slope: used to turn a budget of evaluations into a number of entries."""


def reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    *,
    seed: int = 0,
    max_entries: int = 64,
    max_directions: int = 4,
    max_evaluations: int = 20_000,
    names: Sequence[str] | None = None,
) -> Reference:
    """What is known about f(*args) and its derivatives in the arguments ``wrt``.

    f runs on floats and float64 arrays and returns a scalar. All entries are examined where there are at most
    ``max_entries``, else that many, drawn with ``seed``, and ``max_directions`` random directions over all of them.
    About ``max_evaluations`` calls of f at most: fewer entries are taken where they would not do.
    """
    point = Point(args, wrt, names or argument_names(f, len(args)))
    total = sum(leaf.values.size for leaf in point.leaves)
    whole = total <= max_entries and total * EVALUATIONS_PER_SLOPE <= max_evaluations
    directions = max_directions if total and not whole else 0
    affordable = max_evaluations // EVALUATIONS_PER_SLOPE - directions
    sample = chosen_entries([leaf.values.size for leaf in point.leaves], max(1, min(max_entries, affordable)), seed)
    return by_differences(f, point, sample, directions, seed)


def chosen_entries(sizes: Sequence[int], most: int, seed: int) -> list[list[int]]:
    """Flat indices to examine, per leaf: all where they fit, else an equal share of ``most`` for each leaf.

    A leaf smaller than its share leaves the rest to the others; first and last entry are always among the chosen:
    that is where loops and slices go wrong.
    """
    rng = np.random.default_rng([seed, 0x5A])
    chosen: list[list[int]] = [[] for _ in sizes]
    left = most
    for rank, which in enumerate(sorted(range(len(sizes)), key=lambda k: sizes[k])):
        share = max(1, left // (len(sizes) - rank))
        size = sizes[which]
        if size <= share:
            chosen[which] = list(range(size))
        else:
            ends = [0, size - 1][:share]
            drawn = (rng.choice(size - 2, share - len(ends), replace=False) + 1).tolist() if share > 2 else []
            chosen[which] = sorted({*ends, *map(int, drawn)})
        left -= len(chosen[which])
    return chosen


def by_differences(
    f: Callable[..., Any],
    point: Point,
    sample: Sequence[Sequence[int]],
    directions: int,
    seed: int,
    reason: str = "",
) -> Reference:
    """The reference that needs nothing but f itself, in double precision."""
    value, evaluations = _value(f, point, seed)
    leaves: list[Leaf] = []
    for k, leaf in enumerate(point.leaves):
        entries: list[Entry] = []
        for index in sample[k]:
            unit = np.zeros(leaf.values.size)
            unit[index] = 1.0
            one = [None] * k + [unit.reshape(leaf.values.shape)] + [None] * (len(point.leaves) - k - 1)
            derivative, calls = _slope_along(f, point, one, abs(float(leaf.values.flat[index])))
            entries.append(Entry(index, derivative))
            evaluations += calls
        shape = tuple(map(int, leaf.values.shape))
        leaves.append(Leaf(leaf.position, leaf.keys, leaf.path, shape, leaf.scale, tuple(entries)))
    found: list[Direction] = []
    for number in range(directions):
        signs = direction_signs(seed, number, [leaf.values.shape for leaf in point.leaves])
        steps = [sign * leaf.scale for sign, leaf in zip(signs, point.leaves, strict=True)]
        derivative, calls = _slope_along(f, point, steps, 1.0)
        found.append(Direction(number, derivative))
        evaluations += calls
    return Reference(
        value,
        len(point.wrt),
        tuple(leaves),
        tuple(found),
        seed,
        DIFFERENCES,
        reason,
        evaluations,
        point.constants,
    )


def _slope_along(
    f: Callable[..., Any], point: Point, step: Sequence[FloatArray | None], size: float
) -> tuple[Known, int]:
    def along(t: float) -> float:
        return nearby_value(f, point.moved([None if part is None else t * part for part in step]))

    found = slope(along, size)
    return Known(found.lower, found.upper, found.bar, 0.0, found.kind), found.evaluations


def nearby_value(f: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """`plain_value`, NaN where f raises: a stencil may step out of the domain."""
    try:
        return plain_value(f, args)
    except (ArithmeticError, ValueError):
        return math.nan


def plain_value(f: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """f(*args) as a float; NaN where f leaves the real numbers."""
    with np.errstate(all="ignore"):
        result = f(*args)
    array = np.asarray(result)
    if array.size != 1:
        raise TypeError(f"the function must return one number, it returned an array of shape {array.shape}")
    number = array.reshape(())[()]
    if np.iscomplexobj(number):
        return float(number.real) if number.imag == 0 else math.nan
    return float(number)


def _value(f: Callable[..., Any], point: Point, seed: int, draws: int = 6) -> tuple[Known, int]:
    """f(x), and how far it moves when every input moves by a rounding: what another order of operations may give."""
    plain = plain_value(f, point.moved([None] * len(point.leaves)))
    if not math.isfinite(plain):
        return Known(plain, plain, 0.0, 0.0, "unknown" if math.isnan(plain) else "infinite"), 1
    rng = np.random.default_rng([seed, 0x7A])
    moves = [
        [rng.uniform(-2, 2, leaf.values.shape) * UNIT_ROUNDOFF * np.abs(leaf.values) for leaf in point.leaves]
        for _ in range(draws)
    ]
    near = [nearby_value(f, point.moved(move)) for move in moves]
    spread = max((abs(other - plain) for other in near if math.isfinite(other)), default=0.0)
    return Known(plain, plain, spread + UNIT_ROUNDOFF * abs(plain)), 1 + draws
