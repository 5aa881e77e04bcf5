"""What each idea in the reference engine gains: the same function with it and without it, in one run.

    adbench run --suite ablations -b 'tape*'

The ratio is the time without the idea divided by the time with it: above 1 the idea pays. Two backends on one case take
turns round by round, and the run's analysis compares them like any other pair. Two different cases (a matrix product of
single elements, and one of matrices) are paired launch by launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adbench.measure.statistics import FEWEST_LAUNCHES, Interval, hodges_lehmann
from adbench.results.matched_samples import launch_medians

from ..figures import panels
from . import formatting
from .cells import Cell, Cells
from .footnotes import Footnotes


@dataclass(frozen=True)
class Idea:
    """One idea: the backend that has it and the one without it, on these cases.

    ending   what the name of a case ends in where it is written without the idea
    """

    title: str
    instead_of: str
    with_it: str
    without: str
    cases: tuple[str, ...]
    ending: str = ""


# fmt: off
IDEAS = (
    Idea("a flat tape", "closures", "tape", "tape_closures",
         ("normal_log_density_loop", "projectile", "matrix_product_elements")),
    Idea("a compiled tape", "a flat one", "tape_compiled", "tape",
         ("normal_log_density_loop", "lotka_volterra", "recurrence", "matrix_product_elements")),
    Idea("one node for each matrix operation", "one for each element", "tape", "tape",
         ("matrix_product", "log_determinant", "cholesky", "solve", "multi_normal"), "_elements"),
    Idea("a density as one node", "elementary operations", "tape_builtin", "tape",
         ("normal_log_density", "multi_normal", "logistic_regression", "log_sum_exp")),
    Idea("compact Jacobians", "dense ones", "tape_compact", "tape_dense",
         ("square_sum", "recurrence", "rosenbrock", "hand_tracking_simple")),
    Idea("reverse mode as inputs grow", "forward mode", "tape", "tape_forward",
         ("rosenbrock", "square_sum")),
    Idea("forward mode as outputs grow", "reverse mode", "tape_forward", "tape",
         ("hand_tracking_simple",)),
    Idea("checkpoints in a loop", "keeping every step", "tape_checkpointed", "tape",
         ("normal_log_density_loop", "lotka_volterra", "recurrence")),
)
# fmt: on


@dataclass(frozen=True)
class AblationRow:
    """One case at one size. `value` is what the table is sorted by; `missing` numbers the reason for a missing ratio.

    memory   bytes without the idea in times of those with it, and the method's name; empty where one of them is not
             known, or nothing
    """

    title: str
    instead_of: str
    case: str
    size: int
    operator: str
    ratio: str
    value: float | None
    memory: str
    missing: int | None = None


def rows(cells: Cells, footnotes: Footnotes) -> list[AblationRow]:
    """The ideas that the run measured with and without, each at every size that both have."""
    return [row for idea in IDEAS for case in idea.cases for row in _of_case(cells, footnotes, idea, case)]


def _of_case(cells: Cells, footnotes: Footnotes, idea: Idea, case: str) -> Iterator[AblationRow]:
    for size in cells.sizes.get(case, ()):
        here = cells.cell(case, size, idea.with_it)
        there = cells.cell(case + idea.ending, size, idea.without)
        if not (here.ranked and there.ranked):
            continue
        found, reason = _ratio(cells, there, here)
        missing = None if found else footnotes.missing_number(reason)
        shown, value = (formatting.between(found), found.estimate) if found else (formatting.MISSING, None)
        about = (idea.title, idea.instead_of, case, size, here.job.operator)
        yield AblationRow(*about, shown, value, _memory(there, here), missing)


def _ratio(cells: Cells, there: Cell, here: Cell) -> tuple[Interval | None, str]:
    """The time of `there` divided by that of `here`, or the reason why it is missing."""
    if there.job.case == here.job.case:
        pair = cells.findings.pair(there.job, here.job)
        if pair is not None:
            return pair.interval, pair.reason or ""
        return None, "the two are not compared: an operator of one of them is wrong"
    if there.time is None or here.time is None:
        return None, "one of the two was not timed"
    medians = launch_medians([there.time, here.time])
    differences = medians[0] - medians[1]
    differences = differences[np.isfinite(differences)]
    if len(differences) < FEWEST_LAUNCHES:
        return None, f"an interval needs {FEWEST_LAUNCHES} launches that both have; there are {len(differences)}"
    return hodges_lehmann(differences).exp(), ""


def _memory(there: Cell, here: Cell) -> str:
    for method, title in panels.MEMORY_METHODS:
        (without, _), (with_it, _) = panels.memory_bytes(there, method), panels.memory_bytes(here, method)
        if without and with_it:
            return f"{formatting.ratio(without / with_it)} ({title.lower()})"
    return ""
