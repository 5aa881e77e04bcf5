"""References from closed forms in extended precision, for large arguments and Hessians."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.oracle.leaves import Point, output_weights
from adbench.oracle.reference import Known, Reference, Row
from adbench.oracle.subject import SUMS, Effort, chosen_entries

Exact = Any  # an array of np.longdouble
Gradient = Sequence[Exact]  # by leaf
EFFORT = Effort()


def scalar(point: Point, value: Exact, gradient: Gradient) -> Reference:
    """The reference of a scalar function with this gradient."""
    return Reference(
        (),
        (
            (
                0,
                _row(point, value, gradient),
            ),
        ),
    )


def matrix(
    point: Point,
    values: Exact,
    row: Callable[[int], Gradient],
    summed: Callable[[Any], Gradient],
    *,
    most_rows: int = 12,
) -> Reference:
    """The reference of a function with this array value: row(index) is a row of J, summed(w) is wᵀ J."""
    shape = values.shape
    (chosen,) = chosen_entries([values.size], most_rows, EFFORT.seed)
    outputs = [(index, _row(point, values.ravel()[index], row(index))) for index in chosen]
    weights = [output_weights(EFFORT.seed, number, shape).ravel() for number in range(SUMS)]
    sums = [_row(point, values.ravel() @ w, summed(w)) for w in weights]
    return Reference(shape, tuple(outputs), tuple(sums))


def hessian(point: Point, gradient: Exact, whole: Exact) -> Reference:
    """The reference of a Hessian given as a matrix; 64 of its rows are examined."""
    ends = np.cumsum(point.sizes)[:-1]
    return matrix(
        point,
        gradient,
        lambda k: np.split(whole[k], ends),
        lambda w: np.split(w @ whole, ends),
        most_rows=64,
    )


def _row(point: Point, value: Exact, gradient: Gradient) -> Row:
    chosen = chosen_entries(point.sizes, EFFORT.max_entries, EFFORT.seed)
    exact = [np.ravel(part).astype(np.longdouble) for part in gradient]
    numbers = [exact[k][index] for k, indices in enumerate(chosen) for index in indices]
    if sum(point.sizes) > len(numbers):
        steps = [point.steps(EFFORT.seed, number) for number in range(2)]
        numbers += [sum(g @ np.ravel(part) for g, part in zip(exact, step, strict=True)) for step in steps]
    row = point.row(EFFORT.seed, _known(value), chosen, map(_known, numbers))
    return replace(row, method="by hand")


def _known(exact: Exact) -> Known:
    rounded = float(exact)
    return Known(rounded, rounded, abs(float(exact - np.longdouble(rounded))) / 25)
