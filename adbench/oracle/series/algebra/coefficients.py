"""Matrices of truncated series as series of matrices: python-flint multiplies and inverts whole coefficients.

A product of two matrices of n² series takes one call for each pair of coefficients instead of n³ calls. Zero
coefficients cost nothing. Entries that do not depend on t remain constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb_mat, arb_series, fmpq, fmpq_mat, fmpq_series

from adbench.oracle.series.ball import ZERO, Ball, Special, is_series

Rows = list[list[Ball]]


class MatrixSeries:
    """Σ A_k t^k + O(t^terms); ``terms`` is None for a constant. A coefficient that is None is zero."""

    __slots__ = ("columns", "parts", "rows", "terms")

    def __init__(self, parts: list[Any], terms: int | None, rows: int, columns: int) -> None:
        self.parts, self.terms, self.rows, self.columns = parts, terms, rows, columns

    @staticmethod
    def of(rows: Sequence[Sequence[Ball]]) -> MatrixSeries | None:
        """Convert rows to a MatrixSeries; None if an entry is infinite or NaN."""
        entries = [entry for row in rows for entry in row]
        if any(isinstance(entry, Special) for entry in entries):
            return None
        height, width = len(rows), len(rows[0]) if len(rows) else 0
        terms = min((entry.prec for entry in entries if is_series(entry)), default=None)
        exact = all(type(entry) is fmpq or type(entry) is fmpq_series for entry in entries)
        make: Any = fmpq_mat if exact else arb_mat
        if terms is None:
            return MatrixSeries([make(height, width, entries)], None, height, width)
        zero: Any = fmpq(0) if exact else ZERO
        parts = []
        for k in range(terms):
            numbers = [e[k] if is_series(e) else zero if k else e for e in entries]
            parts.append(make(height, width, numbers) if k == 0 or any(map(_is_something, numbers)) else None)
        return MatrixSeries(parts, terms, height, width)

    def part(self, k: int) -> Any:
        """The coefficient of t^k; None for zero."""
        return self.parts[k] if k < len(self.parts) else None

    def entries(self) -> Rows:
        """The entries as numbers: series if a later coefficient is nonzero or the whole matrix depends on t."""
        if self.terms is None:
            return list(self.parts[0].tolist())
        tables = [None if part is None else part.tolist() for part in self.parts]
        make: Any
        zero: Any
        make, zero = (fmpq_series, fmpq(0)) if isinstance(self.parts[0], fmpq_mat) else (arb_series, ZERO)
        return [
            [
                make([zero if table is None else table[i][j] for table in tables], prec=self.terms)
                for j in range(self.columns)
            ]
            for i in range(self.rows)
        ]

    def transposed(self) -> MatrixSeries:
        """A'."""
        parts = [None if part is None else part.transpose() for part in self.parts]
        return MatrixSeries(parts, self.terms, self.columns, self.rows)

    def __matmul__(self, other: MatrixSeries) -> MatrixSeries:
        terms = fewest(self.terms, other.terms)
        parts = [convolved(self.parts, other.parts, k) for k in range(terms or 1)]
        if parts[0] is None:
            parts[0] = arb_mat(self.rows, other.columns)
        return MatrixSeries(parts, terms, self.rows, other.columns)


def _is_something(c: Any) -> bool:
    return bool(c != 0) if type(c) is fmpq else not c.is_zero()


def fewest(a: int | None, b: int | None) -> int | None:
    """The number of terms of a result of two numbers."""
    return b if a is None else a if b is None else min(a, b)


def convolved(left: Sequence[Any], right: Sequence[Any], k: int, first: int = 0) -> Any:
    """Σ left_j right_{k-j} over j ≥ first; None for zero."""
    total = None
    for j in range(first, min(k + 1, len(left))):
        if k - j >= len(right) or left[j] is None or right[k - j] is None:
            continue
        total = plus(total, _times(left[j], right[k - j]))
    return total


def plus(a: Any, b: Any) -> Any:
    """a + b of coefficients."""
    if a is None or b is None:
        return b if a is None else a
    return a + b if type(a) is type(b) else balls(a) + balls(b)


def minus(a: Any, b: Any) -> Any:
    """a - b of coefficients."""
    return a if b is None else plus(a, b * -1)


def _times(a: Any, b: Any) -> Any:
    return a * b if type(a) is type(b) else balls(a) * balls(b)


def balls(a: Any) -> Any:
    """A matrix of fractions as one of balls."""
    return arb_mat(a) if isinstance(a, fmpq_mat) else a


def products(left: Rows, right: Rows) -> Rows | None:
    """The product of two matrices; None if an entry is infinite or NaN."""
    a, b = MatrixSeries.of(left), MatrixSeries.of(right)
    if a is None or b is None:
        return None
    product = (a @ b).entries()
    if a.terms is None and b.terms is None:
        return product
    rows = [any(map(is_series, row)) for row in left]
    columns = [any(is_series(row[j]) for row in right) for j in range(b.columns)]
    return [
        [entry if rows[i] or columns[j] else entry[0] for j, entry in enumerate(row)] for i, row in enumerate(product)
    ]


def solved(a: MatrixSeries, b: MatrixSeries) -> MatrixSeries:
    """X with A X = B by one inverse at t = 0. Raises ZeroDivisionError if that matrix is not provably regular."""
    terms = fewest(a.terms, b.terms)
    first = a.parts[0]
    solution = [_solved_at_start(first, b.parts[0])]
    for k in range(1, terms or 1):
        rest = minus(b.part(k), convolved(a.parts, solution, k, first=1))
        solution.append(None if rest is None else _solved_at_start(first, rest))
    return MatrixSeries(solution, terms, a.columns, b.columns)


LARGE = 16
"""From this size, balls of an elimination become so wide that flint first multiplies by an approximate inverse."""


def _solved_at_start(a: Any, b: Any) -> Any:
    if isinstance(a, fmpq_mat) and isinstance(b, fmpq_mat):
        return a.solve(b)
    a, b = balls(a), balls(b)
    return a.solve(b, algorithm="lu") if a.nrows() < LARGE else a.solve(b)
