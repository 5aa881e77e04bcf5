"""Memory, when no clock runs: each method in processes of its own, for none can see through another's bookkeeping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from adbench.catalog.discovery import Catalog
from adbench.execution.phases.failure_policy import CRASHES_ALLOWED
from adbench.execution.workers.pool import about, load_request, plain_start, reason_of
from adbench.execution.workers.process import Start, WorkerLost, WorkerProcess
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure import memory
from adbench.model.events import Event, MemoryMeasured, Started
from adbench.model.record import Figure, Job, Memory
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings

METHODS: Sequence[memory.Method] = ("allocated", "python", "resident")


def measure_memory(
    supervisor: Supervisor,
    catalog: Catalog,
    settings: Settings,
    jobs: Sequence[Job],
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Weigh the jobs of one backend, until it is `enough`.

    One process for each method and case, or one for each method where all cases go in one.
    """
    groups = [jobs] if settings.weigh_all_in_one else [list(group) for _, group in groupby(jobs, lambda job: job.case)]
    for group in groups:
        scales = [Scale(supervisor, catalog, settings, method) for method in METHODS]
        try:
            for job in group:
                if enough():
                    return
                yield Started(job, "memory")
                allocated, python, resident = (scale.measure_memory(job) for scale in scales)
                yield MemoryMeasured(job, Memory(allocated, python, resident))
        finally:
            for scale in scales:
                scale.close()


def jobs_to_measure(jobs: Sequence[Job], settings: Settings) -> list[Job]:
    """Those of the jobs that the settings want weighed."""
    derived = {job.case for job in jobs if job.operator != "value"}
    return [job for job in jobs if settings.weigh_values or job.operator != "value" or job.case not in derived]


@dataclass
class Scale:
    """One method's process. It is replaced where it dies, but not for ever."""

    supervisor: Supervisor
    catalog: Catalog
    settings: Settings
    method: memory.Method
    worker: WorkerProcess | None = None
    lost: dict[str, int] = field(default_factory=dict)  # case -> processes that it cost

    def measure_memory(self, job: Job) -> Figure:
        """The figure, or why there is none."""
        if self.lost.get(job.case, 0) >= CRASHES_ALLOWED:
            return Figure(None, f"the process that measured memory was lost {CRASHES_ALLOWED} times on {job.case}")
        try:
            answer = self._answer(job)
        except WorkerLost as lost:
            self.close()
            self.lost[job.case] = self.lost.get(job.case, 0) + 1
            return Figure(None, f"the process that measured memory {_told(lost)}")
        return from_plain(answer["value"], Figure) if "value" in answer else Figure(None, reason_of(answer))

    def close(self) -> None:
        """End the process, where there is one."""
        if self.worker is not None:
            self.supervisor.end(self.worker)
            self.worker = None

    def _answer(self, job: Job) -> Mapping[str, object]:
        if self.worker is None:
            start = plain_start(self.settings)
            environment = dict(start.environment) | dict(memory.environment(self.method))
            self.worker = self.supervisor.start(Start(environment))
            loaded = self.worker.ask(load_request(self.catalog, job.backend), self.settings.timeout_seconds)
            if "value" not in loaded:
                self.close()
                return loaded
        request = about(self.catalog, job, "prepare", operator=job.operator)
        prepared = self.worker.ask(request, self.settings.timeout_seconds)
        if "value" not in prepared:
            return prepared
        asked = {"do": "memory", "method": self.method, "times": self.settings.weighings}
        return self.worker.ask(asked, self.settings.timeout_seconds)


def _told(lost: WorkerLost) -> str:
    return f"gave {lost.reason}" if lost.status == "timed_out" else lost.reason
