"""The check phase: every job's derivative is judged, in resident workers of one backend each, without a clock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import inf
from time import monotonic
from typing import Any

from adbench.catalog.ad_hoc import Sized
from adbench.catalog.source import Source
from adbench.execution.known_faults import KnownFaults, of_backend
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.phases.shared_jobs import SharedJobs
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.resident_worker import References, ResidentWorker
from adbench.functions.user_function import UserFunction
from adbench.model.backend import HERE, known_bug
from adbench.model.case import Case
from adbench.model.events import CellSeconds, Checked, Event, Started
from adbench.model.operator import RELATIONS
from adbench.model.record import Job, Record, Relations, Summary
from adbench.model.serialization import from_plain
from adbench.model.settings import FLOAT64, PROCESSOR
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.verdict import Verdict

BUILD_SECONDS = 900.0  # time limit for compiling, once per job


@dataclass
class CheckPhase:
    """The check of one backend's jobs with one number of threads, by one or more workers in parallel.

    before   their earlier records
    enough   whether to stop before the next job
    alone    whether no other backend needs the references
    """

    context: Context
    references: References
    jobs: Sequence[Job]
    before: Sequence[Record] = ()
    enough: Callable[[], bool] = lambda: False
    alone: bool = False

    def __post_init__(self) -> None:
        settings = self.context.settings
        self._shared, self._asked = SharedJobs(self.jobs), frozenset(self.jobs)
        self._failures = FailurePolicy(self.before, settings.longest_call_seconds, time=settings.time)
        self._faulty = {record.job for record in self.before if _is_faulty(record)}

    @cached_property
    def _refused(self) -> str:
        """Why nothing can be checked; "" if it can. Once: looking a package up takes longer than many checks."""
        source = self._source
        return source.not_installed or source.refuses(source.device, self.context.settings.dtype)

    @cached_property
    def _known(self) -> KnownFaults:
        cases = self.context.catalog.cases
        of_jobs = {job.case: cases[job.case] for job in self.jobs}
        return of_backend(self._source, of_jobs, self._source.device, self.context.settings.dtype)

    @property
    def _source(self) -> Source:
        return self.context.catalog.backends[self.jobs[0].backend]

    def help(self) -> Generator[Event, None, None]:
        """`check` in a further worker, if the rest of the jobs is worth it."""
        if self._shared.is_worth_a_worker():
            yield from self.check()

    def check(self) -> Generator[Event, None, None]:
        """Check the jobs that no other worker has checked, case by case."""
        with self._shared.worker() as portions:
            yield from self._check_all(chain.from_iterable(portions))

    def _check_all(self, jobs: Iterator[Job]) -> Iterator[Event]:
        start = self.context.checking_start(self.jobs[0].threads, self.jobs[0].backend)
        with ResidentWorker(self.context, self.jobs[0].backend, start) as worker:
            own = References(self.context, worker) if self._is_of_functions else None
            for job in jobs:
                if self.enough():
                    return
                if self._source.builds:
                    yield Started(job, "check", building=True)
                unbuilt = self._unbuilt(worker, job) if self._source.builds and not self._refused else None
                yield Started(job, "check")
                if self._refused:
                    checked = Checked(Record(job, "unsupported", self._refused))
                else:
                    checked = unbuilt or self._check(worker, job, own)
                yield replace(checked, record=self._final(worker, checked), open_seconds=worker.open_seconds)
                self._shared.note(checked.seconds, worker.open_seconds)

    def _final(self, worker: ResidentWorker, checked: Checked) -> Record:
        """The record as the run keeps it: with the known faults, and why it is not timed."""
        catalog, settings = self.context.catalog, self.context.settings
        job, cost = checked.record.job, checked.cost
        call, preparing = (cost.call, cost.prepare + cost.first_call) if cost else (None, 0.0)
        self._failures.note(checked.record, call if settings.time else checked.seconds)
        if _is_faulty(checked.record):
            self._faulty.add(job)
        where = settings.dtype, self._source.device
        record = _as_known(_folded(checked.record, self._faulty), self._known, catalog.cases[job.case], *where)
        if record.may_be_timed and (slow := self._failures.too_slow(job, call, preparing)):
            record = replace(record, reason=f"not timed: {slow}")
        if record.outcome.is_fault or record.outcome.word == "wrong":
            record = replace(record, reproduce=self.context.reproduce(job))
        if job.threads and record.reason is not None:
            record = replace(record, reason=f"with {job.threads} threads: {record.reason}")
        return replace(record, device=worker.device)

    def _unbuilt(self, worker: ResidentWorker, job: Job) -> Checked | None:
        """Let the backend compile for the job, which may take longer than a call. Returns the reason if it cannot."""
        try:
            worker.ask(self.context.request(job, "build", operator=job.operator), BUILD_SECONDS)
        except NoAnswer as no:
            return Checked(no.record(job))
        return None

    @property
    def _is_of_functions(self) -> bool:
        """Whether one process computes references and results, as `adbench.check` does: of a user's functions, without
        a clock, on one backend. A second process would import the function's library once more."""
        cases = self.context.catalog.cases
        functions = all(isinstance(cases[job.case].f, (UserFunction, Sized)) for job in self.jobs)
        return self.alone and not self.context.settings.time and functions

    def _check(self, worker: ResidentWorker, job: Job, own: References | None) -> Checked:
        """Prepare and call the job in its worker, which judges the result; `own`: references that it computes.

        A job to time needs no reference: without one it is unchecked, and compared with the other libraries.
        """
        skipped = self._failures.skipped(job)
        if skipped is not None:
            return Checked(skipped)
        try:
            if own is not None:
                worker.open()  # or its refusal would be the case's
            reference = self._reference(job, own or self.references)
            worker.open()
        except NoAnswer as no:
            return Checked(no.record(job))
        begun = monotonic()
        try:
            if job.operator == RELATIONS:
                checked = self._related(worker, job, reference)
            else:
                checked = self._judged(worker, job, reference)
        except NoAnswer as no:
            checked = Checked(no.record(job))
        return replace(checked, seconds=monotonic() - begun)

    def _reference(self, job: Job, references: References) -> Any:
        """The job's reference; None if it takes too long and the job is timed all the same. Raises NoAnswer."""
        try:
            return references.of(job)
        except NoAnswer as no:
            if no.status == "timed_out" and self._is_timed(job):
                return None
            raise

    def _judged(self, worker: ResidentWorker, job: Job, reference: Any) -> Checked:
        is_timed, keep = self._is_timed(job), replace(job, operator=RELATIONS) in self._asked
        near, unperturbed = self.references.near(job) if is_timed else (None, None)
        slow = (self.context.settings.longest_call_seconds or inf) if is_timed else None
        entries = isinstance(self.context.catalog.cases[job.case].f, (UserFunction, Sized))
        more = {"slow": slow, "keep": keep, "entries": entries, "few_calls": self._is_of_functions}
        request = self.context.prepare_request(job, reference=reference, perturbed=near, **more)
        answer = worker.ask(request)
        verdict = None if reference is None else from_plain(answer["verdict"], Verdict)
        fault = verdict.sentence if verdict and verdict.word == "wrong" else answer.get("between_calls")
        record = Record(
            job,
            "ok" if fault is None else "wrong",
            fault,
            verdict,
            how=answer["how"],
            text=answer["text"],
            summary=from_plain(answer["summary"], Summary),
            least_bytes=answer["least_bytes"],
            unperturbed=unperturbed,
            entries=tuple(from_plain(entry, EntryEvidence) for entry in answer["entries"]),
        )
        call = answer["call_seconds"]
        return Checked(
            record, None if call is None else CellSeconds(answer["prepare_seconds"], answer["first_call_seconds"], call)
        )

    def _is_timed(self, job: Job) -> bool:
        """Whether the job is timed if it is correct."""
        may_be = job.operator != RELATIONS and not self.context.catalog.cases[job.case].is_trap
        return self.context.settings.time and may_be

    def _related(self, worker: ResidentWorker, job: Job, reference: Any) -> Checked:
        """The relations as a record: wrong if one is broken. Relations are never timed.

        The last relation may exceed the time by one step.
        """
        from adbench.execution.operators.relations import MOST_SECONDS

        timeout = MOST_SECONDS + self.context.settings.timeout_seconds
        relations = from_plain(
            worker.ask(self.context.request(job, "relations", reference=reference), timeout), Relations
        )
        return Checked(Record(job, "ok", relations=relations))


