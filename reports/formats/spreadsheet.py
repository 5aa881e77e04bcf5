"""A run as rows, one for each record, with numbers in seconds and bytes; and as CSV (RFC 4180).

CSV has nothing where there is no figure.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator

from adbench.measure.statistics import Interval
from adbench.model.record import Record, Run
from adbench.oracle.verdict import whole_digits

from ..content import ranking
from ..content.cells import Cells, cell_of, spread
from ..figures.panels import MEMORY_METHODS, memory_bytes

FIELDS = (
    *("case", "size", "operator", "seed", "backend", "outcome", "reason"),
    *("seconds_per_call", "first_quartile", "third_quartile"),
    *("fastest", "against_fastest", "against_fastest_low", "against_fastest_high", "word", "floor"),
    *("import_seconds", "prepare_seconds", "first_call_seconds", "launches"),
    *(method for method, _ in MEMORY_METHODS),
    *("digits", "proved", "missing"),
)
TEXTS = ("case", "operator", "backend", "outcome", "reason", "fastest", "word", "proved", "missing")
"""The fields that hold no number; those of the others that may be missing are `FIGURES`."""

FIGURES = tuple(name for name in FIELDS if name not in (*TEXTS, "size", "seed"))


def render(run: Run) -> str:
    """The table with its head."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, FIELDS, lineterminator="\r\n")
    writer.writeheader()
    for row in rows(run):
        writer.writerow({name: _inert(value) for name, value in row.items()})
    return buffer.getvalue()


def rows(run: Run) -> list[dict[str, object]]:
    """A dict of `FIELDS` for each record, without missing ones.

    word      compares it with `fastest`, the fastest right one of its case, size and operator
    digits    how many digits of every compared number are verified
    proved    whether the expected values are proved
    reason    why the outcome is not "right"
    missing   why a measured cell lacks a figure
    """
    cells = Cells(run)
    return [dict(_row(cells, record)) for record in run.records]


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
    verdict = record.verdict
    if verdict is not None:
        digits = verdict.digits
        yield "digits", None if digits is None or not math.isfinite(digits) else whole_digits(digits)
        yield "proved", verdict.proved
    if cell.time:
        yield "import_seconds", cell.time.import_seconds
        yield "prepare_seconds", cell.time.prepare_seconds
        yield "first_call_seconds", cell.time.first_call_seconds
        yield "launches", len(cell.time.launches)
    memory = {method: memory_bytes(cell, method) for method, _ in MEMORY_METHODS}
    yield from ((method, figure) for method, (figure, _) in memory.items())
    if cell.measured:
        missing = [cell.why_untimed] if not found else []
        missing += [reason for _, reason in memory.values() if reason]
        yield "missing", "; ".join(dict.fromkeys(missing)) or None


def _ends(interval: Interval | None) -> tuple[float | None, ...]:
    return (interval.estimate, interval.low, interval.high) if interval else (None, None, None)


def _inert(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe; surrogates alone cannot be written."""
    if not isinstance(value, str):
        return value
    text = value.encode("utf-8", "replace").decode()
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and text else text
