"""`adbench history`: a line for each run, newest last; and the changes of each cell over the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from adbench.model.settings import FLOAT64
from adbench.results.comparison_inputs import name_of
from adbench.results.timeline.cell_series import CLOCK, CellSeries, Timeline
from adbench.results.timeline.history import HistoryEntry

from ..content import formatting
from ..content.timeline import over_runs
from .drawing import printed

SIDE_BY_SIDE = 100  # columns from which a table fits
MOST_CHANGED = 20
MOST_TABLES = 12


def text(found: Sequence[HistoryEntry], width: int) -> str:
    """For people. No line is longer than `width`."""
    if not found:
        return "No runs found: no run.json and no journal.jsonl.\nadbench run -o FOLDER writes a run.\n"
    entries = _table(found) if width >= SIDE_BY_SIDE else "\n".join(map(_stacked, found))
    return printed([entries], width=width)


def data(found: Sequence[HistoryEntry]) -> list[dict[str, Any]]:
    """For other programs."""
    return [asdict(entry) | {"path": str(entry.path)} for entry in found]


def _table(found: Sequence[HistoryEntry]) -> Any:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("run", "date", "machine", "content"):
        table.add_column(name, overflow="fold")
    for name in ("cells", "wrong", "noise floor"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for entry in found:
        table.add_row(*(Text(part) for part in _parts(entry)))
    return table


def _parts(entry: HistoryEntry) -> tuple[str, ...]:
    path = formatting.visible(str(entry.path)) + (f" ({formatting.short(entry.label, 60)})" if entry.label else "")
    if entry.state == "unreadable":
        return path, "", "", "", "", "", "", f"unreadable: {formatting.short(entry.reason or '', 200)}"
    made = formatting.moment(entry.created or "", None)
    floor = formatting.MISSING if entry.floor is None else _percent(entry.floor)
    what = f"{_few(entry.cases, 'case')} × {_few(entry.backends, 'backend')}"
    cells = str(entry.done) if entry.done == entry.cells else f"{entry.done}/{entry.cells}"
    return path, made, entry.machine or "", what, cells, str(entry.wrong), floor, entry.state


def _stacked(entry: HistoryEntry) -> str:
    path, made, machine, what, cells, wrong, floor, state = _parts(entry)
    if entry.state == "unreadable":
        return f"{path}\n  {state}"
    return f"{path}\n  {made}, machine {machine}, {state}\n  {what}: {cells} cells, {wrong} wrong, noise floor {floor}"


def _percent(share: float) -> str:
    """Whole percents: 1.38 -> "138 %", 0.004 -> "< 1 %"."""
    return "< 1 %" if 0 < share < 0.005 else f"{formatting.count(round(100 * share))} %"


def _few(names: Sequence[str], kind: str) -> str:
    """The names where they are few, else how many."""
    if len(names) > 2:
        return formatting.plural(len(names), kind)
    return formatting.listed([formatting.short(name, 24) for name in names]) or f"no {kind}"


def timeline_text(found: Sequence[Timeline], width: int, *, details: bool) -> str:
    """The changes of cells over the runs of each machine, for people; with `details` also every cell's runs."""
    parts = [
        part for timeline in found if len(timeline.runs) > 1 or details for part in _timeline(timeline, details=details)
    ]
    return printed(parts, width=width) if parts else ""


def timeline_data(found: Sequence[Timeline]) -> list[dict[str, Any]]:
    """The same for other programs, with every cell."""
    plain = []
    for timeline in found:
        names = [run.name for run in timeline.runs]
        cells = [_cell_data(series, names) for series in timeline.cells]
        plain.append({"machine": timeline.machine, "dtype": timeline.dtype, "runs": names, "cells": cells})
    return plain


def _timeline(timeline: Timeline, *, details: bool) -> Iterator[Any]:
    names = [run.name for run in timeline.runs]
    changed = [(series, found) for series in timeline.cells if (found := over_runs.changes(series, names))]
    number = sum(series.has_changed for series, _ in changed)
    runs, cells = formatting.plural(len(names), "run"), formatting.plural(len(timeline.cells), "cell")
    kind = "" if timeline.dtype == FLOAT64 else f" in {timeline.dtype}"
    yield Text(f"\nMachine {timeline.machine}{kind}, {runs}: {number} of {cells} changed")
    for series, changes in changed if details else changed[:MOST_CHANGED]:
        yield Text(formatting.visible(name_of(series.job)), style="bold")
        for change in changes:
            yield Text(f"  {change.sign} {change.what} {change.since}: {change.more}")
    if not details and len(changed) > MOST_CHANGED:
        yield Text(f"and {formatting.plural(len(changed) - MOST_CHANGED, 'more cell')}; --html and --json have all")
    for reason in over_runs.undecided(timeline):
        yield Text(f"{reason}.")
    if details:
        for series in timeline.cells[:MOST_TABLES]:
            yield _series_table(series, timeline)
        if len(timeline.cells) > MOST_TABLES:
            more = formatting.plural(len(timeline.cells) - MOST_TABLES, "more cell")
            yield Text(f"and {more}; choose fewer with -c, -b, -n or --operator, or use --html")


def _series_table(series: CellSeries, timeline: Timeline) -> Any:
    """A cell: a line for each run that has it."""
    basis = "" if series.basis == CLOCK else f"relative to {formatting.short(series.basis, 18)}"
    table = Table(title=formatting.visible(name_of(series.job)), title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("run", overflow="fold")
    table.add_column("date", overflow="fold")
    for name in ("time", basis):
        table.add_column(name, justify="right")
    table.add_column("result", overflow="fold")
    signs = {change.run: change.sign for change in over_runs.changes(series, [run.name for run in timeline.runs])}
    for k, run in enumerate(timeline.runs):
        state = series.states[k]
        if state is None:
            continue
        seconds, ratio = series.seconds[k], series.ratios[k]
        table.add_row(
            *map(Text, (formatting.short(run.name, 60), formatting.moment(run.created or "", None))),
            Text("" if seconds is None else formatting.seconds(seconds)),
            Text("" if ratio is None else formatting.ratio(ratio)),
            Text(f"{signs.get(k, '')} {over_runs.STATES[state][1]}".strip()),
        )
    return table


def _cell_data(series: CellSeries, names: Sequence[str]) -> dict[str, Any]:
    """Its fields, with the names of the runs of its changes."""
    plain = asdict(series)
    for change in plain["time_changes"]:
        change["run"] = names[change["first"]]
    for change in plain["state_changes"]:
        change["run"] = names[change["run"]]
    job: dict[str, Any] = plain.pop("job")
    return job | plain
