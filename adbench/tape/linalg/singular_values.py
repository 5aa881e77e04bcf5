"""svd and svdvals, and two functions of their vectors that need no derivative of each vector.

The gradient of a function of the values is U diag(g) Vᵀ, and their rates along Ȧ are diag(UᵀȦV). Equal values, and
values of 0, leave a choice of the vectors. It cancels where equal values have equal weights g, and values of 0 the
weight 0, as in the nuclear norm at the identity, or in the largest value at any matrix where it is single. There both
functions have true derivatives, from quotients of differences (Daleckii and Krein). At other weights the first
derivative takes the vectors that LAPACK returns, and 0 for a value of exactly 0; the second is NaN, except along a
direction, which chooses the vectors of equal values (`spectrum.direction_basis`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.rule import Active, Value, function_gradients
from adbench.tape.linalg.singular_vectors import _blocks, _svd, _svd_value
from adbench.tape.linalg.solving import matrix
from adbench.tape.linalg.spectrum import close_pairs, close_to_zero, equal_pairs, is_symbol, surely, zero_pairs
from adbench.tape.linalg.symmetric_eigenvalues import _eigvalsh_along, _eigvalsh_back
from adbench.tape.rules.elementwise import no_slope, where
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import concatenate, flip, matrix_transpose, reshape
from adbench.tape.singular import UNDEFINED, flat, may_change, some, still
from adbench.tape.values import is_nested, shape_of, value_of

t = matrix_transpose

_CLOSE = 2.0**-44
"""Weights that differ by less, relative to the largest, count as equal."""


def _column(x: Value) -> Value:
    return reshape(x, (*shape_of(x), 1))


def _factors(a: Value) -> Value:
    """U, the values and V of a matrix that is constant to the next derivative."""
    return _svd(a) if isinstance(a, Active) else _svd_value(a)


# Weighted sums of u_i v_iᵀ, and their derivatives


def weighted_value(a: Value, g: Value, factors: Value) -> Value:
    """U diag(g) Vᵀ."""
    u, s, v = _blocks(factors, shape_of(a)[-2])
    return matmul(u * where(value_of(s) == 0.0, 0.0, g)[..., None, :], t(v))


def rates_value(a: Value, x: Value, factors: Value) -> Value:
    """diag(UᵀXV)."""
    u, s, v = _blocks(factors, shape_of(a)[-2])
    return where(value_of(s) == 0.0, 0.0, sum(u * matmul(x, v), -2))


def _pairs(s: Value, shape: tuple[int, ...]) -> tuple[Value, Value, Value]:
    """Where two values are equal, where both are 0, and where one is 0, up to rounding."""
    zero = close_to_zero(value_of(s), shape)
    same = np.logical_or(close_pairs(value_of(s)), np.eye(shape_of(s)[-1], dtype=bool))
    return same, np.logical_and(zero[..., None, :], _column(1.0 * zero) != 0.0), zero


def _quotient(numerator: Value, denominator: Value, skipped: Value) -> Value:
    return where(skipped, 0.0, numerator / where(skipped, 1.0, denominator))


def _turned(a: Value, g: Value, factors: Value, x: Value) -> Value:
    """The derivative of U diag(g) Vᵀ along X for fixed g. This function of X is its own adjoint.

    With P = UᵀXV it is ½ U (E ∘ (P + Pᵀ) + F ∘ (P - Pᵀ)) Vᵀ + (I - UUᵀ) XV diag(g/s) Vᵀ + U diag(g/s) UᵀX (I - VVᵀ),
    E = (g_i - g_j)/(s_i - s_j), F = (g_i + g_j)/(s_i + s_j); a quotient 0 / 0 is 0.
    """
    rows, columns = shape_of(a)[-2:]
    u, s, v = _blocks(_svd(a) if is_nested(a) else factors, rows)
    same, nothing, zero = _pairs(s, shape_of(a))
    even = _quotient(g[..., None, :] - _column(g), s[..., None, :] - _column(s), same)
    odd = _quotient(g[..., None, :] + _column(g), s[..., None, :] + _column(s), nothing)
    xv = matmul(x, v)
    p = matmul(t(u), xv)
    back = matmul(u, matmul(0.5 * (even * (p + t(p)) + odd * (p - t(p))), t(v)))
    if rows != columns:
        over = _quotient(g, s, zero)[..., None, :]
        if rows > columns:
            return back + matmul((xv - matmul(u, p)) * over, t(v))
        return back + matmul(u * over, t(matmul(t(x), u) - matmul(v, t(p))))
    return back


def _turned_rates(_v: Value, along: Value, a: Value, x: Value, factors: Value) -> Value:
    """The derivative of diag(UᵀXV) along a direction for fixed X; NaN for equal values and those of 0.

    Compiled code leaves equal values other than 0 to the eager engine, where a direction may select their vectors.
    """
    rows, columns = shape_of(a)[-2:]
    u, s, v = _blocks(_svd(a) if is_nested(a) else factors, rows)
    same, nothing, zero = _pairs(s, shape_of(a))
    xv, bv = matmul(x, v), matmul(along, v)
    p, b = matmul(t(u), xv), matmul(t(u), bv)
    even = _quotient((p + t(p)) * (b + t(b)), _column(s) - s[..., None, :], same)
    odd = _quotient((p - t(p)) * (b - t(b)), _column(s) + s[..., None, :], nothing)
    rates = 0.5 * sum(even + odd, -1)
    if rows > columns:
        rates = rates + _quotient(sum((bv - matmul(u, b)) * xv, -2), s, zero)
    if columns > rows:
        xu, bu = matmul(t(x), u), matmul(t(along), u)
        rates = rates + _quotient(sum((bu - matmul(v, t(b))) * xu, -2), s, zero)
    tied = np.any(np.logical_and(same, ~np.eye(shape_of(s)[-1], dtype=bool)), -1)
    if is_symbol(plain := value_of(s)):
        surely(
            np.logical_not(np.any(np.logical_and(tied, np.logical_not(zero)))), plain, "a decision on singular values"
        )
    return where(np.logical_or(zero, tied), math.nan, rates)


def _rates_back(_v: Value, adj: Value, a: Value, x: Value, factors: Value) -> Value:
    _, s, _ = _blocks(factors, shape_of(a)[-2])
    rough = where(_is_rough(s, adj, shape_of(a)), math.nan, 0.0)
    return _turned(a, adj, factors, x) + _on_matrices(rough)


_weighted = function_gradients(
    weighted_value,
    reverse=(
        lambda _v, adj, a, g, factors: _turned(a, g, factors, adj),
        lambda _v, adj, a, _g, factors: _rates(a, adj, factors),
        no_slope,
    ),
    forward=(
        lambda _v, tan, a, g, factors: _turned(a, g, factors, tan),
        lambda _v, tan, a, _g, factors: _weighted(a, tan, factors),
        no_slope,
    ),
    name="weighted singular vectors",
    fresh=True,
)

_rates = function_gradients(
    rates_value,
    reverse=(_rates_back, lambda _v, adj, a, _x, factors: _weighted(a, adj, factors), no_slope),
    forward=(_turned_rates, lambda _v, tan, a, _x, factors: _rates(a, tan, factors), no_slope),
    name="rates of singular values",
    fresh=True,
)


# Where the choice of the vectors matters


def _on_matrices(x: Value) -> Value:
    """One number for each matrix, in the shape of a matrix that broadcasts."""
    return reshape(x, (*shape_of(x), 1, 1)) if shape_of(x) else x


def _is_rough(s: Value, g: Value, shape: tuple[int, ...]) -> Value:
    """For which matrices U diag(g) Vᵀ, or its derivative, depends on the choice of the vectors, see above."""
    s = value_of(s)
    if is_symbol(s) and may_change(g) and still(g, True) is not True:
        equal_pairs(s)  # decides that there are none, or refuses
        zero_pairs(s, shape)
        return False
    zero, equal = close_to_zero(s, shape), close_pairs(s)
    rough = False
    if some(zero):
        rough = np.any(np.logical_and(zero, np.logical_not(flat(g, zero))), -1)
    if shape_of(s)[-1] > 1 and some(equal):
        near = np.stack([equal[..., i, i + 1] for i in range(shape_of(s)[-1] - 1)], -1)
        rise, plain = g[..., 1:] - g[..., :-1], np.abs(value_of(g))
        level = np.abs(value_of(rise)) <= _CLOSE * (plain[..., 1:] + plain[..., :-1])
        rough = np.logical_or(rough, np.any(np.logical_and(near, ~np.logical_and(level, still(rise, near))), -1))
    return rough


def _unknown(rough: Value, a: Value) -> Value:
    """0, with the derivative NaN in the rough matrices."""
    if not some(rough):
        return 0.0
    axes = (len(shape_of(a)) - 2, len(shape_of(a)) - 1)
    return _on_matrices(np.where(rough, UNDEFINED(a, axes=axes, value=0.0), 0.0))


def _nan_at_zeros(s: Value, tan: Value, shape: tuple[int, ...]) -> Value:
    """NaN for values of 0 of matrices that move: their rates are a convention, which has no derivative."""
    zero = close_to_zero(value_of(s), shape)
    if not some(zero):
        return 0.0
    moves = np.any(np.not_equal(value_of(tan), 0.0), (-2, -1))
    return np.where(np.logical_and(zero, moves[..., None] if shape_of(moves) else moves), math.nan, 0.0)


# The singular values


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
    return back[..., columns:, :columns] + _unknown(rough, a)


def _svdvals_back(s: Value, adj: Value, a: Value) -> Value:
    if _has_direction(a):
        return _along_direction(s, adj, a)
    factors = _factors(value_of(a))
    if not is_nested(a):
        return weighted_value(a, adj, factors)
    return _weighted(a, adj, factors) + _unknown(_is_rough(s, adj, shape_of(a)), a)


def _svdvals_along(s: Value, tan: Value, a: Value) -> Value:
    if _has_direction(a):
        return _rates_around(s, tan, a) + _nan_at_zeros(s, tan, shape_of(a))
    factors = _factors(value_of(a))
    if not is_nested(a):
        return rates_value(a, tan, factors)
    return _rates(a, tan, factors) + _nan_at_zeros(s, tan, shape_of(a))


def _rates_around(s: Value, tan: Value, a: Value) -> Value:
    """ṡ of equal values in the order of the vectors that the direction selects, see `direction_basis`."""
    plain = value_of(s)
    zeros = np.zeros((*plain.shape[:-1], abs(shape_of(a)[-2] - shape_of(a)[-1])))
    w = np.concatenate([-plain, zeros, np.flip(plain, -1)], -1)
    return flip(_eigvalsh_along(w, _around(tan), _around(a))[..., -plain.shape[-1] :], -1)


def _svdvals_back_inside(s: Value, adj: Value, a: Value) -> Value:
    """`_svdvals_back` inside another derivative."""
    return _svdvals_back(s, adj, a) + _on_matrices(where(_is_rough(s, adj, shape_of(a)), math.nan, 0.0))


def _svdvals_along_inside(s: Value, tan: Value, a: Value) -> Value:
    """`_svdvals_along` inside another derivative."""
    if type(a) is np.ndarray and _is_tied(a):
        return _rates_around(s, tan, a) + _nan_at_zeros(s, tan, shape_of(a))
    return _svdvals_along(s, tan, a) + _nan_at_zeros(s, tan, shape_of(a))


def _svdvals_value(a: Value) -> Value:
    return np.linalg.svd(a, compute_uv=False)


_svdvals = function_gradients(
    _svdvals_value, reverse=(_svdvals_back,), forward=(_svdvals_along,), name="svdvals", fresh=True
)
_svdvals.inner = function_gradients(
    _svdvals_value, reverse=(_svdvals_back_inside,), forward=(_svdvals_along_inside,), name="svdvals", fresh=True
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
