"""A progress bar on stderr while a run goes on; nothing where stderr is no terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from adbench.suite.events import Checked, Event, Started, Timed
from adbench.suite.record import Record

from .cells import outcome
from .wording import OUTCOMES


class Bar:
    """A context manager; `show(event)` moves it. What went wrong is printed above it at once, not only at the end."""

    def __init__(self, total: int, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        columns: tuple[Any, ...] = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(
            *columns,
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)

    def show(self, event: Event) -> None:
        """Say what is under way, count what is finished."""
        if isinstance(event, Started):
            self._progress.update(
                self._task, description=f"{event.phase} {event.job.case} {event.job.size} {event.job.backend}"
            )
        elif isinstance(event, Checked):
            self._progress.advance(self._task)
            self._tell(event.record)
        elif isinstance(event, Timed):
            for record in event.lost:
                self._tell(record)

    def _tell(self, record: Record) -> None:
        word, reason = outcome(record)
        if OUTCOMES[word].bad and self._console.is_terminal:
            job, told = record.job, OUTCOMES[word]
            text = f"{told.sign} {told.label}: {job.backend}, {job.case} {job.size}, {job.operator}: {reason}"
            self._console.print(text, markup=False)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
