"""Complex matrices over balls: A + iB as the real matrix [[A, -B], [B, A]], elimination, and eigenvalues of any matrix.

Eigenvalues at t = 0 are isolated by flint. Their series follow from (A(t) - w(t) I) u(t) = 0, coefficient by
coefficient, in the basis of the eigenvectors at t = 0 (Kato (1995), section II.2).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb_series

from adbench.oracle.series import ball
from adbench.oracle.series.algebra.coefficients import MatrixSeries, Rows, plus
from adbench.oracle.series.algebra.factorizations import pivot
from adbench.oracle.series.arrays import nearest
from adbench.oracle.series.ball import Ball, NeedsBits, add, div, mul, sub
from adbench.oracle.series.number import ComplexNumber


def embedded(xp: Any, a: Any) -> Any:
    """The real matrix of twice the size that multiplies the real and the imaginary parts; also for batches."""
    real, imag = np.asarray(xp.real(a), dtype=object), np.asarray(xp.imag(a), dtype=object)
    return np.concatenate([np.concatenate([real, -imag], -1), np.concatenate([imag, real], -1)], -2)


def stacked(xp: Any, b: Any) -> Any:
    """The real parts of columns above their imaginary parts."""
    return np.concatenate([np.asarray(part(b), dtype=object) for part in (xp.real, xp.imag)], -2)


def lu(matrix: Any) -> tuple[Any, Any, int]:
    """P A = L U of a square array of `ComplexNumber`s: L and U in one array, the order of the rows, its sign."""
    work, n, sign = np.array(matrix, dtype=object), len(matrix), 1
    order = list(range(n))
    for k in range(n - 1):
        sizes = [add(ball.absolute(z.real.ball), ball.absolute(z.imag.ball)) for z in work[k:, k]]  # as LAPACK
        offset = pivot(sizes)
        if offset is None:
            continue
        if offset:
            work[[k, k + offset]] = work[[k + offset, k]]
            order[k], order[k + offset] = order[k + offset], order[k]
            sign = -sign
        work[k + 1 :, k] = work[k + 1 :, k] / work[k, k]
        work[k + 1 :, k + 1 :] = work[k + 1 :, k + 1 :] - np.multiply.outer(work[k + 1 :, k], work[k, k + 1 :])
    return work, np.array(order), sign


def cholesky(matrix: Any) -> Any:
    """L with a real diagonal and L L^H = A, of a square array of `ComplexNumber`s; reads the lower triangle."""
    n = len(matrix)
    lower = matrix * np.array(0j, dtype=object)
    for j in range(n):
        row = lower[j, :j]
        gap = (matrix[j, j] - (row * np.conj(row)).sum()).real if j else matrix[j, j].real
        lower[j, j] = ComplexNumber(type(gap)(gap.computed("sqrt", ball.sqrt, gap.ball)), type(gap).of(0))
        for i in range(j + 1, n):
            rest = matrix[i, j] - (lower[i, :j] * np.conj(row)).sum() if j else matrix[i, j]
            lower[i, j] = rest / lower[j, j].real
    return lower


def hermitian(a: Any) -> Any:
    """½ (A + A^H) of matrices that are Hermitian at t = 0; of others the lower triangle, mirrored."""
    mirrored, start = np.conj(np.swapaxes(a, -1, -2)), approximate(a)
    if np.array_equal(start, np.conj(np.swapaxes(start, -1, -2))):
        whole = (a + mirrored) / 2
    else:
        whole = np.tril(a, -1) + np.triu(mirrored, 1)
    return np.where(np.eye(a.shape[-1], dtype=bool), _REAL_DIAGONAL(a), whole)


def _real_number(z: ComplexNumber) -> ComplexNumber:
    """The real part. Its noise depends on the imaginary part, because a library's derivative there is not exactly 0."""
    kind = type(z.real)
    return ComplexNumber(z.real + (kind(kind.rounded(z.imag.ball)) - z.imag), kind.of(0))


_REAL_DIAGONAL = np.frompyfunc(_real_number, 1, 1)


