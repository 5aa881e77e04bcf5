"""The run as one line per case, as plain values: the slowdown of each backend relative to the fastest correct one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...content import formatting, ranking
from ...content.cells import Cell, Cells
from ...content.formatting import Word
from ...content.ranking import Lead
from ...content.standings import slowdown, standings
from ...figures.panels import shown_memory
from ..marks import mark

NONE = "–"  # not part of the run, or not timed


class SlowdownRow(NamedTuple):
    """A case at its largest common size.

    entries   backend -> sign and slowdown
    words     backend -> the word of its cell
    seconds, bytes   of one call of the fastest correct backend; None if unknown
    """

    case: str
    size: int
    entries: dict[str, str]
    words: dict[str, Word]
    seconds: float | None
    bytes: float | None


def order(cells: Cells) -> list[str]:
    """The backends, the fastest over the whole run first."""
    return [standing.backend for standing in standings(cells)]


def lines(cells: Cells) -> list[SlowdownRow]:
    """One for each case that is there to be measured."""
    races = {case: ranking.lead(cells, case) for case in cells.subjects}
    _, memory = shown_memory([race.leaders[0] for race in races.values() if race])
    return [_line(cells, case, race, memory) for case, race in races.items()]


def _line(cells: Cells, case: str, race: Lead | None, memory: Callable[[Cell], float | None]) -> SlowdownRow:
    size = race.size if race else cells.sizes[case][-1]
    row = cells.row(case, size)
    first = race.leaders[0] if race else None
    return SlowdownRow(
        case,
        size,
        {cell.job.backend: _entry(race, cell) for cell in row},
        {cell.job.backend: cell.word for cell in row},
        first.seconds if first else None,
        memory(first) if first else None,
    )


def _entry(race: Lead | None, cell: Cell) -> str:
    if cell.word == "not_run" or (cell.measured and cell.spread is None):
        return NONE
    sign = mark(race, cell) or ("" if cell.ranked and race and race.contested else cell.sign)
    return f"{sign} {_slowdown(race, cell)}".strip()


def _slowdown(race: Lead | None, cell: Cell) -> str:
    """Of an approximate or unverified result too: its time is a fact, even if it is not ranked."""
    first = race.leaders[0].spread if race else None
    if race is None or first is None or cell.spread is None or (not race.contested and cell.ranked):
        return ""
    ranked = slowdown(race, cell)
    return formatting.slowdown(cell.spread.median / first.median if ranked is None else ranked)
