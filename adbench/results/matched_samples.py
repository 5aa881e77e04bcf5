"""The times of several cells as matched samples: launches by number, rounds by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from adbench.measure.statistics import log_ratios
from adbench.model.record import Group, Job, Record, Time, group_of, grouped

Array = NDArray[np.float64]

LOADED = 0.25
"""The share of disturbed rounds above which a machine counts as loaded."""

_AT_ONCE = 2**24  # rounds in memory at once: 128 MiB


def groups(records: Iterable[Record]) -> dict[Group, list[Record]]:
    """Records that differ only in the backend, in the order of the run."""
    return grouped(records, lambda record: group_of(record.job))


def comparable(records: Iterable[Record]) -> list[Record]:
    """The correct and timed records of backends with no wrong operator on the same case and size."""
    every = list(records)
    wrong = {_place(record.job) for record in every if record.found_wrong}
    return [
        record
        for record in every
        if record.outcome.word == "right" and record.time is not None and _place(record.job) not in wrong
    ]


def is_loaded(records: Iterable[Record]) -> bool:
    """Whether over a quarter of all rounds are flagged as disturbed."""
    times = [time for record in records for time in (record.time, record.control) if time]
    rounds = sum(len(launch.rounds) for time in times for launch in time.launches)
    return sum(time.disturbed for time in times) > LOADED * rounds


def second_smallest(logs: Array) -> Array:
    """The second smallest round of each launch, shape (…, rounds) -> (…); the only one where there is one.

    The smallest one may be a fault of the clock; among many disturbed rounds the median is a disturbed one.
    """
    ordered = np.sort(logs, axis=-1)  # a missing round, NaN, comes last
    if ordered.shape[-1] < 2:
        return np.asarray(ordered[..., 0])
    return np.where(np.isnan(ordered[..., 1]), ordered[..., 0], ordered[..., 1])


def log_seconds(times: Sequence[Time]) -> Array:
    """The log of seconds per call, shape (times, launches, rounds).

    Row l is the launch of the same number in each, round r the r-th in execution order. NaN marks a missing launch or
    round, and a round of zero time, which only a broken clock measures.
    """
    numbers = tuple(sorted({launch.number for time in times for launch in time.launches}))
    most = max((len(launch.rounds) for time in times for launch in time.launches), default=0)
    most = min(most, 1 + _AT_ONCE // max(1, len(times) * len(numbers)))  # the first of a million rounds
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


def _place(job: Job) -> tuple[str, int, str, int]:
    return job.case, job.size, job.backend, job.threads
