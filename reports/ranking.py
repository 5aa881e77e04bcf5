"""Who is right on how much, who is fastest among those, who failed: decided here, printed elsewhere.

A wrong, approximate or unchecked result is never ranked, whatever its speed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .cells import Cell, Cells
from .wording import OUTCOMES, Word


@dataclass(frozen=True)
class Lead:
    """The race on one case at one size: ranked cells, fastest first.

    leaders   the fastest, and those whose quartiles overlap its own: the measurement does not tell them apart
    """

    case: str
    size: int
    ranked: tuple[Cell, ...]
    leaders: tuple[Cell, ...]

    @property
    def next(self) -> Cell | None:
        """The fastest of those that are slower than the leaders."""
        return next((cell for cell in self.ranked if cell not in self.leaders), None)

    @property
    def margin(self) -> float | None:
        """How many times the time of the fastest the next one takes."""
        behind, first = self.next, self.ranked[0]
        if behind is None or behind.spread is None or first.spread is None:
            return None
        return behind.spread.median / first.spread.median


@dataclass(frozen=True)
class Score:
    """How often a backend came out with each word, over all places of the run."""

    backend: str
    words: Counter[Word]

    @property
    def right(self) -> int:
        """On how many cells it is right."""
        return self.words["right"]


@dataclass(frozen=True)
class Trouble:
    """A backend's cells with one word that is not `right`, for the sentence that tells who failed."""

    backend: str
    word: Word
    cells: tuple[Cell, ...]


def race(row: Sequence[Cell]) -> Lead | None:
    """Ranks a row; None where nothing in it is both right and timed."""
    timed = [(cell.spread, cell) for cell in row if cell.ranked and cell.spread is not None]
    if not timed:
        return None
    timed.sort(key=lambda pair: pair[0].median)  # stable: equal times keep the order of the run
    first = timed[0][0]
    ranked = tuple(cell for _, cell in timed)
    leaders = tuple(cell for spread, cell in timed if spread.overlaps(first))
    return Lead(row[0].job.case, row[0].job.size, ranked, leaders)


def lead(cells: Cells, case: str) -> Lead | None:
    """The race at the largest common size: the largest of those at which most backends are right and timed."""
    races = [found for size in cells.sizes[case] if (found := race(cells.row(case, size)))]
    return max(races, key=lambda r: (len(r.ranked), r.size), default=None)


def leads(cells: Cells) -> tuple[Lead, ...]:
    """One race for each case that has one."""
    return tuple(found for case in cells.cases if (found := lead(cells, case)))


def wins(races: Sequence[Lead]) -> list[tuple[str, int]]:
    """(backend, cases on which it alone is the fastest of at least two), most first."""
    contested = [r.leaders[0].job.backend for r in races if len(r.ranked) > 1 and len(r.leaders) == 1]
    return Counter(contested).most_common()


def scores(cells: Cells) -> list[Score]:
    """Every backend, those that are right on most cells first; the order of the run among equals."""
    found = [Score(b, Counter(cell.word for cell in cells.column(b))) for b in cells.backends]
    return sorted(found, key=lambda score: -score.right)


def right_on(found: Sequence[Score]) -> list[tuple[int, list[str]]]:
    """(number of cells, the backends that are right on so many), most first; without those that are right on none."""
    groups: dict[int, list[str]] = {}
    for score in found:
        if score.right:
            groups.setdefault(score.right, []).append(score.backend)
    return list(groups.items())


def troubles(cells: Cells) -> list[Trouble]:
    """Who was wrong or failed, where, graver words first."""
    found: list[Trouble] = []
    for word, outcome in OUTCOMES.items():
        if not outcome.bad:
            continue
        for backend in cells.backends:
            bad = tuple(cell for cell in cells.column(backend) if cell.word == word)
            if bad:
                found.append(Trouble(backend, word, bad))
    return found
