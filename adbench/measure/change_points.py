"""Where a series of runs changes: at which run, by how much, and how well both are known.

A change begins or ends a stretch of runs whose launches are higher (or lower) than those of the runs around it, by more
than a margin. The stretches are those of circular binary segmentation (Olshen, Venkatraman, Lucito and Wigler,
Biostatistics 5 (2004) 557), but the test is the one-sided one of Mann and Whitney in unpaired.py, which outliers do not
disturb. All stretches of all series count as tests (Bonferroni): of twenty sets of series without a change, at most one
has a change point. As in statistics.py, the numbers are logarithms, one for each launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from adbench.measure.statistics import SIGNIFICANT, Interval
from adbench.measure.unpaired import FEWEST, at_most, exceeds_p, shift

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ChangePoint:
    """A change between two runs of a series, by their numbers from 0.

    first      the first run after the change
    earliest, latest   the change came with one of these runs or between them; of the others, a test at 5 % says that
               they belong to the other side
    shift      of the launches, relative to those between this change and the one before
    p          of a change within the margin, adjusted for all tests
    """

    first: int
    earliest: int
    latest: int
    shift: Interval
    p: float


def change_points(runs: Sequence[Array], edge: float, tests: int = 1) -> list[ChangePoint]:
    """The changes by more than `edge` in a series, oldest first. Each run has one number for each of its launches.

    tests   how many series are examined together
    """
    splits = _splits(runs, edge, tests)
    splits = _confirmed(runs, splits, edge, tests)
    ends = [0, *splits, len(runs)]
    points = []
    for before, k, after in zip(ends, ends[1:], ends[2:], strict=False):
        old, new = _joined(runs[before:k]), _joined(runs[k:after])
        place = _earliest(runs, before, k, new), _latest(runs, k, after, old)
        points.append(ChangePoint(k, *place, shift(new, old), _p(new, old, edge) * _family(len(runs), tests)))
    return [point for point in points if point.p <= SIGNIFICANT]


def can_decide(runs: Sequence[Array], tests: int = 1) -> bool:
    """Whether the launches suffice for any change to be significant."""
    sizes = np.array([len(run) for run in runs])
    half = sizes.sum() // 2
    return half >= FEWEST and _family(len(runs), tests) / math.comb(int(sizes.sum()), int(half)) <= SIGNIFICANT


def _family(runs: int, tests: int) -> int:
    """How many tests are made: every stretch in both directions, in every series."""
    return max(1, runs * (runs - 1) * tests)


def _splits(runs: Sequence[Array], edge: float, tests: int) -> list[int]:
    """The ends of significant stretches, found again and again in the parts between them."""
    higher, lower = _Wins(runs, edge), _Wins([-run for run in runs], edge)
    splits: set[int] = set()
    todo = [(0, len(runs))]
    while todo:
        a, b = todo.pop()
        best = min(_stretches(higher, lower, a, b), default=None)
        if best is None or best[0] * _family(len(runs), tests) > SIGNIFICANT:
            continue
        _, _, i, j = best
        ends = [a, *(k for k in (i, j) if a < k < b), b]
        splits |= set(ends[1:-1])
        todo += list(pairwise(ends))
    return sorted(splits)


def _stretches(higher: _Wins, lower: _Wins, a: int, b: int) -> Iterator[tuple[float, float, int, int]]:
    """(p, minus the share of pairs that agree, i, j) of the runs i to j against the others from a to b."""
    for i in range(a, b):
        for j in range(i + 1, b + 1):
            if (i, j) == (a, b):
                continue
            for wins in (higher, lower):
                decided = wins.p(i, j, a, b)
                if decided:
                    yield (*decided, i, j)


class _Wins:
    """How many pairs of launches differ by at most `edge`, summed over runs: a stretch costs a few look-ups."""

    def __init__(self, runs: Sequence[Array], edge: float) -> None:
        counts = np.array([[np.count_nonzero(new[:, None] - old[None, :] <= edge) for old in runs] for new in runs])
        self._sums = np.zeros((len(runs) + 1, len(runs) + 1), dtype=np.int64)
        self._sums[1:, 1:] = counts.cumsum(0).cumsum(1)
        self._sizes = np.concatenate([[0], np.cumsum([len(run) for run in runs])])

    def p(self, i: int, j: int, a: int, b: int) -> tuple[float, float] | None:
        """(p, minus the share of pairs that differ by more) of runs i to j against the others from a to b."""
        n = int(self._sizes[j] - self._sizes[i])
        m = int(self._sizes[b] - self._sizes[a]) - n
        if min(n, m) < FEWEST:
            return None
        u = self._within(i, j, a, i) + self._within(i, j, j, b)
        return at_most(min(n, m), max(n, m), u), u / (n * m) - 1

    def _within(self, i: int, j: int, k: int, end: int) -> int:
        sums = self._sums
        return int(sums[j, end] - sums[i, end] - sums[j, k] + sums[i, k])


def _confirmed(runs: Sequence[Array], splits: list[int], edge: float, tests: int) -> list[int]:
    """The splits at which the parts on both sides still differ; the least certain one goes first."""
    while splits:
        ends = [0, *splits, len(runs)]
        p = [
            _p(_joined(runs[k:after]), _joined(runs[before:k]), edge)
            for before, k, after in zip(ends, ends[1:], ends[2:], strict=False)
        ]
        worst = max(range(len(p)), key=p.__getitem__)
        if p[worst] * _family(len(runs), tests) <= SIGNIFICANT:
            break
        del splits[worst]
    return splits


def _p(new: Array, old: Array, edge: float) -> float:
    """Of a change within the margin, in the direction in which they differ more."""
    if min(len(new), len(old)) < FEWEST:
        return 1.0
    return min(exceeds_p(new, old, edge), exceeds_p(old, new, edge))


def _earliest(runs: Sequence[Array], before: int, k: int, new: Array) -> int:
    """The first run that may be new: no test separates the runs from there to k from the new ones."""
    return next((i + 1 for i in range(k - 1, before, -1) if _differ(_joined(runs[i:k]), new)), before + 1)


def _latest(runs: Sequence[Array], k: int, after: int, old: Array) -> int:
    """The last run that may be the first new one."""
    return next((i for i in range(k, after - 1) if _differ(_joined(runs[k : i + 1]), old)), after - 1)


def _differ(some: Array, others: Array) -> bool:
    return 2 * min(exceeds_p(some, others), exceeds_p(others, some)) <= SIGNIFICANT


def _joined(runs: Sequence[Array]) -> Array:
    return np.concatenate(list(runs))
