"""All workers of a run: it ends them with the run, and enforces each worker's memory limit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from weakref import WeakSet

import psutil

from adbench.execution.workers.process import WorkerLost, WorkerProcess, WorkerStart

WATCH_SECONDS = 0.1  # between two checks of the workers' memory, each of half a millisecond


_SUPERVISORS: WeakSet[Supervisor] = WeakSet()


class Supervisor(AbstractContextManager["Supervisor"]):
    """Starts workers. A context manager: leaving it, or `close` from another thread, ends all of them for good.

    mem_limit_bytes   the largest resident set of a worker with its children; above it they are terminated
    """

    def __init__(self, mem_limit_bytes: int | None = None) -> None:
        self._limit = mem_limit_bytes
        self._workers: set[WorkerProcess] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None
        _SUPERVISORS.add(self)

    def start(self, start: WorkerStart) -> WorkerProcess:
        """A worker without a backend. Raises WorkerLost if it cannot be started, or the run is over."""
        if self._closed.is_set():
            raise WorkerLost("crashed", "the run is over")
        worker = WorkerProcess(start)
        with self._lock:
            self._workers = {other for other in self._workers if not other.is_closed} | {worker}
        if self._closed.is_set():  # closed meanwhile
            worker.close()
            raise WorkerLost("crashed", "the run is over")
        if self._limit is not None and self._watch is None:
            self._watch = threading.Thread(target=self._look_after, args=(self._limit,), daemon=True)
            self._watch.start()
        return worker

    def close(self) -> None:
        """End every worker; waiting threads get the reason. No more workers can start."""
        self._closed.set()
        with self._lock:
            workers = tuple(self._workers)
        for worker in workers:
            worker.terminate("the run is over")

    def __exit__(self, *_: object) -> None:
        self.close()
        for worker in self._workers:
            worker.close()

    def _look_after(self, limit: int) -> None:
        while not self._closed.wait(WATCH_SECONDS):
            with self._lock:
                workers = [worker for worker in self._workers if not worker.is_closed]
            for worker in workers:
                worker.trim_output()
                taken = resident_bytes(worker.every_pid)
                if taken > limit:
                    gib = 2**30
                    worker.terminate(
                        f"was ended for taking {taken / gib:.2f} GiB of memory; the limit is {limit / gib:.2f} GiB "
                        "(--mem-limit)"
                    )


def end_all() -> None:
    """End every worker, without waiting: for a process that exits at once."""
    for supervisor in tuple(_SUPERVISORS):
        for worker in tuple(supervisor._workers):
            worker.terminate("the run is over")


def resident_bytes(pids: Iterable[int]) -> int:
    """The resident sets of these processes, summed; shared pages count for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, psutil.Error):  # it ended meanwhile
            total += psutil.Process(pid).memory_info().rss
    return total


def default_limit() -> int:
    """Four fifths of the free memory, so that a runaway library cannot bring the machine down."""
    return int(psutil.virtual_memory().available * 0.8)
