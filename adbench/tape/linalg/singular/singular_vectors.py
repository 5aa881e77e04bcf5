"""Singular values and vectors, one node: an array (..., m + 1 + n, k) of U, the values and V, where k = min(m, n).

At equal singular values see `symmetric_eigenvalues`. Functions of the values alone are in
`singular_values`.
"""

from __future__ import annotations

import numpy as np

from adbench.tape.core.rule import Value, function_gradients
from adbench.tape.linalg.solving import diagonal_matrix
from adbench.tape.linalg.spectrum import quotient, zero_pairs
from adbench.tape.linalg.symmetric_eigenvalues import ADVICE, equal_values, off_diagonal
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import concatenate, matrix_transpose, reshape
from adbench.tape.singular import some
from adbench.tape.values import shape_of, value_of

t = matrix_transpose


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
    if not (some(u_adj) or some(v_adj)):
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
