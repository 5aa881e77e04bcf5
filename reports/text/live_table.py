"""The live table of a run: the verdict of a cell as soon as it is checked, then its time so far.

It shows the rows that changed last, as many as fit; the whole table comes at the end. A time is the median over the
launches so far, without an interval; the live table ranks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from adbench.model.events import Event, Timed
from adbench.model.record import Job, Record

from ..content import formatting
from ..content.cells import cell_of

MOST_ROWS = 12
MARGIN = 6  # lines of the terminal that are not the table's
COLUMN = 13  # of a backend
NAMES = 46  # columns that case, size and operator take

Row = tuple[str, int, str]


class LiveTable:
    """The state of the cells so far; `note` adds an event, `table` draws the rows."""

    def __init__(self) -> None:
        self._signs: dict[Job, str] = {}
        self._seconds: dict[Job, list[float]] = {}
        self._last: dict[tuple[Row, str], Job] = {}  # row and backend -> its job, at the seed looked at last
        self._rows: dict[Row, None] = {}  # what changed last is last
        self._backends: dict[str, None] = {}

    def note(self, event: Event) -> None:
        """Enter the cells of an event."""
        self._judge(event.records)
        if isinstance(event, Timed):
            for cell in event.cells:
                if not cell.control:
                    self._seconds.setdefault(cell.job, []).append(cell.launch.seconds_per_call)
                    self._touch(cell.job)

    def _judge(self, records: Iterable[Record]) -> None:
        for record in records:
            self._signs[record.job] = cell_of(record).sign
            if not record.outcome.is_measured:
                self._seconds.pop(record.job, None)
            self._touch(record.job)

    def _touch(self, job: Job) -> None:
        row = (job.case, job.size, job.operator)
        self._rows.pop(row, None)
        self._rows[row] = None
        self._last[row, job.backend] = job
        self._backends[job.backend] = None

    def cell(self, job: Job) -> str:
        """The sign of a cell and its time, as far as they are known."""
        seconds = self._seconds.get(job)
        time = f" {formatting.seconds(median(seconds))}" if seconds and median(seconds) > 0 else ""
        return f"{self._signs.get(job, '')}{time}"

    def table(self, console: Console) -> Table:
        """The rows that changed last, in as many lines and columns as the terminal has."""
        from rich.table import Table

        backends = sorted(self._backends)
        fit = max((console.width - NAMES) // COLUMN, 1)
        shown, left = backends[:fit], len(backends) - fit
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for title in ("case", "n", "operator"):
            table.add_column(title, no_wrap=True, justify="right" if title == "n" else "left")
        for backend in shown:
            table.add_column(Text(formatting.short(backend, COLUMN - 2)), no_wrap=True, justify="right")
        if left > 0:
            table.add_column(Text(f"+{left} more"))
        room = min(MOST_ROWS, max(console.height - MARGIN, 1))
        for row in list(self._rows)[-room:]:
            jobs = [self._last.get((row, backend)) for backend in shown]
            cells = [Text("" if job is None else self.cell(job)) for job in jobs]
            case, size, operator = row
            table.add_row(Text(formatting.short(case, 24)), str(size), formatting.short(operator, 10), *cells)
        return table
