"""Time per call: warm up, choose how many calls make an epoch, time epochs.

A call has finished when it returns, so it includes the wait for its result. Its inputs come from `sets`, tuples of
arguments that alternate from call to call; by default there is one empty set, for a call with bound inputs. Durations
are nanoseconds of the monotonic clock; tests pass another clock instead of sleeping.
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
from adbench.measure.readings import Round

Clock = Callable[[], int]
Call = Callable[..., Any]
Sets = Sequence[tuple[Any, ...]]

NO_INPUTS: Sets = ((),)

STEADY = 0.02  # successive rounds of a warm-up agree if they differ by at most this share of the smallest
AGREEING = 3  # rounds in a row that end a warm-up
FASTEST_GROWTH = 8  # of a round's calls, from one to the next, because the first call may be slow

_random = SystemRandom()  # a library can neither foresee nor seed it


@dataclass(frozen=True)
class WarmUp:
    """Calls and seconds of a warm-up. `steady`: it ended because three successive rounds agreed within 2 %."""

    calls: int
    seconds: float
    steady: bool


def bind(call: Call, args: tuple[Any, ...], sync: Callable[[Any], Any] | None = None) -> Callable[[], Any]:
    """The call with bound inputs, including the wait for its result."""
    call = waited(call, sync)
    return partial(call, *args) if args else call


def waited(call: Call, sync: Callable[[Any], Any] | None) -> Call:
    """The call, returning after its result is computed. Without `sync` it is unchanged."""
    if sync is None:
        return call

    def waiting(*args: Any) -> Any:
        result = call(*args)
        sync(result)
        return result

    return waiting


def once(call: Callable[[], Any], *, clock: Clock = perf_counter_ns) -> tuple[Any, int]:
    """The result of one call, and its nanoseconds."""
    start = clock()
    result = call()
    return result, clock() - start


def epoch(call: Call, calls: int, *, clock: Clock = perf_counter_ns, watch: Callable[[], Counters] = counters) -> Round:
    """Time `calls` consecutive calls."""
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
    """Time `calls` consecutive calls at alternating inputs; also returns one call's result for each of the inputs.

    The results are (number of the set) -> result, from consecutive calls at a random position. Fewer calls than sets
    return fewer results.

    Garbage is collected before, unless only the results are needed. The collector stays enabled, because a library's
    garbage is part of its cost; its time is also reported separately.
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
    round_ns: int = 10_000_000,
    enough_ns: int = 200_000_000,
    at_most_ns: int = 2_000_000_000,
    clock: Clock = perf_counter_ns,
) -> tuple[WarmUp, int]:
    """Call in rounds of about `round_ns` until three in a row agree, but no longer than `enough_ns`.

    At least three calls, unless the next would start after `at_most_ns`. Returns also how many calls take `round_ns`.
    """
    rounds: deque[float] = deque(maxlen=AGREEING)  # ns per call
    calls, batch, elapsed, each, start = 0, 1, 0, 1.0, clock()
    steady = False
    while elapsed < at_most_ns and (calls < AGREEING or (elapsed < enough_ns and not steady)):
        ns, _ = _loop(call, batch, sets, clock)
        calls, each = calls + batch, max(1, ns) / batch
        if 2 * ns > round_ns:  # shorter ones only tell how many calls make a round
            rounds.append(each)
            steady = len(rounds) == AGREEING and max(rounds) - min(rounds) <= STEADY * min(rounds)
        if not round_ns < 2 * ns < 4 * round_ns:
            batch = max(1, min(round(round_ns / each), FASTEST_GROWTH * batch))
        elapsed = clock() - start
    each = median(rounds) if rounds else each
    return WarmUp(calls, elapsed * 1e-9, steady), max(1, round(round_ns / each))


def loop_overhead_ns(*, epochs: int = 101, calls: int = 10_000, clock: Clock = perf_counter_ns) -> float:
    """Nanoseconds of the loop with an empty call: the overhead in every time per call.

    The median over epochs of 0.2 ms, few of which are interrupted. The empty call is `tuple()`, the shortest call in
    CPython.
    """
    return median(_loop(tuple, calls, NO_INPUTS, clock)[0] / calls for _ in range(epochs))


def _loop(call: Call, calls: int, sets: Sets, clock: Clock) -> tuple[int, dict[int, Any]]:
    """The nanoseconds of all calls, and some results; see `epoch_with_results`.

    The loop runs in C. Nanoseconds per call on CPython 3.11, for a function of two arguments that does nothing, in
    Python and in C:

    this loop, with two sets of inputs    24   19
    with `partial(call, x, y)`            24   18   bound inputs, no choice
    with `lambda: call(*args)`            46   44
    written out in a `for` loop           23   17

    `python -m tests.benchmarks.clock` repeats these measurements.
    """
    few = min(len(sets), calls)
    before = _random.randrange(calls - few + 1)
    turns = cycle(sets)
    parts = [islice(turns, count) for count in (before, few, calls - few - before)]
    first, chosen, rest = (starmap(call, part) for part in parts)
    start = clock()
    # Discards results, like the recipe `consume` of itertools. One line, so that all calls look the same.
    _, kept, _ = deque(first, maxlen=0), list(chosen), deque(rest, maxlen=0)
    ns = clock() - start
    if len(kept) < few or any(next(part, None) is not None for part in parts):
        raise RuntimeError("the call raised StopIteration")  # it would end the loop as if all calls were done
    return ns, {(before + k) % len(sets): result for k, result in enumerate(kept)}


@contextmanager
def _collector_time(clock: Clock) -> Iterator[list[int]]:
    """The durations of garbage collections within the block, in the clock's nanoseconds."""
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
