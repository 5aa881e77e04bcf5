"""Every pair of one case at its largest common size: the ratio of their times, and the break-even call."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import formatting, ranking
from .cells import Cell, Cells

MOST_BACKENDS = 16
"""The fastest of a case: a matrix of more is not read, and a page of forty of them is slow."""

SIGNS = {"faster": "", "slower": "", "equivalent": " =", "inconclusive": " ?"}


class RatioCell(NamedTuple):
    """A row's backend compared with a column's: `word` picks the colour, `text` has its sign; the diagonal is empty.

    break_even   from which call on the row costs no more in total than the column, as text
    """

    text: str
    word: str = ""
    interval: str = ""
    break_even: str = ""


def matrices(cells: Cells) -> list[dict[str, Any]]:
    """One for each case on which at least two are right and timed.

    backends   from fast to slow, the first of the race's; `floor` is that of the group, as a share
    ratios     [i][j]: time of i divided by that of j
    decided    how many of the pairs have a word other than "inconclusive"; undecided: why the first has no ratio
    """
    races = ((number, ranking.lead(cells, case)) for number, case in enumerate(cells.subjects))
    return [_matrix(cells, number, race) for number, race in races if race and race.contested]


def _matrix(cells: Cells, number: int, race: ranking.Lead) -> dict[str, Any]:
    ranked = race.ranked[:MOST_BACKENDS]
    pairs = [ranking.pair(cells, a, b) for i, a in enumerate(ranked) for b in ranked[:i]]
    compared = [pair for pair in pairs if pair]
    return {
        "race": race,
        "number": number,
        "backends": [cell.job.backend for cell in ranked],
        "ratios": [[_ratio(cells, a, b) for b in ranked] for a in ranked],
        "floor": next((pair.floor for pair in compared if pair.floor is not None), None),
        "decided": sum(pair.word != "inconclusive" for pair in compared),
        "pairs": len(pairs),
        "undecided": next((pair.reason for pair in compared if pair.reason and not pair.interval), None),
    }


def _ratio(cells: Cells, a: Cell, b: Cell) -> RatioCell:
    found = None if a is b else ranking.pair(cells, a, b)
    if found is None:
        return RatioCell("" if a is b else formatting.MISSING)
    paid = _break_even(cells, a, b)
    if found.interval is None:
        return RatioCell("?", found.word, break_even=paid)
    estimate, _, interval = formatting.between(found.interval).partition(" ")
    return RatioCell(estimate + SIGNS[found.word], found.word, interval.strip("()"), paid)


def _break_even(cells: Cells, a: Cell, b: Cell) -> str:
    """The call from which a, which starts slower, has cost no more; "" where that is the first, or none, or unknown."""
    found = cells.findings.break_even(a.record.job, b.record.job) if a.record and b.record else None
    return f"from call {formatting.calls(found.calls)}" if found and found.calls and found.calls > 1 else ""
