"""A prepared call under the clock: its inputs alternate, and some results of timed rounds are kept for judging.

Another process times each run of a remote call itself, because the local clock would mostly measure the exchange of
messages; its memory is read from outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle, islice, starmap
from random import SystemRandom
from statistics import median
from typing import Any, Protocol, runtime_checkable

import numpy as np

from adbench.measure import clock, instructions, memory
from adbench.measure.clock import AGREEING, STEADY, Call, WarmUp
from adbench.measure.machine.disturbance import Counters
from adbench.measure.readings import Figure, Round
from adbench.model import tree
from adbench.model.backend import Backend

MOST_ROTATED_BYTES = 2**16
"""The largest set of inputs (bytes) that alternates from call to call; two of them fit into any second-level cache.
Larger sets alternate from epoch to epoch, because the clock would otherwise measure the cache."""

SLOW_NS = 100_000_000
"""A slower call is made only once after the last round."""

MOST_REMOTE_CALLS = 1_000_000  # in an epoch, because their times are returned one by one
UNWATCHED = Counters(0, 0)

_random = SystemRandom()  # a library can neither foresee nor seed it


@dataclass
class TimedCall:
    """A call and its sets of native inputs: the case's, and perturbed ones if there are any.

    unwaited  the call on a device, without the wait for its result, and the wait
    results   (number of the set) -> a random timed round's result for that set, with equal chances for all rounds
    """

    call: Call
    sets: list[tuple[Any, ...]]
    unwaited: tuple[Call, Callable[[Any], Any]] | None = None
    results: dict[int, Any] = field(default_factory=dict)
    _epochs: int = 0
    _drawn_from: dict[int, int] = field(default_factory=dict)
    _ns_per_call: float = 0.0

    @staticmethod
    def of(call: Call, args: tuple[Any, ...], backend: Backend) -> TimedCall:
        """A prepared call of this backend at native arguments."""
        waited = clock.waited(call, backend.sync)
        if isinstance(call, RemoteCall):
            return TimedRemoteCall(waited, [args], remote=call)
        on_device = (call, backend.sync) if backend.device is not None and backend.sync is not None else None
        return TimedCall(waited, [args], on_device)

    @cached_property
    def bound(self) -> Callable[[], Any]:
        """The call at the case's inputs."""
        return clock.bind(self.call, self.sets[0])

    def memory(self, method: memory.Method, times: int) -> Figure:
        """The memory of one call by this method."""
        return memory.measure(method, self.bound, times=times)

    def instructions(self, times: int) -> Figure:
        """The instructions of one call, in a process under Callgrind."""
        return instructions.count(self.bound, times)

    def warm_up(self, enough_ns: int, at_most_ns: int, epoch_ns: int) -> tuple[WarmUp, int]:
        """Warm up; returns the warm-up and the number of calls per epoch."""
        sets = [self.sets[which] for which in self._next()]
        return clock.warm_up(self.call, sets, round_ns=epoch_ns, enough_ns=enough_ns, at_most_ns=at_most_ns)

    def epoch(self, calls: int) -> Round:
        """Time one epoch, and keep some of its results at random."""
        order = self._next()
        self._epochs += 1
        timed, results = clock.epoch_with_results(self.call, calls, [self.sets[which] for which in order])
        self._ns_per_call = timed.ns / timed.calls
        for place, result in results.items():
            which = order[place]
            self._drawn_from[which] = self._drawn_from.get(which, 0) + 1
            if _random.randrange(self._drawn_from[which]) == 0:
                self.results[which] = result
        return timed

    def unwaited_epoch(self, calls: int) -> Round:
        """Time calls that follow each other without a wait, and one wait for the last result."""
        assert self.unwaited is not None
        call, sync = self.unwaited
        inputs = islice(cycle([self.sets[which] for which in self._next()]), calls)
        return replace(clock.epoch(lambda: sync(deque(starmap(call, inputs), maxlen=1).pop()), 1), calls=calls)

    def after_exchange(self) -> Iterator[tuple[int, Any]]:
        """Exchange the sets' contents, in the same arrays if writable, and call again in the same loop: (number of the
        set whose contents were used, the result)."""
        order = list(range(len(self.sets)))
        if len(order) == 2:
            self.sets = list(exchanged(*self.sets))
        if _random.randrange(2):
            order.reverse()
        calls = 1 if self._ns_per_call > SLOW_NS else len(order)
        contents = [len(order) - 1 - which for which in order]  # set 0 now has those of set 1
        sets = [self.sets[which] for which in order]
        _, results = clock.epoch_with_results(self.call, calls, sets, collect=False, watch=lambda: UNWATCHED)
        for place, result in results.items():
            yield contents[place], result

    def _next(self) -> Sequence[int]:
        """The sets of the next epoch, in the order of its calls."""
        every = range(len(self.sets))
        first = self._epochs % len(every)
        rotated = (*every[first:], *every[:first])
        size = sum(getattr(leaf, "nbytes", 8) for leaf in tree.leaves(self.sets[0]))
        return rotated if size <= MOST_ROTATED_BYTES else rotated[:1]


