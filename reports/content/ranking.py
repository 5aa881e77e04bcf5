"""Decides who is right on how many cells, and who is fastest among those; other modules print it.

A wrong, approximate or unchecked result is never ranked, whatever its speed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from adbench.measure.statistics import Interval
from adbench.results.analysis import Ratio

from .cells import Cell, Cells
from .formatting import Word

Place = Literal["fastest", "tie", ""]

COMMON = 0.5
"""A size is common if at least this share of the backends is ranked at it, of as many as at any size of the case."""


@dataclass(frozen=True)
class Lead:
    """The race on one case at one size: ranked cells, fastest first.

    leaders   the fastest cell and its ties, which are not significantly slower (over launches, corrected for multiple
              comparisons)
    compared  the leaders that could be compared with the first: too few launches allow no comparison
    pairs     backend -> its cell compared with the first: how many times its time
    """

    case: str
    size: int
    ranked: tuple[Cell, ...]
    leaders: tuple[Cell, ...]
    pairs: Mapping[str, Ratio | None] = field(default_factory=dict)
    compared: tuple[Cell, ...] = ()

    def place(self, cell: Cell) -> Place:
        """The rank of a cell: ★ for "fastest", ☆ for "tie"; "" if it is slower or nothing is known."""
        if self.winner:
            return "fastest" if cell is self.winner else ""
        there = self.compared and (cell is self.leaders[0] or cell in self.compared)
        return "tie" if there else ""

    def interval(self, cell: Cell) -> Interval | None:
        """How many times the first's time a cell takes; None for the first, and for too few launches."""
        pair = self.pairs.get(cell.job.backend) if cell.ranked else None
        return pair.interval if pair else None

    @property
    def contested(self) -> bool:
        """Whether at least two cells compete."""
        return len(self.ranked) > 1

    @property
    def winner(self) -> Cell | None:
        """The cell that is significantly faster than each other one, if there is one."""
        return self.leaders[0] if self.contested and len(self.leaders) == 1 else None


@dataclass(frozen=True)
class Score:
    """How often a backend came out with each word, over all places of the run."""

    backend: str
    words: Counter[Word]

    @property
    def right(self) -> int:
        """On how many cells it is right."""
        return self.words["right"]


def race(cells: Cells, case: str, size: int) -> Lead | None:
    """Ranks what is right and timed at a place; None where nothing is."""
    timed = [(cell.spread.median, cell) for cell in cells.row(case, size) if cell.ranked and cell.spread]
    if not timed:
        return None
    ranked = [cell for _, cell in sorted(timed, key=lambda pair: pair[0])]  # stable: equal times as in the run
    # The least median can be the slower one of a pair: rounds of one launch are compared, not medians of all.
    first = next((a for a in ranked if not any(_slower(cells, a, b) for b in ranked)), ranked[0])
    leaders = [first, *(cell for cell in ranked if cell is not first and not _slower(cells, cell, first))]
    pairs = {cell.job.backend: pair(cells, cell, first) for cell in ranked if cell is not first}
    compared = [cell for cell in leaders[1:] if (found := pairs[cell.job.backend]) and found.interval]
    return Lead(case, size, tuple(ranked), tuple(leaders), pairs, tuple(compared))


def pair(cells: Cells, a: Cell, b: Cell) -> Ratio | None:
    """One cell's time compared with another's; None where the two are not compared."""
    return cells.findings.pair(a.record.job, b.record.job) if a.record and b.record else None


def _slower(cells: Cells, a: Cell, b: Cell) -> bool:
    found = pair(cells, a, b)
    return found is not None and found.word == "slower"


def lead(cells: Cells, case: str) -> Lead | None:
    """The race at the largest common size: the largest at which two backends are right and timed, and at least half as
    many as at any other size."""
    races = [found for size in cells.sizes[case] if (found := race(cells, case, size))]
    most = max((len(found.ranked) for found in races), default=0)
    enough = max(min(most, 2), COMMON * most)
    return max((found for found in races if len(found.ranked) >= enough), key=lambda r: r.size, default=None)


def leads(cells: Cells) -> tuple[Lead, ...]:
    """One race for each case that has one."""
    return tuple(found for case in cells.subjects if (found := lead(cells, case)))


def wins(races: Sequence[Lead]) -> list[tuple[str, int]]:
    """(backend, number of cases that it wins), most first."""
    return Counter(r.winner.job.backend for r in races if r.winner).most_common()


def scores(cells: Cells) -> list[Score]:
    """Every backend, by the number of its right cells, most first; equals keep the order of the run."""
    found = [Score(b, Counter(cell.word for cell in cells.column(b))) for b in cells.backends]
    return sorted(found, key=lambda score: -score.right)
