"""A run in the terminal: a screen that says who is correct, fast and small; on request every size, operator and reason.

Readable without colour: the sign carries the word.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from adbench.model.record import Run

from ...content.answer.in_words import summary_in_words
from ...content.cells import Cells
from ..drawing import NARROWEST, printed
from ..marks import wrapped
from . import details as full
from . import overview
from .ending import Ending as Ending
from .faults import faults


def table(
    run: Run,
    *,
    width: int | None = None,
    colour: bool = False,
    details: bool = False,
    without_own: bool = False,
    ending: Ending | None = None,
) -> str:
    """The text, which ends in a newline; no line is longer than `width` (by default the terminal's), except commands.

    details       print every size, operator and reason instead of the overview
    without_own   rank without adbench's own engine, whose failures are still printed
    ending        what the command line knows: where the page is, and the command that prints the details
    """
    columns = width or shutil.get_terminal_size().columns
    parts = _parts(run, max(columns, NARROWEST), details, without_own, ending)
    return printed(parts, width=columns, colour=colour)


def answer(run: Run, *, width: int, without_own: bool = False) -> str:
    """The verdict of a run in a few sentences, without the table."""
    return printed([Text(wrapped(summary_in_words(Cells(run), without_own=without_own), width, ""))], width=width)


def _parts(run: Run, width: int, details: bool, without_own: bool, ending: Ending | None) -> Iterator[RenderableType]:
    if not run.records:
        yield "Nothing was measured: this run holds no record."
        return
    cells = Cells(run)
    yield from faults(cells, width)
    if cells.timed and cells.subjects:
        yield Text(wrapped(summary_in_words(cells, without_own=without_own), width, ""))
        yield Text()
    if without_own:
        cells = cells.without_own
    yield from full.parts(cells, width) if details else overview.parts(cells, width)
    if ending is not None:
        yield from overview.end(cells, width, ending._replace(more="") if details else ending)
