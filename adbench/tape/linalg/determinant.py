"""The determinant, with correct derivatives for singular matrices too.

det A is a polynomial in the entries of A, so all its derivatives exist everywhere: ∂det/∂A is the matrix of
cofactors, which for an invertible A is det A · A⁻ᵀ. Here the cofactors come from the singular value decomposition
A = U S Vᵀ wherever A is singular or nearly so:

    cof A = det U det V · U cof(S) Vᵀ,   cof(S)[i, i] = Π_{k≠i} s_k

without division, and likewise for the second derivative.
Source: Giles (2008), section 2.2.4, for invertible matrices; G. W. Stewart (1998), "On the adjugate matrix".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adbench.tape.core.rule import Rule, Value, own_gradients
from adbench.tape.linalg.solving import cover, diagonal_matrix, invertible, square, t
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum, trace  # numpy's names

_WELL_CONDITIONED = 1e8
"""Largest condition |A⁻¹| |A| (Skeel's, unaffected by bad scaling) for which A⁻¹ is used: a tenth of the time."""


def _plain_inverse(a: Value) -> Value:
    """A⁻¹ of every matrix of a stack, or None if one of them is singular or nearly so."""
    try:
        c = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None
    with np.errstate(all="ignore"):  # an overflow also means a bad condition
        condition = np.add.reduce(np.abs(c) @ np.abs(a), -1)
    return c if np.all(condition < _WELL_CONDITIONED) else None


def _in_singular_basis(a: Value, along: Callable[[Value, Value, Value], Value]) -> Value:
    """det U det V · U along(s, U, Vᵀ) Vᵀ."""
    u, s, vt = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vt)
    return np.rint(sign)[..., None, None] * (u @ along(s, u, vt) @ vt)


def _without(s: Value, *places: int) -> Value:
    return np.multiply.reduce(np.delete(s, places, -1), -1)


def _cofactors_value(a: Value) -> Value:
    c = _plain_inverse(a)
    if c is not None and np.all(np.isfinite(cofactors := _times_det(a, np.swapaxes(c, -1, -2)))):
        return cofactors
    return _in_singular_basis(
        a, lambda s, _u, _vt: diagonal_matrix(np.stack([_without(s, i) for i in range(s.shape[-1])], -1))
    )


def _times_det(a: Value, x: Value) -> Value:
    """det A · X; not finite where both leave the range of doubles, as for tiny matrices."""
    with np.errstate(all="ignore"):
        value = np.linalg.det(a)
        return np.where(value == 0.0, np.nan, value)[..., None, None] * x


def _slope_value(a: Value, h: Value) -> Value:
    """The derivative of cof at A along H; for a diagonal S: δ_ij Σ_k P_ik H_kk - P_ij H_ji, P_ij = Π_{k≠i,j} s_k.

    With C = A⁻¹ and X = C H it is det A · (tr X C - X C)ᵀ. In row j of the bracket the terms X_jj C_ji cancel, which in
    a badly scaled A are much larger than all others, so they are left out of both parts.
    """
    c = _plain_inverse(a)
    if c is not None:
        with np.errstate(all="ignore"):
            x = c @ h
            other = 1.0 - np.eye(x.shape[-1])
            traces = other @ np.diagonal(x, axis1=-2, axis2=-1)[..., None]
            slope = _times_det(a, np.swapaxes(traces * c - (x * other) @ c, -1, -2))
        if np.all(np.isfinite(slope)):
            return slope

    def along(s: Value, u: Value, vt: Value) -> Value:
        g = np.swapaxes(u, -1, -2) @ h @ np.swapaxes(vt, -1, -2)
        n = s.shape[-1]
        pairs = np.zeros((*s.shape, n))
        for i, j in np.ndindex(n, n):
            if i != j:
                pairs[..., i, j] = _without(s, i, j)
        own = np.diagonal(g, axis1=-2, axis2=-1)
        return diagonal_matrix((pairs @ own[..., None])[..., 0]) - pairs * np.swapaxes(g, -1, -2)

    return _in_singular_basis(a, along)


def _third(a: Value, x: Value, y: Value) -> Value:
    """The third derivative D³det[x, y, ·] of an invertible A, a matrix.

    With X = A⁻¹x, Y = A⁻¹y: det A · ((tr X tr Y - tr XY) I - tr X · Y - tr Y · X + XY + YX) A⁻¹, transposed.
    """
    c = invertible("det: the third derivative", a)
    x, y = matmul(c, x), matmul(c, y)
    xy = matmul(x, y)
    tr_x, tr_y, tr_xy = (trace(m, 0, -2, -1) for m in (x, y, xy))
    eye = np.eye(a.shape[-1])
    inner = cover(tr_x * tr_y - tr_xy) * eye - cover(tr_x) * y - cover(tr_y) * x + xy + matmul(y, x)
    return cover(_det(a)) * t(matmul(inner, c))


# D²det is symmetric in its two directions, so the derivative of the cofactors is its own transpose in each argument.
_slope: Rule = own_gradients(
    _slope_value,
    reverse=(lambda _v, adj, a, h: _third(a, h, adj), lambda _v, adj, a, _h: _slope(a, adj)),
    forward=(lambda _v, tan, a, h: _third(a, h, tan), lambda _v, tan, a, _h: _slope(a, tan)),
    name="second derivative of det",
)

_cofactors = own_gradients(
    _cofactors_value,
    reverse=(lambda _v, adj, a: _slope(a, adj),),
    forward=(lambda _v, tan, a: _slope(a, tan),),
    name="cofactors",
)

_det = own_gradients(
    np.linalg.det,
    reverse=(lambda _v, adj, a: cover(adj) * _cofactors(a),),
    forward=(lambda _v, tan, a: sum(_cofactors(a) * tan, (-2, -1)),),
)


def det(a: Value) -> Value:
    """C = det A, (..., n, n) -> (...); Ā = C̄ cof A, Ċ = Σ cof A ∘ Ȧ.

    First and second derivatives are correct for every A, even a singular one. Third and higher derivatives need an
    invertible A and raise LinAlgError otherwise.
    """
    return _det(square("det", a))
