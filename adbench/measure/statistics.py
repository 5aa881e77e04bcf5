"""From launches to a verdict: the comparison of two calls, its uncertainty, and its word.

The launch (a fresh process) is the unit: two processes of the same code differ by a stable amount, so rounds of one
process tell nothing about the next. Each launch gives one number, by `log_ratios`. All methods here use only these
numbers, and assume only that they are independent and symmetric about their centre.

Differences are logarithms of ratios: 0 means equal, and a against b is minus b against a.

Sources: Wilcoxon, Biometrics Bulletin 1 (1945) 80; Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963) 598;
Pratt, Journal of the American Statistical Association 54 (1959) 655; Holm, Scandinavian Journal of Statistics 6 (1979)
65.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

FEWEST_LAUNCHES = 4
"""The fewest launches for an interval; with three, the widest covers the truth three times in four."""

SIGNIFICANT = 0.05
"""The allowed share of runs without any difference that call a pair faster or slower."""

LOOKS = (4, 5, 6, 8, 12, 20)
"""After so many launches a group may stop, if what it asks is decided."""

EARLY = 0.004
"""Of SIGNIFICANT, what each look before the planned last one spends."""

_AT_ONCE = 2**22  # averages held in memory at a time: 32 MiB

Array = NDArray[np.float64]
Word = Literal["faster", "slower", "equivalent", "inconclusive"]


@dataclass(frozen=True)
class Interval:
    """An estimate and an interval that contains the truth with probability `level`, the actual coverage."""

    estimate: float
    low: float
    high: float
    level: float

    @property
    def reach(self) -> float:
        """The largest distance of the interval from 0."""
        return max(abs(self.low), abs(self.high))

    def exp(self) -> Interval:
        """The interval of the ratio, from one of its logarithm."""
        return Interval(math.exp(self.estimate), math.exp(self.low), math.exp(self.high), self.level)


def log_ratios(log_a: Array, log_b: Array) -> Array:
    """The log ratios of many launches, shape (…, rounds) -> (…): the median of log_a - log_b, NaN if no round pairs.

    A NaN marks a missing round. Pairing removes effects on a whole round (a drift of the clock rate), the median those
    on one call of a pair (an interrupt).
    """
    difference = log_a - log_b
    missing = np.isnan(difference)
    if difference.size and not missing.any():
        return np.asarray(np.median(difference, axis=-1))
    paired = ~missing.all(axis=-1)
    medians = np.full(paired.shape, np.nan)
    if paired.any():
        medians[paired] = np.nanmedian(difference[paired], axis=-1)
    return medians


def hodges_lehmann(x: ArrayLike, level: float = 0.95) -> Interval:
    """The centre of symmetry of the launches' numbers x: the median of the averages (x[i] + x[j]) / 2, i ≤ j.

    The ends are averages chosen by the exact distribution of the signed-rank statistic, so that the interval covers the
    centre with probability `level` or more for any distribution; its own `level` is the actual coverage. With too few
    launches (five attain 93.75 %) it is the widest interval, from the least to the largest number, as its level shows.

    Raises ValueError for fewer than FEWEST_LAUNCHES numbers, a non-finite one, or a level outside (0, 1).
    """
    row = np.asarray(x, np.float64)
    if row.ndim != 1 or row.size < FEWEST_LAUNCHES:
        raise ValueError(f"an interval needs {FEWEST_LAUNCHES} launches or more; got {row.size}")
    return hodges_lehmann_rows(row[None, :], level)[0]


def hodges_lehmann_rows(x: Array, level: float = 0.95) -> list[Interval]:
    """`hodges_lehmann` of every row, shape (many, launches)."""
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval must be between 0 and 1; got {level}")
    if not np.isfinite(x).all():
        raise ValueError("the numbers of launches must be finite")
    n = x.shape[1]
    i, j = np.triu_indices(n)
    steps, attained = _steps(n, level)
    step = max(1, _AT_ONCE // len(i))
    intervals: list[Interval] = []
    for rows in (x[k : k + step] for k in range(0, len(x), step)):
        averages = np.sort((rows[:, i] + rows[:, j]) / 2, axis=1)
        ends = np.stack([np.median(averages, axis=1), averages[:, steps], averages[:, -1 - steps]], axis=1)
        intervals += [Interval(estimate, low, high, attained) for estimate, low, high in ends.tolist()]
    return intervals


def wilcoxon_p_rows(x: Array) -> Array:
    """The signed-rank test that the launches' numbers are symmetric about 0: two-sided, exact, for every row.

    Equal sizes share their mean rank; zeros are ranked without a sign (Pratt). The distribution is that of the actual
    ranks, so it is exact for these too. Numbers that are all 0 give 1.
    """
    n = x.shape[1]
    a, b = np.abs(x)[:, :, None], np.abs(x)[:, None, :]
    ranks = (2 * (b < a) + (b == a)).sum(axis=2) + 1  # mean ranks, doubled because one may be a half
    ranks[x == 0] = 0
    smaller = np.minimum((ranks * (x > 0)).sum(axis=1), (ranks * (x < 0)).sum(axis=1))
    ordinary = (np.sort(ranks, axis=1) == 2 * np.arange(1, n + 1)).all(axis=1)
    p = np.minimum(1.0, 2 * _cumulative(tuple(range(1, n + 1)))[smaller // 2])
    for k in np.flatnonzero(~ordinary):
        p[k] = min(1.0, 2 * _cumulative(tuple(sorted(ranks[k].tolist())))[smaller[k]])
    return np.asarray(p)


def difference_p_rows(x: Array) -> Array:
    """The p-values for verdicts, shape (many, launches) -> (many,): Wilcoxon's, or Student's if all launches have the
    same sign and it is lower.

    Ranks of n launches cannot give less than 2^(1-n), which is 0.8 % for eight. Among seven comparisons, Holm's
    correction would then call nothing significant, even a factor of ten. So when the ranks are exhausted, the mean of
    launches relative to their scatter decides. For a single comparison of six launches or more, the decision at 5 % is
    always Wilcoxon's.
    """
    exact, n = wilcoxon_p_rows(x), x.shape[1]
    agree = np.abs(np.sign(x).sum(axis=1)) == n
    if n < 2 or not agree.any():
        return exact
    with np.errstate(divide="ignore"):  # exactly equal launches have no scatter
        student = np.abs(x[agree].mean(axis=1)) / (x[agree].std(axis=1, ddof=1) / math.sqrt(n))
    exact[agree] = np.minimum(exact[agree], [2 * student_tail(n - 1, t) for t in student.tolist()])
    return exact


def student_tail(freedom: int, t: float) -> float:
    """P(T > t) of Student's distribution, for t ≥ 0: half the regularised incomplete beta function."""
    return _tail_beyond(freedom, freedom / (freedom + t * t))


