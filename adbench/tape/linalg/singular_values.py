"""Singular values and vectors, one node: an array (..., m + 1 + n, k) of U, the values and V, where k = min(m, n).

At equal singular values see `symmetric_eigenvalues`. A singular value of exactly 0 has derivative 0, like the absolute
value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.rule import Active, Value, function_gradients
from adbench.tape.linalg.solving import diagonal_matrix, matrix
from adbench.tape.linalg.spectrum import (
    equal_pairs,
    quotient,
    zero_pairs,
)
from adbench.tape.linalg.symmetric_eigenvalues import (
    ADVICE,
    _eigvalsh_along,
    _eigvalsh_back,
    equal_values,
    needs_vectors,
    off_diagonal,
)
from adbench.tape.rules.elementwise import where
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import concatenate, flip, matrix_transpose, reshape
from adbench.tape.singular import UNDEFINED
from adbench.tape.values import is_nested, shape_of, value_of

t = matrix_transpose


class SVDResult(NamedTuple):
    """A = U diag(S) Vh; S in descending order."""

    U: Value
    S: Value
    Vh: Value


def _svd_value(a: Value) -> Value:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([u, s[..., None, :], np.swapaxes(vh, -1, -2)], -2)


def _blocks(packed: Value, rows: int) -> tuple[Value, Value, Value]:
    return packed[..., :rows, :], packed[..., rows, :], packed[..., rows + 1 :, :]


_SVD = "svd" + ADVICE.replace("eigenvectors", "singular vectors").replace("equal eigenvalues", "equal singular values")


def _over(columns: Value, s: Value, like: Value) -> Value:
    """columns · S⁻¹; a column of mere rounding over a singular value of 0 becomes 0."""
    zero = zero_pairs(value_of(s), shape_of(columns))
    return quotient(columns, s[..., None, :], zero, [(columns, like)], _SVD + "; a singular value of 0 counts as equal")


def _svd_back(val: Value, adj: Value, _a: Value) -> Value:
    """Townsend (2016), "Differentiating the singular value decomposition"; F[i, j] = 1/(s_j² - s_i²).

    Ā = [U (F ∘ [UᵀŪ - ŪᵀU]) S + (I - UUᵀ) Ū S⁻¹] Vᵀ + U diag(s̄) Vᵀ
        + U [S (F ∘ [VᵀV̄ - V̄ᵀV]) Vᵀ + S⁻¹ V̄ᵀ (I - VVᵀ)]
    """
    rows = shape_of(_a)[-2]
    u, s, v = _blocks(val, rows)
    u_adj, s_adj, v_adj = _blocks(adj, rows)
    inner = diagonal_matrix(s_adj)
    if not (needs_vectors(u_adj) or needs_vectors(v_adj)):
        return matmul(u, matmul(inner, t(v)))
    uu, vv = matmul(t(u), u_adj), matmul(t(v), v_adj)
    uu, vv = off_diagonal(uu), off_diagonal(vv)
    row, column = s[..., None, :], reshape(s, (*shape_of(s), 1))
    turned = (uu - t(uu)) * row + column * (vv - t(vv))
    evidence = [(uu, u_adj), (vv, v_adj)]
    equal = equal_values(val, s, _SVD)
    inner = inner + quotient(turned, (row - column) * (row + column), equal, evidence, _SVD)
    back = matmul(u, matmul(inner, t(v)))
    if rows > shape_of(s)[-1]:
        back = back + matmul(_over(u_adj - matmul(u, matmul(t(u), u_adj)), s, u_adj), t(v))
    if shape_of(_a)[-1] > shape_of(s)[-1]:
        back = back + matmul(u, t(_over(v_adj - matmul(v, matmul(t(v), v_adj)), s, v_adj)))
    return back


def _svd_along(val: Value, tan: Value, _a: Value) -> Value:
    """With P = UᵀȦV: ṡ = diag P, U̇ = U (F ∘ [PS + SPᵀ]) + (I - UUᵀ) ȦVS⁻¹, V̇ = V (F ∘ [SP + PᵀS]) + …"""
    rows, columns = shape_of(_a)[-2:]
    u, s, v = _blocks(val, rows)
    k = shape_of(s)[-1]
    av, atu = matmul(tan, v), matmul(t(tan), u)
    p = matmul(t(u), av)
    off = off_diagonal(p)
    row, column = s[..., None, :], reshape(s, (*shape_of(s), 1))
    gaps = (row - column) * (row + column)
    equal = equal_values(val, s, _SVD)
    u_tan = matmul(u, quotient(off * row + column * t(off), gaps, equal, [(off, tan)], _SVD))
    v_tan = matmul(v, quotient(column * off + t(off) * row, gaps, equal, [(off, tan)], _SVD))
    if rows > k:
        u_tan = u_tan + _over(av - matmul(u, p), s, av)
    if columns > k:
        v_tan = v_tan + _over(atu - matmul(v, t(p)), s, atu)
    return concatenate([u_tan, sum(p * np.eye(k), -1)[..., None, :], v_tan], -2)


_svd = function_gradients(_svd_value, reverse=(_svd_back,), forward=(_svd_along,), name="svd", fresh=True)


def svd(a: Value, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> SVDResult | Value:
    """(U, S, Vh) with A = U diag(S) Vh, A of shape (..., m, n), k = min(m, n): (..., m, k), (..., k), (..., k, n).

    `full_matrices=True`, numpy's default, is differentiable only for square matrices, where it changes nothing: the
    additional columns of U or V are an arbitrary basis. Without `compute_uv`, this is `svdvals`.
    Source: Townsend (2016), "Differentiating the singular value decomposition".
    """
    a = matrix("svd", a)
    if hermitian:
        raise NotImplementedError("svd: argument hermitian: expected False, got True; use eigh for its derivative")
    if not compute_uv:
        return svdvals(a)
    rows, columns = shape_of(a)[-2:]
    if not isinstance(a, Active):
        return SVDResult(*np.linalg.svd(a, full_matrices=full_matrices))
    if full_matrices and rows != columns:
        raise NotImplementedError(
            f"svd: argument full_matrices: expected False for matrices that are not square, got True for shape "
            f"{shape_of(a)}: the additional columns of U or V are arbitrary and have no derivative"
        )
    u, s, v = _blocks(_svd(a), rows)
    return SVDResult(u, s, t(v))


def _has_zero(s: Value, shape: tuple[int, ...]) -> bool:
    """Whether one of the singular values of a matrix of this shape is 0, up to rounding."""
    return bool(np.any(zero_pairs(s, (*shape[:-2], max(shape[-2:]), s.shape[-1]))))


def _is_tied(a: Value) -> bool:
    """Whether a plain matrix has equal singular values, but none of 0."""
    s = np.linalg.svd(a, compute_uv=False)
    return bool(np.any(equal_pairs(s))) and not _has_zero(s, a.shape)


def _around(a: Value) -> Value:
    """[[0, Aᵀ], [A, 0]], whose eigenvalues are -s, zeros if A is not square, and s, in ascending order."""
    *lead, rows, columns = shape_of(a)
    above = concatenate([np.zeros((*lead, columns, columns)), t(a)], -1)
    return concatenate([above, concatenate([a, np.zeros((*lead, rows, rows))], -1)], -2)


def _singular_vectors(a: Value) -> tuple[Value, Value, bool]:
    """(U, V, False), or (U, V, True) as constants if their own derivative is unknown."""
    plain = value_of(a)
    if is_nested(a) and not isinstance(plain, Active):
        packed = _svd_value(plain)
        u, s, v = _blocks(packed, plain.shape[-2])
        if np.any(equal_pairs(s)) or _has_zero(s, plain.shape):
            return u, v, True
    u, _, v = _blocks(_svd(a), shape_of(a)[-2])
    return u, v, False


def _has_direction(a: Value) -> bool:
    """Whether forward mode gives the direction that selects the vectors of equal singular values."""
    return isinstance(a, Dual) and type(a.val) is np.ndarray and _is_tied(a.val)


def _svdvals_back(s: Value, adj: Value, a: Value) -> Value:
    if _has_direction(a):
        *lead, rows, columns = shape_of(a)
        others = np.zeros((*lead, rows + columns - shape_of(adj)[-1]))
        return _eigvalsh_back(None, concatenate([others, flip(adj, -1)], -1), _around(a))[..., columns:, :columns]
    u, v, unknown = _singular_vectors(a)
    back = matmul(u * where(value_of(s) == 0.0, 0.0, adj)[..., None, :], t(v))
    return back + UNDEFINED(a, axes=tuple(range(len(shape_of(a)))), value=0.0) if unknown else back


def _svdvals_along(s: Value, tan: Value, a: Value) -> Value:
    if _has_direction(a):
        return _rates_around(s, tan, a)
    u, v, unknown = _singular_vectors(a)
    along = where(value_of(s) == 0.0, 0.0, sum(u * matmul(tan, v), -2))
    return along + UNDEFINED(a, axes=tuple(range(len(shape_of(a)))), value=math.nan) if unknown else along


def _rates_around(s: Value, tan: Value, a: Value) -> Value:
    """ṡ of equal values in the order of the vectors that the direction selects, see `direction_basis`."""
    plain = value_of(s)
    zeros = np.zeros((*plain.shape[:-1], abs(shape_of(a)[-2] - shape_of(a)[-1])))
    w = np.concatenate([-plain, zeros, np.flip(plain, -1)], -1)
    return flip(_eigvalsh_along(w, _around(tan), _around(a))[..., -plain.shape[-1] :], -1)


def _svdvals_along_inside(s: Value, tan: Value, a: Value) -> Value:
    """`_svdvals_along` inside another derivative."""
    return _rates_around(s, tan, a) if type(a) is np.ndarray and _is_tied(a) else _svdvals_along(s, tan, a)


def _svdvals_value(a: Value) -> Value:
    return np.linalg.svd(a, compute_uv=False)


_svdvals = function_gradients(
    _svdvals_value, reverse=(_svdvals_back,), forward=(_svdvals_along,), name="svdvals", fresh=True
)
_svdvals.inner = function_gradients(
    _svdvals_value, reverse=(_svdvals_back,), forward=(_svdvals_along_inside,), name="svdvals", fresh=True
)


def svdvals(a: Value) -> Value:
    """The singular values in descending order, (..., m, n) -> (..., k); Ā = U diag(s̄) Vᵀ. A 0 has derivative 0."""
    return _svdvals(matrix("svdvals", a))
