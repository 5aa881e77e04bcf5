"""Resident workers: started at the first request, and replaced at the next request if they died."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Lock
from time import monotonic
from typing import Any

from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer, WorkerLost, WorkerProcess, WorkerStart
from adbench.measure import machine
from adbench.measure.readings import Rates
from adbench.model.errors import UsageError
from adbench.model.operator import needs
from adbench.model.record import Job
from adbench.model.serialization import from_plain
from adbench.model.settings import FLOAT64, PROCESSOR, PROGRAMS_VARIABLE

PERTURBED_SHARE = 0.25
"""Share of a reference's time for the perturbed point, where fewer entries are examined."""


class ResidentWorker(AbstractContextManager["ResidentWorker"]):
    """A worker with one backend, imported once, or without. A context manager: leaving it ends the worker.

    start   its start; by default with the run's threads and no randomisation
    cpus    its processors after the import; none: those of its start

    device           the name of its device, as the library calls it; None for the processor
    import_seconds   time of the last import
    open_seconds     time of the last start, including the import; None before
    """

    def __init__(
        self, context: Context, backend: str | None = None, start: WorkerStart | None = None, cpus: tuple[int, ...] = ()
    ) -> None:
        self._context, self._backend, self._cpus = context, backend, cpus
        self._start = start or context.plain_start(backend=backend)
        self._process: WorkerProcess | None = None
        self._is_paused = False
        self._refusal: NoAnswer | None = None  # so that a hanging import is waited for only once
        self.device: str | None = None
        self.import_seconds = 0.0
        self.open_seconds: float | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> WorkerProcess:
        """Start the process if necessary, and let it import its backend. Raises NoAnswer if it cannot."""
        if self._process is not None:
            return self._process
        if self._refusal is not None:
            raise self._refusal
        begun = monotonic()
        self._process = self._context.supervisor.start(self._start)
        if self._backend is not None:
            self._load(self._process, self._backend)
        self.open_seconds = monotonic() - begun
        return self._process

    def ask(self, request: Mapping[str, Any], timeout: float | None = None) -> Any:
        """The value of the worker's answer. Raises NoAnswer if it gives no answer. `timeout`: by default the run's."""
        self.resume()
        try:
            return self.open().ask(request, timeout or self._context.settings.timeout_seconds)
        except WorkerLost:
            self.close()
            raise

    def rates(self) -> Rates:
        """How fast the backend's device, or this processor, copies and computes. Raises NoAnswer."""
        return from_plain(self.ask({"do": "rates", "dtype": self._context.settings.dtype}), Rates)

    def close(self) -> None:
        """End the process, if any."""
        if self._process is not None:
            self._process.close()
            self._process = None

    @property
    def name(self) -> str:
        """Its backend."""
        return self._backend or "the references"

    @property
    def reuses_programs(self) -> bool:
        """Whether its backend may load programs that an earlier process compiled."""
        return PROGRAMS_VARIABLE in self._start.environment

    @property
    def pids(self) -> list[int]:
        """The ids of its processes."""
        return self._process.recent_pids if self._process is not None else []

    def pause(self) -> None:
        """Stop its processes until `resume` or the next request."""
        if self._process is not None:
            self._process.signal(signal.SIGSTOP)
            self._is_paused = True

    def resume(self) -> None:
        """Let its processes run again."""
        if self._is_paused and self._process is not None:
            self._process.signal(signal.SIGCONT)
        self._is_paused = False

    def move(self, cpus: Sequence[int], process: WorkerProcess | None = None) -> None:
        """Let the process run on these processors from now on; none: where it is."""
        process = process or self._process
        if cpus and process is not None:
            for pid in process.every_pid:
                with suppress(OSError):  # it is gone, as the next request will find
                    machine.pin(pid, tuple(cpus))

    def _load(self, process: WorkerProcess, backend: str) -> None:
        try:
            loaded = process.ask(self._context.load_request(backend), self._context.settings.timeout_seconds)
        except NoAnswer as no:
            self.close()
            reason = no.reason if no.status == "skipped" else f"importing it: {no.reason}"
            self._refusal = type(no)(no.status, reason, no.stderr)
            raise self._refusal from no
        self.import_seconds, self.device = loaded["import_seconds"], loaded["device"]
        self.move(self._cpus, process)


def require_device(workers: Iterable[ResidentWorker], device: str) -> None:
    """Raise UsageError in one line if no worker's library has this device. Starts workers for another than the CPU."""
    reasons = dict[str, str]()
    for worker in workers if device != PROCESSOR else ():
        try:
            worker.open()
            return
        except NoAnswer as no:
            if no.status != "skipped":  # its requests get this reason
                return
            reasons[worker.name] = no.reason
    if reasons:
        raise no_device(reasons)


def no_device(reasons: Mapping[str, str]) -> UsageError:
    """The error for backends none of which has the run's device, with the reason of each."""
    return UsageError(f"{'; '.join(f'{name}: {why}' for name, why in reasons.items())}; use --device cpu")


class References(AbstractContextManager["References"]):
    """References of cases at points, each computed once. Thread-safe.

    worker   computes them; by default one without a backend, which leaving the context ends
    """

    def __init__(self, context: Context, worker: ResidentWorker | None = None) -> None:
        self._context, self._worker = context, worker or ResidentWorker(context)
        self._found: dict[tuple[Any, ...], Any] = {}
        self._lock = Lock()

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def of(self, job: Job, *, perturbed: bool = False) -> Any:
        """The reference for the job's case and size, at its inputs or at perturbed ones (perturbed.py).

        Raises NoAnswer if the case itself fails or takes too long, or if there is no perturbed point.
        """
        key = job.case, job.size, job.seed, perturbed, self._context.single(job), *needs(job.operator).values()
        with self._lock:
            if key not in self._found:
                self._found[key] = self._compute(job, perturbed=perturbed)
        if isinstance(self._found[key], NoAnswer):
            raise self._found[key]
        return self._found[key]

    def near(self, job: Job) -> tuple[Any, str | None]:
        """The reference at perturbed inputs, or None and why it is missing, for example also at the case's inputs."""
        try:
            self.of(job)
            return self.of(job, perturbed=True), None
        except NoAnswer as no:
            return None, no.reason

    def _compute(self, job: Job, *, perturbed: bool) -> Any:
        settings = self._context.settings
        asked = {
            "cache": settings.cache,
            "reference_seconds": settings.reference_seconds * (PERTURBED_SHARE if perturbed else 1),
            "perturbed": perturbed,
        }
        try:
            return self._worker.ask(self._context.request(job, "reference", **needs(job.operator), **asked))
        except NoAnswer as no:
            if perturbed or (no.status == "unsupported" and settings.dtype != FLOAT64):  # the type has no such inputs
                return no
            if no.status == "timed_out":
                return NoAnswer("timed_out", f"its reference takes over {settings.timeout_seconds:g} s (--timeout)")
            reason = f"its process {no.reason}" if isinstance(no, WorkerLost) else no.reason
            return NoAnswer("failed", f"the case itself fails on plain numpy: {reason}")
