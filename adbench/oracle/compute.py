"""References: the strongest method that works for the function, for every examined number.

A scalar is an array of shape () with one output. Of a larger array a dozen outputs are examined entry by entry, and
sums Σ_i w_i f_i with random signs w over all outputs: a fault anywhere in J shows in wᵀ J, unless others cancel it. One
evaluation on series gives a number for every output, so a column of the Jacobian costs as much as one entry of a
gradient; only reading the numbers takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import optree

from adbench.oracle.diagnosis import branches
from adbench.oracle.differences import Line, slope
from adbench.oracle.enclosures.enclosed_row import enclosed_row
from adbench.oracle.evidence import within
from adbench.oracle.leaves import Point
from adbench.oracle.precise import (
    ExaminationPlan,
    NotPrecise,
    SeriesExamination,
    TooLongOnSeries,
    on_series,
)
from adbench.oracle.reference import UNIT_ROUNDOFF, UNKNOWN, Known, Reference, Row
from adbench.oracle.series.ball import watching
from adbench.oracle.series.evaluation import Curve, many_entries
from adbench.oracle.subject import SUMS, Effort, ExaminedNumbers, Subject, along_line, chosen_entries, nearby_value

DIFFERENCES = "nine-point differences in double precision"

ITERATION = "its values jump by more than rounding, as those of an iteration that stops at a tolerance"

CONTINUED = "an iteration inside stops at a tolerance, so its own derivative and that of the solution both count"

MOST_PLACES = 3

EVALUATIONS_PER_SLOPE = 90
"""Typical evaluations for one nine-point slope, to turn a budget of evaluations into a number of entries."""

DEFAULT = Effort()


def reference(subject: Subject, effort: Effort = DEFAULT) -> Reference:
    """Compute the subject's value and derivatives as accurately as possible.

    If the source is available, power series over balls prove the reference. If that fails, differences in double
    precision estimate it, and the rows' `reason` gives the cause.
    """
    numbers = ExaminedNumbers(subject.shape, effort)
    functions = numbers.functions(subject.plain)

    def settled(which: int, known: Known, leaf: int, index: int) -> Known:
        """The number; of an entry that the series left unknown, the slope by differences."""
        if leaf < 0 or not math.isnan(known.size):
            return known
        return replace(_slope(functions[which], subject.point, effort.seed, leaf, index)[0], kind="unsure")

    def examine(examination: SeriesExamination) -> list[Row]:
        planned = examination.planned()
        with within(branches.STOPPED, branches.StoppedLoops()) as loops:
            rows = examination.rows(planned)
        rows = [row.with_derivatives(partial(settled, which)) for which, row in enumerate(rows)]
        if examination.truth.evaluations.branched and effort.against_values():
            rows = [_held_against_values(row, f, subject, examination) for row, f in zip(rows, functions, strict=True)]
        if loops.met:
            with suppress(NotPrecise):  # the continued loops may divide by zero, or take too long
                further = [_continued(subject, effort, planned, times) for times in (1, 2)]
                rows = [_with_continued(*three) for three in zip(rows, *further, strict=True)]
        return rows

    reason, rows = "", list[Row]()
    try:
        rows = on_series(subject, effort, examine)
    except TooLongOnSeries as error:
        reason = str(error)
        if effort.enclosures and not subject.shape:
            try:
                rows = [enclosed_row(subject, effort)]
            except NotPrecise as why:
                reason += f"; {why}"
    except NotPrecise as error:
        reason = str(error)
    if not rows:
        directions = effort.directions_of(subject.shape)
        rows = [_by_differences(f, subject.point, effort, directions, reason) for f in functions]
    outputs = tuple(zip(numbers.outputs, rows, strict=False))
    return Reference(subject.shape, outputs, tuple(rows[len(outputs) :]))


def value_reference(subject: Subject, effort: Effort = DEFAULT) -> Reference:
    """The reference of the subject's value alone, without derivatives; not proved if its source runs on no series."""
    numbers = ExaminedNumbers(subject.shape, effort)
    try:
        value_alone = ExaminationPlan(0, 0, effort.precision.draws)
        rows = on_series(subject, effort, lambda examination: examination.rows(value_alone))
    except NotPrecise as error:
        unknown = subject.point.row(effort.seed, UNKNOWN, [[] for _ in subject.point.sizes], [])
        rows = [replace(unknown, reason=str(error))] * (len(numbers.outputs) + SUMS)
    outputs = tuple(zip(numbers.outputs, rows, strict=False))
    return Reference(subject.shape, outputs, tuple(rows[len(outputs) :]))


