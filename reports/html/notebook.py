"""A run as a short piece of HTML, for the output of a notebook's cell: its table, and the reasons of failures."""

from __future__ import annotations

from typing import NamedTuple

from adbench.model.record import Run

from ..content import ranking, standings
from ..content.cells import Cells
from ..content.footnotes import Footnotes
from ..content.formatting import OUTCOMES, Word, seconds
from ..text.marks import FASTEST, mark
from .page import environment

MOST_ROWS = 40
MOST_FAILURES = 6

# Colours of words, which can be read on light and on dark paper: a notebook's page has its own style sheet.
GOOD, BAD, UNSURE = "#1a9c74", "#d9542b", "#b58900"
COLOURS: dict[Word, str] = {
    "right": GOOD,
    **dict.fromkeys(("approximate", "verified", "inconclusive"), UNSURE),
    **dict.fromkeys((word for word, outcome in OUTCOMES.items() if outcome.bad), BAD),
}


class Shown(NamedTuple):
    """One cell of the table: its text, its colour, and why it is not right."""

    text: str
    colour: str
    reason: str
    bold: bool


def render(run: Run) -> str:
    """The table of the first rows: a row for each case and size, a column for each backend, the fastest first."""
    cells = standings.arranged(Cells(run))
    places = [(case, size) for case in cells.cases for size in cells.sizes[case]]
    failures = [note for note in Footnotes(cells).failures if OUTCOMES[note.word].bad]
    shown = [(case, size, _row(cells, case, size)) for case, size in places[:MOST_ROWS]]
    return (
        environment()
        .get_template("notebook.html")
        .render(
            summary=repr(run).strip("<>"),
            cells=cells,
            rows=shown,
            hidden=len(places) - len(shown),
            failures=failures[:MOST_FAILURES],
            more=len(failures) - MOST_FAILURES,
        )
    )


def _row(cells: Cells, case: str, size: int) -> list[Shown]:
    race, row = ranking.race(cells, case, size), list[Shown]()
    for cell in cells.row(case, size):
        sign = mark(race, cell)
        figure = seconds(cell.spread.median) if cell.spread else cell.label
        text = f"{sign or cell.sign} {figure}"
        row.append(Shown(text, COLOURS.get(cell.word, ""), cell.reason or "", sign == FASTEST))
    return row
