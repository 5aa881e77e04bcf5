"""The progress of a run, and the one function by which events change it.

A run applies each event as it happens; resuming applies the events of its journal. Both give the same progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adbench.model.events import Decided, Ended, Event, KnownBugsRead, Learned, MemoryMeasured, Timed
from adbench.model.record import Group, Job, Launch, Memory, Record, Run, Time
from adbench.model.unjudged import unjudged


@dataclass(frozen=True)
class Head:
    """The start of a run: `run` without records, the planned jobs in order, and the request, to resume it."""

    run: Run
    plan: tuple[Job, ...]
    asked: dict[str, Any] = field(default_factory=dict)


@dataclass
class Progress:
    """The state of a run.

    records    by job, without time and memory
    launches   (job, control) -> number of the launch -> its measurements
    groups     (number of the launch, group) of every group already measured
    decided    groups, and jobs of other groups, that take no further launch
    looks      numbers of launches after which the scheduler looked for decided groups
    ended      the run is complete
    """

    head: Head
    records: dict[Job, Record] = field(default_factory=dict)
    launches: dict[tuple[Job, bool], dict[int, Launch]] = field(default_factory=dict)
    groups: set[tuple[int, Group]] = field(default_factory=set)
    decided: set[Group | Job] = field(default_factory=set)
    looks: set[int] = field(default_factory=set)
    memories: dict[Job, Memory] = field(default_factory=dict)
    ended: bool = False

    @property
    def unchecked(self) -> list[Job]:
        """The planned jobs without a record, in order."""
        return [job for job in self.head.plan if job not in self.records]


def apply(event: Event, progress: Progress) -> None:
    """Update the progress by an event."""
    progress.records |= {record.job: record for record in event.records}
    match event:
        case Timed(number, cells):
            for cell in cells:
                progress.launches.setdefault((cell.job, cell.control), {})[number] = cell.launch
            progress.groups.add((number, event.group))
        case Decided(launches, groups, jobs):
            progress.looks.add(launches)
            progress.decided |= {*groups, *jobs}
        case MemoryMeasured(job, memory):
            progress.memories[job] = memory
        case Learned(facts):
            progress.head = replace(progress.head, run=replace(progress.head.run, **facts))
        case KnownBugsRead(backend, bugs, traps):
            known = progress.head.run.known_bugs
            known = replace(known, traps=known.traps | traps, backends=known.backends | {backend: bugs})
            progress.head = replace(progress.head, run=replace(progress.head.run, known_bugs=known))
        case Ended():
            progress.ended = True


def applied(events: Iterable[Event], progress: Progress) -> Iterator[Event]:
    """The same events, each applied before it is passed on."""
    for event in events:
        apply(event, progress)
        yield event


def assemble(progress: Progress) -> Run:
    """The results so far as a Run, in the plan's order."""
    records: list[Record] = []
    for job in progress.head.plan:
        record = progress.records.get(job)
        if record is not None:
            time = _time(progress.launches.get((job, False)))
            control = _time(progress.launches.get((job, True)))
            if record.outcome.is_incorrect:  # wrong results have no time
                time = control = None
            records.append(replace(record, time=time, control=control, memory=progress.memories.get(job)))
    unchecked = 0 if progress.ended else len(progress.unchecked)
    own, more = (tuple(r for r in records if bool(r.job.threads) is further) for further in (False, True))
    run = replace(progress.head.run, records=own, threaded=more, unchecked=unchecked)
    return replace(run, unjudged=() if unchecked else unjudged(run))


def _time(launches: Mapping[int, Launch] | None) -> Time | None:
    return Time(tuple(launches[number] for number in sorted(launches))) if launches else None
