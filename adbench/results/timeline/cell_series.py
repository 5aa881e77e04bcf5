"""Each cell over the runs of one machine: its time, its correctness, and where they changed.

The time of a cell is its ratio to the reference backend of the same launches, because machines and days differ. The
reference itself is compared to the middle of the others. As in changes.py, the clock must agree, after subtracting what
most backends of the group share: so the backend that changed is named, even if it is the reference. Without another
backend only the clock is left. Each run then counts once, and a change needs about twelve runs to be found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from adbench.measure.change_points import ChangePoint, can_decide, change_points
from adbench.measure.statistics import Interval
from adbench.model.record import Group, Job, group_of, grouped
from adbench.results.changes import MOST_MUST_AGREE, clock_agrees, log_ratio_of_launches, middle
from adbench.results.comparison_inputs import ComparisonInput, Sample, State, machine_and_type
from adbench.results.matched_samples import Array

CLOCK = "clock"


@dataclass(frozen=True)
class TimeChange:
    """The time of a cell changed with the run number `first`, or with one from `earliest` to `latest`.

    ratio     time after / time before
    doubt     why it may be no change of this backend; None if nothing speaks against it
    """

    first: int
    earliest: int
    latest: int
    ratio: Interval
    p: float
    doubt: str | None = None


@dataclass(frozen=True)
class StateChange:
    """The result became right or wrong with the run number `run`; `reason` is that of the later result."""

    run: int
    before: State
    after: State
    reason: str | None


@dataclass(frozen=True)
class CellSeries:
    """A cell over the runs, oldest first; None where a run does not have it.

    basis     the reference backend, "the other backends" for the reference itself, or "clock"
    undecided why no change of its time can be found; None if one can
    states    of its result
    seconds   per call, by the clock, where the result is right and timed
    ratios    the median over launches of the time relative to `basis`, where that was timed too
    """

    job: Job
    basis: str
    undecided: str | None
    states: tuple[State | None, ...]
    seconds: tuple[float | None, ...]
    ratios: tuple[float | None, ...]
    time_changes: tuple[TimeChange, ...] = ()
    state_changes: tuple[StateChange, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether anything changed beyond doubt."""
        return bool(self.state_changes) or any(change.doubt is None for change in self.time_changes)


@dataclass(frozen=True)
class _Prepared:
    """A cell with its launches: those of the runs `numbers` in `values`, relative to `basis`."""

    job: Job
    basis: str
    numbers: tuple[int, ...] = ()
    values: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """The runs of one machine in one type, oldest first, with their cells. `machine` has eight digits."""

    machine: str
    dtype: str
    runs: tuple[ComparisonInput, ...]
    cells: tuple[CellSeries, ...]


def timelines(
    runs: Iterable[ComparisonInput], margin: float = 0.05, wanted: Callable[[Job], bool] = lambda job: True
) -> list[Timeline]:
    """One for each machine and type, in the order of their first runs; `runs` come in any order."""
    by_machine = grouped(sorted(runs, key=lambda run: run.created or ""), lambda run: run.machine)
    return [
        Timeline(*machine_and_type(machine), tuple(of), tuple(cell_series(of, margin, wanted)))
        for machine, of in by_machine.items()
    ]


def cell_series(
    runs: Sequence[ComparisonInput], margin: float = 0.05, wanted: Callable[[Job], bool] = lambda job: True
) -> list[CellSeries]:
    """The cells of the runs of one machine, oldest first.

    margin   changes in time below this share are ignored
    wanted   which cells: the fewer, the fewer launches a change needs to be significant
    """
    jobs = list(dict.fromkeys(key for run in runs for key in run.samples if isinstance(key, Job)))
    groups = grouped(jobs, group_of)
    prepared = {one.job: one for members in groups.values() for one in _prepared(runs, members) if wanted(one.job)}
    edge = math.log1p(margin)
    tests = max(1, sum(len(one.values) > 1 for one in prepared.values()))
    found = {job: _series(runs, prepared[job], edge, tests) for job in prepared}
    clocks = {job: _clock(runs, job) for job in jobs}
    judged = [_judged(series, prepared[job], groups[group_of(job)], clocks, edge) for job, series in found.items()]
    certain: dict[Group, list[TimeChange]] = {}
    for series in judged:
        certain.setdefault(group_of(series.job), []).extend(c for c in series.time_changes if c.doubt is None)
    return [_explained(series, certain[group_of(series.job)]) for series in judged]


def _prepared(runs: Sequence[ComparisonInput], members: Sequence[Job]) -> list[_Prepared]:
    """The cells of a group, each relative to the reference that most runs have."""
    timed: dict[Job, dict[int, Sample]] = {
        job: {k: sample for k, run in enumerate(runs) if (sample := run.samples.get(job)) and sample.timed}
        for job in members
    }
    named = {job.backend: job for job in members}
    with_it = ((k, run.reference) for k, run in enumerate(runs) if run.reference in named)
    votes = Counter(reference for k, reference in with_it if reference and k in timed[named[reference]])
    if not votes:
        return [_by_clock(job, timed[job]) for job in members]
    reference = named[votes.most_common(1)[0][0]]
    found = []
    for job in members:
        others = [other for other in members if other is not job] if job == reference else [reference]
        one = _relative(job, others, timed, reference)
        found.append(one if len(one.values) > 1 else _by_clock(job, timed[job]))
    return found


