"""The determinant by minors, as a program that does not grow with its n! products.

The built-in case is a recursion of numbers, which a compiling library unrolls: 13,700 products at n = 7. The same
products are sums over arrays here, one for each row, with an entry for each ordered choice of columns above it. Rows
above the last seven are loops over their columns.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.interop.gradbench.work import case_module

SMALL = 4
"""Up to this size the recursion has at most 64 products."""

LARGEST_ARRAYS = 7
"""The rows that are arrays, of up to 7! = 5,040 numbers: 8! numbers take longer than a loop over 7!."""


def determinant(xp: Any, A: Any) -> Any:
    """det A for a square matrix of at least one row."""
    n = A.shape[0]
    recursion = case_module("determinant_by_minors").minor
    if n > SMALL and _merges_equal_operations(A):
        return _each_minor_once(A, n)
    if n <= SMALL or not _is_indexed_by_arrays(A[0]):
        return recursion(A, 0, tuple(range(n)))
    return _by_arrays(xp, A, n) if n <= LARGEST_ARRAYS else _by_loop(xp, A, n)


def _merges_equal_operations(A: Any) -> bool:
    """Whether the library records equal operations once, as the compiled tape does.

    Its program of the recursion has only n 2ⁿ⁻¹ products, fewer than the arrays have.
    """
    return A[0, 0] * A[0, 0] is A[0, 0] * A[0, 0]


def _is_indexed_by_arrays(row: Any) -> bool:
    """Whether the library indexes with numpy's arrays; Dr.Jit and mlx do not."""
    try:
        row[np.zeros(1, dtype=np.intp)]
    except (TypeError, ValueError, IndexError, RuntimeError):
        return False
    return True


def _each_minor_once(A: Any, n: int) -> Any:
    """The recursion with each minor written once, which the library records as the same program in less time."""

    @cache
    def minor(columns: tuple[int, ...]) -> Any:
        row = n - len(columns)
        if len(columns) == 1:
            return A[row, columns[0]]
        total = 0.0
        for k, column in enumerate(columns):
            term = A[row, column] * minor(columns[:k] + columns[k + 1 :])
            total = total - term if k % 2 else total + term
        return total

    return minor(tuple(range(n)))


def _by_loop(xp: Any, A: Any, n: int) -> Any:
    """Expansion along the first row. The columns rotate, so that every minor is without the first column.

    A rotation of n columns multiplies the determinant by (-1)ⁿ⁻¹, and so does the new sign of the first row.
    """
    sign = 1 if n % 2 else -1

    def add(_: Any, state: Any) -> Any:
        row, rest, total = state
        total = total + row[0] * determinant(xp, rest[:, 1:])
        return sign * xp.concat([row[1:], row[:1]]), xp.concat([rest[:, 1:], rest[:, :1]], axis=1), total

    return xp.loop(add, (A[0], A[1:], 0 * A[0, 0]), n)[2]


def _by_arrays(xp: Any, A: Any, n: int) -> Any:
    """The minors of the rows from r on, for r = n - 1 … 0: each is a sum of n - r terms."""
    columns = _columns(n)
    minors = A[n - 1][columns[n - 1]]
    for r in range(n - 2, -1, -1):
        signed = xp.concat([A[r], -A[r]])
        terms = signed[columns[r]] * minors
        minors = xp.sum(xp.reshape(terms, (n - r, -1)), axis=0)
    return minors[0]


@cache
def _columns(n: int) -> list[NDArray[np.intp]]:
    """For each row, the column of each term; n is added for negative terms.

    The terms are ordered by their position in the sum, then by the choices of columns above.
    """
    left = np.arange(n)[:, None]  # the columns left, for each choice above
    columns = []
    for _ in range(n):
        negative = np.arange(len(left)) % 2
        columns.append((left + n * negative[:, None]).ravel())
        left = np.concatenate([np.delete(left, k, axis=0) for k in range(len(left))], axis=1)
    return columns
