"""One measurement (Job) and its result (Record), as frozen values.

A crash, a time-out and an unsupported operator are records with a reason. A missing value is `null` with a reason,
never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf, isfinite
from statistics import StatisticsError, median, quantiles
from typing import Literal, TypeVar

from adbench.measure.readings import Figure as Figure
from adbench.measure.readings import Rates
from adbench.measure.readings import Round as Round
from adbench.model.backend import KnownBugs
from adbench.model.settings import EARLIER_ROLES, FLOAT64, PROCESSOR, Role
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.verdict import Verdict

T = TypeVar("T")
K = TypeVar("K")

ON_PROCESSOR = Figure(None, "the run was on the processor")

SCHEMA_VERSION = 2

Status = Literal["ok", "wrong", "known", "surprise", "unsupported", "failed", "crashed", "timed_out", "skipped"]
"""How a cell ended.

ok            prepared, checked, and timed if requested
wrong         wrong value, derivative or shape, or NaN; not timed, never ranked
known         wrong or failing as the list of known faults predicts; never ranked, not an alarm
surprise      a known fault that does not occur here: a note, because the list may be out of date
unsupported   the backend cannot do it or is not installed; with the reason
failed        an exception
crashed       the process died
timed_out     no answer within the limit
skipped       not tried, because a smaller size timed out, the backend crashed twice on this case, or calls would take
              too long for a quick run
"""

Word = Literal[
    "right",
    "approximate",
    "verified",
    "blind",
    "inconclusive",
    "unchecked",
    "wrong",
    "surprise",
    "known",
    "unsupported",
    "failed",
    "crashed",
    "timed_out",
    "skipped",
    "not_run",
]
"""The outcome of a cell in one word: the verdict if the cell was checked, else its status.

