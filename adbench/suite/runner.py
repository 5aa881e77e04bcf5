"""Runs a plan: every job becomes a record, whatever happens to it.

`run` is a generator of events; who iterates it draws the bar and writes the journal. Nothing calls back.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from adbench.measure.memory import ALLOCATOR_ENVIRONMENT
from adbench.oracle import Verdict
from adbench.suite.catalog import Catalog
from adbench.suite.plain import from_plain
from adbench.suite.plan import RELATIONS, Plan
from adbench.suite.pool import Pool, reason_of
from adbench.suite.process import WorkerLost, WorkerProcess
from adbench.suite.record import Figure, Job, Launch, Memory, Record, Round, Time
from adbench.suite.settings import Settings


@dataclass(frozen=True)
class Started:
    """A job is under way; `phase` is "check", "time" or "memory"."""

    job: Job
    phase: str


@dataclass(frozen=True)
class Finished:
    """A job's record. Where `last` is False, the same job comes again when its memory has been added."""

    record: Record
    last: bool


Event = Started | Finished


@dataclass
class _Cell:
    """A checked job whose call waits in its worker to be timed: phases so far, `calls` in an epoch, epochs."""

    record: Record
    prepare_seconds: float
    first_call_seconds: float
    calls: int = 1
    epochs: tuple[Round, ...] = ()

    def wants_more(self, settings: Settings) -> bool:
        spent = sum(epoch.ns for epoch in self.epochs)
        return self.record.status == "ok" and (len(self.epochs) < 3 or spent < settings.cell_ns)


def run(plan: Plan, catalog: Catalog, settings: Settings) -> Generator[Event, None, None]:
    """Check, time and weigh every job of the plan.

    Raises BadFile, before anything is measured, where a user's own backend file cannot be used.
    """
    with Pool(catalog, settings) as pool:
        for name in dict.fromkeys(job.backend for job in plan.jobs):
            pool.refuse_bad_file(name)
        for _, groups in groupby(plan.groups(), key=lambda jobs: jobs[0].case):
            to_weigh: list[Record] = []
            for jobs in groups:
                for event in _measure(pool, jobs, settings):
                    if isinstance(event, Finished) and not event.last:
                        to_weigh.append(event.record)
                    yield event
            yield from _weigh(pool, to_weigh, settings)


def _measure(pool: Pool, jobs: Sequence[Job], settings: Settings) -> Generator[Event, None, None]:
    """One group: each backend checked, then those that are right timed in turns."""
    cells: list[_Cell] = []
    for job in jobs:
        yield Started(job, "check")
        checked = _as_known(pool, pool.skipped(job) or _check(pool, job))
        if isinstance(checked, Record) and checked.status in ("wrong", "failed", "crashed", "timed_out"):
            checked = replace(checked, reproduce=pool.reproduce(job))
        if isinstance(checked, _Cell) and settings.time and not pool.is_trap(job):
            cells.append(checked)
        else:
            record = checked.record if isinstance(checked, _Cell) else checked
            yield Finished(record, last=record.status != "ok" or not settings.memory or pool.is_trap(job))
    if cells:
        yield Started(cells[0].record.job, "time")
    for record in _time(pool, cells, settings):
        yield Finished(record, last=record.status != "ok" or not settings.memory)


def _as_known(pool: Pool, checked: _Cell | Record) -> _Cell | Record:
    """What is wrong or fails as its backend's file says is no alarm; what should by that file and does not, is one."""
    record = checked.record if isinstance(checked, _Cell) else checked
    known = pool.known(record.job)
    if known is None:
        return checked
    if record.status in ("wrong", "failed", "crashed"):
        return replace(record, status="known", reason=f"{known}. Here: {record.reason}")
    if record.status == "ok" and record.job.operator == "gradient":
        return replace(record, status="surprise", reason=f"right, but its file says that it is known to be: {known}")
    return checked


