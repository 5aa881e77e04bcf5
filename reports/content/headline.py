"""What the first screen says, as plain values: who is right, who is fastest, what a gradient costs, and the floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adbench.measure.statistics import Interval
from adbench.results.analysis import Floor

from . import ranking
from .cells import Cells
from .ranking import Lead, Score, Trouble


@dataclass(frozen=True)
class Win:
    """A backend that is told to be the fastest on so many cases; the next one takes from `least` to `most` its time."""

    backend: str
    cases: int
    least: Interval | None
    most: Interval | None


@dataclass(frozen=True)
class Price:
    """What a gradient costs a backend, in calls of the primal, at the largest size of each case."""

    backend: str
    cases: int
    least: Interval
    most: Interval


@dataclass(frozen=True)
class Headline:
    """What the first screen says. `growing`: backend -> the cases on which the price of its gradient grows with n."""

    total: int
    traps: int
    right: list[tuple[int, list[str]]]
    nowhere: list[str]
    scores: list[Score]
    leads: tuple[Lead, ...]
    wins: list[Win]
    ties: int
    contested: int
    prices: list[Price]
    growing: dict[str, list[str]]
    failures: list[Trouble]
    unsupported: list[tuple[str, int]]
    floor: Floor
    margin: float


def headline(cells: Cells) -> Headline:
    """Who is right on how much, who is fastest, who failed."""
    found = ranking.scores(cells)
    races = ranking.leads(cells)
    costs = {key: cost for key, cost in cells.findings.cost.items() if key[0] in cells.subjects}
    return Headline(
        total=cells.total,
        traps=len(cells.traps),
        right=ranking.right_on(found),
        nowhere=[s.backend for s in found if not s.right and not s.words["approximate"]],
        scores=found,
        leads=races,
        wins=_wins(races),
        ties=sum(len(race.leaders) > 1 for race in races),
        contested=sum(race.contested for race in races),
        prices=_prices(cells),
        growing={
            backend: [case for (case, b), cost in costs.items() if b == backend and cost.grows]
            for backend in cells.backends
            if any(cost.grows for (_, b), cost in costs.items() if b == backend)
        },
        failures=ranking.failures(cells),
        unsupported=[(s.backend, s.words["unsupported"]) for s in found if s.words["unsupported"]],
        floor=cells.findings.floor,
        margin=cells.findings.margin,
    )


def _wins(races: Iterable[Lead]) -> list[Win]:
    found = list(races)
    wins = []
    for backend, number in ranking.wins(found):
        own = [race.behind for race in found if race.winner and race.winner.job.backend == backend and race.behind]
        wins.append(Win(backend, number, *_ends(told.interval for told in own)))
    return wins


def _prices(cells: Cells) -> list[Price]:
    """Of right results only: the price of a wrong gradient is nobody's business."""
    prices = []
    for backend in cells.backends:
        ratios = []
        for case in cells.subjects:
            cost = cells.findings.cost.get((case, backend))
            told = [at for at in cost.at if at.ratio and cells.cell(case, at.size, backend).ranked] if cost else []
            if told:
                ratios.append(told[-1].ratio)
        least, most = _ends(ratios)
        if least and most:
            prices.append(Price(backend, len(ratios), least, most))
    return sorted(prices, key=lambda price: (-price.cases, price.most.estimate))


def _ends(intervals: Iterable[Interval | None]) -> tuple[Interval | None, Interval | None]:
    there = sorted((x for x in intervals if x is not None), key=lambda x: x.estimate)
    return (there[0], there[-1]) if there else (None, None)