def eigenpairs(real: Rows, imag: Rows, order: Sequence[complex]) -> tuple[Rows, Rows]:
    """The real and the imaginary parts of a row of eigenvalues above a matrix of eigenvectors, its columns.

    order: approximations in the wanted order. Vectors have the length 1 and a real largest entry, as LAPACK's.
    Raises NeedsBits if two eigenvalues are not provably different at t = 0, TypeError for infinite entries.
    """
    parts = [MatrixSeries.of(rows) for rows in (real, imag)]
    a, b = parts
    if a is None or b is None:
        raise TypeError("eigenvalues need finite numbers")
    terms = min((part.terms for part in (a, b) if part.terms is not None), default=1)
    slopes = [_complex(a.part(k), b.part(k)) for k in range(terms)]
    try:
        values, vectors = (acb_mat(a.rows, a.rows) if slopes[0] is None else slopes[0]).eig(right=True)
        inverse = vectors.inv()
    except (ValueError, ZeroDivisionError) as not_isolated:
        raise NeedsBits from not_isolated
    turned = [None, *(None if part is None else inverse * part * vectors for part in slopes[1:])]
    moves = a.terms is not None or b.terms is not None

    def series(coefficients: Sequence[Any]) -> tuple[Ball, Ball]:
        pair = [[getattr(coefficient, part) for coefficient in coefficients] for part in ("real", "imag")]
        real, imag = (arb_series(numbers, terms) if moves else numbers[0] for numbers in pair)
        return real, imag

    columns = []
    for which in _matched([complex(value.mid()) for value in values], order):
        value, inside = _followed(which, values, turned)
        outside = [vectors * acb_mat(len(values), 1, vector) for vector in inside]
        entries = [series([part[i, 0] for part in outside]) for i in range(len(values))]
        columns.append([series(value), *_normalized(entries)])
    found = [[[pair[part] for pair in row] for row in zip(*columns, strict=True)] for part in (0, 1)]
    return found[0], found[1]


def _normalized(entries: Sequence[tuple[Ball, Ball]]) -> list[tuple[Ball, Ball]]:
    """A vector times a number, so that its length is 1 and its largest entry real and positive."""
    sizes = [add(mul(x, x), mul(y, y)) for x, y in entries]
    largest = max(range(len(sizes)), key=lambda i: ball.ball(ball.start(sizes[i])).mid())
    x, y = entries[largest]
    scale = ball.sqrt(mul(sizes[largest], functools.reduce(add, sizes)))
    x, y = div(x, scale), div(y, scale)
    return [(add(mul(x, u), mul(y, v)), sub(mul(x, v), mul(y, u))) for u, v in entries]


def _complex(real: Any, imag: Any) -> Any:
    """A coefficient; None for zero."""
    turned = None if imag is None else acb_mat(imag) * acb(0, 1)
    return plus(None if real is None else acb_mat(real), turned)


def _followed(which: int, values: Sequence[Any], turned: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
    """The coefficients of an eigenvalue of diag(values) + Σ turned_k t^k, and of its eigenvector, which keeps one
    entry 1."""
    n, found = len(values), [values[which]]
    vectors = [[acb(int(i == which)) for i in range(n)]]
    for k in range(1, len(turned)):
        pushed = [acb(0)] * n
        for j in range(1, k + 1):
            if turned[j] is not None:
                moved = turned[j] * acb_mat(n, 1, vectors[k - j])
                pushed = [x + moved[i, 0] for i, x in enumerate(pushed)]
        found.append(pushed[which])
        vector = []
        for i in range(n):
            rest = sum((found[j] * vectors[k - j][i] for j in range(1, k)), -pushed[i])
            vector.append(acb(0) if i == which else rest / (values[i] - values[which]))
        vectors.append(vector)
    return found, vectors


def _matched(values: Sequence[complex], order: Sequence[complex]) -> list[int]:
    """The index of the value for each approximation: the nearest one left."""
    left = list(range(len(values)))
    found = []
    for wanted in order:
        best = min(left, key=lambda k: abs(values[k] - wanted))
        left.remove(best)
        found.append(best)
    return found


def approximate(matrix: Any) -> Any:
    """An array of numbers in complex128, at t = 0; NaN for infinite entries."""
    numbers = nearest(matrix).astype(np.complex128)
    return np.where(np.isfinite(numbers), numbers, math.nan)
