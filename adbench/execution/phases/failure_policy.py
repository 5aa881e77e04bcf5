"""Jobs to skip because their backend failed on a smaller one, or would take too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

from adbench.model.record import Job, Record

SHORT_CALL = 0.005  # seconds
CRASHES_ALLOWED = 2  # of a backend on one case, before its other cells on that case are skipped


class FailurePolicy:
    """Counts the crashes and time-outs of a run, starting with its records so far, and knows how long calls take.

    longest_call   seconds; a job whose call is expected to take longer is skipped. None for no limit
    """

    def __init__(self, records: Iterable[Record] = (), longest_call: float | None = None) -> None:
        self._crashes: Counter[tuple[str, str]] = Counter()
        self._timed_out: dict[tuple[str, str, str], int] = {}
        self._calls: dict[tuple[str, str, str], dict[int, float]] = {}
        self._longest_call = longest_call
        for record in records:
            self.note(record)

    def note(self, record: Record, call: float | None = None) -> None:
        """Remember a crash or a time-out, and the seconds of a call."""
        job = record.job
        key = job.backend, job.case, job.operator
        if record.outcome.word == "crashed":
            self._crashes[job.backend, job.case] += 1
        elif record.outcome.word == "timed_out":
            self._timed_out[key] = min(job.size, self._timed_out.get(key, job.size))
        if call is not None:
            self._calls.setdefault(key, {})[job.size] = call

    def skipped(self, job: Job) -> Record | None:
        """The record of a job to skip because the backend failed on less before, or None."""
        if self._crashes[job.backend, job.case] >= CRASHES_ALLOWED:
            return Record(job, "skipped", f"crashed {CRASHES_ALLOWED} times on {job.case} before")
        key = job.backend, job.case, job.operator
        smaller = self._timed_out.get(key, job.size)
        if smaller < job.size:
            return Record(job, "skipped", f"timed out at size {smaller}")
        if reason := self.too_slow(job, expected(self._calls.get(key, {}), job.size)):
            return Record(job, "skipped", reason)
        return None

    def too_slow(self, job: Job, call: float | None) -> str | None:
        """Why a job whose call takes so many seconds is left out; None if it is not."""
        if call is None or self._longest_call is None or call <= self._longest_call:
            return None
        seconds = f"{call:.2g}" if call < 10 else f"{call:.0f}"
        return f"about {seconds} s per call is too slow for a quick run; -n {job.size} measures it"


def expected(calls: Mapping[int, float], size: int) -> float | None:
    """The seconds of a call at this size, from smaller ones: size -> seconds. None without a smaller one.

    They grow as between the two largest of the smaller sizes. A single one is a lower bound, because most of it may be
    the same at any size. So is a short one, because most of it may be an interruption.
    """
    smaller = sorted(n for n in calls if n < size)
    if not smaller:
        return None
    last, power = smaller[-1], 0.0
    if len(smaller) > 1 and calls[last] > SHORT_CALL and calls[smaller[-2]] > 0:
        power = max(0.0, log(calls[last] / calls[smaller[-2]]) / log(last / smaller[-2]))
    found: float = calls[last] * (size / last) ** power
    return found
