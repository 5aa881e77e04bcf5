"""The figures of several cells side by side: which may be compared, launches matched by number, rounds by place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from adbench.measure.statistics import log_ratios
from adbench.model.record import Job, Record, Time

Array = NDArray[np.float64]

_AT_ONCE = 2**24  # rounds side by side in memory: 128 MiB


Key = tuple[str, int, str, int]


def key_of(job: Job) -> Key:
    """(case, size, operator, seed): what the jobs of a group have in common, all but the backend."""
    return job.case, job.size, job.operator, job.seed


def groups(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """Records that differ in the backend only, in the order of the run."""
    found: dict[Key, list[Record]] = {}
    for record in records:
        found.setdefault(key_of(record.job), []).append(record)
    return found


def comparable(records: Iterable[Record]) -> list[Record]:
    """Those that are right and timed, of backends that have no operator wrong on the same case and size."""
    every = list(records)
    wrong = {_place(record.job) for record in every if not _not_wrong(record)}
    return [
        record
        for record in every
        if record.time is not None
        and record.status == "ok"
        and record.verdict is not None
        and record.verdict.word == "right"
        and _place(record.job) not in wrong
    ]


def presentable(record: Record) -> bool:
    """Whether figures of this record may be shown at all: nothing failed, and nothing was found to be wrong."""
    return record.status == "ok" and _not_wrong(record)


def log_seconds(times: Sequence[Time]) -> Array:
    """The log of seconds per call, shape (times, launches, rounds).

    Row l is the launch of the same number in every one, round r the r-th in execution order; NaN stands for a launch or
    a round that one of them does not have, and for a round that took no time, which only a broken clock tells of.
    """
    numbers = tuple(sorted({launch.number for time in times for launch in time.launches}))
    most = max((len(launch.rounds) for time in times for launch in time.launches), default=0)
    most = min(most, 1 + _AT_ONCE // max(1, len(times) * len(numbers)))  # of a file with a million rounds, the first
    place = {number: row for row, number in enumerate(numbers)}
    seconds = np.full((len(times), len(numbers), most), np.nan)
    for k, time in enumerate(times):
        for launch in time.launches:
            rounds = launch.rounds[:most]
            values = [r.ns / r.calls * 1e-9 if r.ns > 0 and r.calls > 0 else np.nan for r in rounds]
            seconds[k, place[launch.number], : len(values)] = values
    return np.asarray(np.log(seconds))


def launch_medians(times: Sequence[Time]) -> Array:
    """The median over rounds of the log of seconds per call, shape (times, launches); NaN as in `log_seconds`."""
    logs = log_seconds(times)
    return log_ratios(logs, np.zeros_like(logs))


def _not_wrong(record: Record) -> bool:
    return record.status != "wrong" and (record.verdict is None or record.verdict.word != "wrong")


def _place(job: Job) -> tuple[str, int, str]:
    return job.case, job.size, job.backend
