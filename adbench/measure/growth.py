"""Growth of a cost with the size, and the break-even call count of a slower preparation.

The model is t = c + a n^b: a constant part c (call overhead: checking arguments, launching a kernel) and a growing
part. A straight line through log t against log n would bias b by the constant part of small sizes; so c is fitted too,
by least squares of relative deviations over all sizes. The scatter is judged between launches, which are independent,
and not between sizes, where it mostly shows that no real cost is a power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adbench.measure.statistics import FEWEST_LAUNCHES, Interval, hodges_lehmann, student_quantile

FEWEST_SIZES = 3
LEAST_GROWTH = 1.5
"""If the largest size takes less than this times the smallest, growth cannot be separated from the constant part."""
LEAST_SHARE = 0.1
"""The least share of the growing part in t with which a size determines the exponent; two sizes need it."""
VAGUE = 0.5
"""A wider interval, on either side, does not distinguish n from n² and is not reported."""
STEEPEST = 8.0
"""The largest exponent in the search."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Growth:
    """The exponent b of t = c + a n^b, or the reason why it is missing.

    exponent   b with its interval; 0 means growth like log n or slower
    basis      of the interval: "launches", one exponent each, or, with too few launches, "sizes", the distances of
               sizes from the curve (by Student's t)
    constant   c in the unit of the cost, at least 0; None if the fit cannot determine it
    misfit     the largest distance of a size from the curve, as a share: large if the cost is not a power of n, which
               the interval over launches does not show
    sizes      the fitted sizes
    by_launch  each launch's exponent, if the interval is based on these
    """

    exponent: Interval | None
    basis: Literal["launches", "sizes"] | None = None
    constant: float | None = None
    misfit: float | None = None
    sizes: tuple[int, ...] = ()
    by_launch: tuple[float, ...] = ()
    reason: str | None = None


def growth(sizes: Sequence[int], costs: ArrayLike) -> Growth:
    """Fit the exponent to costs of shape (launches, sizes), all positive.

    Raises ValueError unless costs are positive, and sizes ascend from 1 or more.
    """
    t, sizes = _checked(sizes, costs), tuple(sizes)
    typical = np.exp(np.log(t).mean(axis=0))
    missing = _too_little(sizes, typical)
    if missing:
        return Growth(None, sizes=sizes, reason=missing)
    by_launches = len(t) >= FEWEST_LAUNCHES
    fits = _fit(sizes, np.vstack([typical, t]) if by_launches else typical[None, :])
    b, constant, misfit = float(fits.b[0]), float(fits.c[0]), float(np.abs(1 - fits.curve[0] / typical).max())
    if np.count_nonzero(1 - constant / typical >= LEAST_SHARE) < 2:
        return Growth(None, sizes=sizes, reason=f"only n = {sizes[-1]} exceeds the constant part; add larger sizes")
    interval = hodges_lehmann(fits.b[1:]) if by_launches else _between_sizes(sizes, typical, fits)
    if (interval.high - interval.low) / 2 > VAGUE:
        spread = f"somewhere between {interval.low:.1f} and {interval.high:.1f}"
        return Growth(None, sizes=sizes, reason=f"{spread}: use more sizes or launches")
    shown = max(0.0, constant) if b > 0.05 else None  # below, a power resembles a constant
    if by_launches:
        return Growth(interval, "launches", shown, misfit, sizes, tuple(fits.b[1:].tolist()))
    if len(sizes) == FEWEST_SIZES:
        return Growth(interval, "sizes", sizes=sizes)
    return Growth(interval, "sizes", shown, misfit, sizes)


def break_even(prepare_a: float, per_call_a: float, prepare_b: float, per_call_b: float) -> float | None:
    """The break-even call count: from there on a, slower to prepare and faster per call, has cost no more than b.

    prepare_a + N per_call_a = prepare_b + N per_call_b. 0 if a costs no more from the start; None if a call of a is not
    cheaper, so that a never breaks even.

    Raises ValueError for a negative or non-finite cost.
    """
    costs = (prepare_a, per_call_a, prepare_b, per_call_b)
    if not all(0 <= cost < math.inf for cost in costs):
        raise ValueError(f"costs must be finite and not negative; got {costs}")
    if prepare_a <= prepare_b and per_call_a <= per_call_b:
        return 0.0
    if per_call_a >= per_call_b:
        return None
    return max(0.0, (prepare_a - prepare_b) / (per_call_b - per_call_a))


def _checked(sizes: Sequence[int], costs: ArrayLike) -> Array:
    t = np.asarray(costs, np.float64)
    if t.ndim != 2 or t.shape[1] != len(sizes) or not len(t):
        raise ValueError(f"costs need a row for each launch and a column for each size; got shape {t.shape}")
    if not (np.isfinite(t).all() and (t > 0).all()):
        raise ValueError("costs must be positive")
    if any(n < 1 for n in sizes) or any(n >= m for n, m in pairwise(sizes)):
        raise ValueError(f"sizes must ascend from 1 or more; got {tuple(sizes)}")
    return t


