"""The forms of compact Jacobians, and their products and sums that are compact again.

Each is a matrix J of shape (n, m), given by its products w J and J v. Their base class and list are in `compact`. At
the end, the tables `COMPOSED` and `SUMS` get an entry for each closed pair of forms.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from adbench.tape.core.rule import Value
from adbench.tape.pqr.compact import (
    COMPOSED,
    SUMS,
    CompactJacobian,
    Dense,
    IdentityMultiple,
    LazyProduct,
    Products,
    by_row,
    compose,
    times,
)
from adbench.tape.rules.elementwise import where
from adbench.tape.rules.indexing import put
from adbench.tape.rules.products import matmul
from adbench.tape.rules.shapes import matrix_transpose, reshape
from adbench.tape.values import settle, shape_of


class Diagonal(CompactJacobian):
    """diag(d), shape (n, n), for a vector d of length n."""

    __slots__ = ("entries",)

    def __init__(self, entries: Value) -> None:
        self.entries = entries
        n = self.numbers = shape_of(entries)[0]
        self.shape = (n, n)

    def _left(self, w: Value) -> Value:
        return times(w, self.entries)

    def _right(self, v: Value) -> Value:
        return times(v, by_row(self.entries))


class OneInRow(CompactJacobian):
    """Row i holds only c[i], in column j[i]; it is empty if j[i] = -1. Shape (len(j), m).

    columns        j, integers of shape (n,)
    coefficients   c, of shape (n,) or one number for all rows
    """

    __slots__ = ("coefficients", "columns", "filled")

    def __init__(self, columns: Any, coefficients: Value, m: int) -> None:
        self.columns = columns
        self.coefficients = coefficients
        self.filled = None if columns.size == 0 or columns.min() >= 0 else columns >= 0
        self.shape = (columns.shape[0], m)
        self.numbers = self.shape[0] + math.prod(shape_of(coefficients))

    def read(self, x: Value, absent: float) -> Value:
        """x[j] along the first axis, `absent` for empty rows."""
        if self.filled is None:
            return x[self.columns]
        if not shape_of(x)[0]:
            return np.full((self.shape[0], *shape_of(x)[1:]), absent)
        filled = self.filled.reshape(-1, *[1] * (len(shape_of(x)) - 1))
        return where(filled, x[self.columns], absent)

    def _right(self, v: Value) -> Value:
        return times(self.read(v, 0.0), by_row(self.coefficients))

    def _left(self, w: Value) -> Value:
        k, m = shape_of(w)[0], self.shape[1]
        parts, columns = times(w, self.coefficients), self.columns
        if self.filled is not None:
            parts, columns = parts[:, self.filled], columns[self.filled]
        # A flat index, because numpy scatters much faster along a single axis.
        flat = (m * np.arange(k)[:, None] + columns).ravel()
        return reshape(put(reshape(parts, (-1,)), index=flat, shape=(k * m,)), (k, m))


class OneInColumn(CompactJacobian):
    """The transpose of `OneInRow`: column j holds c[j] in row i[j]. Shape (n, len(i))."""

    __slots__ = ("transposed",)

    def __init__(self, rows: Any, coefficients: Value, n: int) -> None:
        self.transposed = OneInRow(rows, coefficients, n)
        self.shape, self.numbers = (n, rows.shape[0]), self.transposed.numbers

    def _left(self, w: Value) -> Value:
        return matrix_transpose(self.transposed._right(matrix_transpose(w)))

    def _right(self, v: Value) -> Value:
        return matrix_transpose(self.transposed._left(matrix_transpose(v)))


class Scaled(CompactJacobian):
    """diag(d) J, shape (n, m), for d of shape (n,) or one number."""

    __slots__ = ("factor", "inner")

    def __init__(self, factor: Value, inner: CompactJacobian) -> None:
        self.factor = factor
        self.inner = inner
        self.shape, self.numbers = inner.shape, math.prod(shape_of(factor)) + inner.numbers

    def _left(self, w: Value) -> Value:
        return self.inner._left(times(w, self.factor))

    def _right(self, v: Value) -> Value:
        return times(self.inner._right(v), by_row(self.factor))


class Kronecker(CompactJacobian):
    """A ⊗ B, the Jacobian of Y = A X Bᵀ in X: ∂Y[i, j]/∂X[k, l] = A[i, k] B[j, l]. Shape (p r, q s).

    A is (p, q) and B is (r, s). An integer instead of a matrix means the identity of that size.
    """

    __slots__ = ("a", "b", "a_shape", "b_shape")  # noqa: RUF023  # a ⊗ b, in this order

    def __init__(self, a: Value, b: Value) -> None:
        self.a, self.b = a, b
        self.a_shape, self.b_shape = [(f, f) if isinstance(f, int) else shape_of(f) for f in (a, b)]
        self.shape = (self.a_shape[0] * self.b_shape[0], self.a_shape[1] * self.b_shape[1])
        self.numbers = sum(1 if isinstance(f, int) else math.prod(shape_of(f)) for f in (a, b))

    def _left(self, w: Value) -> Value:
        k = shape_of(w)[0]
        y = reshape(w, (k, self.a_shape[0], self.b_shape[0]))
        y = y if isinstance(self.b, int) else matmul(y, self.b)
        return reshape(y if isinstance(self.a, int) else matmul(matrix_transpose(self.a), y), (k, self.shape[1]))

    def _right(self, v: Value) -> Value:
        k = shape_of(v)[1]
        x = reshape(matrix_transpose(v), (k, self.a_shape[1], self.b_shape[1]))
        x = x if isinstance(self.b, int) else matmul(x, matrix_transpose(self.b))
        x = x if isinstance(self.a, int) else matmul(self.a, x)
        return matrix_transpose(reshape(x, (k, self.shape[0])))


class Implicit(CompactJacobian):
    """A Jacobian given by its products with matrices: left(W) = W J, right(V) = J V. One of them may be missing.

    The missing product uses all entries, computed by the other.
    """

    __slots__ = ("by_left", "by_right")

    def __init__(self, shape: tuple[int, int], left: Products | None, right: Products | None, numbers: int = 0) -> None:
        if left is None and right is None:
            raise ValueError("Implicit: expected a left or a right product, got neither")
        self.shape, self.numbers = shape, numbers
        self.by_left, self.by_right = left, right

    def _left(self, w: Value) -> Value:
        return self.by_left(w) if self.by_left is not None else matmul(w, self.dense())

    def _right(self, v: Value) -> Value:
        return self.by_right(v) if self.by_right is not None else matmul(self.dense(), v)

    def dense(self) -> Value:
        """All entries, by the cheaper available product."""
        if self.by_right is None or (self.by_left is not None and self.shape[0] <= self.shape[1]):
            return self._left(np.eye(self.shape[0]))
        return self._right(np.eye(self.shape[1]))


# Compositions


def on_diagonal(d: Value, n: int) -> IdentityMultiple | Diagonal:
    """diag(d) for a vector d, or d I for a number."""
    return Diagonal(d) if shape_of(d) else IdentityMultiple(d, n)


def _scaled(d: Value, b: CompactJacobian) -> CompactJacobian | None:
    """diag(d) B for a vector or number d. Nested factors merge into one; a shared lazy B stays shared."""
    if type(d) is float and d == 1.0:
        return b
    if isinstance(b, (IdentityMultiple, Diagonal)):
        return on_diagonal(settle(times(d, b.entries)), b.shape[0])
    if isinstance(b, OneInRow):
        return _rows_scaled(d, b)
    if isinstance(b, OneInColumn):
        return _transposed(_columns_scaled(b.transposed, d))
    if isinstance(b, LazyProduct):
        return None
    return Scaled(times(d, b.factor), b.inner) if isinstance(b, Scaled) else Scaled(d, b)


def _rows_scaled(d: Value, a: OneInRow) -> OneInRow:
    """diag(d) A for a vector or number d."""
    return OneInRow(a.columns, times(d, a.coefficients), a.shape[1])


def _columns_scaled(a: OneInRow, d: Value) -> OneInRow:
    """A diag(d) for a vector or number d."""
    return OneInRow(a.columns, times(a.coefficients, a.read(d, 1.0) if shape_of(d) else d), a.shape[1])


def _row_of_row(a: OneInRow, b: OneInRow) -> OneInRow:
    columns = np.where(a.columns >= 0, b.columns[a.columns], -1) if b.columns.size else a.columns
    return OneInRow(columns, _columns_scaled(a, b.coefficients).coefficients, b.shape[1])


def _transposed(rows: OneInRow) -> OneInColumn:
    """Products and sums of `OneInColumn`, by its transpose: A B = (Bᵀ Aᵀ)ᵀ."""
    return OneInColumn(rows.columns, rows.coefficients, rows.shape[1])


def _kronecker_of_kronecker(a: Kronecker, b: Kronecker) -> Kronecker | None:
    """(A ⊗ B)(C ⊗ D) = AC ⊗ BD, if the shapes match and the products are no larger than their factors."""
    if a.a_shape[1] != b.a_shape[0]:
        return None
    composed = Kronecker(_factor_product(a.a, b.a), _factor_product(a.b, b.b))
    return composed if composed.numbers <= a.numbers + b.numbers else None


def _factor_product(a: Value, b: Value) -> Value:
    return b if isinstance(a, int) else a if isinstance(b, int) else matmul(a, b)


COMPOSED |= {
    (IdentityMultiple, CompactJacobian): lambda a, b: _scaled(a.entries, b),
    (CompactJacobian, IdentityMultiple): lambda a, b: _scaled(b.entries, a),
    (Diagonal, CompactJacobian): lambda a, b: _scaled(a.entries, b),
    (OneInRow, Diagonal): lambda a, b: _columns_scaled(a, b.entries),
    (OneInRow, OneInRow): _row_of_row,
    (OneInColumn, Diagonal): lambda a, b: _transposed(_rows_scaled(b.entries, a.transposed)),
    (OneInColumn, OneInColumn): lambda a, b: _transposed(_row_of_row(b.transposed, a.transposed)),
    (Scaled, CompactJacobian): lambda a, b: _scaled(a.factor, compose(a.inner, b)),
    (Kronecker, Kronecker): _kronecker_of_kronecker,
}


# Sums


def _as_rows(a: IdentityMultiple | Diagonal | OneInRow) -> OneInRow:
    return a if isinstance(a, OneInRow) else OneInRow(np.arange(a.shape[0]), a.entries, a.shape[1])


def _rows_merged(a: Any, b: Any) -> OneInRow | None:
    """The sum, if in each row both use the same column or one is empty."""
    a, b = _as_rows(a), _as_rows(b)
    if not np.all((a.columns == b.columns) | (a.columns < 0) | (b.columns < 0)):
        return None
    parts = [c.coefficients if c.filled is None else times(c.filled * 1.0, c.coefficients) for c in (a, b)]
    return OneInRow(np.maximum(a.columns, b.columns), parts[0] + parts[1], a.shape[1])


def _diagonals_merged(a: Any, b: Any) -> CompactJacobian:
    return on_diagonal(settle(a.entries + b.entries), a.shape[0])


def _columns_merged(a: OneInColumn, b: OneInColumn) -> OneInColumn | None:
    merged = _rows_merged(a.transposed, b.transposed)
    return None if merged is None else _transposed(merged)


def _same(a: Value, b: Value) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _kroneckers_merged(a: Kronecker, b: Kronecker) -> Kronecker | None:
    if _same(a.a, b.a) and not isinstance(a.b, int) and not isinstance(b.b, int):
        return Kronecker(a.a, a.b + b.b)
    if _same(a.b, b.b) and not isinstance(a.a, int) and not isinstance(b.a, int):
        return Kronecker(a.a + b.a, a.b)
    return None


_DIAGONALS: tuple[type, ...] = (IdentityMultiple, Diagonal)
_IN_ROWS = (*_DIAGONALS, OneInRow)

SUMS |= {
    **dict.fromkeys(product(_IN_ROWS, _IN_ROWS), _rows_merged),
    **dict.fromkeys(product(_DIAGONALS, _DIAGONALS), _diagonals_merged),
    (OneInColumn, OneInColumn): _columns_merged,
    (Scaled, Scaled): lambda a, b: Scaled(a.factor + b.factor, a.inner) if a.inner is b.inner else None,
    (Kronecker, Kronecker): _kroneckers_merged,
    (Dense, Dense): lambda a, b: Dense(a.entries + b.entries),
}
