"""Generators in parallel threads, while no clock runs: one for each backend, as many at once as there are
processors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
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
    waiting: queue.SimpleQueue[Generator[T, None, None]] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    arrived: queue.SimpleQueue[tuple[str, T | BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def walk() -> None:
        try:
            while not stopped.is_set():
                with closing(waiting.get_nowait()) as task:  # another task may wait for its processors
                    for item in task:
                        arrived.put(("item", item))
                        if stopped.is_set():
                            return
        except queue.Empty:
            pass
        except BaseException as error:  # raised again in the calling thread
            arrived.put(("error", error))
        finally:
            arrived.put(("end", None))

    threads = [threading.Thread(target=walk, daemon=True) for _ in range(min(at_once, len(tasks)))]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            try:
                kind, item = arrived.get(timeout=SIGNAL_SECONDS)
            except queue.Empty:
                continue
            if kind == "end":
                running -= 1
            elif kind == "error":
                raise item  # type: ignore[misc]  # it is an exception
            else:
                yield item  # type: ignore[misc]  # it is a T
    finally:
        if running:
            stopped.set()
            stop()
            for thread in threads:
                thread.join()


def room(threads: int) -> int:
    """The number of workers with this many threads that the usable processors can run in parallel; at least one."""
    return max(1, len(usable_cpus()) // threads)
