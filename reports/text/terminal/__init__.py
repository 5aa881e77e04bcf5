"""A run in the terminal: a screen that says who is correct, fast and small; on request every size, operator and reason.

Readable without colour: the sign carries the word.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from rich.console import RenderableType

from adbench.model.record import Run

from ...content.cells import Cells
from ..drawing import NARROWEST, printed
from . import details as full
from . import overview
from .ending import Ending as Ending


def table(
    run: Run,
    *,
    width: int | None = None,
    colour: bool = False,
    details: bool = False,
    ending: Ending | None = None,
) -> str:
    """The text, which ends in a newline; no line is longer than `width` (by default the terminal's), except commands.

    details   print every size, operator and reason instead of the overview
    ending    what the command line knows: where the page is, and the command that prints the details
    """
    columns = width or shutil.get_terminal_size().columns
    return printed(_parts(run, max(columns, NARROWEST), details, ending), width=columns, colour=colour)


def _parts(run: Run, width: int, details: bool, ending: Ending | None) -> Iterator[RenderableType]:
    if not run.records:
        yield "Nothing was measured: this run holds no record."
        return
    cells = Cells(run)
    yield from full.parts(cells, width) if details else overview.parts(cells, width)
    if ending is not None:
        yield from overview.end(cells, width, ending._replace(more="") if details else ending)
