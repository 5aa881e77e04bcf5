"""The conclusions from a run: significant differences, the noise floor, and the break-even call count.

The growth of costs is in scaling.py. The contents of a run never raise: a missing value is None with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median_high

import numpy as np

from adbench.measure import growth as fitting
from adbench.measure.statistics import (
    FEWEST_LAUNCHES,
    Interval,
    Word,
    check_margin,
    difference_p_rows,
    hodges_lehmann_rows,
    holm,
    log_ratios,
    sequential_interval_rows,
    sequential_p_rows,
    verdict_word,
)
from adbench.model.record import Group, Job, Record, Run, Time, group_of, grouped
from adbench.results.matched_samples import Array, comparable, groups, is_loaded, log_seconds, second_smallest


@dataclass(frozen=True)
class Ratio:
    """Backend a against backend b: time of a / time of b; below 1, a is faster.

    interval   of the ratio (not its logarithm), over launches; None with a reason if there are too few
    p          adjusted by Holm for every pair of the run that is compared; None without an interval
    word       of a against b, for the given margin; "inconclusive" without an interval, and where a difference is
               smaller than the noise floor
    floor      the noise floor of the same group, as a share (0.01 is 1 %); None without a control
    reason     why there is no interval, or why a significant difference is "inconclusive"
    """

    a: Job
    b: Job
    interval: Interval | None
    p: float | None
    word: Word
    floor: float | None
    launches: int
    reason: str | None = None


@dataclass(frozen=True)
class GroupFloor:
    """The control of one group: the reference backend against itself, in two processes.

    interval   of the ratio
    reach      its largest distance from 1, as a share: identical code may seem to differ by up to this
    """

    group: Group
    interval: Interval | None
    reach: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Floor:
    """The noise floor of a run: by how much two processes with identical code seem to differ.

    groups     each control
    interval   of the median group, by reach: half of the groups are at most as noisy
    reach      of that interval, as a share; the number to print
    noisy      whether it exceeds the margin: too noisy for pass/fail decisions. None without a control
    above      how many groups have a reach over the margin
    off        how many of the intervals miss 1: one in twenty may; many more mean that the two processes differ
    loaded     whether the machine was loaded, so that launches are compared by their second smallest rounds
    """

    groups: tuple[GroupFloor, ...]
    interval: Interval | None
    reach: float | None
    noisy: bool | None
    above: int
    off: int
    reason: str | None = None
    loaded: bool = False


@dataclass(frozen=True)
class Speedup:
    """A correct cell with further threads: its time with the run's own number / its time with `job.threads`.

    interval     of the speed-up, over launches; None with a reason
    efficiency   the speed-up as a share of perfect scaling; None without an interval
    """

    job: Job
    interval: Interval | None
    efficiency: float | None
    reason: str | None = None


@dataclass(frozen=True)
class BreakEven:
    """Backend a, more expensive until its first result, against backend b.

    calls   the first call (counted from 1) at which a has cost no more in total; None with a reason if that never
            happens, or is unknown
    """

    a: Job
    b: Job
    calls: float | None
    reason: str | None = None


def ratios(run: Run, margin: float = 0.02) -> tuple[Ratio, ...]:
    """Every pair of correct and timed backends of each group, in the order of the run.

    Holm's family is all pairs: if nothing differs, at most one run in twenty calls any pair faster or slower. Fewer
    pairs give more power for each. A difference smaller than the noise floor of its group or of the run is
    inconclusive even if significant, because two processes of identical code differ by as much. On a loaded machine
    (`is_loaded`), launches are compared by their second smallest rounds instead of the median over pairs of rounds.

    Raises ValueError for a margin that is not positive.
    """
    check_margin(margin)
    right = comparable(run.records)
    loaded = is_loaded(right)
    floors = {control.group: control.reach for control in _controls(right, loaded)}
    usual = _median_reach(floors.values()) or 0.0
    every = groups(right).values()
    pairs = [pair for group in every for pair in combinations(group, 2)]
    rows = [row for group in every for row in _differences([record.time for record in group if record.time], loaded)]
    intervals, p = _over_launches(rows, _planned(run))
    adjusted = iter(holm([value for value in p if value is not None]))
    found = []
    for (a, b), differences, interval in zip(pairs, rows, intervals, strict=True):
        own_floor, held = floors.get(group_of(a.job)), None if interval is None else next(adjusted)
        word: Word = "inconclusive"
        reason: str | None = _too_few(differences)
        if interval is not None and held is not None:
            word, reason = _judged(interval, verdict_word(interval, held, margin), max(own_floor or 0.0, usual))
        shown = interval and interval.exp()
        found.append(Ratio(a.job, b.job, shown, held, word, own_floor, len(differences), reason))
    return tuple(found)


def floor(run: Run, margin: float = 0.02) -> Floor:
    """The control of each group, and of the run.

    The run's floor is the median group's. Pooling a hundred groups would give a floor that no single ratio has; the
    largest would depend on one disturbed group in a hundred, which `above` counts.

    Raises ValueError for a margin that is not positive.
    """
    check_margin(margin)
    right = comparable(run.records)
    loaded = is_loaded(right)
    found = tuple(_controls(right, loaded))
    known = [(group.reach, group.interval) for group in found if group.reach is not None and group.interval is not None]
    reach = _median_reach(at for at, _ in known)
    if reach is None:
        reason = found[0].reason if found else "no correct result was measured twice in the same rounds"
        return Floor(found, None, None, None, 0, 0, reason, loaded)
    middle = next(interval for at, interval in known if at == reach)
    above = sum(at > margin for at, _ in known)
    off = sum(not interval.low <= 1 <= interval.high for _, interval in known)
    return Floor(found, middle, reach, reach > margin, above, off, loaded=loaded)


def speedups(run: Run) -> tuple[Speedup, ...]:
    """Every cell that is correct and timed with its further threads and with the run's own, in the order of the run."""
    own = {record.job: record for record in comparable(run.records)}
    right = comparable(run.every_record)
    found = [(r, own[job]) for r in right if r.job.threads and (job := replace(r.job, threads=0)) in own]
    loaded = is_loaded(right)
    rows = [next(_differences([a.time, b.time], loaded)) for b, a in found if a.time and b.time]
    intervals, _ = _over_launches(rows, _planned(run))
    first = run.settings.get("threads")
    speedups = []
    for (record, _), row, interval in zip(found, rows, intervals, strict=True):
        shown, share = interval and interval.exp(), None
        if shown and isinstance(first, int):
            share = shown.estimate * first / record.job.threads
        speedups.append(Speedup(record.job, shown, share, None if shown else _too_few(row)))
    return tuple(speedups)


