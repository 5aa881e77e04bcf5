"""Jobs to skip because their backend failed on a smaller one, or would take too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

from adbench.model.record import Job, Record

SHORT_CALL = 0.005  # seconds
PREPARING = 10  # times as long as a call may take, may the preparation with the first call
CRASHES_ALLOWED = 2  # of a backend on one case, before its other cells on that case are skipped


class FailurePolicy:
    """Counts the crashes and time-outs of a run, starting with its records so far, and knows how long calls take.

    longest_call   seconds; a job whose call is expected to take longer is skipped. None for no limit
    time           whether calls are timed; otherwise the limit is for whole checks
    """

    def __init__(self, records: Iterable[Record] = (), longest_call: float | None = None, *, time: bool = True) -> None:
        self._what, self._does = ("per call", "measures") if time else ("to check", "checks")
        self._crashes: Counter[tuple[object, ...]] = Counter()
        self._timed_out: dict[tuple[object, ...], int] = {}
        self._calls: dict[tuple[object, ...], dict[int, float]] = {}
        self._longest_call = longest_call
        for record in records:
            self.note(record)

    def note(self, record: Record, call: float | None = None) -> None:
        """Remember a crash or a time-out, and the seconds of a call or check."""
        job = record.job
        key = _cell(job)
        if record.outcome.word == "crashed":
            self._crashes[key[:-1]] += 1
        elif record.outcome.word == "timed_out":
            self._timed_out[key] = min(job.size, self._timed_out.get(key, job.size))
        if call is not None:
            self._calls.setdefault(key, {})[job.size] = call

    def skipped(self, job: Job) -> Record | None:
        """The record of a job to skip because the backend failed on less before, or None."""
        key = _cell(job)
        if self._crashes[key[:-1]] >= CRASHES_ALLOWED:
            return Record(job, "skipped", f"crashed {CRASHES_ALLOWED} times on {job.case} before")
        smaller = self._timed_out.get(key, job.size)
        if smaller < job.size:
            return Record(job, "skipped", f"timed out at size {smaller}")
        if reason := self.too_slow(job, expected(self._calls.get(key, {}), job.size)):
            return Record(job, "skipped", reason)
        return None

    def too_slow(self, job: Job, call: float | None, preparing: float = 0.0) -> str | None:
        """Why a job that takes so many seconds to call or check, and to prepare, is left out; None if it is not."""
        most = self._longest_call
        for seconds, what, factor in ((call, self._what, 1), (preparing, "to prepare", PREPARING)):
            if most is not None and seconds is not None and seconds > factor * most:
                about = f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
                return f"about {about} s {what} is over the limit of {factor * most:g} s; -n {job.size} {self._does} it"
        return None


def _cell(job: Job) -> tuple[object, ...]:
    """What jobs of several sizes have in common."""
    return job.backend, job.threads, job.case, job.operator


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
    seconds: float = calls[last] * (size / last) ** power
    return seconds
