"""Time per call: warm up, choose how many calls make an epoch, time epochs.

A call has finished when it returns (waiting is part of it). Its inputs come from `sets`, tuples of arguments that take
turns from call to call; by default there is one empty set, for a call whose inputs are bound. All durations are
nanoseconds of the monotonic clock; a clock can be handed in, so that tests do not sleep.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, starmap
from random import SystemRandom
from statistics import median
from time import perf_counter_ns
from typing import Any

from adbench.measure.machine.disturbance import Counters, counters, disturbed

Clock = Callable[[], int]
Call = Callable[..., Any]
Sets = Sequence[tuple[Any, ...]]

NO_INPUTS: Sets = ((),)

STEADY = 0.02  # the halves of a warm-up may differ by this share of the smaller one
SAMPLES = 200  # a warm-up is timed in about this many parts: enough for two medians, and not a list of 10^7 calls

_random = SystemRandom()  # a library can neither foresee nor seed it


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


def bind(call: Call, args: tuple[Any, ...], sync: Callable[[Any], Any] | None = None) -> Callable[[], Any]:
    """The call with its inputs bound and its result waited for."""
    call = waited(call, sync)
    return partial(call, *args) if args else call


def waited(call: Call, sync: Callable[[Any], Any] | None) -> Call:
    """The call, which returns when its result is there. Where there is nothing to wait for, it stays as it is."""
    if sync is None:
        return call

    def waiting(*args: Any) -> Any:
        result = call(*args)
        sync(result)
        return result

    return waiting


def once(call: Callable[[], Any], *, clock: Clock = perf_counter_ns) -> tuple[Any, int]:
    """The result of one call, and how long it took."""
    start = clock()
    result = call()
    return result, clock() - start


def epoch(call: Call, calls: int, *, clock: Clock = perf_counter_ns, watch: Callable[[], Counters] = counters) -> Round:
    """Time `calls` calls in a row."""
    return epoch_with_results(call, calls, NO_INPUTS, clock=clock, watch=watch)[0]


def epoch_with_results(
    call: Call,
    calls: int,
    sets: Sets,
    *,
    collect: bool = True,
    clock: Clock = perf_counter_ns,
    watch: Callable[[], Counters] = counters,
) -> tuple[Round, dict[int, Any]]:
    """Time `calls` calls in a row, at these inputs in turns; returns also what a call returned at each of the inputs.

    The results are (number of the set) -> result, of calls in a row whose place among all is drawn. Fewer calls than
    sets return fewer.

    Garbage is collected before, unless only the results are wanted. The collector stays on, because a library's garbage
    is part of its cost; its time is counted separately too.
    """
    if collect:
        gc.collect()
    with _collector_time(clock) as in_collector:
        before = watch()
        ns, results = _loop(call, calls, sets, clock)
        after = watch()
    return Round(calls, ns, sum(in_collector), disturbed(before, after)), results


def warm_up(
    call: Call,
    sets: Sets = NO_INPUTS,
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
        ns, _ = _loop(call, batch, sets, clock)
        samples.append(ns / batch)
        calls += batch
        if ns * SAMPLES < at_least_ns:
            batch *= 2
        elapsed = clock() - start
    return WarmUp(calls, elapsed * 1e-9, _is_steady(samples))


def calls_per_epoch(
    call: Call, target_ns: int, sets: Sets = NO_INPUTS, *, first: int = 1, clock: Clock = perf_counter_ns
) -> int:
    """The number of calls that take about `target_ns`; 1 where one call takes longer.

    Doubles until the target is crossed twice in a row, since one slow call (an interrupt) may cross it by chance.
    `first` is where it begins, so that few epochs are needed where the time of a call is known roughly.
    """
    calls, crossed = max(1, first), 0
    while True:
        ns = epoch_with_results(call, calls, sets, collect=False, clock=clock)[0].ns
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
    return median(_loop(tuple, calls, NO_INPUTS, clock)[0] / calls for _ in range(epochs))


def _loop(call: Call, calls: int, sets: Sets, clock: Clock) -> tuple[int, dict[int, Any]]:
    """The nanoseconds of all calls, and what some of them returned, as `epoch_with_results` says.

    The loop runs in C. Nanoseconds a call on CPython 3.11 of a function of two arguments that does nothing, in Python
    and in C:

    this loop, with two sets of inputs    24   19
    with `partial(call, x, y)`            24   18   inputs bound, none to choose
    with `lambda: call(*args)`            46   44
    written out in a `for` loop           23   17

    `python -m tests.benchmarks.clock` measures them again.
    """
    few = min(len(sets), calls)
    before = _random.randrange(calls - few + 1)
    turns = cycle(sets)
    parts = [islice(turns, count) for count in (before, few, calls - few - before)]
    first, chosen, rest = (starmap(call, part) for part in parts)
    start = clock()
    # Draws and forgets, as in the recipe `consume` of itertools. One line, so that nothing tells the calls apart.
    _, kept, _ = deque(first, maxlen=0), list(chosen), deque(rest, maxlen=0)
    ns = clock() - start
    if len(kept) < few or any(next(part, None) is not None for part in parts):
        raise RuntimeError("the call raised StopIteration")  # which ends the loop as if all calls had been made
    return ns, {(before + k) % len(sets): result for k, result in enumerate(kept)}


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
