"""Several runs on one page: a line over time for each cell, with changes marked; machines side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adbench.model.record import Job, Run
from adbench.results.comparison_inputs import ComparisonInput, of_run
from adbench.results.timeline.cell_series import CellSeries, Timeline, timelines

from ..content import formatting
from ..content.answer import accuracy
from ..content.timeline import over_runs
from . import page

WIDTH, HEIGHT, EDGE = 150.0, 30.0, 5.0


@dataclass(frozen=True)
class At:
    """One cell in one run: `x`, `y` in its line's picture; `mark` if it changed since the run before."""

    seconds: float
    x: float
    y: float
    mark: str = ""


@dataclass(frozen=True)
class CellOverRuns:
    """One cell over the runs of a machine; None where a run has no right time of it.

    change   the last time divided by the first, by the clock
    marks    its changes
    """

    job: Job
    case: int
    at: tuple[At | None, ...]
    change: float | None
    marks: tuple[over_runs.TimelineChange, ...]


@dataclass(frozen=True)
class Machine:
    """The runs of one machine in one type, oldest first."""

    name: str
    described: str
    runs: tuple[tuple[str, str, str], ...]  # (name, when, floor)
    lines: tuple[CellOverRuns, ...]
    notes: tuple[str, ...]


def render(runs: Sequence[tuple[str, Run]], margin: float = 0.05, home: str = "") -> str:
    """The page of `runs`, (name, run); `home` is the address of its site, "" for none."""
    pictures = accuracy.time_and_error([run for _, run in runs])
    return page_of(timelines([of_run(run, name) for name, run in runs], margin), margin, home, pictures)


def page_of(
    found: Sequence[Timeline], margin: float, home: str = "", pictures: Sequence[accuracy.TimeAndError] = ()
) -> str:
    """The page of these runs, machine by machine; `pictures` of cases in several types."""
    sides = [side for timeline in found for side in timeline.runs]
    jobs = [series.job for timeline in found for series in timeline.cells]
    cases, backends = (list(dict.fromkeys(getattr(job, name) for job in jobs)) for name in ("case", "backend"))
    types = list(dict.fromkeys(timeline.dtype for timeline in found))
    numbers = {case: k for k, case in enumerate(cases)}
    versions = (side.conditions.get("adbench", "") for side in sorted(sides, key=lambda side: side.created or ""))
    context = {
        "home": home,
        "machines": [_machine(timeline, numbers, typed=len(types) > 1) for timeline in found],
        "machine_count": len({timeline.machine for timeline in found}),
        "types": types,
        "side_by_side": _side_by_side([timeline.runs[-1] for timeline in found], numbers) if len(found) > 1 else [],
        "count": len(sides),
        "versions": list(dict.fromkeys(versions)),
        "margin": margin,
        "pictures": pictures,
        "picture_width": accuracy.WIDTH,
        "picture_height": accuracy.HEIGHT,
        "width": WIDTH,
        "height": HEIGHT,
        "order": {backend: k for k, backend in enumerate(backends)},
        "names_json": page.names_json(cases=cases, backends=backends),
    }
    return page.rendered("over_time.html", [], ["tables.js", "page.js"], **context)


def _machine(timeline: Timeline, cases: Mapping[str, int], *, typed: bool) -> Machine:
    runs, name = timeline.runs, f"{timeline.machine} in {timeline.dtype}" if typed else timeline.machine
    lines = [_line(series, runs, cases[series.job.case]) for series in timeline.cells]
    labels = tuple((s.name, s.created or "", formatting.percent(s.floor) if s.floor is not None else "") for s in runs)
    kept = [line for line in lines if any(line.at) or line.marks]
    kept.sort(key=lambda line: not line.marks)  # what changed comes first; the order of the run among equals
    return Machine(name, runs[0].machine, labels, tuple(kept), tuple(over_runs.undecided(timeline)))


def _line(series: CellSeries, runs: Sequence[ComparisonInput], case: int) -> CellOverRuns:
    there = [value for value in series.seconds if value]
    found = over_runs.changes(series, [run.name for run in runs])
    signs = {change.run: change.sign for change in reversed(found)}
    at = []
    for k, value in enumerate(series.seconds):
        x = WIDTH / 2 if len(runs) == 1 else EDGE + (WIDTH - 2 * EDGE) * k / (len(runs) - 1)
        at.append(At(value, round(x, 1), _height(value, there), signs.get(k, "")) if value else None)
    return CellOverRuns(series.job, case, tuple(at), there[-1] / there[0] if len(there) > 1 else None, tuple(found))


def _height(value: float, values: Iterable[float]) -> float:
    """From the top of the picture; its logarithmic axis spans a factor of two at least, so that noise looks small."""
    logs = [math.log(x) for x in values]
    middle, span = (max(logs) + min(logs)) / 2, max(max(logs) - min(logs), math.log(2))
    return round(HEIGHT / 2 - (math.log(value) - middle) / span * (HEIGHT - 2 * EDGE), 1)


def _seconds(side: ComparisonInput, job: Job) -> float | None:
    sample = side.samples.get(job)
    found = sample.seconds_per_call if sample and sample.timed else math.nan
    return found if 0 < found < math.inf else None


def _side_by_side(
    sides: Sequence[ComparisonInput], cases: Mapping[str, int]
) -> list[tuple[Job, int, list[tuple[str, str]]]]:
    """(cell, case, (time, times the machine's reference) on each machine) for cells that two machines have."""
    rows = []
    for job in dict.fromkeys(key for side in sides for key in side.samples if isinstance(key, Job)):
        times = [_seconds(side, job) for side in sides]
        if sum(value is not None for value in times) > 1:
            rows.append((job, cases[job.case], [_shown(s, job, t) for s, t in zip(sides, times, strict=True)]))
    return rows


def _shown(side: ComparisonInput, job: Job, seconds: float | None) -> tuple[str, str]:
    if seconds is None:
        return formatting.MISSING, ""
    other = side.reference and _seconds(side, Job(job.case, job.size, side.reference, job.operator, job.seed))
    factor = f"{formatting.ratio(seconds / other)} {formatting.short(side.reference or '', 24)}" if other else ""
    return formatting.seconds(seconds), factor
