"""Several runs on one page: a line over time for each cell, with changes marked; machines side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from adbench.model.errors import UsageError
from adbench.model.record import Job, Run
from adbench.results import compare
from adbench.results.compare import Row
from adbench.results.comparison_inputs import ComparisonInput, Key, digest, of_run

from ..content import formatting
from . import embedding, page

WIDTH, HEIGHT, EDGE = 150.0, 30.0, 5.0
LOUD = {"regression": "▲", "improvement": "▼", "now wrong": "✗", "now failing": "⊗", "now right": "✓"}


@dataclass(frozen=True)
class At:
    """One cell in one run: `x`, `y` in its line's picture; `mark` if it changed since the run before."""

    seconds: float
    x: float
    y: float
    mark: str = ""


@dataclass(frozen=True)
class Line:
    """One cell over the runs of a machine; None where a run has no right time of it.

    change   the last time divided by the first, by the clock
    marks    (sign, word, name of the run) of each change
    """

    job: Job
    case: int
    at: tuple[At | None, ...]
    change: float | None
    marks: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Machine:
    """The runs of one machine, oldest first."""

    digest: str
    described: str
    runs: tuple[tuple[str, str, str], ...]  # (name, when, floor)
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def render(runs: Sequence[tuple[str, Run]], margin: float = 0.05, home: str = "") -> str:
    """The page of `runs`, (name, run), in the order of their times; `home` is the address of its site, "" for none."""
    from markupsafe import Markup

    ordered = sorted(runs, key=lambda pair: pair[1].created)
    sides = [of_run(run, name) for name, run in ordered]
    by_machine: dict[str, list[ComparisonInput]] = {}
    for side in sides:
        by_machine.setdefault(side.machine, []).append(side)
    cases, backends = (list(dict.fromkeys(getattr(job, name) for job in _jobs(sides))) for name in ("case", "backend"))
    machines = [_machine(same, {case: k for k, case in enumerate(cases)}, margin) for same in by_machine.values()]
    style, script = page.style(), page.asset("tables.js", "page.js")
    names = {"cases": list(map(formatting.visible, cases)), "backends": list(map(formatting.visible, backends))}
    context = {
        "home": home,
        "machines": machines,
        "side_by_side": _side_by_side([same[-1] for same in by_machine.values()], cases) if len(machines) > 1 else [],
        "count": len(ordered),
        "versions": list(dict.fromkeys(run.adbench_version for _, run in ordered)),
        "margin": margin,
        "width": WIDTH,
        "height": HEIGHT,
        "order": {backend: k for k, backend in enumerate(backends)},
        "style": Markup(style),
        "script": Markup(script),
        "policy": page.policy(style, script),
        "names_json": Markup(embedding.plain_json(names)),
    }
    return page.environment().get_template("over_time.html").render(context)


def _machine(sides: Sequence[ComparisonInput], cases: Mapping[str, int], margin: float) -> Machine:
    changes: list[Mapping[Key, Row]] = []
    notes = []
    for old, new in pairwise(sides):
        try:
            found = compare.compare(old, new, margin=margin)
        except UsageError as error:
            changes.append({})
            notes.append(str(error))
            continue
        changes.append({row.key: row for row in found.rows})
        if found.undecided:
            notes.append(f"{new.name} against {old.name}: {found.undecided}")
    lines = [_line(job, sides, changes, cases[job.case]) for job in _jobs(sides)]
    labels = tuple((s.name, s.created or "", formatting.percent(s.floor) if s.floor is not None else "") for s in sides)
    kept = [line for line in lines if any(line.at) or line.marks]
    kept.sort(key=lambda line: not line.marks)  # what changed comes first; the order of the run among equals
    return Machine(digest(sides[0].machine), sides[0].machine, labels, tuple(kept), tuple(dict.fromkeys(notes)))


def _line(job: Job, sides: Sequence[ComparisonInput], changes: Sequence[Mapping[Key, Row]], case: int) -> Line:
    seconds = [_seconds(side, job) for side in sides]
    there = [value for value in seconds if value]
    words = ["", *(change[job].word if job in change else "" for change in changes)]
    at = []
    for k, value in enumerate(seconds):
        x = WIDTH / 2 if len(sides) == 1 else EDGE + (WIDTH - 2 * EDGE) * k / (len(sides) - 1)
        at.append(At(value, round(x, 1), _height(value, there), LOUD.get(words[k], "")) if value else None)
    marks = tuple((LOUD[word], word, side.name) for word, side in zip(words, sides, strict=True) if word in LOUD)
    return Line(job, case, tuple(at), there[-1] / there[0] if len(there) > 1 else None, marks)


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
    sides: Sequence[ComparisonInput], cases: Sequence[str]
) -> list[tuple[Job, int, list[tuple[str, str]]]]:
    """(cell, case, (time, times the machine's reference) on each machine) for cells that two machines have."""
    rows = []
    for job in _jobs(sides):
        times = [_seconds(side, job) for side in sides]
        if sum(value is not None for value in times) > 1:
            rows.append((job, cases.index(job.case), [_shown(s, job, t) for s, t in zip(sides, times, strict=True)]))
    return rows


def _jobs(sides: Iterable[ComparisonInput]) -> list[Job]:
    """Every cell of the runs, once."""
    return list(dict.fromkeys(key for side in sides for key in side.samples if isinstance(key, Job)))


def _shown(side: ComparisonInput, job: Job, seconds: float | None) -> tuple[str, str]:
    if seconds is None:
        return formatting.MISSING, ""
    other = side.reference and _seconds(side, Job(job.case, job.size, side.reference, job.operator, job.seed))
    factor = f"{formatting.ratio(seconds / other)} {formatting.short(side.reference or '', 24)}" if other else ""
    return formatting.seconds(seconds), factor
