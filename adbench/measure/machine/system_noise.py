"""System noise: the share of a second that a busy process gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import quantiles
from time import perf_counter_ns

from adbench.measure.machine.disturbance import Counters, counters, grown

Clock = Callable[[], int]

GAP_NS = 10_000  # between two clock readings; undisturbed ones are 100 ns apart
PIECE = 1000  # readings; about 0.1 ms


@dataclass(frozen=True)
class Noise:
    """The interruptions.

    ns, gaps, taken_ns, longest_ns   the duration; the number of gaps, their sum and the longest
    spread                           of the durations of equal pieces of work: interquartile range / median
    switches, stolen_ms              meanwhile, from the system (disturbance.py)
    """

    ns: int
    gaps: int
    taken_ns: int
    longest_ns: int
    spread: float | None
    switches: int
    stolen_ms: float | None

    @property
    def taken(self) -> float:
        """The share of time that others took."""
        return self.taken_ns / self.ns if self.ns else 0.0


def measure_noise(
    ns: int = 1_000_000_000, *, clock: Clock = perf_counter_ns, watch: Callable[[], Counters] = counters
) -> Noise:
    """Read the clock continuously for about `ns` nanoseconds, and count the gaps."""
    gaps: list[int] = []
    marks: list[int] = []
    before = watch()
    start = last = clock()
    while last - start < ns:
        marks.append(last)
        for _ in range(PIECE):
            now = clock()
            if now - last > GAP_NS:
                gaps.append(now - last)
            last = now
    after = watch()
    pieces = [late - early for early, late in pairwise([*marks, last])]
    low, middle, high = quantiles(pieces, n=4) if len(pieces) > 1 else (0.0, 0.0, 0.0)
    return Noise(
        ns=last - start,
        gaps=len(gaps),
        taken_ns=sum(gaps),
        longest_ns=max(gaps, default=0),
        spread=(high - low) / middle if middle else None,
        switches=after.switches - before.switches,
        stolen_ms=None if after.stolen_ms is None else grown(before.stolen_ms, after.stolen_ms),
    )


def clock_step_ns(*, readings: int = 10_000, clock: Clock = perf_counter_ns) -> int | None:
    """The smallest difference between two consecutive clock readings: the larger of its resolution and a reading's
    cost. None if the clock did not move."""
    shown = [clock() for _ in range(readings)]
    return min((late - early for early, late in pairwise(shown) if late > early), default=None)
