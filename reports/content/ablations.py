"""What each idea in the reference engine is worth: the same function with it and without it, from cells of one run.

    adbench run --suite ablations -b 'tape*'

The ratio is the time without the idea in times of that with it: above 1 it pays. Two ways of calling the engine on one
case take turns round by round, so that their ratio is that of the run's other pairs. Where the two are two cases (a
matrix product of single elements, and one of matrices), they are paired launch by launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adbench.measure.statistics import FEWEST_LAUNCHES, Interval, hodges_lehmann
from adbench.model.record import Job
from adbench.results.matched_samples import launch_medians

from ..figures import panels
from . import formatting
from .cells import Cell, Cells
from .footnotes import Notes


class Side(NamedTuple):
    """A backend, and what the case's name ends in there."""

    backend: str
    ending: str = ""


@dataclass(frozen=True)
class Idea:
    """One idea: which cells have it, which do without."""

    title: str
    instead_of: str
    with_it: Side
    without: Side
    cases: tuple[str, ...]


IDEAS = (
    Idea(
        "a flat tape",
        "closures",
        Side("tape"),
        Side("tape_closures"),
        ("normal_log_density_loop", "projectile", "matrix_product_elements"),
    ),
    Idea(
        "a compiled tape",
        "a flat one",
        Side("tape_compiled"),
        Side("tape"),
        ("normal_log_density_loop", "lotka_volterra", "recurrence", "matrix_product_elements"),
    ),
    Idea(
        "one node for each matrix operation",
        "one for each element",
        Side("tape"),
        Side("tape", "_elements"),
        ("matrix_product", "log_determinant", "cholesky", "solve", "multi_normal"),
    ),
    Idea(
        "a density as one node",
        "elementary operations",
        Side("tape_builtin"),
        Side("tape"),
        ("normal_log_density", "multi_normal", "logistic_regression", "log_sum_exp"),
    ),
    Idea(
        "compact Jacobians",
        "dense ones",
        Side("tape_compact"),
        Side("tape_dense"),
        ("square_sum", "recurrence", "rosenbrock", "hand_tracking_simple"),
    ),
    Idea(
        "reverse mode as inputs grow",
        "forward mode",
        Side("tape"),
        Side("tape_forward"),
        ("rosenbrock", "square_sum"),
    ),
    Idea(
        "forward mode as outputs grow",
        "reverse mode",
        Side("tape_forward"),
        Side("tape"),
        ("hand_tracking_simple",),
    ),
    Idea(
        "checkpoints in a loop",
        "keeping every step",
        Side("tape_checkpointed"),
        Side("tape"),
        ("normal_log_density_loop", "lotka_volterra", "recurrence"),
    ),
)


@dataclass(frozen=True)
class Row:
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


def rows(cells: Cells, notes: Notes) -> list[Row]:
    """The ideas of which the run holds both sides, each at every size that both have."""
    return [row for idea in IDEAS for case in idea.cases for row in _of_case(cells, notes, idea, case)]


def _of_case(cells: Cells, notes: Notes, idea: Idea, case: str) -> Iterator[Row]:
    with_it, without = case + idea.with_it.ending, case + idea.without.ending
    for size in cells.sizes.get(with_it, ()):
        here = cells.cell(with_it, size, idea.with_it.backend)
        there = cells.cell(without, size, idea.without.backend)
        if not (here.ranked and there.ranked):
            continue
        found, reason = _ratio(cells, there, here)
        missing = None if found else notes.missing_number(reason)
        shown, value = (formatting.between(found), found.estimate) if found else (formatting.MISSING, None)
        about = (idea.title, idea.instead_of, case, size, here.job.operator)
        yield Row(*about, shown, value, _memory(there, here), missing)


def _ratio(cells: Cells, there: Cell, here: Cell) -> tuple[Interval | None, str]:
    """The time of `there` in times of `here`, or the reason why there is none."""
    if _group(there.job) == _group(here.job):
        told = cells.findings.against(there.job, here.job)
        if told is not None:
            return told.interval, told.reason or ""
        return None, "the two are not compared: an operator of one of them is wrong"
    if there.time is None or here.time is None:
        return None, "one of the two was not timed"
    medians = launch_medians([there.time, here.time])
    differences = medians[0] - medians[1]
    differences = differences[np.isfinite(differences)]
    if len(differences) < FEWEST_LAUNCHES:
        return None, f"an interval needs {FEWEST_LAUNCHES} launches that both have; there are {len(differences)}"
    return hodges_lehmann(differences).exp(), ""


def _group(job: Job) -> tuple[str, int, str]:
    return job.case, job.size, job.operator


def _memory(there: Cell, here: Cell) -> str:
    for method, title in panels.MEMORY_METHODS:
        (without, _), (with_it, _) = panels.memory_bytes(there, method), panels.memory_bytes(here, method)
        if without and with_it:
            return f"{formatting.ratio(without / with_it)} ({title.lower()})"
    return ""
