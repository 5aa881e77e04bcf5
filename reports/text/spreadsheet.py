"""A run as CSV (RFC 4180): a line for each record, numbers in seconds and bytes, nothing where there is no figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from adbench.measure.statistics import Interval
from adbench.model.record import Record, Run

from ..content import ranking
from ..content.cells import Cells, cell_of, known, spread
from ..figures.panels import MEMORY_METHODS

FIELDS = (
    *("case", "size", "operator", "seed", "backend", "outcome", "reason"),
    *("seconds_per_call", "first_quartile", "third_quartile"),
    *("fastest", "against_fastest", "against_fastest_low", "against_fastest_high", "word", "floor"),
    *("import_seconds", "prepare_seconds", "first_call_seconds", "launches"),
    *(method for method, _ in MEMORY_METHODS),
    "digits",
)


def render(run: Run) -> str:
    """The table with its head. `word` is that of the pair with the fastest right one of the group."""
    cells = Cells(run)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, FIELDS, lineterminator="\r\n")
    writer.writeheader()
    for record in run.records:
        writer.writerow({name: _inert(value) for name, value in _row(cells, record)})
    return buffer.getvalue()


def _row(cells: Cells, record: Record) -> Iterator[tuple[str, object]]:
    cell, job = cell_of(record), record.job
    yield from (("case", job.case), ("size", job.size), ("operator", job.operator), ("seed", job.seed))
    yield from (("backend", job.backend), ("outcome", cell.word), ("reason", cell.reason))
    found = spread(record.time) if cell.measured else None
    if found:
        yield from zip(FIELDS[7:10], (found.median, found.low, found.high), strict=True)
    race = ranking.race(cells, job.case, job.size) if job.operator == cells.operator_of(job.case) else None
    first = race.leaders[0].record if race else None
    if first is not None and found and cell.word == "right":
        yield "fastest", first.job.backend
        pair = cells.findings.pair(job, first.job)
        if pair:
            yield from (("word", pair.word), ("floor", pair.floor))
            yield from zip(FIELDS[11:14], _ends(pair.interval), strict=True)
    yield "digits", cell.digits
    if cell.time:
        yield "import_seconds", cell.time.import_seconds
        yield "prepare_seconds", cell.time.prepare_seconds
        yield "first_call_seconds", cell.time.first_call_seconds
        yield "launches", len(cell.time.launches)
    if record.memory and cell.measured:
        yield from ((method, known(getattr(record.memory, method))[0]) for method, _ in MEMORY_METHODS)


def _ends(interval: Interval | None) -> tuple[float | None, ...]:
    return (interval.estimate, interval.low, interval.high) if interval else (None, None, None)


def _inert(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe; surrogates alone cannot be written."""
    if not isinstance(value, str):
        return value
    text = value.encode("utf-8", "replace").decode()
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and text else text
