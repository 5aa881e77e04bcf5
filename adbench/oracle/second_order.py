"""References of second order: H v is the gradient of φ(x) = (f(x + εv) - f(x - εv)) / 2ε.

φ is a text like f, and at fifty digits ε = 2^-40 makes it and its gradient exact to 2^-80: second order needs no new
machinery. Where f's text does not run at fifty digits, H v is unknown, and every verdict on it is blind.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import optree

from adbench.oracle.compute import reference
from adbench.oracle.leaves import FloatArray, output_weights
from adbench.oracle.reference import Known, Reference, Row
from adbench.oracle.subject import SUMS, Effort, Subject, chosen_entries

DIRECTIONS = (0,)
"""The numbers of the directions v that a Hessian is multiplied with; `hvp` takes the first."""

MOST_ROWS = 64
"""Of a Hessian that are examined by themselves."""

EPSILON = 2.0**-40
SECOND_NOISE = "squared from the noise of the gradient"
MOST_EVALUATIONS = 90  # of φ in double precision, which is NaN: differences need not look far


def second_reference(subject: Subject, number: int, first: Row, effort: Effort) -> Reference:
    """The reference of φ, whose gradient is H v; v is the direction with this number.

    first: the function's own row, for the noise.
    """
    v = subject.point.direction(effort.seed, number)
    found = _along_gradient(subject, v, first, effort)
    scale = _largest(found.scalar)
    if scale < _largest(first):
        # Column by column H may be larger than H v, as where f stays the same along v; rounding is of the columns.
        half = _along_gradient(subject, _every_second(v), first, replace(effort, max_entries=16))
        scale = max(scale, _largest(half.scalar))
    return found.mapped(lambda row: _with_second_noise(row, first, scale))


def hessian_reference(subject: Subject, first: Reference, effort: Effort) -> Reference:
    """The Jacobian of the gradient, of the shape (n,), n = all active entries in order; `first`: the function's own.

    Examined rows are H e for unit vectors e, sums are wᵀ H.
    """
    sizes = subject.point.sizes
    total = sum(sizes)
    (rows,) = chosen_entries([total], MOST_ROWS, effort.seed)
    units = [_nested(subject, np.eye(1, total, index)[0]) for index in rows]
    shape = (total,)
    sums = [_nested(subject, output_weights(effort.seed, number, shape)) for number in range(SUMS)]
    share = replace(effort, max_seconds=effort.max_seconds / max(1, len(rows) + SUMS))
    found = [_along_gradient(subject, v, first.scalar, share).scalar for v in (*units, *sums)]
    scale = max(map(_largest, found), default=0.0)
    noisy = [_with_second_noise(row, first.scalar, scale) for row in found]
    return Reference(shape, tuple(zip(rows, noisy, strict=False)), tuple(noisy[len(rows) :]))


def _nested(subject: Subject, v: FloatArray) -> tuple[Any, ...]:
    """A vector of all active entries, nested like the active arguments."""
    ends = np.cumsum([0, *subject.point.sizes])
    leaves = zip(subject.point.leaves, ends, ends[1:], strict=False)
    parts = [v[start:end].reshape(leaf.values.shape) for leaf, start, end in leaves]
    moved = subject.point.replaced([part if part.ndim else float(part) for part in parts])
    return tuple(moved[which] for which in subject.point.wrt)


def _along_gradient(subject: Subject, v: tuple[Any, ...], first: Row, effort: Effort) -> Reference:
    """H v without its noise."""
    text, wrt = subject.text, subject.point.wrt

    def phi(xp: Any, *point: Any) -> Any:
        def shifted(side: float) -> tuple[Any, ...]:
            every = list(point)
            for position, step in zip(wrt, v, strict=True):
                every[position] = optree.tree_map(lambda x, s: x + side * EPSILON * s, every[position], step)
            return tuple(every)

        assert text is not None
        return (text(xp, *shifted(1.0)) - text(xp, *shifted(-1.0))) / (2.0 * EPSILON)

    def unknown(*_: Any) -> float:
        return math.nan

    size = first.value.size
    subtracts = size / EPSILON if math.isfinite(size) else 0.0
    difference = replace(subject, plain=unknown, text=text and phi, subtracts=subtracts)
    return reference(difference, replace(effort, max_evaluations=MOST_EVALUATIONS))


def _every_second(v: Any) -> Any:
    """v with every second of its entries zero, counted through all its leaves."""
    count = itertools.count()

    def thinned(leaf: Any) -> Any:
        array = np.array(leaf, dtype=np.float64)
        for place in np.ndindex(array.shape):
            array[place] *= next(count) % 2
        return array if array.ndim else float(array)

    return optree.tree_map(thinned, v)


def _largest(row: Row) -> float:
    """The size of the largest finite derivative, or 0."""
    return max((known.size for known in row.derivatives if math.isfinite(known.size)), default=0.0)


def _with_second_noise(found: Row, first: Row, scale: float) -> Row:
    """H v with the noise that the gradient's own suggests: u κ² scale, κ = the gradient's noise in units of u |g|.

    A bound on the largest entry, so it hides errors in entries far smaller. Where H v is zero, libraries may be off by
    a rounding of the gradient: v is as large as x, and the derivative of f / x, a usual form of a product's, vanishes
    to rounding only.
    """
    finite = [known for known in first.derivatives if math.isfinite(known.size) and math.isfinite(known.noise)]
    size = max((known.size for known in finite), default=0.0)
    kappa = max((known.noise for known in finite), default=0.0) / (2.0**-53 * size) if size else 1.0
    noise = 2.0**-53 * max(1.0, kappa) ** 2 * scale

    def noisy(known: Known) -> Known:
        of_zero = 2.0**-53 * size if known.size == 0 else 0.0
        return replace(known, noise=max(noise, of_zero)) if math.isfinite(known.size) else known

    return replace(found.with_derivatives(noisy), noise=SECOND_NOISE)
