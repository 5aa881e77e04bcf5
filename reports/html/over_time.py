"""Several runs on one page: a line over time for each cell, with changes marked; machines side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adbench.model.record import Job, Run
from adbench.results.comparison_inputs import ComparisonInput, of_run
from adbench.results.timeline.cell_series import CellSeries, Timeline, timelines

from ..content import formatting
from ..content.answer import accuracy
from ..content.timeline import over_runs
from ..content.timeline.over_runs import TimelineChange
from . import page

WIDTH, HEIGHT, EDGE = 150.0, 30.0, 5.0


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
    versions = (side.conditions.get("adbench", "") for side in sorted(sides, key=lambda side: side.created or ""))
    context = {
        "home": home,
        "machines": [_machine(timeline, typed=len(types) > 1) for timeline in found],
        "machine_count": len({timeline.machine for timeline in found}),
        "types": types,
        "side_by_side": _side_by_side([timeline.runs[-1] for timeline in found]) if len(found) > 1 else [],
        "count": len(sides),
        "versions": list(dict.fromkeys(versions)),
        "margin": margin,
        "pictures": pictures,
        "picture_width": accuracy.WIDTH,
        "picture_height": accuracy.HEIGHT,
        "width": WIDTH,
        "height": HEIGHT,
        "case_numbers": {case: k for k, case in enumerate(cases)},
        "order": {backend: k for k, backend in enumerate(backends)},
        "names_json": page.names_json(cases=cases, backends=backends),
    }
    return page.rendered("over_time.html", [], ["tables.js", "page.js"], **context)


def _machine(timeline: Timeline, *, typed: bool) -> dict[str, Any]:
    """The runs of one machine in one type, oldest first. A line is a cell with its points and its changes."""
    names = [run.name for run in timeline.runs]
    changes = [(series, over_runs.changes(series, names)) for series in timeline.cells]
    lines = [(series.job, _points(series, changed), changed) for series, changed in changes]
    return {
        "name": f"{timeline.machine} in {timeline.dtype}" if typed else timeline.machine,
        "runs": timeline.runs,
        # What changed comes first; the order of the run among equals.
        "lines": sorted((line for line in lines if line[1] or line[2]), key=lambda line: not line[2]),
        "notes": list(over_runs.undecided(timeline)),
    }


def _points(series: CellSeries, changes: Sequence[TimelineChange]) -> list[tuple[float, float, float, str]]:
    """(seconds, x, y, the sign of a change) of each run with a right time of the cell."""
    signs, last = {change.run: change.sign for change in reversed(changes)}, len(series.seconds) - 1
    there = [(k, value) for k, value in enumerate(series.seconds) if value]
    logs = [math.log(value) for _, value in there] or [0.0]
    # A factor of two at least, so that noise looks small.
    middle, span = (max(logs) + min(logs)) / 2, max(max(logs) - min(logs), math.log(2))
    points = []
    for k, value in there:
        x = EDGE + (WIDTH - 2 * EDGE) * k / last if last else WIDTH / 2
        y = HEIGHT / 2 - (math.log(value) - middle) / span * (HEIGHT - 2 * EDGE)
        points.append((value, round(x, 1), round(y, 1), signs.get(k, "")))
    return points


def _seconds(side: ComparisonInput, job: Job) -> float | None:
    sample = side.samples.get(job)
    found = sample.seconds_per_call if sample and sample.timed else math.nan
    return found if 0 < found < math.inf else None


def _side_by_side(sides: Sequence[ComparisonInput]) -> list[tuple[Job, list[tuple[str, str]]]]:
    """(cell, (time, times the machine's reference) on each machine) for cells that two machines have."""
    rows = []
    for job in dict.fromkeys(key for side in sides for key in side.samples if isinstance(key, Job)):
        times = [_seconds(side, job) for side in sides]
        if sum(value is not None for value in times) > 1:
            rows.append((job, [_shown(s, job, t) for s, t in zip(sides, times, strict=True)]))
    return rows


def _shown(side: ComparisonInput, job: Job, seconds: float | None) -> tuple[str, str]:
    if seconds is None:
        return formatting.MISSING, ""
    other = side.reference and _seconds(side, Job(job.case, job.size, side.reference, job.operator, job.seed))
    factor = f"{formatting.ratio(seconds / other)} {formatting.short(side.reference or '', 24)}" if other else ""
    return formatting.seconds(seconds), factor
