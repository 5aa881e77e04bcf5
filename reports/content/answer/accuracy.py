"""Accuracy next to time: the errors of each library in ulp, for one run, and in several types for several runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from adbench.model.record import Job, Run
from adbench.oracle.evidence import DOUBLE, PRECISIONS
from adbench.oracle.verdict import UlpErrors

from ..cells import Cell, Cells
from ..footnotes import Footnotes
from ..formatting import MISSING, count, seconds
from ..sections import MethodRow, TableEntry

WIDTH, HEIGHT, EDGE = 420.0, 220.0, 34.0
LEAST_SHOWN = 0.05
"""Ulp at the bottom of a picture: a smaller error is a result that is rounded as well as it can be."""


@dataclass(frozen=True)
class ErrorPoint:
    """A cell in a picture of time against error."""

    x: float
    y: float
    backend: str
    dtype: str
    said: str


@dataclass(frozen=True)
class TimeAndError:
    """One case in several types: a point for each backend and type, with the ends of both axes."""

    job: Job
    points: tuple[ErrorPoint, ...]
    fastest: str
    slowest: str
    least: str
    largest: str


def errors_of(cell: Cell) -> UlpErrors | None:
    """The errors of a cell with a measured result; None in a file of an earlier adbench."""
    verdict = cell.record.verdict if cell.record and cell.measured else None
    return verdict.ulp if verdict else None


def accuracy_rows(cells: Cells, _: Footnotes, case: str) -> Iterator[MethodRow]:
    """The errors at the largest size that has any."""
    rows = (cells.row(case, size) for size in reversed(cells.sizes[case]))
    known = (row for row in rows if any(map(errors_of, row)))
    yield from (MethodRow(row[0].job.size, tuple(map(_entry, row))) for row in islice(known, 1))


def _entry(cell: Cell) -> TableEntry:
    """The errors of a cell, its time below, and the median error to sort by."""
    found = errors_of(cell)
    if found is None:
        return TableEntry(MISSING, cell)
    time = seconds(cell.spread.median) if cell.spread else ""
    return TableEntry(f"{in_ulp(found.median)} / {in_ulp(found.worst)}", cell, found.median, more=time)


def in_ulp(error: float) -> str:
    """An error in units in the last place, to two digits."""
    return "∞" if math.isinf(error) else f"{error:.2g}" if error < 100 else count(round(error))


def time_and_error(runs: Sequence[Run]) -> list[TimeAndError]:
    """A picture for each case that these runs measured in two types or more, at its largest size.

    The error is the median, relative to the number: so many ulp times the unit of the type.
    """
    measured: dict[Job, list[tuple[str, Cell]]] = {}
    for run in runs:
        cells = Cells(run)
        for case in cells.subjects:
            for cell in cells.row(case, cells.sizes[case][-1]):
                if cell.spread and errors_of(cell):
                    place = Job(case, cell.job.size, "", cell.job.operator)
                    measured.setdefault(place, []).append((run.dtype, cell))
    return [_picture(job, found) for job, found in measured.items() if len({dtype for dtype, _ in found}) > 1]


def _picture(job: Job, found: Sequence[tuple[str, Cell]]) -> TimeAndError:
    placed = [(cell.spread.median, _relative(dtype, cell), dtype, cell) for dtype, cell in found if cell.spread]
    times, errors = [time for time, *_ in placed], [error for _, error, *_ in placed]
    places = zip(_along(times, WIDTH), _along(errors, HEIGHT), placed, strict=True)
    points = tuple(
        ErrorPoint(
            x,
            round(HEIGHT - height, 1),
            cell.job.backend,
            dtype,
            f"{cell.job.backend} in {dtype}: {seconds(time)}, error {error:.1e}",
        )
        for x, height, (time, error, dtype, cell) in places
    )
    ends = seconds(min(times)), seconds(max(times)), f"{min(errors):.0e}", f"{max(errors):.0e}"
    return TimeAndError(job, points, *ends)


def _relative(dtype: str, cell: Cell) -> float:
    """The median error relative to the number, at least that of a result which is rounded well."""
    found = errors_of(cell)
    assert found is not None
    return max(found.median, LEAST_SHOWN) * 2 * PRECISIONS.get(dtype, DOUBLE).unit


def _along(values: Sequence[float], length: float) -> list[float]:
    """The places of values on a logarithmic axis of a picture; an infinite one is at the end."""
    logs = [math.log(value) for value in values]
    finite = [value for value in logs if math.isfinite(value)]
    least, span = min(finite), max(max(finite) - min(finite), math.log(2))
    shares = [1.0 if math.isinf(value) else (value - least) / span for value in logs]
    return [round(EDGE + (length - 2 * EDGE) * share, 1) for share in shares]
