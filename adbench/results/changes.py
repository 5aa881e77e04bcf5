"""By how much the time of a cell moved between two runs: by the clock, and against what was measured beside it.

The clock alone is not to be trusted: a machine that is busier or warmer on the second day makes everything slower, and
launches of one day agree with each other so well that any test calls it certain. What befalls a whole run cancels
where a cell is held against another backend of the same launches, round by round. That one should not have changed
itself; so the clock is asked as well, less what most backends of the group share. Of two there is no most: the one
whose clock moved more is believed to have moved, the reference only if the other's hardly did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from adbench.measure.statistics import log_ratios
from adbench.model.record import Job
from adbench.results.comparison_inputs import Key, Sample, Side
from adbench.results.matched_samples import Array

MOST_MUST_AGREE = 3
"""Backends from which on what most of them share is taken out of the clock: of two, neither is most."""


@dataclass(frozen=True)
class Pair:
    """A cell that both runs timed."""

    key: Key
    old: Sample
    new: Sample

    @property
    def clock(self) -> float:
        """The shift of the log seconds per call: positive is slower."""
        return float(np.median(self.new.launches) - np.median(self.old.launches))


@dataclass(frozen=True)
class Shift:
    """What is known of a cell's shift: one number for each launch of either run, in logarithms.

    old, new   against the backends beside it, or by the clock
    beside     the backends that the cell is held against; empty where it is by the clock
    clock      the shift by the clock, less what most of the group share; None where the clocks are of two machines
    other      in a group of two the shift of the other one by the clock: either may have moved; None in any other group
    steady     whether it is the reference, which is not lightly believed to have moved
    """

    old: Array
    new: Array
    beside: tuple[str, ...] = ()
    clock: float | None = None
    other: float | None = None
    steady: bool = False

    def by_clock_too(self, sign: int, edge: float) -> bool:
        """Whether the clock agrees that the cell moved by more than `edge` in the direction of `sign`."""
        if not self.beside or self.clock is None:
            return True
        if self.other is not None and not abs(self.other) < (edge / 2 if self.steady else abs(self.clock)):
            return False
        return sign * self.clock > edge


def pairs(old: Side, new: Side) -> list[Pair]:
    """The cells that both runs timed and that are right in both, in the order of the old one."""
    both = ((key, sample, new.samples.get(key)) for key, sample in old.samples.items())
    return [Pair(key, a, b) for key, a, b in both if b is not None and a.timed and b.timed]


def common_reference(old: Side, new: Side, timed: Sequence[Pair]) -> str | None:
    """The backend that both runs can be held against: the reference of the one or the other, if both timed it."""
    backends = {pair.key.backend for pair in timed if isinstance(pair.key, Job)}
    return next((name for name in (old.reference, new.reference) if name in backends), None)


def by_the_clock(pair: Pair) -> Shift:
    """The shift of the times themselves."""
    return Shift(pair.old.launches, pair.new.launches)


def beside(group: Sequence[Pair], reference: str | None, *, same_machine: bool) -> Iterator[tuple[Pair, Shift | None]]:
    """Each cell of a group with its shift against the reference; that of the reference itself, and of all where the
    group has no reference, against the middle of the others. None where there is nothing to hold it against.
    """
    shared = median(pair.clock for pair in group) if same_machine and len(group) >= MOST_MUST_AGREE else 0.0
    named = {_backend(pair): pair for pair in group}
    for pair in group:
        others = [other for other in group if other is not pair]
        if reference in named and _backend(pair) != reference:
            others = [named[reference]]
        ratios = [(_against(pair.old, other.old), _against(pair.new, other.new)) for other in others]
        ratios = [(a, b) for a, b in ratios if a and b]
        # Each ratio has a level of its own; from its old one they can be compared, and the middle is nobody's whim.
        levels = [median(a.values()) for a, _ in ratios]
        rows = [_middle([ratio[side] for ratio in ratios], levels) for side in (0, 1)]
        if not all(map(len, rows)):
            yield pair, None
            continue
        names, steady = tuple(_backend(other) for other in others), _backend(pair) == reference
        if same_machine:
            other = others[0].clock if len(group) == 2 else None
            yield pair, Shift(rows[0], rows[1], names, pair.clock - shared, other, steady)
        else:  # of two on two machines, there is only the one ratio, and it is the other's
            yield pair, None if steady and len(group) == 2 else Shift(rows[0], rows[1], names)


def groups(timed: Iterable[Pair]) -> list[list[Pair]]:
    """Cells that differ in the backend only. What is no cell of adbench is a group of its own."""
    found: dict[object, list[Pair]] = {}
    for pair in timed:
        key = pair.key
        name = (key.case, key.size, key.operator, key.seed) if isinstance(key, Job) else key
        found.setdefault(name, []).append(pair)
    return list(found.values())


def _backend(pair: Pair) -> str:
    return pair.key.backend if isinstance(pair.key, Job) else pair.key


def _against(a: Sample, b: Sample) -> dict[int, float]:
    """The median over rounds of the log ratio, of each launch that both have; rounds pair by place."""
    found = {}
    for number in sorted(a.logs.keys() & b.logs.keys()):
        rounds = min(len(a.logs[number]), len(b.logs[number]))
        ratio = float(log_ratios(a.logs[number][:rounds], b.logs[number][:rounds]))
        if math.isfinite(ratio):
            found[number] = ratio
    return found


def _middle(ratios: Sequence[dict[int, float]], levels: Sequence[float]) -> Array:
    """The median of what each ratio lies above its level, of every launch that all have."""
    common = sorted(set.intersection(*(set(ratio) for ratio in ratios))) if ratios else []
    return np.array(
        [median(ratio[k] - level for ratio, level in zip(ratios, levels, strict=True)) for k in common], np.float64
    )
