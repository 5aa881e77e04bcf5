"""`xp.linalg` over enclosures: one small matrix, by loops over its entries (Golub and Van Loan (2013), 3.4 and 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

MOST_ROWS = 16
"""Of a matrix: its n³ operations are recorded one by one."""

Rows = list[list[Any]]


class EnclosedLinalg:
    """The functions of `xp.linalg`; `xp` is its `Enclosures` namespace. Raises TypeError for batches."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def cholesky(self, a: Any, *, upper: Any = False) -> Any:
        """L with L L' = A, or with ``upper`` L'; reads that triangle only."""
        rows = self._rows(np.swapaxes(a, -1, -2) if upper else a)
        lower: Rows = [[self._xp.of(0.0)] * len(rows) for _ in rows]
        for i, row in enumerate(rows):
            for j in range(i + 1):
                rest = _reduced(row[j], zip(lower[i][:j], lower[j][:j], strict=True))
                lower[i][j] = rest / lower[j][j] if j < i else self._xp.sqrt(rest)
        made = self._array(lower)
        return np.swapaxes(made, -1, -2) if upper else made

    def solve_triangular(self, a: Any, b: Any, *, lower: Any = False, trans: Any = 0) -> Any:
        """x with a x = b, reading one triangle only."""
        rows, right = self._rows(np.swapaxes(a, -1, -2) if trans else a), self._xp.of(b)
        places = range(len(rows)) if bool(lower) != bool(trans) else reversed(range(len(rows)))
        found: dict[int, Any] = {}
        for i in places:
            found[i] = _reduced(right[i], [(rows[i][k], x) for k, x in found.items()]) / rows[i][i]
        return self._xp.stack([found[i] for i in range(len(rows))])

    def solve(self, a: Any, b: Any) -> Any:
        """x with a x = b."""
        rows, order, _ = self._eliminated(a)
        lower = [[*row[:i], self._xp.of(1.0), *row[i + 1 :]] for i, row in enumerate(rows)]
        half = self.solve_triangular(self._array(lower), self._xp.of(b)[order], lower=True)
        return self.solve_triangular(self._array(rows), half)

    def inv(self, a: Any) -> Any:
        """The inverse."""
        return self.solve(a, np.eye(np.shape(a)[-1]))

    def lu(self, a: Any) -> tuple[Any, Any]:
        """L and U in one matrix with P A = L U, and the order of A's rows in P A."""
        rows, order, _ = self._eliminated(a)
        return self._array(rows), order

    def det(self, a: Any) -> Any:
        """The product of the pivots, with the sign of their order."""
        rows, _, product = self._eliminated(a)
        for i, row in enumerate(rows):
            product = row[i] * product
        return product

    def _eliminated(self, a: Any) -> tuple[Rows, Any, Any]:
        """`lu` by rows, and the sign of the order."""
        rows, sign = self._rows(a), 1.0
        order = np.arange(len(rows))
        for k in range(len(rows)):
            best = k + int(np.argmax([abs(float(row[k].approximate)) for row in rows[k:]]))
            if best != k:
                rows[k], rows[best], sign = rows[best], rows[k], -sign
                order[[k, best]] = order[[best, k]]
            for row in rows[k + 1 :]:
                row[k] = row[k] / rows[k][k]
                row[k + 1 :] = [x - row[k] * y for x, y in zip(row[k + 1 :], rows[k][k + 1 :], strict=True)]
        return rows, order, sign

    def _rows(self, a: Any) -> Rows:
        array = self._xp.of(a)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) > MOST_ROWS:
            raise TypeError(f"enclosures of linear algebra on an array of shape {array.shape}")
        return [[array[i, j] for j in range(len(array))] for i in range(len(array))]

    def _array(self, rows: Sequence[Sequence[Any]]) -> Any:
        return self._xp.stack([self._xp.stack(row) for row in rows])


def _reduced(value: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """The value less the products of these pairs."""
    for x, y in pairs:
        value = value - x * y
    return value
