"""The subject of a reference: a function at a point, the effort, and the examined numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from adbench.oracle.evidence import DOUBLE, Precision
from adbench.oracle.leaves import FloatArray, Point, output_weights
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Ball
from adbench.oracle.series.evaluation import one_number
from adbench.oracle.series.number import ball_of

SUMS = 2
"""Random sums of all outputs, examined if there are several."""


@dataclass(frozen=True)
class Subject:
    """A function at a point.

    plain      f(*args) on floats and float64 arrays
    point      the arguments, some of them active
    text       text(xp, *args): the same function on any namespace; None for a black box
    shape      of the value; () for a scalar
    place      place() -> the line of the source that runs now, for messages; "" if unknown
    """

    plain: Callable[..., Any]
    point: Point
    text: Callable[..., Any] | None = None
    shape: tuple[int, ...] = ()
    place: Callable[[], str] | None = None


@dataclass(frozen=True)
class Effort:
    """Limits for the examination, and the seed of all samples. If time is short, fewer entries are examined.

    max_entries      of the active arguments; if there are more, a sample and random directions over all of them
    max_directions   None: four for a scalar, two for each number of an array
    max_outputs      of an array; if there are more, the first, the last and a random sample
    max_evaluations  calls of f planned for differences
    max_seconds      planned for series
    second_differences   whether differences replace series for second derivatives; otherwise these are unknown
    enclosures       whether enclosures of all numbers may replace series that take too long
    against_values   whether the values decide where they contradict the derivative along a branch (branches.py)
    precision        the arithmetic whose rounding errors the reference states
    """

    seed: int = 0
    max_entries: int = 64
    max_directions: int | None = None
    max_outputs: int = 12
    max_evaluations: int = 20_000
    max_seconds: float = 3.0
    second_differences: bool = False
    enclosures: bool = False
    against_values: Callable[[], bool] = lambda: False
    precision: Precision = DOUBLE

    def directions_of(self, shape: tuple[int, ...]) -> int:
        """The most directions for each number of a value of this shape."""
        if self.max_directions is None:
            return 2 if shape else 4
        return self.max_directions


class ExaminedNumbers:
    """The examined numbers of a value: outputs, then weighted sums of all. A scalar has one output."""

    def __init__(self, shape: tuple[int, ...], effort: Effort) -> None:
        self.shape = shape
        (self.outputs,) = chosen_entries([math.prod(shape)], effort.max_outputs, effort.seed)
        self.weights = [output_weights(effort.seed, number, shape).ravel() for number in range(SUMS if shape else 0)]

    def exact(self, result: Any) -> list[Ball]:
        """The numbers of a result on series. Raises TypeError for another shape."""
        if not self.shape:
            return one_number(result)
        array = np.asarray(result, dtype=object)
        if array.shape != self.shape:
            raise TypeError(f"the function's value must have the shape {self.shape}; it has {array.shape}")
        balls = [ball_of(element) for element in array.ravel()]
        return [balls[index] for index in self.outputs] + [_weighted_sum(balls, weights) for weights in self.weights]

    def plain(self, result: Any) -> list[float]:
        """The numbers of a result in double precision; NaN for complex ones."""
        array = np.asarray(result)
        if not self.shape and array.size != 1:
            raise TypeError(f"the function must return one number; it returned an array of shape {array.shape}")
        if np.iscomplexobj(array):
            array = np.where(array.imag == 0, array.real, math.nan)
        array = array.astype(np.float64).ravel()
        sums = [math.fsum(array * weights) if np.isfinite(array).all() else math.nan for weights in self.weights]
        return [float(array[index]) for index in self.outputs] + sums

    def functions(self, f: Callable[..., Any]) -> list[Callable[..., float]]:
        """One function of f's arguments for each number, in double precision."""
        quiet = np.errstate(all="ignore")(f)  # a step may leave its domain
        values = _remembered(quiet) if self.shape else quiet

        def number(which: int) -> Callable[..., float]:
            return lambda *args: self.plain(values(*args))[which]

        return [number(which) for which in range(len(self.outputs) + len(self.weights))]


def nearby_value(f: Callable[..., float], args: tuple[Any, ...]) -> float:
    """f's value at a moved point, or NaN if it raises: a step may leave the domain, where a library may raise anything.

    Errors that say nothing about the domain stay errors: memory, and those with `is_refusal` (adbench.model.errors).
    """
    try:
        return f(*args)
    except MemoryError:
        raise
    except Exception as error:  # NaN says that it has no value here
        if getattr(error, "is_refusal", False):
            raise
        return math.nan


def along_line(f: Callable[..., float], point: Point, step: Sequence[FloatArray]) -> Callable[[float], float]:
    """t -> `nearby_value` of f at x + t step."""
    return lambda t: nearby_value(f, point.moved([t * part for part in step]))


def chosen_entries(sizes: Sequence[int], most: int, seed: int) -> list[list[int]]:
    """Flat indices to examine, per leaf: all if they fit, else an equal share of ``most`` for each leaf.

    A leaf smaller than its share leaves the rest to the others. The first and the last entry are always chosen, because
    loops and slices fail there.
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


def _weighted_sum(balls: Sequence[Ball], weights: FloatArray) -> Ball:
    total: Ball = ball.ZERO
    for number, weight in zip(balls, weights, strict=True):
        total = ball.add(total, ball.mul(number, ball.constant(float(weight))))
    return total


def _remembered(f: Callable[..., Any]) -> Callable[..., Any]:
    """f with cached values, because differences of all outputs use the same points."""
    kept: dict[bytes, Any] = {}

    def remembering(*args: Any) -> Any:
        nested: Any = args
        key = b"|".join(np.asarray(leaf).tobytes() for leaf in optree.tree_leaves(nested))
        if key not in kept:
            kept[key] = f(*args)
        return kept[key]

    return remembering