def _too_little(sizes: Sequence[int], typical: Array) -> str | None:
    """Why no fit gives an exponent; None if one may."""
    if len(sizes) < FEWEST_SIZES:
        return f"an exponent needs {FEWEST_SIZES} sizes; there are figures at {len(sizes)}"
    if typical[-1] < LEAST_GROWTH * typical[0]:
        times = f"{typical[-1] / typical[0]:.2g}"
        return f"n = {sizes[-1]} takes only {times} times as long as n = {sizes[0]}, too little for an exponent"
    return None


def _powers(sizes: Sequence[int], b: Array) -> Array:
    """((n / n_0)^b - 1) / b, shape (…,) -> (…, sizes): a power up to a constant and a factor; log n at b = 0."""
    log_n = np.log(np.asarray(sizes, np.float64) / sizes[0])
    safe = np.where(b == 0, 1.0, b)[..., None]
    return np.where(b[..., None] == 0, log_n, np.expm1(safe * log_n) / safe)


@dataclass(frozen=True)
class _Fits:
    """t = c + a n^b for each row, and the fitted costs, shape (rows, sizes). At b = 0, a log n: c = -inf."""

    b: Array
    c: Array
    slope: Array  # a b, also finite there
    curve: Array


def _fit(sizes: Sequence[int], t: Array) -> _Fits:
    """Least squares of the relative deviations of each row.

    For a given b the best c and a are linear least squares, so only b is searched: over a grid, then finer ones, and
    finally at the minimum of a parabola.
    """
    step, grid = 0.25, np.linspace(0, STEEPEST, round(STEEPEST / 0.25) + 1)[None, :]
    for _ in range(4):
        squares, *_ = _given(sizes, t, grid)
        at = np.argmin(squares, axis=1)[:, None]
        best = np.take_along_axis(np.broadcast_to(grid, squares.shape), at, axis=1)
        step, grid = step / 5, np.clip(best + step * np.linspace(-1, 1, 11), 0, STEEPEST)
    b = np.clip(best + 5 * step * _bottom(squares, at), 0, STEEPEST)
    _, level, slope, curve = (solution[:, 0] for solution in _given(sizes, t, b))
    with np.errstate(divide="ignore"):
        return _Fits(b[:, 0], level - slope / b[:, 0], slope, curve)


def _bottom(squares: Array, at: Array) -> Array:
    """The minimum of the parabola through the least value and its neighbours, in steps from it; 0 at an end."""
    last = squares.shape[1] - 1
    before, least, after = (np.take_along_axis(squares, np.clip(at + k, 0, last), axis=1) for k in (-1, 0, 1))
    bend = before - 2 * least + after
    inside = (at > 0) & (at < last) & (bend > 0)
    return np.where(inside, 0.5 * (before - after) / np.where(inside, bend, 1.0), 0.0)


def _given(sizes: Sequence[int], t: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """(squares, level, slope, fitted) of the best level + slope * powers for each b, shape (launches, exponents).

    Squares are of relative deviations, so that all sizes have the same weight.
    """
    powers, weight = _powers(sizes, b), 1 / t**2
    weight /= weight.sum(axis=1, keepdims=True)
    off_cost = t - (weight * t).sum(axis=1, keepdims=True)
    mean_power = np.matmul(powers, weight[:, :, None])[..., 0]
    off = powers - mean_power[..., None]
    slope = np.matmul(off, (weight * off_cost)[:, :, None])[..., 0] / np.matmul(off**2, weight[:, :, None])[..., 0]
    left = off_cost[:, None, :] - slope[..., None] * off
    level = (t - off_cost)[:, :1] - slope * mean_power
    return ((left / t[:, None, :]) ** 2).sum(axis=-1), level, slope, t[:, None, :] - left


def _between_sizes(sizes: Sequence[int], t: Array, fits: _Fits, level: float = 0.95) -> Interval:
    """The exponent of one row with the interval of the regression; for three sizes from log t against log n alone."""
    log_n = np.log(np.asarray(sizes, np.float64) / sizes[0])
    if len(sizes) == FEWEST_SIZES:  # with a constant no degree of freedom would remain
        design = np.stack([np.ones_like(t), log_n], axis=1)
        coefficients = np.linalg.lstsq(design, np.log(t))[0]
        b, residuals = float(coefficients[1]), np.log(t) - design @ coefficients
    else:
        b, residuals = float(fits.b[0]), 1 - fits.curve[0] / t
        powers = _powers(sizes, fits.b[:1])[0]
        by_b = (np.exp(b * log_n) * log_n - powers) / b if b > 1e-3 else 0.5 * log_n**2  # ∂powers/∂b
        design = np.stack([np.ones_like(t), fits.slope[0] * by_b, powers], axis=1) / t[:, None]
    freedom = len(sizes) - design.shape[1]
    variance = float(residuals @ residuals) / freedom * float(np.linalg.pinv(design.T @ design)[1, 1])
    half = math.sqrt(variance) * student_quantile(freedom, (1 - level) / 2)
    return Interval(b, b - half, b + half, level)
