"""What the runner tells while it goes, in the order in which things happen. Frozen values; nothing calls back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adbench.model.record import Job, Launched, Memory, Record

Phase = Literal["check", "time", "memory"]


@dataclass(frozen=True)
class Started:
    """A job is under way; with the clock running, `job` stands for its group, in launch `launch`. `building` before it
    is checked, where its backend has something to compile."""

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
class Checked:
    """A job's verdict, or why there is none.

    cost          what it took, where it came to a call
    seconds       what preparing, calling and judging took together, where its worker was asked
    open_seconds  what starting its worker and the import took
    """

    record: Record
    cost: Cost | None = None
    seconds: float | None = None
    open_seconds: float | None = None


@dataclass(frozen=True)
class Timed:
    """One group in one launch: what was measured of its cells, and the records of those that were lost in it."""

    number: int
    cells: tuple[Launched, ...]
    lost: tuple[Record, ...] = ()


@dataclass(frozen=True)
class MemoryMeasured:
    """What was weighed of a job."""

    job: Job
    memory: Memory


@dataclass(frozen=True)
class Learned:
    """Fields of the run that were not known when it was begun."""

    facts: Mapping[str, Any]


Event = Started | Checked | Timed | MemoryMeasured | Learned
