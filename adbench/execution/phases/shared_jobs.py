"""The jobs of one backend, shared by the workers that check them: a second worker joins where one would take long."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from adbench.model.record import Job

WORTH_A_WORKER = 2.0  # a further worker joins if the rest takes so many times as long as opening it


class SharedJobs:
    """Jobs in order, taken by workers in portions: consecutive jobs of a case that no other worker has. Thread-safe.

    One worker after another has a case, and in order, so that a case's records do not depend on the number of workers.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._left = [list(portion) for _, portion in groupby(jobs, lambda job: job.case)]
        self._cases: set[str] = set()  # that a worker has now
        self._lock, self._warm = threading.Lock(), threading.Event()
        self._checked, self._seconds, self._open_seconds = 0, 0.0, 0.0

    @contextmanager
    def worker(self) -> Iterator[Iterator[list[Job]]]:
        """The portions for one worker, until other workers have the rest."""
        try:
            yield self._portions()
        finally:
            self._warm.set()

    def _portions(self) -> Iterator[list[Job]]:
        while (portion := self._next()) is not None:
            try:
                yield portion
            finally:
                with self._lock:
                    self._cases.discard(portion[0].case)
            self._warm.set()

    def note(self, seconds: float | None, open_seconds: float | None) -> None:
        """Remember what a job's check took, and the start of its worker; None if it had none."""
        with self._lock:
            self._checked += 1
            self._seconds += seconds or 0.0
            self._open_seconds = max(self._open_seconds, open_seconds or 0.0)

    def is_worth_a_worker(self) -> bool:
        """Whether the rest takes far longer than opening a worker, at the pace so far: waits for the first portion."""
        self._warm.wait()
        with self._lock:
            left = sum(len(portion) for portion in self._left if portion[0].case not in self._cases)
            return left * self._seconds > WORTH_A_WORKER * self._open_seconds * self._checked

    def _next(self) -> list[Job] | None:
        with self._lock:
            for i, portion in enumerate(self._left):
                if portion[0].case not in self._cases:
                    self._cases.add(portion[0].case)
                    return self._left.pop(i)
        return None
