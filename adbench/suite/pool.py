"""One resident worker for each backend, and what is known of those that failed.

An import is paid once. A worker that died is replaced at the next request; one that keeps dying is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adbench.measure.machine import thread_environment
from adbench.suite.catalog import Catalog
from adbench.suite.checking import needs_second_order
from adbench.suite.errors import BadFile
from adbench.suite.plain import to_plain
from adbench.suite.process import WorkerLost, WorkerProcess
from adbench.suite.record import Job, Record
from adbench.suite.settings import Settings

CRASHES_ALLOWED = 2  # of a backend on one case, before its other cells there are skipped
_NO_BACKEND = ""  # the worker that evaluates cases on plain numpy


class Pool:
    """The workers of one run. A context manager: leaving it ends them all, also after Ctrl-C."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog, self._settings = catalog, settings
        self._workers: dict[str, WorkerProcess] = {}
        self._crashes: Counter[tuple[str, str]] = Counter()
        self._timed_out: dict[tuple[str, str, str], int] = {}
        self._known: dict[str, Mapping[str, str]] = {}
        self._references: dict[tuple[str, int, int, bool], dict[str, Any]] = {}

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for name in tuple(self._workers):
            self._bury(name)

    def ask(self, job: Job, request: Mapping[str, Any]) -> Any:
        """The value of the backend's answer, or the record of why there is none. Starts the worker where it has to."""
        if job.backend not in self._workers:
            self._workers[job.backend] = self.fresh()
            loaded = self._ask(job, self.load_request(job.backend))
            if isinstance(loaded, Record):
                self._bury(job.backend)
                return loaded
            self._known[job.backend] = loaded["known"]
        return self._ask(job, request)

    def skipped(self, job: Job) -> Record | None:
        """The record of a job that need not be tried: its library is missing, or it did worse with less before."""
        missing = self._catalog.backends[job.backend].missing
        if missing:
            names = " ".join(missing)
            return Record(job, "unsupported", f"{names} is not installed; pip install {names}")
        if self._crashes[job.backend, job.case] >= CRASHES_ALLOWED:
            return Record(job, "skipped", f"crashed {CRASHES_ALLOWED} times on {job.case} before")
        smaller = self._timed_out.get((job.backend, job.case, job.operator), job.size)
        if smaller < job.size:
            return Record(job, "skipped", f"timed out at size {smaller}")
        return None

    def is_trap(self, job: Job) -> bool:
        """Whether the job's case is there to be got wrong: checked, never timed."""
        return self._catalog.cases[job.case].is_trap

    def known(self, job: Job) -> str | None:
        """Why the backend is known to be wrong or to fail on the job's case, as its file says; None where it is not."""
        return self._known.get(job.backend, {}).get(job.case)

    def reference(self, job: Job) -> dict[str, Any]:
        """The answer to `reference` for the job's case and size: computed once, in a process that has no backend."""
        second = needs_second_order(job.operator)
        key = job.case, job.size, job.seed, second
        if key not in self._references:
            try:
                if _NO_BACKEND not in self._workers:
                    self._workers[_NO_BACKEND] = self.fresh()
                seconds = self._settings.reference_seconds
                request = self.request(
                    "reference", job, reference_seconds=seconds, second_order=second, cache=self._settings.cache
                )
                self._references[key] = self._workers[_NO_BACKEND].ask(request, self._settings.timeout_seconds)
            except WorkerLost as lost:
                self._bury(_NO_BACKEND)
                self._references[key] = {"failed": f"its process {lost.reason}"}
        return self._references[key]

    def refuse_bad_file(self, name: str) -> None:
        """Load a user's own backend file in a process that is thrown away. Raises BadFile where it cannot be used."""
        source = self._catalog.backends[name]
        if source.builtin or source.missing:
            return
        with self.fresh() as worker:
            try:
                found = worker.ask(self.load_request(name), self._settings.timeout_seconds)
            except WorkerLost as lost:
                raise BadFile(f"{source.path}: importing it {lost.reason}") from lost
        if "value" not in found:
            raise BadFile(reason_of(found))

    def reproduce(self, job: Job) -> str:
        """One line of Python that checks the job's cell again, in whatever process it is pasted into."""
        case, backend = self._catalog.case_sources[job.case], self._catalog.backends[job.backend]
        which = job.case if case.builtin else f"{case.path}:{job.case}"
        where = job.backend if backend.builtin else backend.path
        return (
            f"import adbench; print(adbench.check_cell({which!r}, {job.size}, {where!r}, {job.operator!r}, "
            f"seed={job.seed}))"
        )

    def fresh(self, environment: Mapping[str, str] | None = None) -> WorkerProcess:
        """A new worker with the run's threads; it has loaded nothing."""
        fixed = thread_environment(self._settings.threads) | {"PYTHONHASHSEED": "0"}
        return WorkerProcess(fixed | dict(environment or {}))

    def request(self, do: str, job: Job, **more: Any) -> dict[str, Any]:
        """A request about a job's case at its size."""
        source = to_plain(self._catalog.case_sources[job.case])
        return {"do": do, "case": source, "size": job.size, "seed": job.seed, **more}

    def load_request(self, name: str) -> dict[str, Any]:
        """The request to import a backend."""
        return {"do": "load", "source": to_plain(self._catalog.backends[name])}

    def _ask(self, job: Job, request: Mapping[str, Any]) -> Any:
        try:
            found = self._workers[job.backend].ask(request, self._settings.timeout_seconds)
        except WorkerLost as lost:
            self._bury(job.backend)
            if lost.status == "crashed":
                self._crashes[job.backend, job.case] += 1
            else:
                self._timed_out[job.backend, job.case, job.operator] = job.size
            return Record(job, lost.status, lost.reason, stderr=lost.stderr or None)
        if "value" in found:
            return found["value"]
        if "unsupported" in found:
            return Record(job, "unsupported", reason_of(found))
        return Record(job, "failed", reason_of(found), stderr=found.get("traceback"))

    def _bury(self, name: str) -> None:
        worker = self._workers.pop(name, None)
        if worker is not None:
            worker.__exit__()


def reason_of(answer: Mapping[str, Any]) -> str:
    """Why an answer holds no value."""
    return str(answer.get("unsupported") or answer.get("failed") or answer.get("bad_file"))
