"""Linear systems and triangular factors of batches of matrices of `RoundedArray`, by textbook loops over the columns.

Each operation is rounded (Golub and Van Loan (2013), 3.1, 3.4 and 4.2). Without rounding they are those of float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.oracle.enclosures.taylor import Floats

Rounding = Callable[[Floats], Floats]


def solve(a: Any, b: Any, triangle: str = "") -> Any:
    """X with A X = B; triangle: lower or upper, if A is one."""
    rounding = _rounding(a)
    if triangle:
        return type(a)(_substituted(a.parts[0], b.parts[0], triangle == "lower", rounding))
    packed, order = eliminated(a.parts[0], rounding)
    right = np.broadcast_to(b.parts[0], (*np.broadcast_shapes(packed.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    right = np.take_along_axis(right, np.broadcast_to(order[..., None], (*right.shape[:-1], 1)), -2)
    lower = np.tril(packed, -1) + np.eye(packed.shape[-1])
    return type(a)(_substituted(packed, _substituted(lower, right, True, rounding), False, rounding))


def cholesky(a: Any) -> Any:
    """The lower L with L L' = A."""
    rounding, rest = _rounding(a), a.parts[0].copy()
    for k in range(rest.shape[-1]):
        rest[..., k, k] = rounding(np.sqrt(rest[..., k, k]))
        rest[..., k + 1 :, k] = column = rounding(rest[..., k + 1 :, k] / rest[..., k, k, None])
        _reduce(rest[..., k + 1 :, k + 1 :], column[..., None], column[..., None, :], rounding)
    return type(a)(np.tril(rest))


def lu(a: Any) -> tuple[Any, Any]:
    """L and U in one matrix with P A = L U, and the order of A's rows in P A."""
    packed, order = eliminated(a.parts[0], _rounding(a))
    return type(a)(packed), order


def eliminated(a: Floats, rounding: Rounding = lambda x: x) -> tuple[Floats, Any]:
    """`lu` by Gaussian elimination with partial pivoting."""
    rest, order = a.copy(), np.broadcast_to(np.arange(a.shape[-1]), a.shape[:-1]).copy()
    for k in range(a.shape[-1] - 1):
        best = k + np.abs(rest[..., k:, k]).argmax(-1)[..., None, None]
        for rows in (rest, order[..., None]):
            row, first = np.take_along_axis(rows, best, -2), rows[..., k, None, :].copy()
            np.put_along_axis(rows, best, first, -2)
            rows[..., k, None, :] = row
        rest[..., k + 1 :, k] = column = rounding(rest[..., k + 1 :, k] / rest[..., k, k, None])
        _reduce(rest[..., k + 1 :, k + 1 :], column[..., None], rest[..., k, None, k + 1 :], rounding)
    return rest, order


def _substituted(a: Floats, b: Floats, lower: bool, rounding: Rounding) -> Floats:
    """X with A X = B of a triangle."""
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for k in range(n) if lower else reversed(range(n)):
        rest = slice(k + 1, n) if lower else slice(0, k)
        x[..., k, :] = row = rounding(x[..., k, :] / a[..., k, k, None])
        _reduce(x[..., rest, :], a[..., rest, k, None], row[..., None, :], rounding)
    return x


def _reduce(rest: Floats, column: Floats, row: Floats, rounding: Rounding) -> None:
    """Subtract a product of a column and a row."""
    rest[...] = rounding(rest - rounding(column * row))


def _rounding(a: Any) -> Rounding:
    return lambda x: np.asarray(type(a).rounded(x).parts[0])
