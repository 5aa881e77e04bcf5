"""Resident workers: one for each backend, started when it is first asked, replaced at the next request where it died.

An import is paid once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Any

from adbench.catalog.discovery import Catalog
from adbench.execution.operators.prepared_point import needs_second_order
from adbench.execution.workers.process import Start, WorkerLost, WorkerProcess
from adbench.execution.workers.randomisation import WorkerKey
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure.machine import thread_environment
from adbench.model.errors import BadFile
from adbench.model.record import Job, Record
from adbench.model.serialization import to_plain
from adbench.model.settings import Settings


class Pool:
    """Workers by key. A context manager: leaving it ends them.

    start     key -> how its worker is started
    loaded    called with a key and its worker when that has imported its backend
    """

    def __init__(
        self,
        supervisor: Supervisor,
        catalog: Catalog,
        settings: Settings,
        start: Callable[[WorkerKey], Start],
        loaded: Callable[[WorkerKey, WorkerProcess], None] = lambda key, worker: None,
    ) -> None:
        self._supervisor, self._catalog, self._settings = supervisor, catalog, settings
        self._start, self._loaded = start, loaded
        self._workers: dict[WorkerKey, WorkerProcess] = {}
        self._known: dict[str, Mapping[str, str]] = {}
        self._import_seconds: dict[WorkerKey, float] = {}
        self._open_seconds: dict[WorkerKey, float] = {}
        self._refused: dict[WorkerKey, Record] = {}  # who cannot be had: an import that hangs is waited for once

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for key in tuple(self._workers):
            self._discard(key)

    def open(self, key: WorkerKey, job: Job) -> Record | None:
        """Start the key's worker where there is none and let it import its backend; the record of why it cannot."""
        if key in self._workers:
            return None
        if key in self._refused:
            return replace(self._refused[key], job=job)
        begun = monotonic()
        try:
            self._workers[key] = self._supervisor.start(self._start(key))
        except WorkerLost as lost:
            return Record(job, lost.status, lost.reason)
        answer = self._ask(key, job, load_request(self._catalog, key.backend))
        if isinstance(answer, Record):
            self._discard(key)
            self._refused[key] = replace(answer, reason=f"importing it: {answer.reason}")
            return self._refused[key]
        self._known[key.backend] = answer["known"]
        self._import_seconds[key] = answer["import_seconds"]
        self._open_seconds[key] = monotonic() - begun
        self._loaded(key, self._workers[key])
        return None

    def ask(self, key: WorkerKey, job: Job, request: Mapping[str, Any], timeout: float | None = None) -> Any:
        """The value of the worker's answer, or the record of why there is none. `timeout`: else the run's own."""
        return self.open(key, job) or self._ask(key, job, request, timeout)

    def known(self, job: Job) -> str | None:
        """Why the backend is known to be wrong or to fail on the job's case, as its file says; None where it is not."""
        return self._known.get(job.backend, {}).get(job.case)

    def import_seconds(self, key: WorkerKey) -> float:
        """What the import took in the key's present worker."""
        return self._import_seconds[key]

    def open_seconds(self, key: WorkerKey) -> float | None:
        """What starting the key's last worker took, the import included; None where it had none."""
        return self._open_seconds.get(key)

    def _ask(self, key: WorkerKey, job: Job, request: Mapping[str, Any], timeout: float | None = None) -> Any:
        try:
            answer = self._workers[key].ask(request, timeout or self._settings.timeout_seconds)
        except WorkerLost as lost:
            self._discard(key)
            return Record(job, lost.status, lost.reason, stderr=lost.stderr or None)
        if "value" in answer:
            return answer["value"]
        if "unsupported" in answer:
            return Record(job, "unsupported", reason_of(answer))
        return Record(job, "failed", reason_of(answer), stderr=answer.get("traceback"))

    def _discard(self, key: WorkerKey) -> None:
        worker = self._workers.pop(key, None)
        if worker is not None:
            self._supervisor.end(worker)


class References:
    """What is known of cases at points: each computed once, in a process that has no backend. For several threads."""

    def __init__(self, supervisor: Supervisor, catalog: Catalog, settings: Settings) -> None:
        self._supervisor, self._catalog, self._settings = supervisor, catalog, settings
        self._worker: WorkerProcess | None = None
        self._found: dict[tuple[str, int, int, bool], dict[str, Any]] = {}
        self._lock = Lock()

    def __enter__(self) -> References:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._supervisor.end(self._worker)
            self._worker = None

    def answer(self, job: Job) -> dict[str, Any]:
        """The answer to `reference` for the job's case and size."""
        second = needs_second_order(job.operator)
        key = job.case, job.size, job.seed, second
        with self._lock:
            if key not in self._found:
                self._found[key] = self._compute(job, second)
            return self._found[key]

    def _compute(self, job: Job, second: bool) -> dict[str, Any]:
        asked = {"second_order": second, "cache": self._settings.cache}
        request = about(self._catalog, job, "reference", reference_seconds=self._settings.reference_seconds, **asked)
        try:
            if self._worker is None:
                self._worker = self._supervisor.start(plain_start(self._settings))
            return self._worker.ask(request, self._settings.timeout_seconds)
        except WorkerLost as lost:
            if self._worker is not None:
                self._supervisor.end(self._worker)
                self._worker = None
            return {"failed": f"its process {lost.reason}"}


def plain_start(settings: Settings) -> Start:
    """A worker with the run's threads, and nothing drawn at random."""
    return Start(thread_environment(settings.threads) | {"PYTHONHASHSEED": "0"})


def refuse_bad_file(supervisor: Supervisor, catalog: Catalog, settings: Settings, name: str) -> None:
    """Load a user's own backend file in a process that is thrown away. Raises BadFile where it cannot be used."""
    source = catalog.backends[name]
    if source.builtin or source.missing:
        return
    worker = None
    try:
        worker = supervisor.start(plain_start(settings))
        answer = worker.ask(load_request(catalog, name), settings.timeout_seconds)
    except WorkerLost as lost:
        raise BadFile(f"{source.path}: importing it {lost.reason}") from lost
    finally:
        if worker is not None:
            supervisor.end(worker)
    if "value" not in answer:
        raise BadFile(answer.get("bad_file") or f"{source.path}: importing it: {reason_of(answer)}")


def about(catalog: Catalog, job: Job, do: str, **more: Any) -> dict[str, Any]:
    """A request about a job's case at its size."""
    source = to_plain(catalog.case_sources[job.case])
    return {"do": do, "case": source, "size": job.size, "seed": job.seed, **more}


def load_request(catalog: Catalog, name: str) -> dict[str, Any]:
    """The request to import a backend."""
    return {"do": "load", "source": to_plain(catalog.backends[name])}


def reason_of(answer: Mapping[str, Any]) -> str:
    """Why an answer holds no value."""
    return str(answer.get("unsupported") or answer.get("failed") or answer.get("bad_file"))


def reproduce(catalog: Catalog, job: Job) -> str:
    """One line of Python that checks the job's cell again, in whatever process it is pasted into."""
    case, backend = catalog.case_sources[job.case], catalog.backends[job.backend]
    which = job.case if case.builtin else f"{case.path}:{job.case}"
    where = job.backend if backend.builtin else backend.path
    return (
        f"import adbench; print(adbench.check_cell({which!r}, {job.size}, {where!r}, {job.operator!r}, "
        f"seed={job.seed}))"
    )
