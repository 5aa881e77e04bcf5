"""Parallel sequences of work, where no clock runs: one for each backend, as many at a time as there are processors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from adbench.measure.machine.disturbance import usable_cpus

T = TypeVar("T")


def side_by_side(lanes: Sequence[Iterator[T]], at_once: int, stop: Callable[[], None]) -> Generator[T, None, None]:
    """The items of several iterators as they come, in order within each. Raises the first error of one of them.

    at_once   iterators that run at a time, each in a thread
    stop      called if the generator ends early; it must release a thread that waits in an iterator
    """
    found: queue.SimpleQueue[tuple[T] | Future[None]] = queue.SimpleQueue()  # items, and iterators that have ended
    stopped = threading.Event()

    def walk(lane: Iterator[T]) -> None:
        for item in lane:
            found.put((item,))
            if stopped.is_set():
                return

    with ThreadPoolExecutor(at_once) as pool:
        running = len(lanes)
        for lane in lanes:
            pool.submit(walk, lane).add_done_callback(found.put)
        try:
            while running:
                each = found.get()
                if isinstance(each, Future):
                    each.result()
                    running -= 1
                else:
                    yield each[0]
        finally:
            if running:
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                stop()


def room(threads: int) -> int:
    """How many workers with so many threads fit on the usable processors; at least one."""
    return max(1, len(usable_cpus()) // threads)
