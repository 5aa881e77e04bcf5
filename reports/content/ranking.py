"""Who is right on how much, who is fastest among those, who failed: decided here, printed elsewhere.

A wrong, approximate or unchecked result is never ranked, whatever its speed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .cells import Cell, Cells
from .formatting import OUTCOMES, Word
from .run_findings import Against


@dataclass(frozen=True)
class Lead:
    """The race on one case at one size: ranked cells, fastest first.

    leaders   the fastest, and those that the measurement does not tell from it: whose interval against it, over
              launches and corrected for all that was compared, does not make them slower
    behind    the fastest of those that are slower than it, against it: how many times its time
    """

    case: str
    size: int
    ranked: tuple[Cell, ...]
    leaders: tuple[Cell, ...]
    behind: Against | None = None

    @property
    def next(self) -> Cell | None:
        """The fastest of those that are slower than the leaders."""
        return next((cell for cell in self.ranked if cell not in self.leaders), None)

    @property
    def contested(self) -> bool:
        """Whether there is anybody to be faster than."""
        return len(self.ranked) > 1

    @property
    def winner(self) -> Cell | None:
        """The one that is told to be faster than each other; None where there is none."""
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


@dataclass(frozen=True)
class Trouble:
    """A backend's cells with one word that is not `right`, for the sentence that tells who failed."""

    backend: str
    word: Word
    cells: tuple[Cell, ...]


def race(cells: Cells, case: str, size: int) -> Lead | None:
    """Ranks what is right and timed at a place; None where nothing is."""
    timed = [(cell.spread.median, cell) for cell in cells.row(case, size) if cell.ranked and cell.spread]
    if not timed:
        return None
    ranked = [cell for _, cell in sorted(timed, key=lambda pair: pair[0])]  # stable: equal times as in the run
    # The least median can be the slower one of a pair: rounds of one launch are compared, not medians of all.
    first = next((a for a in ranked if not any(_slower(cells, a, b) for b in ranked)), ranked[0])
    leaders = [first, *(cell for cell in ranked if cell is not first and not _slower(cells, cell, first))]
    behind = next((cell for cell in ranked if cell not in leaders), None)
    return Lead(case, size, tuple(ranked), tuple(leaders), against(cells, behind, first) if behind else None)


def against(cells: Cells, a: Cell, b: Cell) -> Against | None:
    """What may be said of one cell's time against another's."""
    if a.record is None or b.record is None:
        return None
    return cells.findings.against(a.record.job, b.record.job)


def _slower(cells: Cells, a: Cell, b: Cell) -> bool:
    told = against(cells, a, b)
    return told is not None and told.word == "slower"


def lead(cells: Cells, case: str) -> Lead | None:
    """The race at the largest common size: the largest of those at which most backends are right and timed."""
    races = [found for size in cells.sizes[case] if (found := race(cells, case, size))]
    return max(races, key=lambda r: (len(r.ranked), r.size), default=None)


def leads(cells: Cells) -> tuple[Lead, ...]:
    """One race for each case that has one."""
    return tuple(found for case in cells.subjects if (found := lead(cells, case)))


def wins(races: Sequence[Lead]) -> list[tuple[str, int]]:
    """(backend, cases on which it is told to be faster than each other), most first."""
    return Counter(r.winner.job.backend for r in races if r.winner).most_common()


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


def failures(cells: Cells) -> list[Trouble]:
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
