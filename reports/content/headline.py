"""What the first screen says, as plain values: who is right, who is fastest, what a gradient costs, and the floor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adbench.measure.statistics import Interval
from adbench.results.analysis import Floor

from . import ranking
from .cells import Cells
from .ranking import Failure, Lead, Score


@dataclass(frozen=True)
class Range:
    """A backend's smallest and largest interval over so many cases.

    As a win: how many times the fastest backend's time the next one takes. As a cost: a gradient's time relative to the
    function's, at the largest size of each case.
    """

    backend: str
    cases: int
    least: Interval | None
    most: Interval | None


@dataclass(frozen=True)
class Headline:
    """What the first screen says. `growing_costs`: backend -> the cases on which its gradient's cost grows with n."""

    total: int
    traps: int
    right: list[tuple[int, list[str]]]
    nowhere: list[str]
    scores: list[Score]
    leads: tuple[Lead, ...]
    wins: list[Range]
    ties: int
    contested: int
    gradient_costs: list[Range]
    growing_costs: dict[str, list[str]]
    failures: list[Failure]
    unsupported: list[tuple[str, int]]
    floor: Floor
    margin: float


def headline(cells: Cells) -> Headline:
    """Who is right on how much, who is fastest, who failed."""
    found = ranking.scores(cells)
    races = ranking.leads(cells)
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
        gradient_costs=_gradient_costs(cells),
        growing_costs=_growing_costs(cells),
        failures=ranking.failures(cells),
        unsupported=[(s.backend, s.words["unsupported"]) for s in found if s.words["unsupported"]],
        floor=cells.findings.floor,
        margin=cells.findings.margin,
    )


def _wins(races: Sequence[Lead]) -> list[Range]:
    found = []
    for backend, number in ranking.wins(races):
        own = [race.behind for race in races if race.winner and race.winner.job.backend == backend and race.behind]
        found.append(_range(backend, number, [pair.interval for pair in own]))
    return found


def _gradient_costs(cells: Cells) -> list[Range]:
    """Of right results only: a wrong gradient has no cost worth knowing."""
    found = []
    for backend in cells.backends:
        ratios = []
        for case in cells.subjects:
            cost = cells.findings.cost.get((case, backend))
            ranked = [at.ratio for at in cost.at if cells.cell(case, at.size, backend).ranked] if cost else []
            ratios += [ratio for ratio in ranked if ratio][-1:]
        if ratios:
            found.append(_range(backend, len(ratios), ratios))
    return sorted(found, key=lambda cost: (-cost.cases, cost.most.estimate if cost.most else 0.0))


def _growing_costs(cells: Cells) -> dict[str, list[str]]:
    growing = [key for key, cost in cells.findings.cost.items() if cost.grows and key[0] in cells.subjects]
    found = {backend: [case for case, of in growing if of == backend] for backend in cells.backends}
    return {backend: cases for backend, cases in found.items() if cases}


def _range(backend: str, cases: int, intervals: Iterable[Interval | None]) -> Range:
    found = sorted((x for x in intervals if x is not None), key=lambda x: x.estimate)
    return Range(backend, cases, found[0] if found else None, found[-1] if found else None)
