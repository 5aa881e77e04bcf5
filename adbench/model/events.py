"""What a run reports while it measures, in the order in which things happen. Frozen values; nothing calls back.

Everyone who follows a run (its progress, the journal, the forecast, the bar) reads the same two things from an event:
the records it states and the units of work it completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adbench.model.backend import KnownBug, Trap
from adbench.model.record import Group, Job, Launched, Memory, Record, group_of

Phase = Literal["check", "time", "memory"]

Unit = tuple[Phase, object]
"""A piece of work that is done once: the check or the memory of a job, a group in a launch, a launch's imports."""


class Event:
    """Something that happened in a run."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The records that it states: later ones replace earlier ones of the same job."""
        return ()

    @property
    def done(self) -> tuple[Unit, ...]:
        """The units of work that it completes."""
        return ()


@dataclass(frozen=True)
class Started(Event):
    """A job is under way. In the time phase `job` stands for its group, in launch `launch`. `building`: its backend
    compiles something before the check."""

    job: Job
    phase: Phase
    launch: int | None = None
    building: bool = False


@dataclass(frozen=True)
class Cost:
    """Seconds of one cell: preparing it, its first call, a later call."""

    prepare: float
    first_call: float
    call: float


@dataclass(frozen=True)
class Checked(Event):
    """A job's verdict, or why there is none.

    cost          what it took, if it was called
    seconds       what preparing, calling and judging took together, if its worker was asked
    open_seconds  what starting its worker and the import took
    """

    record: Record
    cost: Cost | None = None
    seconds: float | None = None
    open_seconds: float | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """Its one record."""
        return (self.record,)

    @property
    def done(self) -> tuple[Unit, ...]:
        """The check of its job."""
        return (("check", self.record.job),)


@dataclass(frozen=True)
class Timed(Event):
    """One group in one launch: the measurements of its cells, and the records of the jobs that failed in it."""

    number: int
    cells: tuple[Launched, ...]
    lost: tuple[Record, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """Those of the jobs that failed."""
        return self.lost

    @property
    def group(self) -> Group:
        """What its cells have in common."""
        return group_of(self.cells[0].job if self.cells else self.lost[0].job)

    @property
    def done(self) -> tuple[Unit, ...]:
        """The imports of its launch, and the group in it."""
        return ("time", self.number), ("time", (self.number, self.group))


@dataclass(frozen=True)
class MemoryMeasured(Event):
    """The memory of a job."""

    job: Job
    memory: Memory

    @property
    def done(self) -> tuple[Unit, ...]:
        """The memory of its job."""
        return (("memory", self.job),)


@dataclass(frozen=True)
class Learned(Event):
    """Fields of the run that were not known at its beginning."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class KnownBugsRead(Event):
    """What the file of a backend says about the traps, once its process has loaded it; `traps` are those it names."""

    backend: str
    bugs: tuple[KnownBug, ...]
    traps: dict[str, Trap]


@dataclass(frozen=True)
class Ended(Event):
    """Everything planned has been done: there is nothing to resume."""