"inconclusive" occurs in older files; it is now "verified" (to fewer than nine digits) or "blind".
"""


@dataclass(frozen=True)
class Outcome:
    """The quality of a record. Exit codes, phases, gates and reports all decide by it.

    is_measured   its time and memory may be shown: it neither failed nor is wrong
    is_fault      an exception, a crash or a time-out
    exit_code     of a run with such a record: 0 correct, 1 wrong derivative, 4 failure
    """

    word: Word
    is_measured: bool = False
    is_fault: bool = False
    exit_code: Literal[0, 1, 4] = 0

    @property
    def is_alarm(self) -> bool:
        """Whether the backend failed, or its result is wrong."""
        return self.is_fault or self.exit_code == 1

    @property
    def is_incorrect(self) -> bool:
        """Whether the result is wrong, or is expected to be by the list of known faults."""
        return self.word in ("wrong", "known", "surprise")


OUTCOMES: Mapping[Word, Outcome] = {
    outcome.word: outcome
    for outcome in (
        Outcome("right", is_measured=True),
        Outcome("approximate", is_measured=True),
        Outcome("verified", is_measured=True),
        Outcome("blind", is_measured=True),
        Outcome("inconclusive", is_measured=True),
        Outcome("unchecked", is_measured=True),
        Outcome("wrong", exit_code=1),
        Outcome("surprise"),
        Outcome("known"),
        Outcome("unsupported"),
        Outcome("failed", is_fault=True, exit_code=4),
        Outcome("crashed", is_fault=True, exit_code=4),
        Outcome("timed_out", is_fault=True, exit_code=4),
        Outcome("skipped"),  # where something failed before, its own record has the exit code
        Outcome("not_run"),
    )
}


@dataclass(frozen=True, order=True)
class Job:
    """One cell of the plan: an operator of one backend on one case at one size, with the inputs of one seed.

    threads   a further number of threads at which the cell is measured; 0: the run's own (Settings.threads)
    """

    case: str
    size: int
    backend: str
    operator: str
    seed: int = 0
    threads: int = 0


@dataclass(frozen=True)
class Launch:
    """One cell in one launch: a fresh process of its backend, alternating with the others of its group.

    phases    the parts of `prepare` that the backend reported (adbench.phase), in seconds: "trace", "compile", …
    steady    whether three successive rounds of the warm-up agreed within 2 % and so ended it; else its time limit did
    background   the share of a processor that the worker used outside its turns, if it was paused for it; else None
    rounds    all rounds in execution order; round r pairs with round r of the other cells of its group and launch
    unwaited  on a device, rounds that wait once, for the last result: calls follow each other without a wait
    reuses_programs   whether it may load programs that an earlier launch compiled: its preparation counts only where
              no launch compiled them

    Fields that files of an earlier adbench lack are None.
    """

    number: int
    import_seconds: float | None
    prepare_seconds: float
    phases: dict[str, float]
    first_call_seconds: float
    warm_up_calls: int | None
    steady: bool | None
    rounds: tuple[Round, ...]
    background: float | None = None
    unwaited: tuple[Round, ...] = ()
    reuses_programs: bool = False

    @property
    def seconds_per_call(self) -> float:
        """The median over rounds: of a call whose result is waited for, the latency."""
        return median(r.ns / r.calls for r in self.rounds) * 1e-9

    def __repr__(self) -> str:
        return f"<Launch {self.number}: {len(self.rounds)} rounds>"


@dataclass(frozen=True)
class Time:
    """Seconds, launch by launch (at least one): one-time costs and costs of each call.

    The launch is the statistical unit: rounds of one process share its memory layout, so they agree with each other
    more than with the rounds of another process.
    """

    launches: tuple[Launch, ...]

    @property
    def seconds_per_call(self) -> float:
        """The median over launches of the median over rounds."""
        return median(launch.seconds_per_call for launch in self.launches)

    @property
    def throughput_seconds(self) -> float | None:
        """Seconds per call if calls follow each other without a wait: the median over launches of all calls of a
        launch. None if not measured, which it is on a device only."""
        rounds = [launch.unwaited for launch in self.launches if launch.unwaited]
        return median(sum(r.ns for r in of) / sum(r.calls for r in of) for of in rounds) * 1e-9 if rounds else None

    @property
    def compiled(self) -> tuple[Launch, ...]:
        """The launches whose preparation counts: they compiled their programs."""
        return tuple(launch for launch in self.launches if not launch.reuses_programs) or self.launches

    @property
    def quartiles(self) -> tuple[float, float]:
        """Quartiles of the seconds per call: over launches, or over the rounds of a single launch."""
        if len(self.launches) > 1:
            return _quartiles([launch.seconds_per_call for launch in self.launches])
        return _quartiles([r.ns / r.calls * 1e-9 for launch in self.launches for r in launch.rounds])

    @property
    def import_seconds(self) -> float | None:
        """The median over launches; None if no launch has it."""
        known = [launch.import_seconds for launch in self.launches if launch.import_seconds is not None]
        return median(known) if known else None

    @property
    def prepare_seconds(self) -> float:
        """The median over launches."""
        return median(launch.prepare_seconds for launch in self.compiled)

    @property
    def first_call_seconds(self) -> float:
        """The median over launches."""
        return median(launch.first_call_seconds for launch in self.launches)

    @property
    def phases(self) -> dict[str, float]:
        """The reported parts of `prepare`: the median of each over the launches that have it."""
        names = dict.fromkeys(name for launch in self.compiled for name in launch.phases)
        return {n: median(launch.phases[n] for launch in self.compiled if n in launch.phases) for n in names}

    @property
    def background(self) -> float | None:
        """The largest share of a processor that a worker used outside its turns; None if none was paused for it."""
        return max((launch.background for launch in self.launches if launch.background is not None), default=None)

    @property
    def disturbed(self) -> int:
        """The number of rounds flagged as disturbed; they still count."""
        return sum(r.disturbed is not None for launch in self.launches for r in launch.rounds)

    @property
    def unsteady(self) -> int:
        """The number of launches that were not steady after their warm-up."""
        return sum(launch.steady is False for launch in self.launches)

    def __repr__(self) -> str:
        return f"<Time of {len(self.launches)} launches{_in_words(self)}>"


@dataclass(frozen=True)
class Memory:
    """Peak bytes of one warmed-up call, by method. The methods see different allocations, so each is labelled.

    allocated_peak_bytes  from all allocators, native ones too (memray)
    python_peak_bytes     from Python's allocators (tracemalloc): with numpy's, without those of jax and torch
    resident_peak_bytes   growth of the resident set (VmHWM after a reset): every page touched
    device_peak_bytes     on the run's device, by the library's counter (`Device.peak_bytes`)
    """

    allocated_peak_bytes: Figure
    python_peak_bytes: Figure
    resident_peak_bytes: Figure
    device_peak_bytes: Figure = ON_PROCESSOR


@dataclass(frozen=True)
class Summary:
    """Identifies a result in another process: the count, the sum and the sum of magnitudes of its numbers."""

    count: int
    total: float
    magnitude: float

    def distance(self, other: Summary) -> float:
        """How far the sums are apart, relative to the magnitude; infinite for another count, or for numbers that are
        not finite unless all sums are equal."""
        if self == other:
            return 0.0
        error = max(abs(self.total - other.total), abs(self.magnitude - other.magnitude))
        scale = max(self.magnitude, other.magnitude)
        return error / scale if self.count == other.count and isfinite(error) and isfinite(scale) else inf


@dataclass(frozen=True)
class Relations:
    """Results of the relations between calls of a backend's operators.

    held      how many relations of one operator hold
    broken    the others, one sentence each
    repeats   operator -> its fault, which its relations repeat because they were compared with the wrong result
    declined  relation -> why the library cannot satisfy it, from the backend's file
    left_out  relation -> why it shows nothing here
    """

    held: int
    broken: tuple[str, ...] = ()
    repeats: dict[str, str] = field(default_factory=dict)
    declined: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """The result of a job. `reason` is a sentence unless the status is `ok`; `stderr` the end of a crash's output.

    control       the same cell measured in the same rounds by a second process: how much identical code seems to differ
                  (the A/A control). Only for the run's reference backend.
    text          "portable" for the case's source, "native" for the backend's implementation
    summary       of the checked result; the first result of every launch must agree with it
    host          the machine of the cluster that measured this; None for this machine
    device        the name of the device that computed it, as the library calls it; None for the processor
    entries       of an ad-hoc case: the worst of the compared numbers, in order
    unperturbed   why the timed calls had the case's own inputs only, instead of alternating with perturbed ones
    instructions  of one warmed-up call, by the counter that the run's settings name; None if not counted
    least_bytes   that a call moves: its inputs read once and its result written once
    """

    job: Job
    status: Status
    reason: str | None = None
    verdict: Verdict | None = None
    time: Time | None = None
    control: Time | None = None
    memory: Memory | None = None
    stderr: str | None = None
    how: str = "native"  # or "from …": computed by the harness from other operators of the library
    reproduce: str | None = None  # one line of Python that repeats a wrong result or a failure
    text: Literal["portable", "native"] = "portable"
    summary: Summary | None = None
    host: str | None = None
    unperturbed: str | None = None
    relations: Relations | None = None  # between calls, if the job requests them
    entries: tuple[EntryEvidence, ...] = ()
    device: str | None = None
    instructions: Figure | None = None
    least_bytes: float | None = None

    @property
    def outcome(self) -> Outcome:
        """Its outcome: the worse of status and verdict."""
        if self.status in ("known", "surprise"):
            return OUTCOMES[self.status]
        if self.found_wrong:
            return OUTCOMES["wrong"]
        if self.status != "ok":
            return OUTCOMES[self.status]
        if self.relations is not None:
            return OUTCOMES["right"]
        return OUTCOMES["unchecked" if self.verdict is None else self.verdict.word]

    @property
    def found_wrong(self) -> bool:
        """Whether a value or derivative is wrong, known to be or not."""
        return self.status == "wrong" or (self.verdict is not None and self.verdict.word == "wrong")

    @property
    def may_be_timed(self) -> bool:
        """Whether a launch may time it: the result is not wrong, and nothing excludes it."""
        return self.outcome.is_measured and self.summary is not None and self.reason is None

    def __repr__(self) -> str:
        """One line instead of thousands of numbers."""
        job = self.job
        cell = f"{job.case!r} {job.size} {job.backend!r} {job.operator!r}"
        cell += f" with {job.threads} threads" if job.threads else ""
        return f"<Record {cell}: {self.outcome.word}{_in_words(self.time)}>"


@dataclass(frozen=True)
class Selected:
    """A part of the request: the backends or cases of a pattern. At least one of them must be judged.

    asked   the name or the glob
    """

    kind: Literal["backend", "case"]
    asked: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """All results of one run, the content of `run.json` and the basis of every report.

    records     with the run's own number of threads; every ranking and table has only these
    threaded    the same cells with further numbers of threads (Job.threads), timed in turns with the others
    reference_backend   the backend measured twice in every launch, the second time as the control
    loop_overhead_ns    time of an empty call in the clock's own loop, in this session
    rates               device -> how fast it copies and computes, measured in this session
    flops               case -> size as a string -> elementary operations of one evaluation, if known
    gradient_operations   case -> those of value and gradient, in those of one evaluation, if counted (counted_sweep.py)
    not_installed       missing backend that the user did not name -> the packages that `pip install` needs for it
    commit              "hash" and "date" (ISO 8601) of git's HEAD in the working folder; empty outside of a repository
    sources             "cases/NAME" or "backends/NAME" -> "path:line" in the repository, or else in the working folder;
                        only for files inside of it
    roles               backend -> whether it is a library, adbench's own engine, or only there for comparison
    unjudged            sentences with the reason: the selected parts of which no derivative was judged
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
    traps: tuple[str, ...] = ()  # the cases of this run that test for a known mistake: checked, never timed
    reference_backend: str | None = None
    loop_overhead_ns: float | None = None
    rates: dict[str, Rates] = field(default_factory=dict)
    flops: dict[str, dict[str, float]] = field(default_factory=dict)
    gradient_operations: dict[str, float] = field(default_factory=dict)
    not_installed: dict[str, str] = field(default_factory=dict)
    known_bugs: KnownBugs = field(default_factory=KnownBugs)  # of its backends, on traps: also those it did not check
    unchecked: int = 0  # planned cells without a record, because the run was interrupted
    commit: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    threaded: tuple[Record, ...] = ()
    selected: tuple[Selected, ...] = ()
    unjudged: tuple[str, ...] = ()
    roles: dict[str, Role] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        """The type in which it computed; float64 in a file of an earlier adbench."""
        return str(self.settings.get("dtype", FLOAT64))

    @property
    def options(self) -> dict[str, str]:
        """Its type and device as options of a command, where they are not the usual ones."""
        usual = {"dtype": FLOAT64, "device": PROCESSOR}
        settings = {name: self.settings.get(name, value) for name, value in usual.items()}
        return {f"--{name}": str(value) for name, value in settings.items() if value != usual[name]}

    @property
    def every_record(self) -> tuple[Record, ...]:
        """The records of all numbers of threads: for correctness, never for speed."""
        return self.records + self.threaded

    def role_of(self, backend: str) -> Role:
        """The role of a backend of this run. A file of an earlier adbench has none; there the name decides.

        A user's backend has a file that was in no folder `backends`: it is a library.
        """
        if self.roles or "backends/" not in self.sources.get(f"backends/{backend}", "backends/"):
            return self.roles.get(backend, "library")
        return next((role for name, role in EARLIER_ROLES.items() if backend.startswith(name)), "library")

    def library_version(self, backend: str) -> str | None:
        """The version of the library behind a backend; None for adbench's own engine, which needs but has none."""
        return None if self.role_of(backend) == "own engine" else self.versions.get(backend)

    @property
    def interruption(self) -> str | None:
        """A sentence with the number of cells that an interruption left unchecked; None if every cell has a record."""
        planned = len(self.every_record) + self.unchecked
        return f"interrupted: {self.unchecked} of {planned} cells not checked" if self.unchecked else None

    def __repr__(self) -> str:
        """One line instead of hundreds of thousands of characters."""
        words = Counter(record.outcome.word for record in self.records)
        summary = ", ".join(f"{words[word]} {word}" for word in OUTCOMES if word in words) or "nothing was measured"
        counts = ((len(self.cases), "case"), (len(self.versions), "backend"), (len(self.records), "record"))
        size = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts)
        return f"<Run {self.created!r}: {size}: {summary}>"


def _in_words(time: Time | None) -> str:
    """ ", 1.2e-05 s per call"; "" without rounds, in a damaged file."""
    with suppress(StatisticsError, ZeroDivisionError):
        return "" if time is None else f", {time.seconds_per_call:.3g} s per call"
    return ""


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
"""(case, size, operator, seed): its cells are measured in turns."""


def group_of(job: Job) -> Group:
    """The group that a job belongs to: all jobs that differ only in the backend and the number of threads."""
    return job.case, job.size, job.operator, job.seed


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Key -> its items; both in the order in which they come."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
