"""Generators in parallel threads, while no clock runs: one for each backend, as many at once as there are
processors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from adbench.execution.workers.context import Context
from adbench.measure.machine.processors import usable_cpus

T = TypeVar("T")

SIGNAL_SECONDS = 0.2
"""Python handles a signal after this time at most: one that arrives just before a wait does not end the wait."""


def in_parallel(tasks: Iterable[Generator[T, None, None]], context: Context) -> Generator[T, None, None]:
    """The items of these generators in the order of arrival, while the run's workers compute."""
    return parallel(tuple(tasks), room(context.settings.threads), context.supervisor.close)


def parallel(
    tasks: Sequence[Generator[T, None, None]], at_once: int, stop: Callable[[], None]
) -> Generator[T, None, None]:
    """The items of all tasks in the order of arrival; an exception in a task is raised here.

    at_once   tasks that run at a time, each in a thread
    stop      called if this ends early, to release waiting tasks
    """
    arrived: queue.SimpleQueue[T | Future[None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def walk(task: Generator[T, None, None]) -> None:
        with closing(task):  # another task may wait for its processors
            for item in task:
                arrived.put(item)
                if stopped.is_set():
                    return

    pool = ThreadPoolExecutor(max(1, min(at_once, len(tasks))))
    running = 0
    try:
        for task in tasks:
            pool.submit(walk, task).add_done_callback(arrived.put)
            running += 1
        while running:
            try:
                item = arrived.get(timeout=SIGNAL_SECONDS)
            except queue.Empty:
                continue
            if isinstance(item, Future):
                item.result()  # raises what the task raised
                running -= 1
            else:
                yield item
    finally:
        if running:
            stopped.set()
            stop()
        pool.shutdown(cancel_futures=True)


def room(threads: int) -> int:
    """The number of workers with this many threads that the usable processors can run in parallel; at least one."""
    return max(1, len(usable_cpus()) // threads)
