"""What one measurement is asked (Job) and what came of it (Record). Frozen values; nothing calls back.

A crash, a time-out and an unsupported operator are records with a reason. A figure that could not be had is `null` with
a reason, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, quantiles
from typing import Literal

from adbench.measure.memory import Figure
from adbench.oracle import Verdict

__all__ = ["Epoch", "Figure", "Job", "Memory", "Record", "Run", "Status", "Time"]

Status = Literal["ok", "wrong", "known", "surprise", "unsupported", "failed", "crashed", "timed_out", "skipped"]
"""How a cell ended.

ok            prepared, checked, and timed where that was asked for
wrong         a wrong, NaN or mis-shaped value or derivative: not timed, never ranked
known         wrong or failing as its backend's file says it is known to be; never ranked, and no alarm
surprise      known to be wrong or failing, but it is not any more: the backend's file is out of date
unsupported   the backend cannot do it, or is not installed, and says why
failed        an exception
crashed       the process died
timed_out     no answer within the limit
skipped       not tried, because of what happened to a smaller size or twice before on this case
"""


@dataclass(frozen=True, order=True)
class Job:
    """One cell of the plan: an operator of one backend on one case at one size, with the inputs of one seed."""

    case: str
    size: int
    backend: str
    operator: str
    seed: int = 0


@dataclass(frozen=True)
class Epoch:
    """`calls` calls in a row took `ns` nanoseconds, results waited for."""

    calls: int
    ns: int


@dataclass(frozen=True)
class Time:
    """Seconds, by phase: what happens once (prepare, first call) and what happens every time (epochs, at least one)."""

    prepare_seconds: float
    first_call_seconds: float
    epochs: tuple[Epoch, ...]  # in execution order; every one, none deleted

    @property
    def seconds_per_call(self) -> float:
        """The median over epochs."""
        return median(e.ns / e.calls for e in self.epochs) * 1e-9

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and third quartile over epochs, in seconds per call: the spread that is shown beside the median."""
        if len(self.epochs) < 2:
            return self.seconds_per_call, self.seconds_per_call
        low, _, high = quantiles((e.ns / e.calls * 1e-9 for e in self.epochs), n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Memory:
    """Bytes that one warmed-up call takes at its peak, by method; the methods see different things, so both are
    labelled.

    python_peak_bytes     what Python's allocators saw (tracemalloc): numpy yes, the inside of jax and torch no
    resident_peak_bytes   growth of the resident set (VmHWM after a reset): everything that was touched, in whole pages
    """

    python_peak_bytes: Figure
    resident_peak_bytes: Figure


@dataclass(frozen=True)
class Record:
    """What came of a job. `reason` is a sentence for every status but `ok`; `stderr` the end of what a crash left."""

    job: Job
    status: Status
    reason: str | None = None
    verdict: Verdict | None = None
    time: Time | None = None
    memory: Memory | None = None
    stderr: str | None = None
    how: str = "native"  # or "from …": made by the harness from other operators of the library
    reproduce: str | None = None  # for what is wrong or failed: one line of Python that does it again


@dataclass(frozen=True)
class Run:
    """Everything that one run found out; what `run.json` holds and every report is made from."""

    schema_version: int
    created: str  # ISO 8601, UTC
    adbench_version: str
    seed: int
    settings: dict[str, str | int | float | bool | None]
    machine: dict[str, str | int | float | bool | None]
    versions: dict[str, str | None]  # backend -> version of the library behind it
    cases: dict[str, str]  # case -> first line of its docstring
    records: tuple[Record, ...]
    traps: tuple[str, ...] = ()  # the cases of this run that are there to be got wrong: checked, never timed
