"""The check: every job's derivative judged, in one resident worker for each backend; no clock decides anything here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from adbench.catalog.discovery import Catalog
from adbench.execution.operators import relations
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.planning.plan import RELATIONS
from adbench.execution.workers.pool import Pool, References, about, plain_start, reason_of, reproduce
from adbench.execution.workers.randomisation import WorkerKey
from adbench.execution.workers.supervisor import Supervisor
from adbench.model.case import Case
from adbench.model.events import Checked, Cost, Event, Started
from adbench.model.record import Job, Record, Summary
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings
from adbench.oracle import Verdict

BUILD_SECONDS = 900.0  # for what a job needs compiled, once


def check(
    supervisor: Supervisor,
    references: References,
    catalog: Catalog,
    settings: Settings,
    jobs: Sequence[Job],
    before: Sequence[Record],
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Check the jobs of one backend, in their order, until it is `enough`; `before` are its records from before."""
    failures = FailurePolicy(before)
    with Pool(supervisor, catalog, settings, lambda key: plain_start(settings)) as pool:
        for job in jobs:
            if enough():
                return
            if catalog.backends[job.backend].builds:
                yield Started(job, "check", building=True)
            unbuilt = _unbuilt(pool, catalog, job)
            yield Started(job, "check")
            checked = unbuilt or _check(pool, references, catalog, settings, failures, job)
            failures.note(checked.record)
            record = _as_known(checked.record, pool.known(job), catalog.cases[job.case])
            if record.status in ("wrong", "failed", "crashed", "timed_out"):
                record = replace(record, reproduce=reproduce(catalog, job))
            yield replace(checked, record=record, open_seconds=pool.open_seconds(WorkerKey(job.backend)))


def _unbuilt(pool: Pool, catalog: Catalog, job: Job) -> Checked | None:
    """Let the backend compile what the job needs, which may take far longer than any call. Where it cannot: why."""
    source = catalog.backends[job.backend]
    if not source.builds or source.missing:
        return None
    found = pool.ask(WorkerKey(job.backend), job, about(catalog, job, "build", operator=job.operator), BUILD_SECONDS)
    return Checked(found) if isinstance(found, Record) else None


def _check(
    pool: Pool, references: References, catalog: Catalog, settings: Settings, failures: FailurePolicy, job: Job
) -> Checked:
    """Prepare and call the job in its worker, where the result is judged."""
    missing = catalog.backends[job.backend].missing
    if missing:
        names = " ".join(missing)
        return Checked(Record(job, "unsupported", f"{names} is not installed; pip install {names}"))
    skipped = failures.skipped(job)
    if skipped is not None:
        return Checked(skipped)
    known = references.answer(job)
    if "value" not in known:
        return Checked(Record(job, "failed", f"the case itself fails on plain numpy: {reason_of(known)}"))
    lost = pool.open(WorkerKey(job.backend), job)
    if lost is not None:
        return Checked(lost)
    begun = monotonic()
    if job.operator == RELATIONS:
        checked = Checked(_related(pool, catalog, settings, job, known["value"]))
    else:
        request = about(catalog, job, "prepare", operator=job.operator, reference=known["value"], cost=settings.time)
        found = pool.ask(WorkerKey(job.backend), job, request)
        checked = Checked(found) if isinstance(found, Record) else _judged(job, found)
    return replace(checked, seconds=monotonic() - begun)


def _judged(job: Job, found: dict[str, Any]) -> Checked:
    verdict = from_plain(found["verdict"], Verdict)
    record = Record(
        job, "ok", None, verdict, how=found["how"], text=found["text"], summary=from_plain(found["summary"], Summary)
    )
    if verdict.word == "wrong":
        record = replace(record, status="wrong", reason=verdict.sentence)
    call = found["call_seconds"]
    return Checked(record, None if call is None else Cost(found["prepare_seconds"], found["first_call_seconds"], call))


def _related(pool: Pool, catalog: Catalog, settings: Settings, job: Job, known: object) -> Record:
    """The relations as a record: wrong where one does not hold. There is nothing to time.

    Each prepares the backend anew, and so is a step of its own, with the time of one.
    """
    request = about(catalog, job, "relations", reference=known)
    found = pool.ask(WorkerKey(job.backend), job, request, len(relations.RELATIONS) * settings.timeout_seconds)
    if isinstance(found, Record):
        return found
    violations = found["violations"]
    return Record(job, "wrong", "; ".join(violations)) if violations else Record(job, "ok")


def _as_known(record: Record, known: str | None, case: Case) -> Record:
    """A fault that the backend's file lists is not an alarm; a listed fault that does not occur is one.

    A case of several sizes may have its fault at one of them only, or in a relation: no alarm then.
    """
    if known is None:
        return record
    reason = case.known_fault(known)
    if record.status in ("wrong", "failed", "crashed"):
        return replace(record, status="known", reason=f"{reason}. Here: {record.reason}")
    if record.status == "ok" and record.job.operator == "gradient" and len(case.sizes) == 1:
        return replace(record, status="surprise", reason=f"right, but its file says that it is known to be: {reason}")
    return record
