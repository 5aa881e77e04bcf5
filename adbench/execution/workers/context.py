"""The context of a run: the supervisor of its workers, its cases and backends, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from adbench.catalog.discovery import Catalog
from adbench.execution.workers.process import Start
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure.machine import thread_environment
from adbench.model.record import Job
from adbench.model.serialization import to_plain
from adbench.model.settings import PROGRAMS_VARIABLE, Settings, programs_folder


@dataclass(frozen=True)
class Context:
    """A run's supervisor, catalog and settings, and the requests to its workers."""

    supervisor: Supervisor
    catalog: Catalog
    settings: Settings

    def plain_start(self) -> Start:
        """Start a worker with the run's threads, without randomisation."""
        return Start(thread_environment(self.settings.threads) | {"PYTHONHASHSEED": "0"})

    def checking_start(self) -> Start:
        """Start a worker that only checks: its backend may load the programs that an earlier check compiled."""
        plain = self.plain_start()
        if self.settings.cache is None:
            return plain
        return replace(plain, environment={**plain.environment, PROGRAMS_VARIABLE: str(programs_folder())})

    def load_request(self, backend: str) -> dict[str, Any]:
        """The request to import a backend."""
        return {"do": "load", "source": to_plain(self.catalog.backends[backend])}

    def request(self, job: Job, do: str, **more: Any) -> dict[str, Any]:
        """A request about a job's case at its size."""
        source = to_plain(self.catalog.case_sources[job.case])
        return {"do": do, "case": source, "size": job.size, "seed": job.seed, "single": self.single(job), **more}

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
        where = job.backend if backend.builtin else backend.path
        return (
            f"import adbench; print(adbench.check_cell({which!r}, {job.size}, {where!r}, {job.operator!r}, "
            f"seed={job.seed}))"
        )
