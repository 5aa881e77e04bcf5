"""Which jobs are skipped, because their backend failed on less: what will fail again is not waited for again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from adbench.model.record import Job, Record

CRASHES_ALLOWED = 2  # of a backend on one case, before its other cells there are skipped


class FailurePolicy:
    """Counts the crashes and time-outs of a run, beginning with its records so far."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._crashes: Counter[tuple[str, str]] = Counter()
        self._timed_out: dict[tuple[str, str, str], int] = {}
        for record in records:
            self.note(record)

    def note(self, record: Record) -> None:
        """Remember a crash or a time-out."""
        job = record.job
        if record.outcome.word == "crashed":
            self._crashes[job.backend, job.case] += 1
        elif record.outcome.word == "timed_out":
            key = job.backend, job.case, job.operator
            self._timed_out[key] = min(job.size, self._timed_out.get(key, job.size))

    def skipped(self, job: Job) -> Record | None:
        """The record of a job that need not be tried, because the backend failed on less before."""
        if self._crashes[job.backend, job.case] >= CRASHES_ALLOWED:
            return Record(job, "skipped", f"crashed {CRASHES_ALLOWED} times on {job.case} before")
        smaller = self._timed_out.get((job.backend, job.case, job.operator), job.size)
        if smaller < job.size:
            return Record(job, "skipped", f"timed out at size {smaller}")
        return None
