"""The progress of a run, and the one function by which events change it.

A run applies each event as it happens; resuming applies the events of its journal. Both give the same progress.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, log10
from typing import Any

from adbench.model.events import Decided, Ended, Event, Learned, MemoryMeasured, Timed
from adbench.model.operator import RELATIONS
from adbench.model.record import Figure, Group, Job, Launch, Memory, Record, Run, Selected, Time, grouped


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
    memories: dict[Job, tuple[Memory | None, Figure | None]] = field(default_factory=dict)
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
        case MemoryMeasured(job, memory, instructions):
            progress.memories[job] = memory, instructions
        case Learned(facts):
            progress.head = replace(progress.head, run=replace(progress.head.run, **facts))
        case Ended():
            progress.ended = True


def applied(events: Iterable[Event], progress: Progress) -> Iterator[Event]:
    """Pass the events on, each applied before."""
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
            memory, instructions = progress.memories.get(job, (None, None))
            records.append(replace(record, time=time, control=control, memory=memory, instructions=instructions))
    unchecked = 0 if progress.ended else len(progress.unchecked)
    own, more = (tuple(r for r in records if bool(r.job.threads) is further) for further in (False, True))
    own = tuple(_compared(record, own) if record.outcome.word == "unchecked" else record for record in own)
    run = replace(progress.head.run, records=own, threaded=more, unchecked=unchecked)
    return replace(run, unjudged=() if unchecked else unjudged(run))


def _compared(record: Record, others: Iterable[Record]) -> Record:
    """A record without a verdict, with the decimal digits that its result has in common with those of other backends.

    The digits are those of the sum of its numbers and of the sum of their magnitudes, relative to the latter.
    """
    if (own := record.summary) is None:
        return record
    digits = {
        other.job.backend: floor(-log10(min(1.0, max(1e-15, own.distance(other.summary)))))
        for other in others
        if other.summary and other is not record and replace(other.job, backend=record.job.backend) == record.job
    }
    agrees = ", ".join(f"{name} to {count} digits" for name, count in sorted(digits.items(), key=lambda item: -item[1]))
    compared = f"its sums agree with those of {agrees}" if digits else "no other backend has a result"
    return replace(record, reason=f"{record.reason or 'its reference takes too long (--timeout)'}; {compared}")


def _time(launches: Mapping[int, Launch] | None) -> Time | None:
    return Time(tuple(launches[number] for number in sorted(launches))) if launches else None


JUDGES_NOTHING = ("unsupported", "skipped", "not_run", "unchecked")
"""Words of records that judge nothing. Failures have another exit code, and a known bug was expected."""


def unjudged(run: Run) -> tuple[str, ...]:
    """A sentence with the most frequent reason for the selected parts of which nothing was judged.

    Values and relations count only if no derivative was requested.
    """
    every = run.every_record
    reasons = {part: reason for part in run.selected if (reason := _reason(part, every))}
    alone = {(part.kind, part.names[0]) for part in reasons if len(part.names) == 1}
    listed = [
        part for part in reasons if len(part.names) == 1 or not alone.issuperset((part.kind, n) for n in part.names)
    ]
    by_reason = grouped(listed, lambda part: reasons[part])
    return tuple(f"nothing was checked {' and '.join(_subjects(parts))}: {why}" for why, parts in by_reason.items())


def _subjects(parts: Sequence[Selected]) -> Iterator[str]:
    """ "with the backends jax, torch", "of the case hypot"."""
    for kind, of_kind in grouped(parts, lambda part: part.kind).items():
        several = len(of_kind) > 1 or len(of_kind[0].names) > 1
        names = ", ".join(part.names[0] if len(part.names) == 1 else part.asked for part in of_kind)
        yield f"{'with' if kind == 'backend' else 'of'} the {kind}{'s' if several else ''} {names}"


def _reason(part: Selected, every: Sequence[Record]) -> str:
    """Why nothing was judged; "" if something was."""
    own = [record for record in every if getattr(record.job, part.kind) in part.names]
    records = [record for record in own if record.job.operator not in ("value", RELATIONS)] or own
    if any(map(_is_judged, records)):
        return ""
    if not records:
        return "no cell of it was in the plan, or none was reached"
    (word, reason), count = Counter((record.outcome.word, _told(record)) for record in records).most_common(1)[0]
    return f"{count} of {len(records)} {word}: {reason}"


def _is_judged(record: Record) -> bool:
    if record.relations is not None and not record.relations.held:
        return record.found_wrong
    return record.outcome.word not in JUDGES_NOTHING


def _told(record: Record) -> str:
    left_out = record.relations.left_out if record.relations is not None else ()
    return record.reason or "; ".join(left_out) or "no reason given"
