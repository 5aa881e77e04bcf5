"""The memory phase, without a clock: each method runs in separate processes, because methods disturb each other.

Of a backend on a device, only the device's memory is measured.
So does the counter of instructions, in one process of each backend.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from adbench.execution.phases.failure_policy import CRASHES_ALLOWED
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer, WorkerLost
from adbench.execution.workers.resident_worker import ResidentWorker
from adbench.measure import instructions, memory
from adbench.model.events import Event, MemoryMeasured, Started
from adbench.model.record import Figure, Job, Memory
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings

TIMES_COUNTED = 3
METHODS: Sequence[memory.Method] = ("allocated", "python", "resident")
LEFT_OUT = {
    "python": Figure(None, "the allocated figure has all that Python's allocators have"),
    "resident": Figure(None, "a quick run measures memory by one method"),  # if the settings ask for one
}
ON_DEVICE = Figure(None, "its memory is on the device")


def measure_memory(
    context: Context, jobs: Sequence[Job], enough: Callable[[], bool] = lambda: False
) -> Generator[Event, None, None]:
    """Measure the memory of one backend's jobs, or count their instructions, or both, until `enough`.

    The settings choose one process for each method and case, or one for each method. A process may load the programs
    that the check compiled, because the measured call follows a warm-up call.
    """
    settings = context.settings
    shared = settings.weigh_all_in_one or not settings.memory
    backend = jobs[0].backend
    with _counting(context, backend) as count:
        for group in [jobs] if shared else [list(group) for _, group in groupby(jobs, lambda job: job.case)]:
            with ExitStack() as stack:
                methods = {
                    name: Measurement(
                        context,
                        stack.enter_context(_worker(context, name, backend)),
                        {"do": "memory", "method": name, "times": settings.weighings},
                    )
                    for name in ("device", *METHODS)
                }
                for job in group:
                    if enough():
                        return
                    yield Started(job, "memory")
                    measured = None
                    if settings.memory and context.is_on_device(backend):
                        measured = Memory(ON_DEVICE, ON_DEVICE, ON_DEVICE, methods["device"].measure(job))
                    elif settings.memory:
                        measured = Memory(*figures(methods, job, one=settings.weigh_by_one_method))
                    yield MemoryMeasured(job, measured, count(job))


def jobs_to_measure(jobs: Sequence[Job], settings: Settings) -> list[Job]:
    """The jobs whose memory the settings request, with the run's own number of threads."""
    jobs = [job for job in jobs if not job.threads]
    derived = {job.case for job in jobs if job.operator != "value"}
    return [job for job in jobs if settings.weigh_values or job.operator != "value" or job.case not in derived]


@dataclass
class Measurement:
    """A request for a figure of a prepared job, and its worker; `lost` counts the lost processes of each case."""

    context: Context
    worker: ResidentWorker
    request: Mapping[str, Any]
    lost: Counter[str] = field(default_factory=Counter)

    def measure(self, job: Job) -> Figure:
        """The figure, or the reason why it is missing."""
        if self.lost[job.case] >= CRASHES_ALLOWED:
            return Figure(None, f"the {self.request['do']} process was lost {CRASHES_ALLOWED} times on {job.case}")
        try:
            self.worker.ask(self.context.prepare_request(job))
            return from_plain(self.worker.ask(self.request), Figure)
        except WorkerLost as no:
            self.lost[job.case] += 1
            return Figure(None, f"the {self.request['do']} process was lost: {no.reason}")
        except NoAnswer as no:
            return Figure(None, no.reason)


@contextmanager
def _counting(context: Context, backend: str) -> Iterator[Callable[[Job], Figure | None]]:
    """In the block, count(job) -> the instructions of one call, or why they are missing; None if not requested.

    All jobs share one process.
    """
    if context.settings.instructions is None:
        yield lambda job: None
        return
    slower = replace(context.settings, timeout_seconds=context.settings.timeout_seconds * instructions.SLOWER)
    context, start = replace(context, settings=slower), context.checking_start(backend=backend)
    with tempfile.TemporaryDirectory(prefix="adbench-counts-") as folder:
        environment = {**start.environment, instructions.FOLDER_VARIABLE: folder}
        start = replace(start, environment=environment, prefix=instructions.command(Path(folder)))
        with ResidentWorker(context, backend, start) as worker:
            yield Measurement(context, worker, {"do": "instructions", "times": TIMES_COUNTED}).measure


def figures(methods: Mapping[memory.Method, Measurement], job: Job, *, one: bool) -> Iterator[Figure]:
    """The figure of each method. Python's is measured only if there is no allocated one; with `one`, those after the
    first one that has a value are left out."""
    measured = False
    for name in METHODS:
        figure = LEFT_OUT[name] if measured and (one or name == "python") else methods[name].measure(job)
        measured = measured or figure.value is not None
        yield figure


def _worker(context: Context, method: memory.Method, backend: str) -> ResidentWorker:
    start = context.checking_start(backend=backend)
    environment = dict(start.environment) | dict(memory.environment(method))
    return ResidentWorker(context, backend, replace(start, environment=environment))
