"""Linear algebra under numpy's and the array API's names: `tape.linalg`.

    solving                 inv, pinv, solve, solve_triangular, slogdet, log_determinant, matrix_power, expm
    determinant             det
    triangular_factors      cholesky, qr
    symmetric_eigenvalues   eigh
    eigenvalues             eigvalsh
    singular                svd, svdvals, their vectors, and the vectors of their derivatives
    norms                   norm, vector_norm, matrix_norm, quad_form, quad_form_sym, trace_quad_form
    products                matmul, outer, tensordot, vecdot

All take matrices (..., n, n) or (..., m, n) and stacks of them. Each is one node on the tape and works in both modes. A
node has one result, so the factors of a matrix are blocks of one array.

`cholesky`, `eigh` and `eigvalsh` read only one triangle of A, the lower by default. The entries of the other triangle
have derivative exactly 0, and an off-diagonal entry that is read carries the weight of both of its positions. (For the
gradient in the space of symmetric matrices, take (G + Gᵀ)/2 of the result G.)
"""

# ruff: noqa: F401  # the docstring lists the public names

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from adbench.tape.core.rule import Value
from adbench.tape.linalg.determinant import det
from adbench.tape.linalg.eigenvalues import eigvalsh
from adbench.tape.linalg.norms import matrix_norm, norm, quad_form, quad_form_sym, trace_quad_form, vector_norm
from adbench.tape.linalg.singular.singular_values import SVDResult, svd, svdvals
from adbench.tape.linalg.solving import (
    SlogdetResult,
    expm,
    inv,
    log_determinant,
    matrix_power,
    pinv,
    slogdet,
    solve,
    solve_triangular,
)
from adbench.tape.linalg.symmetric_eigenvalues import EighResult, EqualEigenvaluesError, eigh
from adbench.tape.linalg.triangular_factors import QRResult, cholesky, qr
from adbench.tape.rules import indexing, reductions
from adbench.tape.rules.products import matmul, outer, tensordot, vecdot
from adbench.tape.rules.shapes import asarray, matrix_transpose, moveaxis, roll
from adbench.tape.values import shape_of, value_of


def trace(x: Value, offset: int = 0) -> Value:
    """The sum of a diagonal of each matrix, (..., m, n) -> (...)."""
    return reductions.trace(asarray(x), offset, -2, -1)


def diagonal(x: Value, offset: int = 0) -> Value:
    """A diagonal of each matrix, (..., m, n) -> (..., k)."""
    return indexing.diagonal(asarray(x), offset, -2, -1)


def cross(a: Value, b: Value, axis: int = -1) -> Value:
    """The vector product of vectors of length 3 along an axis: c[i] = a[i+1] b[i+2] - a[i+2] b[i+1], cyclically."""
    a, b = asarray(a), asarray(b)
    for name, x in (("a", a), ("b", b)):
        if not shape_of(x) or shape_of(x)[axis] != 3:
            raise ValueError(f"cross: argument {name}: expected length 3 along axis {axis}, got shape {shape_of(x)}")
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    return moveaxis(roll(a, -1, -1) * roll(b, 1, -1) - roll(a, 1, -1) * roll(b, -1, -1), -1, axis)


def multi_dot(arrays: Any) -> Value:
    """The product of several matrices (the first and last may be vectors), in the order with fewer operations."""
    parts = [asarray(a) for a in arrays]
    if len(parts) < 2:
        raise ValueError(f"multi_dot: argument arrays: expected at least two, got {len(parts)}")
    if len(shape_of(parts[-1])) < len(shape_of(parts[0])):
        return reduce(lambda total, a: matmul(a, total), reversed(parts))
    return reduce(matmul, parts)


def matrix_rank(a: Value, tol: float | None = None) -> Any:
    """The rank of each matrix: a plain integer without derivative."""
    return np.linalg.matrix_rank(value_of(asarray(a)), tol)
