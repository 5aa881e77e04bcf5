"""A prepared call under the clock: its inputs alternate, and some results of timed rounds are kept for judging."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice, starmap
from random import SystemRandom
from typing import Any

import numpy as np

from adbench.measure import clock
from adbench.measure.clock import Call, WarmUp
from adbench.measure.machine.disturbance import Counters
from adbench.measure.readings import Round
from adbench.model import tree

MOST_ROTATED_BYTES = 2**16
"""The largest set of inputs (bytes) that alternates from call to call; two of them fit into any second-level cache.
Larger sets alternate from epoch to epoch, because the clock would otherwise measure the cache."""

SLOW_NS = 100_000_000
"""A slower call is made only once after the last round."""

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