def _held_against_values(row: Row, f: Callable[..., float], subject: Subject, examination: SeriesExamination) -> Row:
    """The row of a program with branches: its values decide where they contradict its derivative along a branch."""
    most = examination.effort.max_evaluations
    here = nearby_value(f, subject.point.args)
    if abs(here - row.value.nearest(here)) > branches.TOLERANCE * max(abs(here), row.value.size):
        return row  # the values follow another branch, as with the other sign of an eigenvector
    settled, hidden = branches.settled_by_values(row, f, subject.point, most)
    if settled == row:
        return row
    why = ITERATION
    if hidden:
        first = hidden[0]
        places = _branches(examination, subject, first.leaf, first.index)
        why = f"the program's branches depend on {first.where}{f' ({places})' if places else ''}: {first}"
    return replace(settled, method=DIFFERENCES, reason=why, proved=False)


def _continued(subject: Subject, effort: Effort, planned: ExaminationPlan, times: int) -> list[Row]:
    """The rows without noise, if loops that stop at a tolerance continue."""
    with within(branches.STOPPED, branches.StoppedLoops(continued=times)):
        return on_series(subject, effort, lambda examination: examination.rows(replace(planned, draws=0)))


def _with_continued(row: Row, *further: Row) -> Row:
    """The row that also allows the derivative of the solution; no longer proved if that differs."""
    both = branches.with_continued(row, *further)
    return both if both == row else replace(both, reason=CONTINUED, proved=False)


def _branches(examination: SeriesExamination, subject: Subject, leaf: int, index: int) -> str:
    """Where the source branches along `Point.step`; "" if unknown."""
    place = subject.place
    if place is None:
        return ""
    places = dict[str, None]()
    move = many_entries(subject.point.step(examination.effort.seed, leaf, index)[0])
    with watching(lambda: places.setdefault(place())), suppress(Exception):  # the line leads outside
        examination.truth.evaluations.along(Curve.straight(move))
    return ", ".join(list(filter(None, places))[:MOST_PLACES])


def _by_differences(f: Callable[..., float], point: Point, effort: Effort, max_directions: int, reason: str) -> Row:
    """The row by differences of f in double precision, as much of it as the evaluations allow."""
    total, most = sum(point.sizes), effort.max_evaluations
    whole = total <= effort.max_entries and total * EVALUATIONS_PER_SLOPE <= most
    directions = max_directions if total and not whole else 0
    affordable = max(1, min(effort.max_entries, most // EVALUATIONS_PER_SLOPE - directions))
    chosen = chosen_entries(point.sizes, affordable, effort.seed)
    value, evaluations = _value(f, point, effort.seed)
    places = [(k, index) for k, indices in enumerate(chosen) for index in indices]
    places += [(-1, number) for number in range(directions)]
    slopes = [_slope(f, point, effort.seed, *place) for place in places]
    return replace(
        point.row(effort.seed, value, chosen, [known for known, _ in slopes]),
        method=DIFFERENCES,
        reason=reason,
        evaluations=evaluations + sum(calls for _, calls in slopes),
    )


def _slope(f: Callable[..., float], point: Point, seed: int, leaf: int, index: int) -> tuple[Known, int]:
    """The derivative along `Point.step` by nine-point differences, and its number of evaluations."""
    step, size = point.step(seed, leaf, index)
    line = Line(along_line(f, point, step))
    derivative = slope(line, size)
    stands = derivative.kind == "kink" or derivative.size == 0
    if stands and (seen := branches.slope_of_values(line, size)) is not None:  # a quantised number, in fine steps
        derivative = Known(seen[0], seen[0], seen[1])
    return derivative, line.evaluations


def _value(f: Callable[..., float], point: Point, seed: int, draws: int = 6) -> tuple[Known, int]:
    """f(x), and its change when every input changes by a rounding error, as another order of operations may cause."""
    plain = f(*point.moved([None] * len(point.leaves)))
    if not math.isfinite(plain):
        return Known(plain, plain, 0.0, 0.0, "unknown" if math.isnan(plain) else "infinite"), 1
    rng = np.random.default_rng([seed, 0x7A])
    moves = [
        [rng.uniform(-2, 2, leaf.values.shape) * UNIT_ROUNDOFF * np.abs(leaf.values) for leaf in point.leaves]
        for _ in range(draws)
    ]
    near = [nearby_value(f, point.moved(move)) for move in moves]
    spread = max((abs(other - plain) for other in near if math.isfinite(other)), default=0.0)
    return Known(plain, plain, spread + UNIT_ROUNDOFF * abs(plain)), 1 + draws


def declared(
    value: float, gradient: Sequence[Any], args: tuple[Any, ...], wrt: Sequence[int], names: Sequence[str]
) -> Reference:
    """A reference from a gradient that is correct by declaration, since no difference of f could know it."""
    point = Point(args, wrt, names)
    parts = [np.asarray(leaf, dtype=np.float64) for part in gradient for leaf in optree.tree_leaves(part)]
    entries = [Known(float(g), float(g)) for part in parts for g in part.ravel()]
    row = point.row(0, Known(value, value, 1e-14 * abs(value)), [range(size) for size in point.sizes], entries)
    row = replace(row, method="declared", reason="declared, because differences cannot know it", evaluations=1)
    return Reference((), ((0, row),))
