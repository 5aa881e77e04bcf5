"""Functions of one variable on arrays in float64, with bounds that balls prove.

The line is cut into cells. At the centre of a cell, balls give the Taylor coefficients of the function, and over the
whole cell the coefficient of the remainder. Horner's scheme in float64 bounds its own roundings. No error of numpy's or
scipy's functions needs to be assumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_series
from numpy.typing import NDArray

from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, Insufficient, Special, arithmetic
from adbench.oracle.series.namespace import lift_deadlines, namespace_of
from adbench.oracle.series.number import Real
from adbench.vocabulary import FUNCTIONS

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

DEGREE = 10
BITS = 320
"""Of the balls: coefficients that are zero, as that of x in x - tanh x, vanish next to those of small numbers."""
LEVELS = ((-3, False), (-6, False), (-5, True))
"""Widths of cells, as powers of two, and whether they are relative to the numbers: the first with a small remainder."""
WIDE = 1024.0
"""Cells of larger numbers have the relative width."""
SMALL_REMAINDER = 2.0**-46
CHUNK = 1 << 15
"""Numbers at a time, which stay in the processor's cache."""
U = 2.0**-53
UP = 1 + 2.0**-48
"""Covers 16 roundings of a radius."""
TINY = 2.0**-1000
"""More than what a product loses by underflow, even where numbers below the normal ones are flushed to zero."""
NOTHING = np.full((2, DEGREE + 2), np.nan)


@lru_cache(maxsize=200_000)
def cell(function: Callable[[Any], Any], centre: float, width: float) -> NDArray[np.float64]:
    """Middles and radii of the coefficients at the centre, and of the last one over [centre - width, centre + width].

    function: of `Real`. NaN if the remainder is not small.
    """
    with arithmetic(Arithmetic(BITS, terms=DEGREE + 2)):
        try:
            series = [function(Real(arb_series([at, 1], DEGREE + 2))).ball for at in (arb(centre), arb(centre, width))]
        except (Insufficient, ArithmeticError, ValueError):
            return NOTHING
        if any(isinstance(one, Special) or not (ball.is_series(one) and one.prec > DEGREE + 1) for one in series):
            return NOTHING
        numbers = [series[0][k] for k in range(DEGREE + 1)] + [series[1][DEGREE + 1]]
        middles = [float(number.mid()) for number in numbers]
        radii = [
            float(abs(number - arb(middle)).upper()) * UP if math.isfinite(middle) else math.inf
            for number, middle in zip(numbers, middles, strict=True)
        ]
    sizes = [(abs(m) + r) * width**k for k, (m, r) in enumerate(zip(middles, radii, strict=True))]
    if not sizes[-1] <= SMALL_REMAINDER * max(sizes):
        return NOTHING
    return np.array([middles, radii])


def by_name(name: str) -> tuple[Callable[[Any], Any], tuple[float, float]]:
    """A function of the vocabulary on `Real`, and its limits."""
    lift_deadlines()  # of a reference that took too long
    row = FUNCTIONS.get(name)
    return getattr(namespace_of(Real), name), (row and row.limits) or (math.nan, math.nan)


@dataclass(frozen=True)
class Pieces:
    """A function near numbers: for each one its cell, and the distance from the centre.

    rows      (cells, 2, DEGREE + 2): `cell`; the first is empty
    which     the row of each number
    step      its distance from the centre, exact
    rad       the radius of the number
    ends      exact values at infinities, and NaN elsewhere
    """

    rows: NDArray[np.float64]
    which: NDArray[np.int64]
    step: Floats
    rad: Floats
    ends: Floats

    @staticmethod
    def of(function: Callable[[Any], Any], limits: tuple[float, float], mid: Floats, rad: Floats) -> Pieces:
        """The pieces of a function of `Real`; limits: its values at -∞ and ∞, NaN if unknown."""
        x, radii = mid.reshape(-1), np.broadcast_to(rad, mid.shape).reshape(-1)
        which, step = np.zeros(x.size, dtype=np.int64), np.zeros(x.size)
        rows = [NOTHING[None]]
        for level, is_relative in LEVELS:
            left = np.flatnonzero((which == 0) & np.isfinite(x) & ((x != 0) | (not is_relative)))
            if not left.size:
                continue
            numbers = x[left]
            exponent = np.full(left.size, level)
            scaled = is_relative | (np.abs(numbers) >= WIDE)
            exponent[scaled] = np.frexp(numbers[scaled])[1] - 1 + LEVELS[-1][0]
            multiple = np.rint(np.ldexp(numbers, -exponent))
            keys, inverse = np.unique(exponent * (1 << 32) + multiple.astype(np.int64), return_inverse=True)
            powers = (keys + (1 << 31)) >> 32
            widths = np.ldexp(1.0, powers)
            centres = (keys - (powers << 32)) * widths
            made = np.array([cell(function, *each) for each in zip(centres.tolist(), widths.tolist(), strict=True)])
            is_known = ~np.isnan(made[:, 0, 0])[inverse] & (radii[left] <= widths[inverse] / 2)
            which[left] = np.where(is_known, inverse + sum(map(len, rows)), 0)
            step[left] = numbers - centres[inverse]
            rows.append(made)
        ends = np.full(x.size, np.nan)
        for infinity, limit in zip((-math.inf, math.inf), limits, strict=True):
            ends[(x == infinity) & np.isfinite(radii)] = limit
        shape = mid.shape
        parts = (which, step, radii, ends)
        return Pieces(np.concatenate(rows), *(part.reshape(shape) for part in parts))  # type: ignore[arg-type]

    def value(self) -> Bounds:
        """Midpoints and radii of the function."""
        return self._evaluated(self.rows, self.ends)

    def slope(self) -> Bounds:
        """Midpoints and radii of its derivative."""
        rows = self.rows[:, :, 1:] * np.arange(1, DEGREE + 2)
        rows[:, 1] = (rows[:, 1] + U * np.abs(rows[:, 0])) * UP
        return self._evaluated(rows, np.where(np.isfinite(self.ends), 0.0, np.nan))

    def _evaluated(self, rows: NDArray[np.float64], ends: Floats) -> Bounds:
        mid, rad = np.empty(self.step.size), np.empty(self.step.size)
        which, step, radii = self.which.reshape(-1), self.step.reshape(-1), self.rad.reshape(-1)
        for start in range(0, mid.size, CHUNK):
            part = slice(start, start + CHUNK)
            mid[part], rad[part] = _horner(rows, which[part], step[part], radii[part])
        ends = ends.reshape(-1)
        at_end = ~np.isnan(ends)
        mid[at_end] = ends[at_end]
        rad[at_end] = np.where(ends[at_end] == np.rint(ends[at_end]), 0.0, 2 * U * np.abs(ends[at_end]))
        return mid.reshape(self.step.shape), np.where(np.isnan(mid), np.inf, rad).reshape(self.step.shape)


def _horner(rows: NDArray[np.float64], which: NDArray[np.int64], step: Floats, radii: Floats) -> Bounds:
    """The polynomials at step ± radii."""
    found = rows[which]
    reach = np.abs(step) + radii
    mid, rad = found[:, 0, -1], found[:, 1, -1]
    for k in range(rows.shape[2] - 2, -1, -1):
        product = mid * step
        rad = rad * reach + np.abs(mid) * radii + U * np.abs(product)
        mid = product + found[:, 0, k]
        rad = (rad + found[:, 1, k] + U * np.abs(mid)) * UP
    return mid, np.where(step == 0, rad, rad + TINY)
