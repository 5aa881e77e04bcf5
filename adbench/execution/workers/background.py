"""Processor time that workers use outside their turns: measured, named, and stopped.

A library whose threads go on after its call returns takes the processor from the worker that is measured next. Such a
worker is paused (SIGSTOP) while others have their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic_ns

from adbench.execution.workers.resident_worker import ResidentWorker
from adbench.measure.machine.process_tree import cpu_ns

MOST_SHARE = 0.1
"""Of a processor, outside its turns: a worker that uses more is paused there. Idle ones use less than a thousandth."""

ENOUGH_NS = 50_000_000
"""Of others' turns, before a worker is judged: work that a library puts off until after its call takes less."""


class Background:
    """Watches the workers of one launch. Each turn is taken inside `turn`; `shares` are those of the paused workers."""

    def __init__(self, workers: Iterable[ResidentWorker]) -> None:
        self._workers = tuple(workers)
        self.shares: dict[ResidentWorker, float] = {}
        self._used: dict[ResidentWorker, int] = {}
        self._waited: dict[ResidentWorker, int] = {}

    @contextmanager
    def turn(self, worker: ResidentWorker) -> Iterator[dict[str, float]]:
        """The turn of one worker. Fills the dict, at its end, with what others used meanwhile: backend -> share."""
        worker.resume()
        others = [other for other in self._workers if other is not worker and other not in self.shares]
        before = {other: cpu_ns(other.pids) for other in others}
        meanwhile: dict[str, float] = {}
        begun = monotonic_ns()
        try:
            yield meanwhile
        finally:
            elapsed = max(1, monotonic_ns() - begun)
            for other, then in before.items():
                now = cpu_ns(then)  # of the same processes: another one may have worked in the worker's own turn
                used = sum(now[pid] - then[pid] for pid in now)
                if used > MOST_SHARE * elapsed:
                    meanwhile[other.name] = used / elapsed
                self._judge(other, used, elapsed)
            if worker in self.shares:
                worker.pause()

    def _judge(self, other: ResidentWorker, used: int, elapsed: int) -> None:
        self._used[other] = self._used.get(other, 0) + used
        self._waited[other] = self._waited.get(other, 0) + elapsed
        share = self._used[other] / self._waited[other]
        if self._waited[other] >= ENOUGH_NS and share > MOST_SHARE:
            self.shares[other] = share
            other.pause()


def in_words(meanwhile: dict[str, float]) -> str | None:
    """Why a round is suspect: "busy used 97 % of a processor"; None if nobody used any."""
    named = [f"{name} used {100 * share:.0f} % of a processor" for name, share in meanwhile.items()]
    return "; ".join(named) or None
