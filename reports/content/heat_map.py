"""A line for each case at its largest common size, and the heat map of a run: the slowdowns in these lines."""

from __future__ import annotations

from dataclasses import dataclass

from ..figures import panels
from . import formatting, ranking, standings
from .cells import Cell, Cells
from .footnotes import Footnotes
from .ranking import Lead, Place
from .standings import Standing


@dataclass(frozen=True)
class CaseLine:
    """A case at its largest common size.

    cells            backend -> its cell
    seconds, bytes   of one call of the fastest correct backend; None if unknown
    """

    case: str
    size: int
    race: Lead | None
    cells: dict[str, Cell]
    seconds: float | None
    bytes: float | None


@dataclass(frozen=True)
class HeatMapSquare:
    """One cell of the map.

    text    the slowdown, or the sign of an outcome that is not ranked
    step    the number of its colour; None where it is not ranked
    place   "fastest" if it is significantly faster than each other cell, "tie" if it ties for fastest
    note    the anchor of the reason why it is not ranked, "note-3"
    """

    cell: Cell
    text: str
    step: int | None = None
    place: Place = ""
    note: str = ""


@dataclass(frozen=True)
class HeatMap:
    """Lines in the order of the run, with a square for each backend; columns; `method` of the memory, in words."""

    lines: tuple[tuple[CaseLine, list[HeatMapSquare]], ...]
    columns: tuple[Standing, ...]
    method: str

    @property
    def first_apart(self) -> Standing | None:
        """The first column of those that are ranked on few cases only."""
        return next((column for column in self.columns if column.is_apart), None)

    @property
    def is_complete(self) -> bool:
        """Whether every backend with a mean is ranked on every case."""
        return all(column.ranked in (0, len(self.lines)) for column in self.columns)

    @property
    def words(self) -> list[formatting.Word]:
        """The outcomes in it that are not ranked, in the order of the legend."""
        there = {square.cell.word for _, squares in self.lines for square in squares if square.step is None}
        return [word for word in formatting.OUTCOMES if word in there]

    @property
    def places(self) -> set[str]:
        """Which of "fastest" and "tie" are in it."""
        return {square.place for _, squares in self.lines for square in squares if square.place}


def case_lines(cells: Cells) -> tuple[list[CaseLine], str]:
    """A line for each case that is there to be measured; and the method of their memory, in words."""
    races = {case: ranking.lead(cells, case) for case in cells.subjects}
    method, memory = panels.shown_memory([race.leaders[0] for race in races.values() if race])
    lines = []
    for case, race in races.items():
        size = race.size if race else cells.sizes[case][-1]
        row = dict(zip(cells.backends, cells.row(case, size), strict=True))
        figures = (race.leaders[0].seconds, memory(race.leaders[0])) if race else (None, None)
        lines.append(CaseLine(case, size, race, row, *figures))
    return lines, method


def heat_map(cells: Cells, footnotes: Footnotes) -> HeatMap:
    """The map of these cells, whose backends are in the order of their means."""
    lines, method = case_lines(cells)
    squares = [[_square(cell, line.race, footnotes) for cell in line.cells.values()] for line in lines]
    return HeatMap(tuple(zip(lines, squares, strict=True)), standings.standings(cells), method)


def _square(cell: Cell, race: Lead | None, footnotes: Footnotes) -> HeatMapSquare:
    found = standings.slowdown(race, cell)
    if race is None or found is None:
        number, missing = footnotes.number(cell), footnotes.untimed_number(cell)
        note = f"note-{number}" if number else f"missing-{missing}" if missing else ""
        return HeatMapSquare(cell, cell.sign, note=note)
    return HeatMapSquare(cell, formatting.slowdown(found), standings.step(found), race.place(cell))
