"""svd and svdvals. Weights of singular vectors that depend on their choice, see `singular_vectors`:

In the first derivative the vectors are those that LAPACK returns, and a value of exactly 0 has derivative 0. The second
derivative is NaN, except along a direction, which chooses the vectors of equal values (`direction_basis`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.rule import Active, Value, own_gradients
from adbench.tape.linalg.eigenvalues import _eigvalsh_along, _eigvalsh_back
from adbench.tape.linalg.singular.singular_vectors import (
    _blocks,
    _svd,
    factors_of,
    is_rough,
    rates,
    rates_value,
    unknown_where,
    weighted,
    weighted_value,
)
from adbench.tape.linalg.solving import cover, matrix, t
from adbench.tape.linalg.symmetric_eigenvalues import close_pairs, close_to_zero
from adbench.tape.rules.elementwise import where
from adbench.tape.rules.shapes import concatenate, flip
from adbench.tape.singular import flat, some
from adbench.tape.values import is_nested, shape_of, value_of


def _nan_at_zeros(s: Value, tan: Value, shape: tuple[int, ...]) -> Value:
    """NaN for values of 0 of matrices that move: their rates are a convention, which has no derivative."""
    zero = close_to_zero(value_of(s), shape)
    if not some(zero):
        return 0.0
    moves = np.any(np.not_equal(value_of(tan), 0.0), (-2, -1))
    return np.where(np.logical_and(zero, moves[..., None] if shape_of(moves) else moves), math.nan, 0.0)


def _is_tied(a: Value) -> bool:
    """Whether a plain matrix has equal singular values other than 0."""
    s = np.linalg.svd(a, compute_uv=False)
    return bool(np.any(close_pairs(s) & ~close_to_zero(s, a.shape)[..., None]))


def _around(a: Value) -> Value:
    """[[0, Aᵀ], [A, 0]], whose eigenvalues are -s, zeros if A is not square, and s, in ascending order."""
    *lead, rows, columns = shape_of(a)
    above = concatenate([np.zeros((*lead, columns, columns)), t(a)], -1)
    return concatenate([above, concatenate([a, np.zeros((*lead, rows, rows))], -1)], -2)


def _has_direction(a: Value) -> bool:
    """Whether forward mode gives the direction that selects the vectors of equal singular values."""
    return isinstance(a, Dual) and type(a.val) is np.ndarray and _is_tied(a.val)


def _along_direction(s: Value, adj: Value, a: Value) -> Value:
    """`_svdvals_back` with the vectors that the direction of A selects."""
    *lead, rows, columns = shape_of(a)
    others = np.zeros((*lead, rows + columns - shape_of(adj)[-1]))
    zero = close_to_zero(value_of(s), shape_of(a))
    back = _eigvalsh_back(None, concatenate([others, flip(where(zero, 0.0, adj), -1)], -1), _around(a))
    rough = np.any(np.logical_and(zero, np.logical_not(flat(adj, zero))), -1)
    return back[..., columns:, :columns] + unknown_where(rough, a)


def _svdvals_back(s: Value, adj: Value, a: Value) -> Value:
    if _has_direction(a):
        return _along_direction(s, adj, a)
    factors = factors_of(value_of(a))
    if not is_nested(a):
        return weighted_value(a, adj, factors)
    return weighted(a, adj, factors) + unknown_where(is_rough(s, adj, shape_of(a)), a)


def _svdvals_along(s: Value, tan: Value, a: Value) -> Value:
    if _has_direction(a):
        return _rates_around(s, tan, a) + _nan_at_zeros(s, tan, shape_of(a))
    factors = factors_of(value_of(a))
    if not is_nested(a):
        return rates_value(a, tan, factors)
    return rates(a, tan, factors) + _nan_at_zeros(s, tan, shape_of(a))


def _rates_around(s: Value, tan: Value, a: Value) -> Value:
    """ṡ of equal values in the order of the vectors that the direction selects, see `direction_basis`."""
    plain = value_of(s)
    zeros = np.zeros((*plain.shape[:-1], abs(shape_of(a)[-2] - shape_of(a)[-1])))
    w = np.concatenate([-plain, zeros, np.flip(plain, -1)], -1)
    return flip(_eigvalsh_along(w, _around(tan), _around(a))[..., -plain.shape[-1] :], -1)


def _svdvals_back_inside(s: Value, adj: Value, a: Value) -> Value:
    """`_svdvals_back` inside another derivative."""
    return _svdvals_back(s, adj, a) + cover(where(is_rough(s, adj, shape_of(a)), math.nan, 0.0))


def _svdvals_along_inside(s: Value, tan: Value, a: Value) -> Value:
    """`_svdvals_along` inside another derivative."""
    if type(a) is np.ndarray and _is_tied(a):
        return _rates_around(s, tan, a) + _nan_at_zeros(s, tan, shape_of(a))
    return _svdvals_along(s, tan, a) + _nan_at_zeros(s, tan, shape_of(a))


def _svdvals_value(a: Value) -> Value:
    return np.linalg.svd(a, compute_uv=False)


_svdvals = own_gradients(_svdvals_value, reverse=(_svdvals_back,), forward=(_svdvals_along,), name="svdvals")
_svdvals.inner = own_gradients(
    _svdvals_value, reverse=(_svdvals_back_inside,), forward=(_svdvals_along_inside,), name="svdvals"
)


def svdvals(a: Value) -> Value:
    """The singular values in descending order, (..., m, n) -> (..., k); Ā = U diag(s̄) Vᵀ. A 0 has derivative 0."""
    return _svdvals(matrix("svdvals", a))


class SVDResult(NamedTuple):
    """A = U diag(S) Vh; S in descending order."""

    U: Value
    S: Value
    Vh: Value


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