@runtime_checkable
class RemoteCall(Protocol):
    """A prepared call that another process runs and times."""

    def __call__(self, *args: Any) -> Any:
        """The result, as of any prepared call."""
        ...

    def runs(self, args: tuple[Any, ...], least: int, seconds: float) -> list[int]:
        """Nanoseconds of each of at least `least` runs that took `seconds` together, by the other side's clock."""
        ...

    def resident_peak(self, args: tuple[Any, ...]) -> Figure:
        """Bytes by which the other process's resident set grew at the peak of one run."""
        ...


@dataclass
class TimedRemoteCall(TimedCall):
    """A remote call at the case's inputs."""

    remote: Any = None

    def warm_up(self, enough_ns: int, at_most_ns: int, epoch_ns: int) -> tuple[WarmUp, int]:
        """Warm up for the requested time; returns the warm-up and the number of calls per epoch."""
        times = self.remote.runs(self.sets[0], 1, enough_ns * 1e-9)
        last = times[-AGREEING:]
        steady = len(last) == AGREEING and max(last) - min(last) <= STEADY * min(last)
        calls = min(MOST_REMOTE_CALLS, max(1, int(epoch_ns / max(1.0, median(times)))))
        return WarmUp(len(times), sum(times) * 1e-9, steady), calls

    def epoch(self, calls: int) -> Round:
        """The time of that many runs; further runs of the other side are left out."""
        times = self.remote.runs(self.sets[0], calls, 0.0)[:calls]
        return Round(len(times), sum(times))

    def memory(self, method: memory.Method, times: int) -> Figure:
        """The memory of one run; only the resident set of another process can be measured."""
        if method != "resident":
            return Figure(None, "the call runs in another process, of which only the resident set can be measured")
        return memory.median_of(lambda _: self.remote.resident_peak(self.sets[0]), self.remote, times)

    def instructions(self, times: int) -> Figure:
        """None: they are not those of this process."""
        return Figure(None, "the call runs in another process, whose instructions are not counted")


def exchanged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first inputs with the contents of the second, and vice versa: writable leaves remain the same objects, others
    are swapped."""
    pairs = [_exchanged_leaf(p, q) for p, q in zip(tree.leaves(a), tree.leaves(b), strict=True)]
    return tree.filled(a, [p for p, _ in pairs]), tree.filled(b, [q for _, q in pairs])


def _exchanged_leaf(a: Any, b: Any) -> tuple[Any, Any]:
    if a is b or tree.is_static(a):
        return a, b
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.flags.writeable and b.flags.writeable:
        a[...], b[...] = b.copy(), a.copy()
        return a, b
    if hasattr(a, "copy_") and hasattr(a, "clone"):  # torch's
        before = a.clone()
        a.copy_(b)
        b.copy_(before)
        return a, b
    return b, a
