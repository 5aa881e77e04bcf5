"""Two unpaired samples: launches of one run against launches of another.

All methods use ranks (Mann and Whitney, Annals of Mathematical Statistics 18 (1947) 50), so one outlier among the
launches changes nothing. The numbers are logarithms, as in statistics.py: a shift of log 1.1 is ten per cent.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adbench.measure.statistics import Interval, left_out

FEWEST = 4
"""The fewest launches of each run for an interval."""

NORMAL = NormalDist()

_EXACT_UP_TO = 10_000  # pairs; beyond, the normal approximation errs by less than 0.001

Array = NDArray[np.float64]


def shift(new: ArrayLike, old: ArrayLike, level: float = 0.95) -> Interval:
    """The upward shift of the new numbers: the median of all differences new[i] - old[j] (Hodges and Lehmann).

    The ends are differences chosen by the exact distribution of the Mann-Whitney statistic, so that the interval
    contains the shift with probability `level` or more; its own `level` is the actual one.

    Raises ValueError for fewer than FEWEST numbers in a sample, or a non-finite one.
    """
    differences = np.sort(_differences(new, old), axis=None)
    n, m = len(np.atleast_1d(new)), len(np.atleast_1d(old))
    if min(n, m) < FEWEST:
        raise ValueError(f"an interval needs {FEWEST} launches or more of each run; got {n} and {m}")
    steps, attained = _steps(min(n, m), max(n, m), level)
    return Interval(float(np.median(differences)), float(differences[steps]), float(differences[-1 - steps]), attained)


def exceeds_p(new: ArrayLike, old: ArrayLike, by: float = 0.0) -> float:
    """One-sided p-value of the hypothesis that the new numbers are higher by at most `by`; small if they are higher by
    more.

    A pair at exactly `by` counts for the hypothesis, so equal numbers are never significant.

    Raises ValueError for an empty sample or a non-finite number.
    """
    differences = _differences(new, old)
    n, m = sorted(differences.shape)
    return at_most(n, m, int((differences <= by).sum()))


def least_p(n: int, m: int) -> float:
    """The smallest possible p-value of n launches against m."""
    return 1 / math.comb(n + m, n)


def _differences(new: ArrayLike, old: ArrayLike) -> Array:
    a, b = np.asarray(new, np.float64), np.asarray(old, np.float64)
    if a.ndim != 1 or b.ndim != 1 or not a.size or not b.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(f"a comparison needs finite numbers in both runs; got {a.size} and {b.size}")
    return np.asarray(a[:, None] - b[None, :])


def at_most(n: int, m: int, u: int) -> float:
    """P(U ≤ u) under equal distributions, where U counts the pairs with the first number below the second."""
    if n * m > _EXACT_UP_TO:
        return NORMAL.cdf((u + 0.5 - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12))
    return float(_cumulative(n, m)[u])


@lru_cache(maxsize=256)
def _cumulative(n: int, m: int) -> Array:
    """P(U ≤ u), u = 0 … n m, by the largest of all numbers: with probability n / (n + m) it is one of the n, and then
    above all of the m.
    """
    above: list[Array] = [np.ones(1) for _ in range(m + 1)]  # [j]: the distribution for i and j numbers
    for i in range(1, n + 1):
        row: list[Array] = [np.ones(1)]
        for j in range(1, m + 1):
            chance = np.zeros(i * j + 1)
            chance[j:] += above[j] * (i / (i + j))
            chance[: i * (j - 1) + 1] += row[j - 1] * (j / (i + j))
            row.append(chance)
        above = row
    return np.minimum(1.0, np.cumsum(above[m]))


@lru_cache(maxsize=256)
def _steps(n: int, m: int, level: float) -> tuple[int, float]:
    """The number of differences to omit at either end, and the coverage."""
    if n * m > _EXACT_UP_TO:
        middle, spread = n * m / 2, math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, math.floor(middle - 0.5 + NORMAL.inv_cdf((1 - level) / 2) * spread)), level
    return left_out(_cumulative(n, m), level)
