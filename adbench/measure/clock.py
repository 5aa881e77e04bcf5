"""Time per call: warm up, choose how many calls make an epoch, time epochs.

A call here takes no arguments (they are bound before) and has finished when it returns (waiting is part of it).
All durations are nanoseconds of the monotonic clock; a clock can be handed in, so that tests do not sleep.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter_ns
from typing import Any

Clock = Callable[[], int]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Round:
    """`calls` calls in a row took `ns` nanoseconds, results waited for: one epoch.

    gc_ns       the part of it that the garbage collector took
    disturbed   why the figure is suspect, in words; None where nothing was seen
    """

    calls: int
    ns: int
    gc_ns: int = 0
    disturbed: str | None = None


@dataclass(frozen=True)
class WarmUp:
    """What warming up took. `steady`: the medians of its two halves differ by at most 2 %."""

    calls: int
    seconds: float
    steady: bool


def once(call: Call, *, clock: Clock = perf_counter_ns) -> tuple[Any, int]:
    """The result of one call, and how long it took."""
    start = clock()
    result = call()
    return result, clock() - start


def epoch(call: Call, calls: int, *, clock: Clock = perf_counter_ns) -> int:
    """How long `calls` calls in a row take.

    Garbage is collected before, and the collector stays on: a library's garbage is part of its cost.
    """
    gc.collect()
    start = clock()
    for _ in repeat(None, calls):
        call()
    return clock() - start


def warm_up(call: Call, *, at_least_ns: int, at_most_ns: int = 2_000_000_000, clock: Clock = perf_counter_ns) -> int:
    """Call at least three times and for `at_least_ns`, but start no call after `at_most_ns`; returns the number of
    calls."""
    start = clock()
    calls = 0
    while (elapsed := clock() - start) < at_most_ns and (calls < 3 or elapsed < at_least_ns):
        call()
        calls += 1
    return calls


def calls_per_epoch(call: Call, target_ns: int, *, clock: Clock = perf_counter_ns) -> int:
    """The number of calls that take about `target_ns`; 1 where one call takes longer.

    Doubles until the target is crossed twice in a row, since one slow call (an interrupt) may cross it by chance.
    """
    calls, crossed = 1, 0
    while True:
        ns = epoch(call, calls, clock=clock)
        crossed = crossed + 1 if ns >= target_ns else 0
        if crossed == 2 or (crossed and calls == 1):
            return max(1, round(calls * target_ns / ns))
        if not crossed:
            calls = max(calls + 1, min(calls * 2, round(calls * target_ns / max(ns, 1) * 1.2)))
