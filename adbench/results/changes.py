"""Changes of a cell's time between two runs: by the clock, and relative to other backends of its run.

The clock alone misleads: a machine that is busier or warmer on the second day slows everything, and launches of one day
agree so well that any test calls the difference significant. The ratio to another backend of the same launches, taken
round by round, cancels effects on the whole run. But that backend may have changed too. So the clock must agree, after
subtracting the change that most backends of the group share. Two backends have no majority: the one whose clock changed
more is taken to have changed, and the reference only if the other's clock hardly changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from adbench.measure.statistics import log_ratios
from adbench.model.record import Job, group_of, grouped
from adbench.results.comparison_inputs import ComparisonInput, Key, Sample
from adbench.results.matched_samples import Array

MOST_MUST_AGREE = 3
"""The fewest backends whose shared change is subtracted from the clock: two have no majority."""


@dataclass(frozen=True)
class Pair:
    """A cell that both runs timed."""

    key: Key
    old: Sample
    new: Sample

    @property
    def clock(self) -> float:
        """The change of the log seconds per call: positive is slower."""
        return float(np.median(self.new.launches) - np.median(self.old.launches))


@dataclass(frozen=True)
class Change:
    """The change of a cell: one logarithm for each launch of either run.

    old, new      relative to `compared_to`, or by the clock
    compared_to   the backends that the cell is compared to; empty for a change by the clock
    clock         the change by the clock, less the group's shared change; None for two machines
    other         in a group of two, the other cell's change by the clock; else None
    steady        whether it is the reference, which needs more evidence of a change
    """

    old: Array
    new: Array
    compared_to: tuple[str, ...] = ()
    clock: float | None = None
    other: float | None = None
    steady: bool = False

    def by_clock_too(self, sign: int, edge: float) -> bool:
        """Whether the clock agrees that the cell changed by more than `edge` in the direction of `sign`."""
        if not self.compared_to or self.clock is None:
            return True
        return clock_agrees(self.clock, self.other, sign, edge, steady=self.steady)


def clock_agrees(clock: float, other: float | None, sign: int, edge: float, *, steady: bool) -> bool:
    """Whether the clock shows a change by more than `edge` in the direction of `sign`; see `Change` for the others."""
    if other is not None and not abs(other) < (edge / 2 if steady else abs(clock)):
        return False
    return sign * clock > edge


def pairs(old: ComparisonInput, new: ComparisonInput) -> list[Pair]:
    """The cells that are timed and correct in both runs, in the order of the old run."""
    both = ((key, sample, new.samples.get(key)) for key, sample in old.samples.items())
    return [Pair(key, a, b) for key, a, b in both if b is not None and a.timed and b.timed]


def common_reference(old: ComparisonInput, new: ComparisonInput, timed: Sequence[Pair]) -> str | None:
    """The backend that both runs can be compared to: the reference of one of them, if both timed it."""
    backends = {pair.key.backend for pair in timed if isinstance(pair.key, Job)}
    return next((name for name in (old.reference, new.reference) if name in backends), None)


def by_the_clock(pair: Pair) -> Change:
    """The change of the times themselves."""
    return Change(pair.old.launches, pair.new.launches)


def relative(
    group: Sequence[Pair], reference: str | None, *, same_machine: bool
) -> Iterator[tuple[Pair, Change | None]]:
    """Each cell of a group with its change relative to the reference. The reference, and cells of a group without one,
    are compared to the middle of the others. None if there is nothing to compare to.
    """
    shared = median(pair.clock for pair in group) if same_machine and len(group) >= MOST_MUST_AGREE else 0.0
    named = {_backend(pair): pair for pair in group}
    for pair in group:
        others = [other for other in group if other is not pair]
        if reference in named and _backend(pair) != reference:
            others = [named[reference]]
        ratios = [
            (log_ratio_of_launches(pair.old, other.old), log_ratio_of_launches(pair.new, other.new)) for other in others
        ]
        ratios = [(a, b) for a, b in ratios if a and b]
        # Each ratio has its own level; relative to the old level they are comparable, and have a median.
        levels = [median(a.values()) for a, _ in ratios]
        rows = [middle([ratio[side] for ratio in ratios], levels) for side in (0, 1)]
        if not all(map(len, rows)):
            yield pair, None
            continue
        names, steady = tuple(_backend(other) for other in others), _backend(pair) == reference
        if same_machine:
            other = others[0].clock if len(group) == 2 else None
            yield pair, Change(rows[0], rows[1], names, pair.clock - shared, other, steady)
        else:  # two backends on two machines have one ratio, which belongs to the other
            yield pair, None if steady and len(group) == 2 else Change(rows[0], rows[1], names)


def groups(timed: Iterable[Pair]) -> list[list[Pair]]:
    """Cells that differ only in the backend. A benchmark of another program is a separate group."""
    found = grouped(timed, lambda pair: group_of(pair.key) if isinstance(pair.key, Job) else pair.key)
    return list(found.values())


def _backend(pair: Pair) -> str:
    return pair.key.backend if isinstance(pair.key, Job) else pair.key


def log_ratio_of_launches(a: Sample, b: Sample) -> dict[int, float]:
    """The median over rounds of the log ratio, for each common launch; rounds are paired by position."""
    found = {}
    for number in sorted(a.logs.keys() & b.logs.keys()):
        rounds = min(len(a.logs[number]), len(b.logs[number]))
        ratio = float(log_ratios(a.logs[number][:rounds], b.logs[number][:rounds]))
        if math.isfinite(ratio):
            found[number] = ratio
    return found


def middle(ratios: Sequence[dict[int, float]], levels: Sequence[float]) -> Array:
    """The median of the ratios relative to their levels, for each launch that all have."""
    common = sorted(set.intersection(*(set(ratio) for ratio in ratios))) if ratios else []
    return np.array(
        [median(ratio[k] - level for ratio, level in zip(ratios, levels, strict=True)) for k in common], np.float64
    )
