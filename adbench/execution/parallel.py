"""Lines of work side by side, where no clock runs: one lane for each backend, as many at once as there is room for."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def side_by_side(lanes: Sequence[Iterator[T]], at_once: int, stop: Callable[[], None]) -> Generator[T, None, None]:
    """What the lanes yield, as it comes; within a lane in its order. What one raises is raised here.

    at_once   lanes that run at a time, each in a thread
    stop      called where it ends early: whoever waits in a lane must then be let go
    """
    waiting: queue.SimpleQueue[Iterator[T]] = queue.SimpleQueue()
    for lane in lanes:
        waiting.put(lane)
    told: queue.SimpleQueue[tuple[str, T | BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def walk() -> None:
        try:
            while not stopped.is_set():
                for item in waiting.get_nowait():
                    told.put(("item", item))
                    if stopped.is_set():
                        return
        except queue.Empty:
            pass
        except BaseException as error:
            told.put(("error", error))
        finally:
            told.put(("end", None))

    threads = [threading.Thread(target=walk, daemon=True) for _ in range(min(at_once, len(lanes)))]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            kind, item = told.get()
            if kind == "end":
                running -= 1
            elif kind == "error":
                raise item  # type: ignore[misc]  # it is an exception where it says so
            else:
                yield item  # type: ignore[misc]  # and a T here
    finally:
        if running:
            stopped.set()
            stop()
            for thread in threads:
                thread.join()


def room(threads: int) -> int:
    """Workers of so many threads that the usable processors hold side by side; at least one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // threads)
