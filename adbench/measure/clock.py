"""Time per call: warm up, choose how many calls make an epoch, time epochs.

A call here takes no arguments (`bind` bound them before) and has finished when it returns (waiting is part of it).
All durations are nanoseconds of the monotonic clock; a clock can be handed in, so that tests do not sleep.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import repeat, starmap
from operator import length_hint
from statistics import median
from time import perf_counter_ns
from typing import Any

from adbench.measure.machine.disturbance import Counters, counters, disturbed

Clock = Callable[[], int]
Call = Callable[[], Any]

STEADY = 0.02  # the halves of a warm-up may differ by this share of the smaller one
SAMPLES = 200  # a warm-up is timed in about this many parts: enough for two medians, and not a list of 10^7 calls


@dataclass(frozen=True)
class Round:
    """One epoch: `calls` calls in a row took `ns` nanoseconds, results waited for.

    gc_ns       of these, the time in the garbage collector
    disturbed   why the figure is suspect, as "3 involuntary switches"; a round is flagged and never deleted
    """

    calls: int
    ns: int
    gc_ns: int = 0
    disturbed: str | None = None


@dataclass(frozen=True)
class WarmUp:
    """What warming up took. `steady`: the medians of its two halves differ by at most 2 %; False also after a single
    call."""

    calls: int
    seconds: float
    steady: bool


def bind(call: Callable[..., Any], args: tuple[Any, ...], sync: Callable[[Any], Any] | None = None) -> Call:
    """The call with its inputs bound and its result waited for, with as little in between as there can be.

    Nanoseconds a call of a function of two arguments that does nothing, in Python and in C, on CPython 3.11:

    written out in a `for` loop     33   28
    partial(f, x, y)                50   33   in `epoch`'s loop, as all below; chosen
    lambda: f(x, y)                 76   72
    lambda: f(*args)               100   76
    and waited for                 135  118   and what the wait itself takes

    `python -m tests.benchmarks.clock` measures them again. Without arguments nothing need be put around a call.
    """
    if sync is None:
        return partial(call, *args) if args else call

    def waited() -> Any:
        result = call(*args)
        sync(result)
        return result

    return waited


def once(call: Call, *, clock: Clock = perf_counter_ns) -> tuple[Any, int]:
    """The result of one call, and how long it took."""
    start = clock()
    result = call()
    return result, clock() - start


def epoch(call: Call, calls: int, *, clock: Clock = perf_counter_ns, watch: Callable[[], Counters] = counters) -> Round:
    """Time `calls` calls in a row.

    Garbage is collected before. The collector stays on, because a library's garbage is part of its cost; its time is
    counted separately too.
    """
    gc.collect()
    with _collector_time(clock) as in_collector:
        before = watch()
        ns = _loop(call, calls, clock)
        after = watch()
    return Round(calls, ns, sum(in_collector), disturbed(before, after))


def warm_up(
    call: Call,
    *,
    at_least_ns: int = 200_000_000,
    at_most_ns: int = 2_000_000_000,
    at_least_calls: int = 3,
    clock: Clock = perf_counter_ns,
) -> WarmUp:
    """Call at least so often and for so long, but start no call after `at_most_ns`."""
    samples: list[float] = []  # ns per call
    calls, batch, start = 0, 1, clock()
    elapsed = 0
    while elapsed < at_most_ns and (calls < at_least_calls or elapsed < at_least_ns):
        ns = _loop(call, batch, clock)
        samples.append(ns / batch)
        calls += batch
        if ns * SAMPLES < at_least_ns:
            batch *= 2
        elapsed = clock() - start
    return WarmUp(calls, elapsed * 1e-9, _is_steady(samples))


def calls_per_epoch(call: Call, target_ns: int, *, first: int = 1, clock: Clock = perf_counter_ns) -> int:
    """The number of calls that take about `target_ns`; 1 where one call takes longer.

    Doubles until the target is crossed twice in a row, since one slow call (an interrupt) may cross it by chance.
    `first` is where it begins, so that few epochs are needed where the time of a call is known roughly.
    """
    calls, crossed = max(1, first), 0
    while True:
        ns = epoch(call, calls, clock=clock).ns
        crossed = crossed + 1 if ns >= target_ns else 0
        if crossed == 2 or (crossed and calls == 1):
            return max(1, round(calls * target_ns / ns))
        if not crossed:
            calls = max(calls + 1, min(calls * 2, round(calls * target_ns / max(ns, 1) * 1.2)))


def loop_overhead_ns(*, epochs: int = 101, calls: int = 10_000, clock: Clock = perf_counter_ns) -> float:
    """Nanoseconds that the loop and a call of nothing take: the floor under every time per call.

    The median over epochs, which are so short (0.2 ms) that few are interrupted. Nothing is `tuple()`, the shortest
    that CPython can do when called.
    """
    return median(_loop(tuple, calls, clock) / calls for _ in range(epochs))


def _loop(call: Call, calls: int, clock: Clock) -> int:
    """The loop runs in C: 13 ns for a call of nothing, where `for _ in repeat(None, calls): call()` takes 15 ns and
    `for _ in range(calls)` 25 ns."""
    left = repeat((), calls)
    everything = starmap(call, left)
    start = clock()
    deque(everything, maxlen=0)  # draws and forgets, as in the recipe `consume` of itertools
    ns = clock() - start
    if length_hint(left):
        raise RuntimeError("the call raised StopIteration")  # which ends the loop as if all calls had been made
    return ns


@contextmanager
def _collector_time(clock: Clock) -> Iterator[list[int]]:
    """The durations of the garbage collections within, in the clock's nanoseconds."""
    durations: list[int] = []
    since = 0

    def note(stage: str, _: dict[str, int]) -> None:
        nonlocal since
        if stage == "start":
            since = clock()
        else:
            durations.append(clock() - since)

    gc.callbacks.append(note)
    try:
        yield durations
    finally:
        gc.callbacks.remove(note)


def _is_steady(samples: list[float]) -> bool:
    half = len(samples) // 2
    if not half:
        return False
    first, second = median(samples[:half]), median(samples[-half:])
    return abs(first - second) <= STEADY * min(first, second)
