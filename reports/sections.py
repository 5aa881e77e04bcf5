"""The page's tables and sentences as plain values: everything decided, nothing yet marked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from adbench.suite.record import Run

from . import panels, ranking, wording
from .cells import Cell, Cells
from .notes import Notes
from .ranking import Lead, Score, Trouble

NO_GROWTH = "no growth"
"""For a peak of 0 bytes: what the call took had been there before, which is not the same as taking nothing."""


@dataclass(frozen=True)
class Entry:
    """A cell of a table: a figure, or a dash and where its reason stands. `note` is the number of one on the page."""

    text: str
    cell: Cell | None = None
    spread: str = ""
    leads: bool = False
    note: int | None = None
    missing: int | None = None
    others: tuple[tuple[str, Cell, int | None], ...] = ()  # operators that came out differently


@dataclass(frozen=True)
class Row:
    """One line: the size, the backend where the line is about one, and the entries."""

    size: int
    entries: tuple[Entry, ...]
    backend: str = ""


@dataclass(frozen=True)
class Group:
    """The lines of one case."""

    case: str
    summary: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Headline:
    """What the first screen says."""

    total: int
    right: list[tuple[int, list[str]]]
    nowhere: list[str]
    scores: list[Score]
    leads: tuple[Lead, ...]
    wins: list[tuple[str, int]]
    ties: int
    contested: int
    troubles: list[Trouble]
    unsupported: list[tuple[str, int]]


def headline(cells: Cells) -> Headline:
    """Who is right on how much, who is fastest, who failed."""
    found = ranking.scores(cells)
    races = ranking.leads(cells)
    contested = [race for race in races if len(race.ranked) > 1]
    return Headline(
        total=cells.total,
        right=ranking.right_on(found),
        nowhere=[s.backend for s in found if not s.right and not s.words["approximate"]],
        scores=found,
        leads=races,
        wins=ranking.wins(races),
        ties=sum(len(race.leaders) > 1 for race in contested),
        contested=len(contested),
        troubles=ranking.troubles(cells),
        unsupported=[(s.backend, s.words["unsupported"]) for s in found if s.words["unsupported"]],
    )


def verdict_table(run: Run, cells: Cells, notes: Notes) -> list[Group]:
    """One row for each case and size, one entry for each backend: the word, and the time of the leading operator."""

    def rows(case: str) -> Iterator[Row]:
        for size in cells.sizes[case]:
            row = cells.row(case, size)
            race = ranking.race(row)
            leaders = race.leaders if race and len(race.ranked) > 1 else ()
            yield Row(size, tuple(_verdict(cells, notes, cell, cell in leaders) for cell in row))

    return _groups(run, cells, rows)


def memory_table(run: Run, cells: Cells, notes: Notes, method: str) -> list[Group]:
    """One row for each case and size, one entry for each backend: the bytes of one call by one method."""

    def entry(cell: Cell) -> Entry:
        found, reason = panels.memory_bytes(cell, method)
        return _figure(notes, cell, None if found is None else wording.byte_size(found) if found else NO_GROWTH, reason)

    def rows(case: str) -> Iterator[Row]:
        for size in cells.sizes[case]:
            yield Row(size, tuple(entry(cell) for cell in cells.row(case, size)))

    return _groups(run, cells, rows)


def phase_table(run: Run, cells: Cells, notes: Notes, *, largest_only: bool) -> list[Group]:
    """One row for each backend at each size: prepare, first call, steady call."""

    def rows(case: str) -> Iterator[Row]:
        race = ranking.lead(cells, case)
        largest = race.size if race else cells.sizes[case][-1]
        for size in cells.sizes[case]:
            if largest_only and size != largest:
                continue
            for cell in cells.row(case, size):
                yield Row(size, _phases(notes, cell), cell.job.backend)

    return _groups(run, cells, rows)


def _verdict(cells: Cells, notes: Notes, cell: Cell, leads: bool) -> Entry:
    others = []
    for operator in cells.operators:
        other = cells.single(replace(cell.job, operator=operator))
        if other.word not in {cell.word, "right", "not_run"}:
            others.append((operator, other, notes.number(other)))
    text = spread = ""
    if cell.spread:
        text = wording.seconds(cell.spread.median)
        spread = wording.seconds_range(cell.spread.low, cell.spread.high, like=cell.spread.median)
    missing = notes.missing_number("checked, but not timed in this run") if cell.measured and not cell.spread else None
    return Entry(text or wording.MISSING, cell, spread, leads, notes.number(cell), missing, tuple(others))


def _phases(notes: Notes, cell: Cell) -> tuple[Entry, ...]:
    time = cell.time
    steady = wording.seconds(cell.spread.median) if cell.spread else None
    prepare = wording.seconds(time.prepare_seconds) if time else None
    first = wording.seconds(time.first_call_seconds) if time else None
    reason = "checked, but not timed in this run" if time is None else "no epoch could be timed"
    return tuple(_figure(notes, cell, text, reason) for text in (prepare, first, steady))


def _figure(notes: Notes, cell: Cell, text: str | None, reason: str | None) -> Entry:
    """The figure; or a dash that points to the cell's own reason, or to `reason` where the cell has none."""
    if text is not None and text != wording.MISSING:
        return Entry(text, cell)
    if not cell.measured:
        return Entry(wording.MISSING, cell, note=notes.number(cell))
    return Entry(wording.MISSING, cell, missing=notes.missing_number(reason or "no reason was recorded"))


def _groups(run: Run, cells: Cells, rows: Callable[[str], Iterator[Row]]) -> list[Group]:
    return [Group(case, run.cases.get(case, ""), tuple(rows(case))) for case in cells.cases]
