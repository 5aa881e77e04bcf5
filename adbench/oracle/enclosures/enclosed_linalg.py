"""`xp.linalg` over enclosures: recorded systems and factors of batches of matrices, and the rules of the reverse sweep.

Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008); Murray,
"Differentiation of the Cholesky decomposition" (2016).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from adbench.oracle.enclosures import rounded_linalg, verified_linalg
from adbench.oracle.enclosures.ball_arrays import BallArray
from adbench.oracle.enclosures.recorded import TooManyNumbers
from adbench.oracle.enclosures.rounded_arrays import RoundedArray
from adbench.oracle.enclosures.verified_linalg import masked, rows_in, transposed
from adbench.oracle.series import triangles
from adbench.oracle.series.linalg import Linalg

MOST_ROWS, MOST_ROWS_OF_BALLS = 1024, 256
"""Of a matrix: factors of larger ones take half a minute, and products take balls minutes."""

TURNED = {"": "", "lower": "upper", "upper": "lower"}


class EnclosedLinalg(Linalg):
    """The functions of `xp.linalg`; `xp` is its `Enclosures` namespace."""

    def __init__(self, xp: Any) -> None:
        super().__init__(xp)
        self._values: Any = rounded_linalg if issubclass(xp.arithmetic, RoundedArray) else verified_linalg

    def trace(self, a: Any) -> Any:
        """The sums of diagonals."""
        return self._xp.sum(np.diagonal(a, axis1=-2, axis2=-1), -1)

    def outer(self, x: Any, y: Any) -> Any:
        """x y' of vectors."""
        return self._xp.of(x).reshape(-1, 1) * self._xp.of(y).reshape(1, -1)

    def solve(self, a: Any, b: Any) -> Any:
        """x with a x = b."""
        return self._solved(self._matrices(a), self._xp.of(b))

    def solve_triangular(self, a: Any, b: Any, *, lower: Any = False, trans: Any = 0) -> Any:
        """x with a x = b, reading one triangle only."""
        triangle = (np.tril if lower else np.triu)(self._matrices(a))
        triangle = np.swapaxes(triangle, -1, -2) if trans else triangle
        return self._solved(triangle, self._xp.of(b), "lower" if bool(lower) != bool(trans) else "upper")

    def inv(self, a: Any) -> Any:
        """The inverse."""
        return self.solve(a, np.eye(np.shape(a)[-1]))

    def cholesky(self, a: Any, *, upper: Any = False) -> Any:
        """L with L L' = A, or with ``upper`` L'; reads that triangle only."""
        half, skew = triangles.read("cholesky", self._matrices(np.swapaxes(a, -1, -2) if upper else a))
        a = np.tril(half) + np.swapaxes(np.tril(half, -1), -1, -2)
        a = a if skew is None else a + skew
        lower = self._values.cholesky(a.value)

        def pullback(g: Any) -> Any:
            half = type(g).of(np.tri(a.shape[-1]) - np.eye(a.shape[-1]) / 2)
            inner = masked(transposed(lower) @ g * half, half.approximate > 0)
            return self._between(lower, inner, lower)

        made = self._xp.array(lower, [(a, pullback)])
        return np.swapaxes(made, -1, -2) if upper else made

    def lu(self, a: Any) -> tuple[Any, Any]:
        """L and U in one matrix with P A = L U, and the order of A's rows in P A.

        Its reverse sweep needs no last pivot, which cancels: U has a 1 there.
        """
        a = self._matrices(a)
        packed, order = self._values.lu(a.value)
        number, below, last = type(packed), np.tri(a.shape[-1], k=-1) > 0, np.zeros(a.shape[-1])
        last[-1] = 1.0
        lower = masked(packed, below) + number.of(np.eye(a.shape[-1]))
        upper = masked(packed, ~below).where(last[:, None] == 0, number.of(last))

        def pullback(g: Any) -> Any:
            left = masked(transposed(lower) @ masked(g, below), below)
            right = masked(masked(g, ~below) @ transposed(upper), ~below)
            return self._between(lower, left + right, transposed(upper)).put(rows_in(a.shape, order), a.shape)

        return self._xp.array(packed, [(a, pullback)]), order

    def _pivots(self, a: Any) -> tuple[Any, Any]:
        packed, order = self.lu(a)
        return np.diagonal(packed, axis1=-2, axis2=-1), np.rint(np.linalg.det(np.eye(order.shape[-1])[order]))

    def _solved(self, a: Any, b: Any, triangle: str = "") -> Any:
        vector = b.ndim == 1
        b = b.reshape(-1, 1) if vector else b
        x = self._values.solve(a.value, b.value, triangle)
        back = functools.cache(lambda g: self._values.solve(transposed(a.value), g, TURNED[triangle]))
        solution = self._xp.array(x, [(a, lambda g: -(back(g) @ transposed(x))), (b, back)])
        return solution.squeeze(-1) if vector else solution

    def _between(self, left: Any, inner: Any, right: Any) -> Any:
        """left'⁻¹ inner right⁻¹, for lower triangles."""
        half = self._values.solve(transposed(left), inner, "upper")
        return transposed(self._values.solve(transposed(right), transposed(half), "upper"))

    def _matrices(self, a: Any) -> Any:
        array = self._xp.of(a)
        most = MOST_ROWS_OF_BALLS if self._xp.arithmetic is BallArray else MOST_ROWS
        if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
            raise TypeError(f"linear algebra on an array of shape {array.shape}")
        if array.shape[-1] > most:
            raise TooManyNumbers(f"a matrix has more than {most:,} rows")
        return array