def _check(pool: Pool, job: Job) -> _Cell | Record:
    """Prepare and call the job in its worker, where the result is judged; a cell if it is not wrong."""
    known = pool.reference(job)
    if "value" not in known:
        return Record(job, "failed", f"the case itself fails on plain numpy: {reason_of(known)}")
    if job.operator == RELATIONS:
        return _related(pool, job, known["value"])
    request = pool.request("prepare", job, operator=job.operator, reference=known["value"])
    found = pool.ask(job, request)
    if isinstance(found, Record):
        return found
    verdict = from_plain(found["verdict"], Verdict)
    if verdict.word == "wrong":
        return Record(job, "wrong", verdict.sentence, verdict, how=found["how"], text=found["text"])
    record = Record(job, "ok", None, verdict, how=found["how"], text=found["text"])
    return _Cell(record, found["prepare_seconds"], found["first_call_seconds"])


def _related(pool: Pool, job: Job, known: object) -> Record:
    """The relations as a record: wrong where one does not hold. There is nothing to time."""
    found = pool.ask(job, pool.request("relations", job, reference=known))
    if isinstance(found, Record):
        return found
    violations = found["violations"]
    return Record(job, "wrong", "; ".join(violations)) if violations else Record(job, "ok")


def _time(pool: Pool, cells: Sequence[_Cell], settings: Settings) -> Iterator[Record]:
    """Epochs in turns. Round r starts with cell r, so that a drift of the machine falls on all alike."""
    warm_up = {"do": "warm_up", "warm_ns": settings.warm_ns, "epoch_ns": settings.epoch_ns}
    for cell in cells:
        found = pool.ask(cell.record.job, warm_up)
        if isinstance(found, Record):
            cell.record = found
        else:
            cell.calls = found["calls"]
    for turn in range(settings.rounds):
        first = turn % len(cells) if cells else 0
        for cell in (*cells[first:], *cells[:first]):
            if cell.wants_more(settings):
                found = pool.ask(cell.record.job, {"do": "epoch", "calls": cell.calls})
                if isinstance(found, Record):
                    cell.record = found
                else:
                    cell.epochs += (Round(found["calls"], found["ns"]),)
    for cell in cells:
        launch = Launch(0, 0.0, cell.prepare_seconds, {}, cell.first_call_seconds, 3, True, cell.epochs)
        yield replace(cell.record, time=Time((launch,))) if cell.record.status == "ok" else cell.record


def _weigh(pool: Pool, records: Sequence[Record], settings: Settings) -> Generator[Event, None, None]:
    """Memory, in a process of its own for each backend on each case, when no clock is running."""
    if not records:
        return
    yield Started(records[0].job, "memory")
    of_backend = sorted(records, key=lambda record: record.job.backend)
    groups = [list(group) for _, group in groupby(of_backend, key=lambda record: record.job.backend)]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        for weighed in threads.map(partial(_weigh_backend, pool, settings), groups):
            for record in weighed:
                yield Finished(record, last=True)


def _weigh_backend(pool: Pool, settings: Settings, records: Sequence[Record]) -> list[Record]:
    weighed: list[Record] = []
    with pool.fresh(ALLOCATOR_ENVIRONMENT) as worker:
        try:
            worker.ask(pool.load_request(records[0].job.backend), settings.timeout_seconds)
            for record in records:
                weighed.append(replace(record, memory=_memory(pool, worker, record.job, settings)))
        except WorkerLost as lost:
            nothing = Figure(None, f"the process that measured memory {lost.reason}")
            weighed += [replace(record, memory=Memory(nothing, nothing, nothing)) for record in records[len(weighed) :]]
    return weighed


def _memory(pool: Pool, worker: WorkerProcess, job: Job, settings: Settings) -> Memory:
    known = pool.reference(job)["value"]
    request = pool.request("prepare", job, operator=job.operator, reference=known)
    found = worker.ask(request, settings.timeout_seconds)
    if "value" in found:
        found = worker.ask({"do": "memory"}, settings.timeout_seconds)
    if "value" in found:
        return from_plain(found["value"], Memory)
    nothing = Figure(None, reason_of(found))
    return Memory(nothing, nothing, nothing)
