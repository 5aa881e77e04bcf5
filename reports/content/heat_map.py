"""The heat map of a run: each backend's slowdown relative to the fastest, for each case at its largest common size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..figures import panels
from . import formatting, ranking, standings
from .cells import Cell, Cells
from .footnotes import Footnotes
from .ranking import Lead, Place
from .standings import Standing


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
class HeatMapRow:
    """One case at one size; time and memory of the fastest as text, "" for a missing one."""

    case: str
    number: int
    size: int
    squares: tuple[HeatMapSquare, ...]
    time: str
    memory: str


@dataclass(frozen=True)
class HeatMapColumn:
    """A backend of the map; `own`: whether it is adbench's own engine.

    apart   "first" for the first that is ranked on few cases only, "yes" for the others of this kind, else ""
    """

    standing: Standing
    own: bool
    apart: Literal["", "first", "yes"]


@dataclass(frozen=True)
class HeatMap:
    """The lines in the order of the run, the columns by their means; `method` of the memory, in words."""

    lines: tuple[HeatMapRow, ...]
    columns: tuple[HeatMapColumn, ...]
    method: str

    @property
    def is_complete(self) -> bool:
        """Whether every backend with a mean is ranked on every case."""
        return all(column.standing.ranked in (0, len(self.lines)) for column in self.columns)

    @property
    def words(self) -> list[formatting.Word]:
        """The outcomes in it that are not ranked, in the order of the legend."""
        there = {square.cell.word for line in self.lines for square in line.squares if square.step is None}
        return [word for word in formatting.OUTCOMES if word in there]

    @property
    def places(self) -> set[str]:
        """Which of "fastest" and "tie" are in it."""
        return {square.place for line in self.lines for square in line.squares if square.place}


def heat_map(cells: Cells, footnotes: Footnotes) -> HeatMap:
    """A line for each case, a square for each backend, the time and the memory of the fastest."""
    races = {case: ranking.lead(cells, case) for case in cells.subjects}
    title, shown = panels.shown_memory([race.leaders[0] for race in races.values() if race])
    lines = []
    for number, (case, race) in enumerate(races.items()):
        size = race.size if race else cells.sizes[case][-1]
        squares = tuple(_square(cells.cell(case, size, b), race, footnotes) for b in cells.backends)
        time = memory = ""
        if race:
            leader = race.leaders[0]
            found = shown(leader)
            time = formatting.seconds(leader.seconds) if leader.seconds else ""
            memory = formatting.byte_size(found) if found else ""
        lines.append(HeatMapRow(case, number, size, squares, time, memory))
    return HeatMap(tuple(lines), tuple(_columns(cells)), title)


def _square(cell: Cell, race: Lead | None, footnotes: Footnotes) -> HeatMapSquare:
    found = standings.slowdown(race, cell)
    if race is None or found is None:
        number, missing = footnotes.number(cell), footnotes.untimed_number(cell)
        note = f"note-{number}" if number else f"missing-{missing}" if missing else ""
        return HeatMapSquare(cell, cell.sign, note=note)
    return HeatMapSquare(cell, formatting.slowdown(found), standings.step(found), race.place(cell))


def _columns(cells: Cells) -> Iterator[HeatMapColumn]:
    """In the order of the cells' backends, which is that of their means."""
    found = {standing.backend: standing for standing in standings.standings(cells)}
    apart: Literal["", "first", "yes"] = ""
    for backend in cells.backends:
        if found[backend].is_apart:
            apart = "yes" if apart else "first"
        yield HeatMapColumn(found[backend], cells.is_own(backend), apart if found[backend].is_apart else "")
