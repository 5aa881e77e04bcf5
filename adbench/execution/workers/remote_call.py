"""Remote calls: another process times each run itself; its memory is read from outside.

The local clock would mostly measure the exchange of messages. A prepared call is remote if it has the methods `runs`
and `resident_peak`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol, runtime_checkable

from adbench.measure.clock import AGREEING, STEADY, WarmUp
from adbench.measure.memory import Method, median_of
from adbench.measure.readings import Figure, Round

MOST_CALLS = 1_000_000  # in an epoch, because their times are returned one by one


@runtime_checkable
class RemoteCall(Protocol):
    """A prepared remote call."""

    def __call__(self, *args: Any) -> Any:
        """The result, as of any prepared call."""
        ...

    def runs(self, args: tuple[Any, ...], least: int, seconds: float) -> list[int]:
        """Nanoseconds of each of at least `least` runs that took `seconds` together, by the other side's clock."""
        ...

    def resident_peak(self, args: tuple[Any, ...]) -> Figure:
        """Bytes by which the other process's resident set grew at the peak of one run."""
        ...


@dataclass(frozen=True)
class Bound:
    """A remote call with its arguments."""

    call: RemoteCall
    args: tuple[Any, ...]

    def warm_up(self, request: Mapping[str, Any]) -> tuple[WarmUp, int]:
        """Warm up for the requested time; returns the warm-up and the number of calls per epoch."""
        times = self.call.runs(self.args, 1, request["warm_ns"] * 1e-9)
        last = times[-AGREEING:]
        steady = len(last) == AGREEING and max(last) - min(last) <= STEADY * min(last)
        each = max(1.0, median(times))
        calls = min(MOST_CALLS, max(1, int(request["epoch_ns"] / each)))
        return WarmUp(len(times), sum(times) * 1e-9, steady), calls

    def epoch(self, calls: int) -> Round:
        """The time of that many runs; further runs of the other side are left out."""
        times = self.call.runs(self.args, calls, 0.0)[:calls]
        return Round(len(times), sum(times))

    def measure_memory(self, method: Method, times: int) -> Figure:
        """The memory of one run; only the resident set of another process can be measured."""
        if method != "resident":
            return Figure(None, "the call runs in another process, of which only the resident set can be measured")
        return median_of(lambda _: self.call.resident_peak(self.args), self.call, times)


def bound(call: object, args: tuple[Any, ...]) -> Bound | None:
    """The call with its arguments if it is remote, else None."""
    return Bound(call, args) if isinstance(call, RemoteCall) else None
