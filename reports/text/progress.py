"""Progress on stderr during a run: a bar and the live table on a terminal, else a line now and then; in a notebook one
line."""

from __future__ import annotations

import importlib
import sys
from time import monotonic
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from adbench.model.events import Event, Learned, Started
from adbench.model.record import Record

from ..content import formatting
from ..content.cells import outcome
from ..content.formatting import OUTCOMES
from . import planned
from .live_table import LiveTable
from .status_line import LOG_SECONDS

BAR = 12  # columns
SOON = 5.0  # seconds; the end of work that ends sooner shows its failures
LINE_SECONDS = 0.2  # between two texts of a notebook's line


class Bar:
    """A context manager; `show(event, remaining)` moves it. Failures are printed above it, unless it ends soon.

    left_out   the cells that an earlier message reported as left out
    started    when the work began, by time.monotonic; now by default

    Where stderr is no terminal, it prints the current step at most every half minute.
    """

    def __init__(
        self, left_out: str | None = None, console: Console | None = None, started: float | None = None
    ) -> None:
        self._left_out = left_out or ""
        self._console = console or Console(stderr=True, highlight=False)
        self._progress = Progress(
            BarColumn(bar_width=BAR),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]} left"),
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            console=self._console,
            expand=True,  # the last column takes what is left, and is cut where that is too little
        )
        self._table = LiveTable()
        self._live = Live(
            console=self._console, get_renderable=self._seen, transient=True, auto_refresh=True, refresh_per_second=4
        )
        self._task = self._progress.add_task("", total=1.0, left="?")
        self._started = self._last = monotonic() if started is None else started

    def show(self, event: Event, remaining: float) -> None:
        """Show the current step and the progress: the rest takes about `remaining` seconds."""
        elapsed = monotonic() - self._started
        share = elapsed / (elapsed + remaining) if elapsed + remaining > 0 else 0.0
        self._progress.update(self._task, completed=share, left=planned.duration(remaining))
        self._table.note(event)
        for record in event.records if remaining > SOON else ():
            self._tell(record)
        if isinstance(event, Started):
            self._progress.update(self._task, description=_doing(event))
            if not self._console.is_terminal and monotonic() - self._last > LOG_SECONDS:
                self._last = monotonic()
                self.say(f"{planned.duration(elapsed)}, about {planned.duration(remaining)} left: {_doing(event)}")
        elif isinstance(event, Learned) and "settings" in event.facts:
            left_out = str(event.facts["settings"].get("left_out") or "")
            self.say(f"left out: {left_out.removeprefix(self._left_out).removeprefix('; ')}")
            self._left_out = left_out

    def _seen(self) -> RenderableType:
        """The bottom of the terminal: the table so far, if it has a row, and the bar below it."""
        table = self._table.table(self._console)
        return Group(table, self._progress) if table.row_count else self._progress

    def say(self, text: str) -> None:
        """A line on stderr, above the bar."""
        self._console.print(f"adbench: {formatting.visible(text)}", markup=False, soft_wrap=True)

    def _tell(self, record: Record) -> None:
        word, reason = outcome(record)
        if record.outcome.is_alarm and self._console.is_terminal:
            job, shown = record.job, OUTCOMES[word]
            text = f"{shown.sign} {shown.label}: {job.backend}, {job.case} {job.size}, {job.operator}: {reason}"
            self._console.print(formatting.visible(text), markup=False)

    def __enter__(self) -> Bar:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()


class NotebookLine:
    """The same for a notebook, which has no terminal: one line below the cell, which changes."""

    def __init__(self) -> None:
        self._doing = ""
        self._started = self._last = monotonic()
        self._shown: Any = None

    def show(self, event: Event, remaining: float) -> None:
        """Show the current step and how long the rest takes, a few times a second."""
        if isinstance(event, Started):
            self._doing = _doing(event)
            if monotonic() - self._last > LINE_SECONDS:
                self._write(f"{planned.duration(remaining)} left, {self._doing}")

    def say(self, text: str) -> None:
        """A line that stays."""
        self._write(text)
        self._shown = None

    def _write(self, text: str) -> None:
        line = {"text/plain": f"adbench: {formatting.visible(text)}"}
        if self._shown is None:
            display = importlib.import_module("IPython.display").display
            self._shown = display(line, raw=True, display_id=True)
        else:
            self._shown.update(line, raw=True)
        self._last = monotonic()

    def __enter__(self) -> NotebookLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        how = "done" if kind is None else "stopped"
        self._write(f"{how} after {planned.duration(monotonic() - self._started)}")


def shown(left_out: str | None = None) -> Bar | NotebookLine:
    """The bar; in the kernel of a notebook the line."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return NotebookLine() if hasattr(shell, "kernel") else Bar(left_out)


def _doing(event: Started) -> str:
    """The current step, in a line."""
    job = event.job
    where = f"{formatting.short(job.case, 30)} {job.size}"
    if event.launch is not None:
        return f"launch {event.launch + 1}: {where} {job.operator}"
    return f"{'build' if event.building else event.phase} {where} {formatting.short(job.backend, 24)}"
