"""The analyses of a run, shared by all reports: ratios, the noise floor, growth, gradient costs, break-even."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from adbench.measure.growth import Growth
from adbench.measure.statistics import Interval
from adbench.measure.statistics import Word as Comparison
from adbench.model.record import Job, Run
from adbench.results import analysis, scaling
from adbench.results.analysis import BreakEven, Floor, Ratio, Speedup
from adbench.results.scaling import Cost, Quantity

USUAL_MARGIN = 0.02
INVERSE: dict[Comparison, Comparison] = {"faster": "slower", "slower": "faster"}


class Findings:
    """The analyses of one run, each made when it is first asked for. Jobs are those of the records."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.margin = margin_of(run)

    @cached_property
    def floor(self) -> Floor:
        """The control of each group and of the run."""
        return analysis.floor(self.run, self.margin)

    @cached_property
    def cost(self) -> dict[tuple[str, str], Cost]:
        """(case, backend) -> the cost of its gradient relative to the function."""
        return {(cost.case, cost.backend): cost for cost in reversed(scaling.cost(self.run))}

    @cached_property
    def speedups(self) -> dict[Job, Speedup]:
        """Job with further threads -> its speed-up."""
        return {found.job: found for found in analysis.speedups(self.run)}

    def pair(self, a: Job, b: Job) -> Ratio | None:
        """a compared with b: below 1 a is faster; None where the two are not compared."""
        found = self._by_pair.get((b, a))
        return self._by_pair.get((a, b)) or (found and inverse(found))

    def growth(self, case: str, backend: str, operator: str, quantity: Quantity) -> Growth | None:
        """How that figure grows with n; None if it was not measured."""
        return self._growth.get((case, backend, operator, quantity))

    def break_even(self, a: Job, b: Job) -> BreakEven | None:
        """The call from which a costs less than b in total; None if a starts faster."""
        return self._break_even.get((a, b))

    @cached_property
    def _by_pair(self) -> dict[tuple[Job, Job], Ratio]:
        return {(ratio.a, ratio.b): ratio for ratio in analysis.ratios(self.run, self.margin)}

    @cached_property
    def _growth(self) -> dict[tuple[str, str, str, Quantity], Growth]:
        return scaling.growth(self.run)

    @cached_property
    def _break_even(self) -> dict[tuple[Job, Job], BreakEven]:
        found = analysis.break_even(self.run, tuple(self._by_pair.values()))
        return {(paid.a, paid.b): paid for paid in found}


def inverse(ratio: Ratio) -> Ratio:
    """b compared with a, from a compared with b."""
    interval = ratio.interval
    if interval is not None:
        positive = 0 < interval.low <= interval.estimate <= interval.high < math.inf
        ends = (1 / interval.estimate, 1 / interval.high, 1 / interval.low, interval.level)
        interval = Interval(*ends) if positive else None
    return replace(ratio, a=ratio.b, b=ratio.a, interval=interval, word=INVERSE.get(ratio.word, ratio.word))


def margin_of(run: Run) -> float:
    """The margin that the user asked for; the usual one if the run's file has none."""
    margin = run.settings.get("margin")
    plain = isinstance(margin, int | float) and not isinstance(margin, bool)
    return float(margin) if plain and 0 < margin < math.inf else USUAL_MARGIN  # type: ignore[operator,arg-type]
