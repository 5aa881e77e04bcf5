"""References of second order, from the mixed coefficient of the text on power series (`adbench.oracle.series`).

H v is the gradient of x -> D_v f(x), and H the Jacobian of the gradient: both are references like those of first order.
Where f's text does not run on series, second order is unknown, and every verdict on it says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adbench.oracle.leaves import Point, output_weights
from adbench.oracle.precise import DRAWS, FEWEST_DRAWS, Examination, NotPrecise, entry_step, on_series
from adbench.oracle.reference import Known, Reference, Row
from adbench.oracle.series.evaluation import Move, many_entries, one_entry
from adbench.oracle.subject import SUMS, Effort, Numbers, Subject, chosen_entries

DIRECTION = 0
"""The number of the direction v of H v."""

MOST_ROWS = 64
"""Of a Hessian that are examined by themselves."""

UNKNOWN = Known(math.nan, math.nan, math.nan, 0.0, "unknown")


def hvp_reference(subject: Subject, effort: Effort) -> Reference:
    """The reference of x -> D_v f(x), whose gradient is H v; f is a scalar."""
    move = many_entries(subject.point.steps(effort.seed, DIRECTION))
    return Reference((), ((0, _rows(subject, effort, [move])[0]),))


def hessian_reference(subject: Subject, effort: Effort) -> Reference:
    """The reference of the gradient as an array of all active entries, in order; its Jacobian is H.

    Some rows of H by themselves (all of them up to `MOST_ROWS`), and wᵀ H for random vectors w.
    """
    sizes = subject.point.sizes
    total = sum(sizes)
    places = [(leaf, index) for leaf, size in enumerate(sizes) for index in range(size)]
    (chosen,) = chosen_entries([total], MOST_ROWS, effort.seed)
    moves = [one_entry(subject.point, *places[k], entry_step(subject.point, *places[k])) for k in chosen]
    sums = [_along_all(subject.point, output_weights(effort.seed, number, (total,))) for number in range(SUMS)]
    rows = _rows(subject, effort, moves + sums)
    scaled = [
        _over(row, entry_step(subject.point, *places[k])) for k, row in zip(chosen, rows[: len(chosen)], strict=True)
    ]
    return Reference((total,), tuple(zip(chosen, scaled, strict=True)), tuple(rows[len(chosen) :]))


def _rows(subject: Subject, effort: Effort, along: Sequence[Move]) -> list[Row]:
    """The row of D_v f for each of these v; of unknown numbers where the text does not run on series."""

    def examine(found: Examination) -> list[Row]:
        planned = found.planned(len(along), DRAWS if len(along) == 1 else FEWEST_DRAWS)
        return [found.rows(planned, move)[0] for move in along]

    reason = "the function is given as a black box"
    if subject.text is not None:
        try:
            return on_series(subject, effort, Numbers((), effort), examine)
        except NotPrecise as error:
            reason = str(error)
    point = subject.point
    chosen = chosen_entries(point.sizes, effort.max_entries, effort.seed)
    row = point.row(effort.seed, UNKNOWN, chosen, [UNKNOWN for indices in chosen for _ in indices])
    return [replace(row, reason=reason) for _ in along]


def _along_all(point: Point, weights: np.ndarray) -> Move:
    """The move Σ_k w_k e_k over all active entries, in order."""
    ends = np.cumsum(point.sizes)[:-1]
    parts = np.split(np.asarray(weights, dtype=np.float64), ends)
    return many_entries([part.reshape(leaf.values.shape) for part, leaf in zip(parts, point.leaves, strict=True)])


def _over(row: Row, step: float) -> Row:
    """The row of a derivative along step times a unit, per unit."""

    def scaled(known: Known) -> Known:
        if not math.isfinite(known.size):
            return known
        return Known(known.lower / step, known.upper / step, known.bar / step, known.noise / step, known.kind)

    return replace(row.with_derivatives(scaled), value=scaled(row.value))
