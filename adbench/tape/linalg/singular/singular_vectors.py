"""Singular values and vectors, and sums and rates that they weigh, with their derivatives.

`_svd` is one node: an array (..., m + 1 + n, k) of U, the values and V, where k = min(m, n). At equal singular values
see `symmetric_eigenvalues`. Functions of the values alone are in `singular_values`.

`weighted` is U diag(g) Vᵀ, and `rates` are diag(UᵀXV): the gradient of a function of the values is such a sum, and
their rates along Ȧ are such rates. Equal values, and values of 0, leave a choice of the vectors. It cancels where equal
values have equal weights g, and values of 0 the weight 0, as in the nuclear norm at the identity, or in the largest
value where it is single. There both have derivatives, from quotients of differences (Daleckii and Krein), that need no
derivative of a vector. Other weights are `rough`.
"""

from __future__ import annotations

import math

import numpy as np

from adbench.tape.core.rule import Active, Rule, Value, own_gradients
from adbench.tape.linalg.solving import cover, diagonal_matrix, t
from adbench.tape.linalg.symmetric_eigenvalues import (
    ADVICE,
    EqualEigenvaluesError,
    close_pairs,
    close_to_zero,
    divided,
    equal_pairs,
    equal_values,
    off_diagonal,
    quotient,
    zero_pairs,
)
from adbench.tape.rules.elementwise import no_slope, where
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import concatenate, reshape
from adbench.tape.singular import UNDEFINED, flat, is_symbol, may_change, some, still, surely
from adbench.tape.values import is_nested, shape_of, value_of


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


_svd = own_gradients(_svd_value, reverse=(_svd_back,), forward=(_svd_along,), name="svd")


_CLOSE = 2.0**-44
"""Weights that differ by less, relative to the largest, count as equal."""


def column(x: Value) -> Value:
    """A vector as a column."""
    return reshape(x, (*shape_of(x), 1))


def factors_of(a: Value) -> Value:
    """U, the values and V of a matrix that is constant to the next derivative."""
    return _svd(a) if isinstance(a, Active) else _svd_value(a)


# Weighted sums of u_i v_iᵀ, and their derivatives


def weighted_value(a: Value, g: Value, factors: Value) -> Value:
    """U diag(g) Vᵀ."""
    u, s, v = _blocks(factors, shape_of(a)[-2])
    return matmul(u * where(value_of(s) == 0.0, 0.0, g)[..., None, :], t(v))


def rates_value(a: Value, x: Value, factors: Value, error: str | None = None) -> Value:
    """diag(UᵀXV)."""
    u, s, v = _blocks(factors, shape_of(a)[-2])
    return where(value_of(s) == 0.0, 0.0, sum(u * matmul(x, v), -2))


def _pairs(s: Value, shape: tuple[int, ...]) -> tuple[Value, Value, Value]:
    """Where two values are equal, where both are 0, and where one is 0, up to rounding."""
    zero = close_to_zero(value_of(s), shape)
    same = np.logical_or(close_pairs(value_of(s)), np.eye(shape_of(s)[-1], dtype=bool))
    return same, np.logical_and(zero[..., None, :], column(1.0 * zero) != 0.0), zero


def _turned(a: Value, g: Value, factors: Value, x: Value) -> Value:
    """The derivative of U diag(g) Vᵀ along X for fixed g. This function of X is its own adjoint.

    With P = UᵀXV it is ½ U (E ∘ (P + Pᵀ) + F ∘ (P - Pᵀ)) Vᵀ + (I - UUᵀ) XV diag(g/s) Vᵀ + U diag(g/s) UᵀX (I - VVᵀ),
    E = (g_i - g_j)/(s_i - s_j), F = (g_i + g_j)/(s_i + s_j); a quotient 0 / 0 is 0.
    """
    rows, columns = shape_of(a)[-2:]
    u, s, v = _blocks(_svd(a) if is_nested(a) else factors, rows)
    same, nothing, zero = _pairs(s, shape_of(a))
    even = divided(g[..., None, :] - column(g), s[..., None, :] - column(s), same)
    odd = divided(g[..., None, :] + column(g), s[..., None, :] + column(s), nothing)
    xv = matmul(x, v)
    p = matmul(t(u), xv)
    back = matmul(u, matmul(0.5 * (even * (p + t(p)) + odd * (p - t(p))), t(v)))
    if rows != columns:
        over = divided(g, s, zero)[..., None, :]
        if rows > columns:
            return back + matmul((xv - matmul(u, p)) * over, t(v))
        return back + matmul(u * over, t(matmul(t(x), u) - matmul(v, t(p))))
    return back


