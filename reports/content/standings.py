"""How backends stand over a whole run: their slowdown on each case, and their order from these.

The slowdown of a cell is its time divided by that of the fastest correct one at its place: the estimate over pairs of
launches that its interval belongs to, or the ratio of the medians where there are too few for an interval. Only cells
that are ranked (right and timed) have one, so that a wrong or approximate result never comes first.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import formatting, ranking
from .cells import Cell, Cells
from .ranking import Lead

STEPS = (1.1, 2.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
"""The slowdowns at which the colour changes: step 0 is up to 1.1, step 7 above 1,000."""

MOSTLY = 0.5
"""A backend that is ranked on less than this share of the cases comes after all others."""


@dataclass(frozen=True)
class Standing:
    """A backend's place: on how many cases it is ranked, and the geometric mean of its slowdowns there.

    `slowdown` is None for a backend that is ranked nowhere. `counted` is the mean over all cases: a case on which the
    backend is not ranked counts with the largest slowdown there, or with its own if that is larger.
    """

    backend: str
    ranked: int
    cases: int
    slowdown: float | None
    counted: float

    @property
    def is_apart(self) -> bool:
        """Whether it is ranked on too few cases to be compared with the others."""
        return self.ranked < MOSTLY * self.cases or self.slowdown is None

    @property
    def mean(self) -> float | None:
        """The mean slowdown that reports print and sort by; over its own cases if it is set apart."""
        return self.slowdown if self.is_apart else self.counted

    @property
    def step(self) -> int | None:
        """The number of its colour; None if it is ranked nowhere."""
        return None if self.mean is None else step(self.mean)

    @property
    def number(self) -> str:
        """The mean slowdown alone."""
        return formatting.MISSING if self.mean is None else formatting.slowdown(self.mean)

    @property
    def text(self) -> str:
        """The mean slowdown, with the number of cases if it is not ranked on all of them."""
        return self.number + (f" on {self.ranked}" if self.mean is not None and self.ranked < self.cases else "")


def step(slowdown: float) -> int:
    """The number of the colour of a slowdown."""
    return bisect.bisect_left(STEPS, slowdown)


def slowdown(race: Lead | None, cell: Cell) -> float | None:
    """The time of a cell of that race divided by its leader's; None for a cell that is not ranked."""
    if race is None or not cell.ranked or cell.spread is None:
        return None
    if interval := race.interval(cell):
        return max(1.0, interval.estimate)
    first = race.leaders[0].spread
    return max(1.0, cell.spread.median / first.median) if first and first.median > 0 else None


def standings(cells: Cells) -> tuple[Standing, ...]:
    """Every backend, the fastest over all cases first, each case at its largest common size.

    Backends that are ranked on less than half of the cases come after the others, unranked ones last. Equals keep the
    order of the run.
    """
    return of_races(cells.backends, [slowdowns(cells, race) for race in ranking.leads(cells)])


def of_races(backends: Iterable[str], races: Sequence[Mapping[str, float]]) -> tuple[Standing, ...]:
    """These backends in the same order, from a race for each case: backend -> slowdown."""
    found = [standing(backend, races) for backend in backends]

    def place(standing: Standing) -> tuple[bool, float]:
        return standing.is_apart, math.inf if standing.mean is None else standing.mean

    return tuple(sorted(found, key=place))


def arranged(cells: Cells) -> Cells:
    """The cells with the backends in the order of their standings, as every table and chart of a page has them."""
    return cells.arranged(standing.backend for standing in standings(cells))


def slowdowns(cells: Cells, race: Lead) -> dict[str, float]:
    """Backend -> slowdown, of the backends that are ranked in that race."""
    every = ((name, slowdown(race, cells.cell(race.case, race.size, name))) for name in cells.backends)
    return {name: found for name, found in every if found is not None}


def standing(backend: str, races: Sequence[Mapping[str, float]]) -> Standing:
    """One backend over these races."""
    own = [of[backend] for of in races if backend in of]
    counted = [of.get(backend, max([*of.values(), *own])) for of in races]
    return Standing(backend, len(own), len(races), _mean(own) if own else None, _mean(counted))


def _mean(ratios: Sequence[float]) -> float:
    """The geometric mean; 1 for none."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0
