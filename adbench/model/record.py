"""What one measurement is asked (Job) and what came of it (Record). Frozen values; nothing calls back.

A crash, a time-out and an unsupported operator are records with a reason. A figure that could not be had is `null` with
a reason, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Literal

from adbench.measure.clock import Round
from adbench.measure.memory import Figure
from adbench.oracle import Verdict

__all__ = ["SCHEMA_VERSION", "Figure", "Job", "Launch", "Memory", "Record", "Round", "Run", "Status", "Summary", "Time"]

SCHEMA_VERSION = 2

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
class Launch:
    """One cell in one launch: a fresh process of its backend, in which it took turns with the others of its group.

    phases    the parts of `prepare` that the backend told of (adbench.phase), in seconds: "trace", "compile", …
    steady    whether the two halves of the warm-up agree within 2 %
    rounds    in execution order, every one, none deleted; round r of a cell pairs with round r of the others of its
              group and launch

    None where a file of an earlier adbench does not tell.
    """

    number: int
    import_seconds: float | None
    prepare_seconds: float
    phases: dict[str, float]
    first_call_seconds: float
    warm_up_calls: int | None
    steady: bool | None
    rounds: tuple[Round, ...]

    @property
    def seconds_per_call(self) -> float:
        """The median over rounds."""
        return median(r.ns / r.calls for r in self.rounds) * 1e-9


@dataclass(frozen=True)
class Time:
    """Seconds, launch by launch (at least one): what happens once and what happens every time.

    The launch is the unit: rounds of one process share its layout in memory, so that they agree with each other more
    than with those of another.
    """

    launches: tuple[Launch, ...]

    @property
    def seconds_per_call(self) -> float:
        """The median over launches of each one's median over rounds."""
        return median(launch.seconds_per_call for launch in self.launches)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and third quartile of the seconds per call: over launches, or over the rounds of a single one."""
        if len(self.launches) > 1:
            return _quartiles([launch.seconds_per_call for launch in self.launches])
        return _quartiles([r.ns / r.calls * 1e-9 for launch in self.launches for r in launch.rounds])

    @property
    def import_seconds(self) -> float | None:
        """The median over launches; None where none tells."""
        known = [launch.import_seconds for launch in self.launches if launch.import_seconds is not None]
        return median(known) if known else None

    @property
    def prepare_seconds(self) -> float:
        """The median over launches."""
        return median(launch.prepare_seconds for launch in self.launches)

    @property
    def first_call_seconds(self) -> float:
        """The median over launches."""
        return median(launch.first_call_seconds for launch in self.launches)

    @property
    def phases(self) -> dict[str, float]:
        """The parts of `prepare` that the backend told of: of each the median over the launches that have it."""
        names = dict.fromkeys(name for launch in self.launches for name in launch.phases)
        return {n: median(launch.phases[n] for launch in self.launches if n in launch.phases) for n in names}

    @property
    def disturbed(self) -> int:
        """How many rounds are flagged; they count all the same."""
        return sum(r.disturbed is not None for launch in self.launches for r in launch.rounds)

    @property
    def unsteady(self) -> int:
        """How many launches had not come to rest when their warm-up ended."""
        return sum(launch.steady is False for launch in self.launches)


@dataclass(frozen=True)
class Memory:
    """Bytes that one warmed-up call takes at its peak, by method; the methods see different things, so all are
    labelled.

    allocated_peak_bytes  what allocators gave out (memray, native ones too)
    python_peak_bytes     what Python's allocators saw (tracemalloc): numpy yes, the inside of jax and torch no
    resident_peak_bytes   growth of the resident set (VmHWM after a reset): everything that was touched, in whole pages
    """

    allocated_peak_bytes: Figure
    python_peak_bytes: Figure
    resident_peak_bytes: Figure


@dataclass(frozen=True)
class Summary:
    """What a result is known again by in another process: its count of numbers, their sum, that of their sizes."""

    count: int
    total: float
    magnitude: float


@dataclass(frozen=True)
class Record:
    """What came of a job. `reason` is a sentence for every status but `ok`; `stderr` the end of what a crash left.

    control   the cell measured again in the same rounds, by a second process of the same backend: what the measurement
              tells of two that are the same (the A/A control). Only for the run's reference backend.
    text      whose text of the case was differentiated: the case's own, or one that the backend brings for it
    summary   of the result that was checked; every launch's first result is held to it
    host      of a run on many machines, the one that this comes from; None where it was this one
    """

    job: Job
    status: Status
    reason: str | None = None
    verdict: Verdict | None = None
    time: Time | None = None
    control: Time | None = None
    memory: Memory | None = None
    stderr: str | None = None
    how: str = "native"  # or "from …": made by the harness from other operators of the library
    reproduce: str | None = None  # for what is wrong or failed: one line of Python that does it again
    text: Literal["portable", "native"] = "portable"
    summary: Summary | None = None
    host: str | None = None


@dataclass(frozen=True)
class Run:
    """Everything that one run found out; what `run.json` holds and every report is made from.

    reference_backend   the backend that is measured twice in every launch, the second time as the control
    loop_overhead_ns    what the clock's own loop takes for a call of nothing, in this session
    flops               case -> size, as text -> elementary operations of one evaluation, where the case knows them
    """

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
    reference_backend: str | None = None
    loop_overhead_ns: float | None = None
    flops: dict[str, dict[str, float]] = field(default_factory=dict)


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


@dataclass(frozen=True)
class Launched:
    """One cell in one launch. `control`: of the second worker of the reference backend."""

    job: Job
    launch: Launch
    control: bool = False


Group = tuple[str, int, str, int]
"""(case, size, operator, seed): the cells that are measured in turns."""


def group_of(job: Job) -> Group:
    """The group that a job belongs to: what differs in the backend only."""
    return job.case, job.size, job.operator, job.seed
