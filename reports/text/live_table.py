"""The live table of a run: the verdict of a cell as soon as it is checked, then its time so far.

It has a row for each case and size, as the overview at the end: the gravest sign of all operators, and the time of the
gradient. It shows the rows that changed last, as many as fit. A time is the median over the launches so far, without an
interval; the live table ranks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from adbench.model.events import Event, Timed
from adbench.model.record import Job, Record

from ..content import formatting
from ..content.cells import LEADING_OPERATORS, cell_of
from ..content.formatting import OUTCOMES
from .marks import head

MOST_ROWS = 12
MARGIN = 8  # lines of the terminal that are not rows: names of backends, the bar, and lines above
CASE = 20  # columns of a case's name
GAP = 1
WIDEST = 9  # columns of a sign and a time
GRAVE = [outcome.sign for word, outcome in OUTCOMES.items() if outcome.bad or word == "known"]

T = TypeVar("T")
Row = tuple[str, int]


class LiveTable:
    """The state of the cells so far; `note` adds an event, `table` draws the rows."""

    def __init__(self) -> None:
        self._signs: dict[tuple[Row, str], dict[str, str]] = {}  # row and backend -> operator -> sign
        self._seconds: dict[tuple[Row, str], dict[str, list[float]]] = {}  # row and backend -> operator -> times
        self._rows: dict[Row, None] = {}  # what changed last is last
        self._backends: dict[str, None] = {}

    def note(self, event: Event) -> None:
        """Enter the cells of an event."""
        self._judge(event.records)
        if isinstance(event, Timed):
            for cell in event.cells:
                if not cell.control:
                    times = self._seconds.setdefault(self._touched(cell.job), {})
                    times.setdefault(cell.job.operator, []).append(cell.launch.seconds_per_call)

    def _judge(self, records: Iterable[Record]) -> None:
        for record in records:
            place = self._touched(record.job)
            signs = self._signs.setdefault(place, {})
            if signs.get(record.job.operator) not in GRAVE:  # another point does not hide a fault
                signs[record.job.operator] = cell_of(record).sign
            if not record.outcome.is_measured:
                self._seconds.get(place, {}).pop(record.job.operator, None)

    def _touched(self, job: Job) -> tuple[Row, str]:
        row = (job.case, job.size)
        self._rows.pop(row, None)
        self._rows[row] = None
        self._backends[job.backend] = None
        return row, job.backend

    def cell(self, row: Row, backend: str) -> str:
        """The sign of a cell and its time, as far as they are known."""
        signs, times = self._signs.get((row, backend), {}), self._seconds.get((row, backend), {})
        sign = next((grave for grave in GRAVE if grave in signs.values()), _leading(signs) or "")
        found = median(_leading(times) or [0.0])
        return f"{sign} {formatting.seconds(found)}" if found > 0 else sign

    def table(self, console: Console) -> Table:
        """The rows that changed last, in as many lines and columns as the terminal has."""
        room = min(MOST_ROWS, max(console.height - MARGIN, 1))
        rows = list(self._rows)[-room:]
        sizes = [formatting.short_count(size) for _, size in rows]
        backends = list(self._backends)
        free = console.width - CASE - max(map(len, sizes), default=1) - 2 * GAP
        fit = max(free // (WIDEST + GAP), 1)
        if len(backends) > fit:
            fit = max((free - len("+99 more") - GAP) // (WIDEST + GAP), 1)
        shown, left = backends[:fit], len(backends) - fit
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        table.add_column("", no_wrap=True, width=CASE)
        table.add_column(Text("n"), no_wrap=True, justify="right", vertical="bottom")
        for backend in shown:
            title = Text(head(backend, WIDEST))
            table.add_column(title, no_wrap=True, justify="right", min_width=WIDEST, vertical="bottom")
        if left > 0:
            table.add_column(Text(f"+{left} more"), no_wrap=True)
        for row, size in zip(rows, sizes, strict=True):
            table.add_row(Text(formatting.short(row[0], CASE)), size, *(Text(self.cell(row, b)) for b in shown))
        return table


def _leading(found: Mapping[str, T]) -> T | None:
    """That of the operator that a cell is shown with."""
    operator = next((operator for operator in (*LEADING_OPERATORS, *found) if operator in found), None)
    return None if operator is None else found[operator]
