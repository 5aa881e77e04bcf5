"""Events of a run, in order: frozen values without callbacks.

Progress, the journal, the forecast and the progress bar read two things from an event: its records and the completed
units of work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adbench.model.record import Figure, Group, Job, Launched, Memory, Record, group_of

Phase = Literal["check", "time", "memory"]

Unit = tuple[Phase, object]
"""A piece of work: the check or the memory of a job, a group in a launch, a launch's imports."""


class Event:
    """An event of a run."""

    @property
    def records(self) -> tuple[Record, ...]:
        """Its records; later ones replace earlier ones of the same job."""
        return ()

    @property
    def done(self) -> tuple[Unit, ...]:
        """The completed units of work."""
        return ()


@dataclass(frozen=True)
class Started(Event):
    """A job has started. In the time phase `job` represents its group, in launch `launch`. `building`: its backend
    compiles before the check."""

    job: Job
    phase: Phase
    launch: int | None = None
    building: bool = False


@dataclass(frozen=True)
class CellSeconds:
    """Seconds of one cell: preparing it, its first call, a later call.

    again   preparing it with programs that an earlier process compiled; None: like the first time
    """

    prepare: float
    first_call: float
    call: float
    again: float | None = None

    @property
    def preparing_again(self) -> float:
        """Preparing it in any process but the first."""
        return self.prepare if self.again is None else self.again


@dataclass(frozen=True)
class Checked(Event):
    """A job's verdict, or the reason why it is missing.

    cost          seconds of its calls, if it was called
    seconds       preparing, calling and judging together, if requested from its worker
    open_seconds  starting its worker, with the import
    """

    record: Record
    cost: CellSeconds | None = None
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
        """The group of its cells."""
        return group_of(self.cells[0].job if self.cells else self.lost[0].job)

    @property
    def done(self) -> tuple[Unit, ...]:
        """The imports of its launch, and the group in it."""
        return ("time", self.number), ("time", (self.number, self.group))


@dataclass(frozen=True)
class Decided(Event):
    """Groups and jobs that take no further launch after this many: the verdicts of these groups are decided, and these
    jobs are decided slower than the leaders of their groups."""

    launches: int
    groups: tuple[Group, ...] = ()
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True)
class MemoryMeasured(Event):
    """The memory of a job and its instructions, as far as the settings ask for them."""

    job: Job
    memory: Memory | None
    instructions: Figure | None = None

    @property
    def done(self) -> tuple[Unit, ...]:
        """The memory of its job."""
        return (("memory", self.job),)


@dataclass(frozen=True)
class Learned(Event):
    """Fields of the run that were unknown at its start."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Ended(Event):
    """The run is complete: there is nothing to resume."""
