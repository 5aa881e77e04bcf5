"""What may be said of a run, worked out once for all reports: ratios, the noise floor, growth, prices, break-even."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from adbench.measure.growth import Growth
from adbench.measure.statistics import Interval
from adbench.measure.statistics import Word as Comparison
from adbench.model.record import Job, Run
from adbench.results import analysis
from adbench.results.analysis import BreakEven, Cost, Floor, Ratio
from adbench.results.scaling import Quantity

QUANTITIES: tuple[Quantity, ...] = ("seconds", "allocated_peak_bytes", "resident_peak_bytes", "python_peak_bytes")
USUAL_MARGIN = 0.02
_TURNED: dict[Comparison, Comparison] = {"faster": "slower", "slower": "faster"}


@dataclass(frozen=True)
class Against:
    """One backend against another at one place: time of the one / time of the other, and the word for the first.

    interval   None with a reason where there are too few launches
    floor      what the control of the same group says of two that are the same, as a share; None without control
    """

    interval: Interval | None
    word: Comparison
    floor: float | None = None
    reason: str | None = None


class Findings:
    """The analyses of one run, each made when it is first asked for. Jobs are those of the records."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.margin = margin_of(run)

    @cached_property
    def ratios(self) -> tuple[Ratio, ...]:
        """Every pair of right backends."""
        return analysis.ratios(self.run, self.margin)

    @cached_property
    def floor(self) -> Floor:
        """The control of each group and of the run."""
        return analysis.floor(self.run, self.margin)

    @cached_property
    def cost(self) -> dict[tuple[str, str], Cost]:
        """(case, backend) -> the price of its gradient in calls of the primal."""
        return {(cost.case, cost.backend): cost for cost in reversed(analysis.cost(self.run))}

    def against(self, a: Job, b: Job) -> Against | None:
        """What may be said of a against b; None where the two are not compared."""
        found = self._by_pair.get((a, b.backend))
        if found is not None:
            return Against(found.interval, found.word, found.floor, found.reason)
        found = self._by_pair.get((b, a.backend))
        if found is None:
            return None
        return Against(turned(found.interval), _TURNED.get(found.word, found.word), found.floor, found.reason)

    def growth(self, case: str, backend: str, operator: str, quantity: Quantity) -> Growth | None:
        """How that figure grows with n; None where there is none."""
        return self._growth.get((case, backend, operator, quantity))

    def break_even(self, a: Job, b: Job) -> BreakEven | None:
        """When a has paid for itself against b; None where a is not the dearer one to begin with."""
        return self._break_even.get((a, b.backend))

    @cached_property
    def _by_pair(self) -> dict[tuple[Job, str], Ratio]:
        return {(Job(r.case, r.size, r.a, r.operator, r.seed), r.b): r for r in self.ratios}

    @cached_property
    def _growth(self) -> dict[tuple[str, str, str, str], Growth]:
        found = analysis.growth(self.run, QUANTITIES)
        return {(s.case, s.backend, s.operator, s.quantity): s.growth for s in reversed(found)}

    @cached_property
    def _break_even(self) -> dict[tuple[Job, str], BreakEven]:
        found = analysis.break_even(self.run, self.ratios)
        return {(Job(b.case, b.size, b.a, b.operator, b.seed), b.b): b for b in found}


def turned(interval: Interval | None) -> Interval | None:
    """The interval of b / a from that of a / b."""
    if interval is None or not 0 < interval.low <= interval.estimate <= interval.high < math.inf:
        return None
    return Interval(1 / interval.estimate, 1 / interval.high, 1 / interval.low, interval.level)


def margin_of(run: Run) -> float:
    """The margin that the run was asked for; the usual one where its file does not tell."""
    margin = run.settings.get("margin")
    plain = isinstance(margin, int | float) and not isinstance(margin, bool)
    return float(margin) if plain and 0 < margin < math.inf else USUAL_MARGIN  # type: ignore[operator,arg-type]


State = Literal["quiet", "noisy", "unknown"]


def state(floor: Floor) -> State:
    """Whether ratios of the run may be believed to the margin."""
    return "unknown" if floor.noisy is None else "noisy" if floor.noisy else "quiet"