def _turned_rates(_v: Value, along: Value, a: Value, x: Value, factors: Value, error: str | None = None) -> Value:
    """The derivative of diag(UᵀXV) along a direction for fixed X; NaN for equal values and those of 0.

    Compiled code leaves equal values other than 0 to the eager engine, where a direction may select their vectors.
    """
    rows, columns = shape_of(a)[-2:]
    u, s, v = _blocks(_svd(a) if is_nested(a) else factors, rows)
    same, nothing, zero = _pairs(s, shape_of(a))
    xv, bv = matmul(x, v), matmul(along, v)
    p, b = matmul(t(u), xv), matmul(t(u), bv)
    even = divided((p + t(p)) * (b + t(b)), column(s) - s[..., None, :], same)
    odd = divided((p - t(p)) * (b - t(b)), column(s) + s[..., None, :], nothing)
    rates = 0.5 * sum(even + odd, -1)
    if rows > columns:
        rates = rates + divided(sum((bv - matmul(u, b)) * xv, -2), s, zero)
    if columns > rows:
        xu, bu = matmul(t(x), u), matmul(t(along), u)
        rates = rates + divided(sum((bu - matmul(v, t(b))) * xu, -2), s, zero)
    tied = np.any(np.logical_and(same, ~np.eye(shape_of(s)[-1], dtype=bool)), -1)
    if is_symbol(plain := value_of(s)):
        surely(
            np.logical_not(np.any(np.logical_and(tied, np.logical_not(zero)))), plain, "a decision on singular values"
        )
    return where(np.logical_or(zero, tied), math.nan, rates)


def _rates_back(_v: Value, adj: Value, a: Value, x: Value, factors: Value, error: str | None = None) -> Value:
    """NaN, or the error, for rough weights."""
    _, s, _ = _blocks(factors, shape_of(a)[-2])
    rough = is_rough(s, adj, shape_of(a))
    if error is not None and np.any(rough):
        raise EqualEigenvaluesError(error)
    return _turned(a, adj, factors, x) + cover(where(rough, math.nan, 0.0))


weighted: Rule = own_gradients(
    weighted_value,
    reverse=(
        lambda _v, adj, a, g, factors: _turned(a, g, factors, adj),
        lambda _v, adj, a, _g, factors: rates(a, adj, factors),
        no_slope,
    ),
    forward=(
        lambda _v, tan, a, g, factors: _turned(a, g, factors, tan),
        lambda _v, tan, a, _g, factors: weighted(a, tan, factors),
        no_slope,
    ),
    name="weighted singular vectors",
)
"""U diag(g) Vᵀ of A, g and A's factors, which count as constants."""

rates: Rule = own_gradients(
    rates_value,
    reverse=(_rates_back, lambda _v, adj, a, _x, factors, error=None: weighted(a, adj, factors), no_slope),
    forward=(_turned_rates, lambda _v, tan, a, _x, factors, error=None: rates(a, tan, factors, error=error), no_slope),
    name="rates of singular values",
)


"""diag(UᵀXV) of A, X and A's factors; with `error`, an EqualEigenvaluesError instead of NaN."""


# Where the choice of the vectors matters


def is_rough(s: Value, g: Value, shape: tuple[int, ...]) -> Value:
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


def unknown_where(rough: Value, a: Value) -> Value:
    """0, with the derivative NaN in the rough matrices."""
    if not some(rough):
        return 0.0
    axes = (len(shape_of(a)) - 2, len(shape_of(a)) - 1)
    return cover(np.where(rough, UNDEFINED(a, axes=axes, value=0.0), 0.0))
