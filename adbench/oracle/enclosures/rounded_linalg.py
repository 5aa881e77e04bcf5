"""Linear systems and triangular factors of batches of matrices of `RoundedArray`, by the textbook's blocked algorithms.

Inside a block of columns each operation is rounded; the rest is products of matrices, as in LAPACK (Golub and Van Loan
(2013), 3.1, 3.2.11, 3.4 and 4.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.oracle.enclosures.rounded_arrays import UnroundedArray

BLOCK = 24  # columns

Number = Any
"""A class of `RoundedArray`."""


def solve(a: Any, b: Any, triangle: str = "") -> Any:
    """X with A X = B; triangle: lower or upper, if A is one."""
    number = type(a)
    if triangle:
        return number(_substituted(number, a.parts[0], b.parts[0], lower=triangle == "lower"))
    packed, order = eliminated(a.parts[0], number)
    right = np.broadcast_to(b.parts[0], (*np.broadcast_shapes(packed.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    right = np.take_along_axis(right, np.broadcast_to(order[..., None], (*right.shape[:-1], 1)), -2)
    half = _substituted(number, _unit_lower(packed), right, lower=True)
    return number(_substituted(number, packed, half, lower=False))


def cholesky(a: Any) -> Any:
    """The lower L with L L' = A."""
    number = type(a)
    packed, _ = eliminated(a.parts[0], number, pivoting=False)
    roots = number.rounded(np.sqrt(np.diagonal(packed, axis1=-2, axis2=-1))).parts[0][..., None, :]
    return number.rounded(_unit_lower(packed) * roots)


def lu(a: Any) -> tuple[Any, Any]:
    """L and U in one matrix with P A = L U, and the order of A's rows in P A."""
    packed, order = eliminated(a.parts[0], type(a))
    return type(a)(packed), order


def eliminated(a: Any, number: Number = UnroundedArray, *, pivoting: bool = True) -> tuple[Any, Any]:
    """`lu` by Gaussian elimination with partial pivoting."""
    rest, order = a.copy(), np.broadcast_to(np.arange(a.shape[-1]), a.shape[:-1]).copy()
    for start in range(0, a.shape[-1], BLOCK):
        inside, after = slice(start, start + BLOCK), slice(start + BLOCK, None)
        columns = rest[..., inside]
        for k, below in enumerate(range(start + 1, start + 1 + columns.shape[-1])):
            if pivoting:
                best = below - 1 + np.abs(rest[..., below - 1 :, below - 1]).argmax(-1)[..., None, None]
                for rows in (rest, order[..., None]):
                    row, first = np.take_along_axis(rows, best, -2), rows[..., below - 1, None, :].copy()
                    np.put_along_axis(rows, best, first, -2)
                    rows[..., below - 1, None, :] = row
            column = number.rounded(columns[..., below:, k] / columns[..., below - 1, k, None])
            columns[..., below:, k] = column.parts[0]
            _reduce(
                number,
                columns[..., below:, k + 1 :],
                columns[..., below:, k, None],
                columns[..., below - 1, None, k + 1 :],
            )
        right = _substituted(number, _unit_lower(rest[..., inside, inside]), rest[..., inside, after], lower=True)
        rest[..., inside, after] = right
        _less_product(number, rest[..., after, after], rest[..., after, inside], right)
    return rest, order


def _substituted(number: Number, a: Any, b: Any, *, lower: bool) -> Any:
    """X with A X = B of a triangle."""
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    starts = range(0, n, BLOCK)
    for start in starts if lower else reversed(starts):
        inside, rest = slice(start, start + BLOCK), slice(start + BLOCK, None) if lower else slice(0, start)
        block, rows = a[..., inside, inside], x[..., inside, :]
        within = range(block.shape[-1])
        for k in within if lower else reversed(within):
            others = slice(k + 1, None) if lower else slice(0, k)
            rows[..., k, :] = number.rounded(rows[..., k, :] / block[..., k, k, None]).parts[0]
            _reduce(number, rows[..., others, :], block[..., others, k, None], rows[..., k, None, :])
        _less_product(number, x[..., rest, :], a[..., rest, inside], rows)
    return x


def _unit_lower(packed: Any) -> Any:
    return np.tril(packed, -1) + np.eye(packed.shape[-1])


def _reduce(number: Number, rest: Any, column: Any, row: Any) -> None:
    """Subtract a product of a column and a row."""
    rest[...] = (number(rest) + -(number(column) * number(row))).parts[0]


def _less_product(number: Number, rest: Any, a: Any, b: Any) -> None:
    """Subtract a product of matrices."""
    if rest.size:
        rest[...] = (number(rest) + -(number(a) @ number(b))).parts[0]