def _is_faulty(record: Record) -> bool:
    return record.outcome.is_incorrect or record.outcome.is_fault


def _folded(record: Record, faulty: Collection[Job]) -> Record:
    """The record of relations with its word: wrong if one is broken, or an operator itself is wrong.

    faulty   jobs with wrong records, whose relations only repeat that fault
    """
    if record.relations is None:
        return record
    from adbench.execution.operators.relations import sentences

    repeated = [name for name in record.relations.repeats if replace(record.job, operator=name) in faulty]
    wrong = sentences(record.relations, repeated)
    if wrong and repeated:
        wrong.append(f"the relations of {', '.join(repeated)} repeat their own fault")
    return replace(record, status="wrong", reason="; ".join(wrong)) if wrong else record


def _as_known(record: Record, known: KnownFaults, case: Case, dtype: str, device: str = PROCESSOR) -> Record:
    """A known fault is not an alarm; one that does not occur is noted, in float64 and on the device where it was seen:
    few faults show in every type.

    A fault of a case as a whole excuses all its operators, because most are computed from the gradient. A case with
    several sizes may have its fault at one of them only, or in a relation; then nothing is noted.
    """
    operator, word = record.job.operator, record.outcome.word
    bug = known_bug(known.bugs, record.job.case, operator)
    if word in ("wrong", "failed", "crashed"):  # the machine may cause a time-out
        if bug is not None:
            return replace(record, status="known", reason=f"{bug.text}{HERE}{record.reason}")
        if word == "wrong" and case.is_trap and known.unchecked:
            return replace(record, reason=f"{record.reason}; {known.unchecked}")
        return record
    is_certain = bug is not None and bug.is_certain(operator, device) and len(case.sizes) == 1 and dtype == FLOAT64
    if bug is not None and is_certain and word in ("right", "approximate"):
        return replace(record, status="surprise", reason=f"right, but listed as a known fault: {bug.text}")
    return record