@lru_cache(maxsize=256)
def student_quantile(freedom: int, tail: float) -> float:
    """The t with P(T > t) = tail of Student's distribution, for 0 < tail ≤ 1/2."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail_beyond(freedom, middle) < tail else (low, middle)
    return math.sqrt(freedom * (1 - high) / high)


def _tail_beyond(freedom: int, share: float) -> float:
    """P(T > t) where share = freedom / (freedom + t²)."""
    return float(arb(share).beta_lower(arb(freedom) / 2, arb(0.5), regularized=True)) / 2


def looks(planned: int) -> dict[int, float]:
    """Number of launches -> the share of SIGNIFICANT that a look after these spends; the last one has the rest.

    The plan is fixed before the first launch, so that all shares together are SIGNIFICANT, whenever a group stops
    (Bonferroni over looks).
    """
    early = [launches for launches in LOOKS if launches < planned]
    return dict.fromkeys(early, EARLY) | {planned: SIGNIFICANT - EARLY * len(early)}


def sequential_p_rows(x: Array, planned: int) -> Array:
    """`difference_p_rows`, valid whenever the launches stop: the least over all looks so far, each divided by
    the share that its look spends.

    A row that ends between two looks has lost launches: it counts as the next look.
    """
    least, n = np.ones(len(x)), x.shape[1]
    for launches, share in looks(planned).items():
        if launches <= n:
            rows = x if launches == planned else x[:, :launches]
            least = np.minimum(least, difference_p_rows(rows) * (SIGNIFICANT / share))
        if launches >= n:
            if launches > n:
                least = np.minimum(least, difference_p_rows(x) * (SIGNIFICANT / share))
            break
    return least


def sequential_interval_rows(x: Array, planned: int) -> list[Interval]:
    """`hodges_lehmann` of every row, at 95 % whenever the launches stop.

    Of launches that stopped before the plan's end, ranks alone give no interval that allows for having looked before:
    it is then at least Student's with the error that the look spends.
    """
    intervals, n = hodges_lehmann_rows(x), x.shape[1]
    if n >= planned:
        return intervals
    half = student_quantile(n - 1, EARLY / 2) * x.std(axis=1, ddof=1) / math.sqrt(n)
    ends = zip(intervals, (x.mean(axis=1) - half).tolist(), (x.mean(axis=1) + half).tolist(), strict=True)
    return [Interval(i.estimate, min(i.low, low), max(i.high, high), 1 - SIGNIFICANT) for i, low, high in ends]


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values of a family of tests: the k-th smallest of m times m - k + 1, made monotone, at most 1.

    Calling adjusted values up to α significant errs anywhere in the family with probability at most α, however the
    tests depend on each other.

    Raises ValueError for a number that is not a probability.
    """
    values = np.asarray(p, np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values must be between 0 and 1")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return [float(value) for value in adjusted]


def verdict_word(interval: Interval, p_adjusted: float, margin: float) -> Word:
    """The verdict on a against b, from the interval of the times' log(a / b) and a margin such as 0.02 for 2 %.

    equivalent     the whole interval lies within the margin, so a difference is too small to matter, even if certain.
                   Its level must be at least 90 %, the usual test of equivalence at 5 %
    faster,        the difference is significant at 5 % after correction for all comparisons, and the interval excludes
    slower         0
    inconclusive   neither: use more launches or a quieter machine

    Raises ValueError for a margin that is not positive.
    """
    check_margin(margin)
    edge = math.log1p(margin)
    if interval.level >= 0.9 and -edge <= interval.low and interval.high <= edge:
        return "equivalent"
    if p_adjusted <= SIGNIFICANT and (interval.high < 0 or interval.low > 0):
        return "faster" if interval.high < 0 else "slower"
    return "inconclusive"


def check_margin(margin: float) -> None:
    """Raise ValueError for a margin that is not positive."""
    if not 0 < margin < math.inf:
        raise ValueError(f"a margin must be positive, such as 0.05 for 5 %; got {margin}")


@lru_cache(maxsize=256)
def _cumulative(ranks: tuple[int, ...]) -> Array:
    """P(T ≤ t), t = 0 … Σ ranks, where T sums each rank with probability 1/2."""
    chance: Array = np.ones(1)
    for rank in ranks:
        chance = (np.pad(chance, (0, rank)) + np.pad(chance, (rank, 0))) / 2
    return np.cumsum(chance)


@lru_cache(maxsize=256)
def _steps(n: int, level: float) -> tuple[int, float]:
    return left_out(_cumulative(tuple(range(1, n + 1))), level)


def left_out(cumulative: Array, level: float) -> tuple[int, float]:
    """The number of sorted values that an interval of this level omits at either end, and its coverage.

    cumulative   P(T ≤ t), t = 0, 1, …, of the statistic that counts them
    """
    steps = max(0, int(np.searchsorted(2 * cumulative, 1 - level, side="right")) - 1)
    return steps, float(1 - 2 * cumulative[steps])