def _judged(difference: Interval, word: Word, reach: float) -> tuple[Word, str | None]:
    """The word, and why it is no longer "faster" or "slower" where the difference (a logarithm) is below the floor."""
    if word in ("faster", "slower") and abs(difference.estimate) <= math.log1p(reach):
        return "inconclusive", f"the difference is smaller than the noise floor of {100 * reach:.2g} %"
    return word, None


def _median_reach(reaches: Iterable[float | None]) -> float | None:
    """The noise floor of the run: of its groups the upper median; None where no group has one."""
    known = [reach for reach in reaches if reach is not None]
    return median_high(known) if known else None


def break_even(run: Run, compared: Sequence[Ratio] | None = None) -> tuple[BreakEven, ...]:
    """Each pair of correct backends; the first of a pair costs more until its first result (prepare and first call).

    `calls` is a number only if its call is significantly faster than the other's. `compared`: the run's `ratios`,
    """
    costs = {  # seconds until the first result, and seconds of each later call
        record.job: (time.prepare_seconds + time.first_call_seconds, time.seconds_per_call)
        for record in comparable(run.records)
        if (time := record.time)
    }
    compared = ratios(run) if compared is None else compared
    return tuple(_break_even(ratio, costs) for ratio in compared if ratio.a in costs and ratio.b in costs)


def _break_even(ratio: Ratio, costs: Mapping[Job, tuple[float, float]]) -> BreakEven:
    a, b, cheaper, dearer = ratio.a, ratio.b, "faster", "slower"
    if costs[a][0] < costs[b][0]:
        a, b, cheaper, dearer = b, a, dearer, cheaper
    calls, reason = None, "the calls of the two do not differ significantly"
    if ratio.word == dearer:
        reason = f"never: {a.backend} costs more until its first result, and for each call"
    elif ratio.word == cheaper:
        calls = fitting.break_even(*costs[a], *costs[b])
    return BreakEven(a, b, None, reason) if calls is None else BreakEven(a, b, 1 + calls)


def _controls(records: Iterable[Record], loaded: bool) -> list[GroupFloor]:
    """The control of every group that has one."""
    twice = [(record, record.time, record.control) for record in records if record.time and record.control]
    rows = [next(_differences([time, control], loaded)) for _, time, control in twice]
    intervals, _ = _over_launches(rows)
    found = []
    for (record, _, _), row, interval in zip(twice, rows, intervals, strict=True):
        shown, reach = (interval.exp(), math.expm1(interval.reach)) if interval else (None, None)
        found.append(GroupFloor(group_of(record.job), shown, reach, None if interval else _too_few(row)))
    return found


def _differences(times: Sequence[Time], loaded: bool) -> Iterator[Array]:
    """The log ratios over launches of every pair."""
    if len(times) < 2:
        return
    logs = log_seconds(times)
    first, second = (list(index) for index in zip(*combinations(range(len(times)), 2), strict=True))
    if loaded:
        smallest = second_smallest(logs)
        rows = smallest[first] - smallest[second]
    else:
        rows = log_ratios(logs[first], logs[second])
    yield from (row[np.isfinite(row)] for row in rows)


def _planned(run: Run) -> int | None:
    """The number of launches after which every group of the run stops; None if all groups have the same number."""
    launches = run.settings.get("launches")
    return launches if run.settings.get("stop_early") and isinstance(launches, int) else None


def _over_launches(
    rows: Sequence[Array], planned: int | None = None
) -> tuple[list[Interval | None], list[float | None]]:
    """The interval and the p-value of each row, None where it is too short; rows of one length go together.

    `planned`: the launches after which every row stops. Both allow for rows that stopped earlier, once decided.
    """
    intervals: list[Interval | None] = [None] * len(rows)
    p: list[float | None] = [None] * len(rows)
    for length, places in grouped(range(len(rows)), lambda k: len(rows[k])).items():
        if length >= FEWEST_LAUNCHES:
            block = np.stack([rows[k] for k in places])
            if planned is None:
                found, values = hodges_lehmann_rows(block), difference_p_rows(block)
            else:
                found, values = sequential_interval_rows(block, planned), sequential_p_rows(block, planned)
            for k, interval, value in zip(places, found, values.tolist(), strict=True):
                intervals[k], p[k] = interval, value
    return intervals, p


def _too_few(row: Array) -> str:
    return f"an interval needs {FEWEST_LAUNCHES} common launches; there are {len(row)}"