def _relative(job: Job, others: Sequence[Job], timed: Mapping[Job, Mapping[int, Sample]], reference: Job) -> _Prepared:
    """The cell relative to the middle of the others; of each other, relative to its own level over the runs."""
    basis = reference.backend if job != reference else "the other backends"
    per_other = []
    for other in others:
        rows = {
            k: log_ratio_of_launches(sample, timed[other][k]) for k, sample in timed[job].items() if k in timed[other]
        }
        per_other.append({k: row for k, row in rows.items() if row})
    per_other = [rows for rows in per_other if rows]
    if not per_other:
        return _Prepared(job, basis)
    most = max(map(len, per_other))
    whole = [rows for rows in per_other if len(rows) == most]  # backends of the same runs have comparable levels
    numbers = sorted(set.intersection(*(set(rows) for rows in whole)))
    levels = [median([x for row in rows.values() for x in row.values()]) if len(whole) > 1 else 0.0 for rows in whole]
    values = [middle([rows[k] for rows in whole], levels) for k in numbers]
    kept = [(k, row) for k, row in zip(numbers, values, strict=True) if len(row)]
    return _Prepared(job, basis, tuple(k for k, _ in kept), tuple(row for _, row in kept))


def _by_clock(job: Job, timed: Mapping[int, Sample]) -> _Prepared:
    """The launches of a run share its day, so a run is one number."""
    return _Prepared(job, CLOCK, tuple(timed), tuple(np.array([np.median(s.launches)]) for s in timed.values()))


def _series(runs: Sequence[ComparisonInput], one: _Prepared, edge: float, tests: int) -> CellSeries:
    samples = [run.samples.get(one.job) for run in runs]
    values = dict(zip(one.numbers, one.values, strict=True))
    found = change_points(one.values, edge, tests) if len(one.values) > 1 else []
    undecided = None
    if len(one.values) < 2:
        undecided = "timed in fewer than two runs"
    elif not can_decide(one.values, tests):
        runs_or = "runs, without another backend in them," if one.basis == CLOCK else "launches"
        undecided = f"{sum(map(len, one.values))} {runs_or} are too few for {tests} cells"
    return CellSeries(
        job=one.job,
        states=tuple(sample.state if sample and sample.state != "absent" else None for sample in samples),
        seconds=tuple(sample.seconds_per_call if sample and sample.timed else None for sample in samples),
        ratios=tuple(
            math.exp(float(np.median(values[k]))) if k in values and one.basis != CLOCK else None
            for k in range(len(runs))
        ),
        basis=one.basis,
        time_changes=tuple(_in_runs(point, one.numbers) for point in found),
        state_changes=tuple(_state_changes(samples)),
        undecided=undecided,
    )


def _in_runs(point: ChangePoint, numbers: Sequence[int]) -> TimeChange:
    """The change with the numbers of the runs, of which the series may lack some."""
    first, earliest, latest = (numbers[k] for k in (point.first, point.earliest, point.latest))
    return TimeChange(first, earliest, latest, point.shift.exp(), point.p)


def _state_changes(samples: Sequence[Sample | None]) -> list[StateChange]:
    """Between right and not right, run by run; runs without the cell are passed over."""
    found = []
    before: State | None = None
    for k, sample in enumerate(samples):
        if sample is None or sample.state == "absent":
            continue
        if before is not None and sample.state != before and "right" in (before, sample.state):
            found.append(StateChange(k, before, sample.state, sample.reason))
        before = sample.state
    return found


def _clock(runs: Sequence[ComparisonInput], job: Job) -> dict[int, float]:
    """Number of the run -> log seconds per call."""
    there = ((k, run.samples.get(job)) for k, run in enumerate(runs))
    return {k: math.log(sample.seconds_per_call) for k, sample in there if sample and sample.timed}


def _judged(
    series: CellSeries,
    one: _Prepared,
    members: Sequence[Job],
    clocks: Mapping[Job, Mapping[int, float]],
    edge: float,
) -> CellSeries:
    """The series with doubts about changes with which the clock does not agree."""
    if one.basis == CLOCK:
        return series
    ends = [0, *(change.first for change in series.time_changes), len(series.states)]
    changes = []
    for k, change in enumerate(series.time_changes):
        parts = range(ends[k], ends[k + 1]), range(ends[k + 1], ends[k + 2])
        moved = {job: shift for job in members if (shift := _moved(clocks[job], *parts)) is not None}
        own = moved.get(one.job, 0.0)
        shared = median(moved.values()) if len(moved) >= MOST_MUST_AGREE else 0.0
        others = [shift for job, shift in moved.items() if job != one.job]
        other = others[0] if len(moved) == 2 else None
        sign, steady = 1 if change.ratio.estimate > 1 else -1, one.basis == "the other backends"
        agrees = clock_agrees(own - shared, other, sign, edge, steady=steady)
        doubt = None if agrees else "not in seconds, so that another backend or the machine may have changed"
        changes.append(replace(change, doubt=doubt))
    return replace(series, time_changes=tuple(changes))


def _explained(series: CellSeries, certain: Sequence[TimeChange]) -> CellSeries:
    """The series without doubtful changes that a certain one of its group at the same runs explains."""
    kept = [
        change
        for change in series.time_changes
        if change.doubt is None
        or not any(other.earliest <= change.latest and change.earliest <= other.latest for other in certain)
    ]
    return replace(series, time_changes=tuple(kept))


def _moved(clock: Mapping[int, float], old: range, new: range) -> float | None:
    """The change of the log seconds between two stretches of runs: the difference of their medians."""
    before, after = ([clock[k] for k in part if k in clock] for part in (old, new))
    return median(after) - median(before) if before and after else None
