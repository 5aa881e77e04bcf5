"""The context of a run: the supervisor of its workers, its cases and backends, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import Catalog
from adbench.execution.workers.process import WorkerStart
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure.machine import NO_GPU, thread_environment
from adbench.model.record import Job
from adbench.model.serialization import to_plain
from adbench.model.settings import FLOAT64, PROCESSOR, PROGRAMS_VARIABLE, Settings, programs_folder


@dataclass(frozen=True)
class Context:
    """A run's supervisor, catalog and settings, and the requests to its workers."""

    supervisor: Supervisor
    catalog: Catalog
    settings: Settings

    def plain_start(self, threads: int = 0, backend: str | None = None) -> WorkerStart:
        """Start a worker with so many threads, or the run's, without randomisation."""
        return WorkerStart(self.environment(threads, backend) | {"PYTHONHASHSEED": "0"})

    def environment(self, threads: int = 0, backend: str | None = None) -> dict[str, str]:
        """The variables for so many threads, or the run's; without a backend on a device, they also hide every GPU."""
        devices = {"JAX_PLATFORMS": ""} if self.is_on_device(backend) else NO_GPU  # "": jax looks for itself
        return thread_environment(threads or self.settings.threads) | devices

    def is_on_device(self, backend: str | None) -> bool:
        """Whether this backend computes on another device than the processor."""
        return backend is not None and self.catalog.backends[backend].device != PROCESSOR

    def checking_start(self, threads: int = 0, backend: str | None = None) -> WorkerStart:
        """Start a worker that only checks: its backend may load the programs that an earlier check compiled."""
        plain = self.plain_start(threads, backend)
        return replace(plain, environment={**plain.environment, **self.programs})

    @property
    def programs(self) -> dict[str, str]:
        """The variable that lets a backend load compiled programs; none without a cache."""
        return {} if self.settings.cache is None else {PROGRAMS_VARIABLE: str(programs_folder())}

    def load_request(self, backend: str) -> dict[str, Any]:
        """The request to import a backend, and to use its device and the run's type."""
        how = {"transfers": self.settings.transfers, "dtype": self.settings.dtype}
        source = self.catalog.backends[backend]
        return {"do": "load", "source": to_plain(source), "device": source.device, **how}

    def request(self, job: Job, do: str, **more: Any) -> dict[str, Any]:
        """A request about a job's case at its size."""
        source = to_plain(self.catalog.case_sources[job.case])
        precision = {"single": self.single(job), "dtype": self.settings.dtype}
        return {"do": do, "case": source, "size": job.size, "seed": job.seed, **precision, **more}

    def single(self, job: Job) -> bool:
        """Whether the job's backend computes in float32: the case's inputs are then rounded to float32."""
        backend = self.catalog.backends.get(job.backend)
        return backend is not None and backend.precision == "float32"

    def prepare_request(self, job: Job, **more: Any) -> dict[str, Any]:
        """The request to prepare a job's operator and to call it once."""
        return self.request(job, "prepare", operator=job.operator, **more)

    def reproduce(self, job: Job) -> str:
        """One line of Python that checks the job's cell again, in any process."""
        case, backend = self.catalog.case_sources[job.case], self.catalog.backends[job.backend]
        which = job.case if case.builtin else f"{case.path}:{job.case}"
        where = backend.name if backend.builtin else backend.path
        if not backend.builtin and Path(backend.path).stem != backend.name:
            where = f"{where}:{backend.name}"
        if job.threads or (backend.device, self.settings.dtype) != (PROCESSOR, FLOAT64):
            cell = ["-c", which.rpartition(":")[0] or which, "-n", job.size, "-b", where, "--operator", job.operator]
            how = ["--seed", job.seed, "--threads", job.threads or self.settings.threads]
            how += ["--device", backend.device, "--dtype", self.settings.dtype]
            how += ["--transfers", self.settings.transfers] if backend.device != PROCESSOR else []
            return f"from adbench.cli import cli; cli({['check', *map(str, [*cell, *how])]!r})"
        return (
            f"import adbench; print(adbench.check_cell({which!r}, {job.size}, {where!r}, {job.operator!r}, "
            f"seed={job.seed}))"
        )
