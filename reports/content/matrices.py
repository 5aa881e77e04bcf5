"""Every pair of one case at its largest common size: the ratio of their times, and when the dearer start has paid."""

from __future__ import annotations

from dataclasses import dataclass

from . import formatting, ranking
from .cells import Cell, Cells

MOST_BACKENDS = 16
"""The fastest of a case: a matrix of more is not read, and a page of forty of them is slow."""

SIGNS = {"faster": "", "slower": "", "equivalent": " =", "inconclusive": " ?"}


@dataclass(frozen=True)
class Pair:
    """A row's backend against a column's: `word` picks the colour, `text` carries a sign too; the diagonal is empty."""

    text: str
    word: str = ""
    interval: str = ""


@dataclass(frozen=True)
class Matrix:
    """Backends from fast to slow, the first of `of`; `floor` is that of the group, as a share.

    ratios[i][j]   time of i in times of j's
    paid[i][j]     from which call on i costs no more than j in total
    """

    case: str
    number: int
    size: int
    backends: tuple[str, ...]
    of: int
    ratios: tuple[tuple[Pair, ...], ...]
    paid: tuple[tuple[Pair, ...], ...]
    floor: float | None
    told: int
    pairs: int
    untold: str | None


def matrices(cells: Cells) -> list[Matrix]:
    """One for each case on which at least two are right and timed."""
    found = []
    for number, case in enumerate(cells.subjects):
        race = ranking.lead(cells, case)
        if race and race.contested:
            found.append(_matrix(cells, number, race))
    return found


def _matrix(cells: Cells, number: int, race: ranking.Lead) -> Matrix:
    ranked = race.ranked[:MOST_BACKENDS]
    ratios = tuple(tuple(_ratio(cells, a, b) for b in ranked) for a in ranked)
    paid = tuple(tuple(_paid(cells, a, b) for b in ranked) for a in ranked)
    all_pairs = [ranking.against(cells, a, b) for i, a in enumerate(ranked) for b in ranked[:i]]
    there = [pair for pair in all_pairs if pair]
    names = tuple(cell.job.backend for cell in ranked)
    floor = next((pair.floor for pair in there if pair.floor is not None), None)
    told = sum(pair.word != "inconclusive" for pair in there)
    untold = next((pair.reason for pair in there if pair.reason), None)
    found = (ratios, paid, floor, told, len(all_pairs), untold)
    return Matrix(race.case, number, race.size, names, len(race.ranked), *found)


def _ratio(cells: Cells, a: Cell, b: Cell) -> Pair:
    told = None if a is b else ranking.against(cells, a, b)
    if told is None:
        return Pair("" if a is b else formatting.MISSING)
    if told.interval is None:
        return Pair("?", told.word)
    estimate, _, interval = formatting.between(told.interval).partition(" ")
    return Pair(estimate + SIGNS[told.word], told.word, interval.strip("()"))


def _paid(cells: Cells, a: Cell, b: Cell) -> Pair:
    if a is b or a.record is None or b.record is None:
        return Pair("")
    found = cells.findings.break_even(a.record.job, b.record.job)
    if found is None:
        return Pair("")  # b is the dearer one to begin with, and tells it
    if found.calls is not None:
        return Pair(formatting.calls(found.calls), "faster")
    return Pair("never", "slower") if (found.reason or "").startswith("never") else Pair("?", "inconclusive")
