"""The Cholesky factor of matrices and stacks of matrices, and their QR factors, each one node.

Cholesky reads only one triangle, see `linalg`. The QR factors are an array (..., m + k, k) with Q above Rᵀ, for
m >= n = k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adbench.tape.core.rule import AllInputs, Value, own_gradients
from adbench.tape.linalg.solving import matrix, square, t, triangular
from adbench.tape.rules.elementwise import absolute
from adbench.tape.rules.indexing import diagonal
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import max as largest
from adbench.tape.rules.reductions import min as least
from adbench.tape.rules.shapes import concatenate, tril
from adbench.tape.singular import is_symbol, surely
from adbench.tape.values import shape_of, value_of


def _lower_half(a: Value) -> Value:
    """The lower triangle with half the diagonal: Φ in Murray (2016)."""
    n = shape_of(a)[-1]
    return a * (np.tri(n) - 0.5 * np.eye(n))


def as_lower(symmetric: Value) -> Value:
    """The gradient in the lower triangle, from that in a symmetric matrix: off-diagonal entries count twice."""
    return _lower_half(symmetric + t(symmetric))


def from_lower(tan: Value) -> Value:
    """The symmetric tangent whose lower triangle this is."""
    half = _lower_half(tan)
    return half + t(half)


BLOCK = 64
"""The order above which the adjoint of a factor is found block by block, in a sixth of the multiplications."""


def _whole_adjoint(lower: Value, adj: Value) -> Value:
    """S = L⁻ᵀ Φ(Lᵀ L̄) L⁻¹ (Murray 2016, section 3.1), as the gradient in the triangle that was read."""
    return _outside(lower, _lower_half(matmul(t(lower), tril(adj))))


def _outside(lower: Value, inner: Value) -> Value:
    """The gradient L⁻ᵀ inner L⁻¹ in the triangle that was read."""
    left = triangular(lower, inner, lower=True, transposed=True)
    return as_lower(t(triangular(lower, t(left), lower=True, transposed=True)))


def _blocked_value(lower: Value, adj: Value) -> Value:
    """The adjoint of A by blocks, from the last column to the first, mostly by products (Murray 2016, section 3.3)."""
    n = len(lower)
    if n <= 2 * BLOCK:  # fewer calls of numpy
        return _whole_adjoint(lower, adj)
    adj = np.tril(adj)
    for first in reversed(range(0, n, BLOCK)):
        block, above, below = slice(first, first + BLOCK), slice(0, first), slice(first + BLOCK, n)
        diagonal, left, under = lower[block, block], lower[block, above], lower[below, block]
        if first + BLOCK < n:
            adj[below, block] = triangular(diagonal, adj[below, block].T, lower=True, transposed=True).T
            adj[below, above] -= adj[below, block] @ left
            adj[block, above] -= adj[below, block].T @ lower[below, above]
            adj[block, block] -= np.tril(adj[below, block].T @ under)
        on_diagonal = adj[block, block] = _whole_adjoint(diagonal, adj[block, block])
        adj[block, above] -= (on_diagonal + on_diagonal.T) @ left
    return adj


def _blocked_back(
    wanted: Sequence[bool], val: Value, adj: Value, lower: Value, of_factor: Value
) -> tuple[Value, Value]:
    """For G = Φ(S + Sᵀ): R = Φ(L⁻¹ W L⁻ᵀ), W = Φ(Ḡ) + Φ(Ḡ)ᵀ; the adjoint of L̄ is L R, that of L is
    L̄ Rᵀ - (G + Gᵀ) W L⁻ᵀ."""
    half = triangular(lower, from_lower(adj), lower=True, transposed=False)
    inner = _lower_half(triangular(lower, t(half), lower=True, transposed=False))
    back = tril(matmul(tril(of_factor), t(inner)) - matmul(val + t(val), t(half))) if wanted[0] else None
    return back, tril(matmul(lower, inner)) if wanted[1] else None


def _blocked_along(val: Value, tans: Sequence[Value], lower: Value, of_factor: Value) -> Value:
    """For G = Φ(S + Sᵀ) and H = (G + Gᵀ) / 2: Ṡ = L⁻ᵀ (Φ(L̇ᵀ L̄ + Lᵀ L̄˙) - L̇ᵀ H L - (L̇ᵀ H L)ᵀ) L⁻¹."""
    tan, of_factor_tan = tans
    inner: Value = 0.0
    if of_factor_tan is not None:
        inner = _lower_half(matmul(t(lower), tril(of_factor_tan)))
    if tan is not None:
        tan = tril(tan)
        turned = matmul(matmul(t(tan), 0.5 * (val + t(val))), lower)
        inner = inner + _lower_half(matmul(t(tan), tril(of_factor))) - turned - t(turned)
    return _outside(lower, inner)


_blocked_adjoint = own_gradients(
    _blocked_value, reverse=AllInputs(_blocked_back), forward=AllInputs(_blocked_along), name="cholesky_adjoint"
)


def _cholesky_back(lower: Value, adj: Value, _a: Value) -> Value:
    shape = shape_of(lower)
    return (_blocked_adjoint if len(shape) == 2 and shape[0] > BLOCK else _whole_adjoint)(lower, adj)


def _cholesky_along(lower: Value, tan: Value, _a: Value) -> Value:
    """L̇ = L Φ(L⁻¹ Ȧ L⁻ᵀ) (Murray 2016)."""
    left = triangular(lower, from_lower(tan), lower=True, transposed=False)
    return matmul(lower, _lower_half(triangular(lower, t(left), lower=True, transposed=False)))


_cholesky = own_gradients(np.linalg.cholesky, reverse=(_cholesky_back,), forward=(_cholesky_along,))


def cholesky(a: Value, *, upper: bool = False) -> Value:
    """The lower triangular L with A = L Lᵀ, (..., n, n); with `upper` the upper triangular R with A = RᵀR.

    Reads only that triangle of A: the other has derivative exactly 0. Raises LinAlgError unless A is positive definite.
    Source: I. Murray (2016), "Differentiation of the Cholesky decomposition".
    """
    a = square("cholesky", a)
    return t(_cholesky(t(a))) if upper else _cholesky(a)


class QRResult(NamedTuple):
    """A = Q R, Q with orthonormal columns and R upper triangular."""

    Q: Value
    R: Value


def _qr_value(a: Value) -> Value:
    q, r = np.linalg.qr(a)
    return np.concatenate([q, np.swapaxes(r, -1, -2)], -2)


def _independent(r: Value) -> Value:
    """R; raises LinAlgError if a column of A depends on earlier columns, where Q has no derivative."""
    if is_symbol(value_of(r)):
        sizes = absolute(value_of(r))
        smallest = diagonal(sizes, 0, -2, -1) - 2.0**-50 * shape_of(r)[-1] * largest(sizes, -2)
        surely(least(smallest) > 0.0, r, "a decision on dependent columns")
        return r
    sizes = np.abs(value_of(r))
    columns = np.max(sizes, -2, initial=0.0)
    if np.any(np.diagonal(sizes, axis1=-2, axis2=-1) <= 2.0**-50 * sizes.shape[-1] * columns):
        raise np.linalg.LinAlgError("qr: the derivative needs independent columns; R has a 0 on its diagonal")
    return r


def _qr_back(val: Value, adj: Value, _a: Value) -> Value:
    """Ā = (Q̄ + Q copyltu(M)) R⁻ᵀ, M = R R̄ᵀ - Q̄ᵀQ (Walter & Lehmann 2010; Seeger et al. 2017)."""
    rows = shape_of(_a)[-2]
    q, r = val[..., :rows, :], _independent(t(val[..., rows:, :]))
    q_adj, r_adj = adj[..., :rows, :], t(adj[..., rows:, :])
    m = matmul(r, t(r_adj)) - matmul(t(q_adj), q)
    symmetric = tril(m) + t(tril(m, -1))
    return t(triangular(r, t(q_adj + matmul(q, symmetric)), lower=False, transposed=False))


def _qr_along(val: Value, tan: Value, _a: Value) -> Value:
    """With C = QᵀȦR⁻¹ and K = tril(C, -1) - tril(C, -1)ᵀ: Ṙ = (C - K) R, Q̇ = ȦR⁻¹ - Q (C - K)."""
    rows = shape_of(_a)[-2]
    q, r = val[..., :rows, :], _independent(t(val[..., rows:, :]))
    scaled = t(triangular(r, t(tan), lower=False, transposed=True))  # ȦR⁻¹
    c = matmul(t(q), scaled)
    below = tril(c, -1)
    rate = c - below + t(below)
    return concatenate([scaled - matmul(q, rate), t(matmul(rate, r))], -2)


_qr = own_gradients(_qr_value, reverse=(_qr_back,), forward=(_qr_along,), name="qr")


def qr(a: Value, mode: str = "reduced") -> QRResult | Value:
    """(Q, R) with A = Q R, A of shape (..., m, n), k = min(m, n): (..., m, k) and (..., k, n); mode "r" gives R alone.

    The first k columns of A must be independent, or the derivative raises LinAlgError. For m < n the columns from k on
    only enter R, as Qᵀ A. Mode "complete" is the same for m <= n, and has no derivative otherwise.
    Sources: Walter & Lehmann (2010), "Algorithmic differentiation of linear algebra functions …"; Seeger et al. (2017),
    "Auto-differentiating linear algebra".
    """
    a = matrix("qr", a)
    rows, columns = shape_of(a)[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and rows <= columns):
        raise NotImplementedError(f"qr: argument mode: expected 'reduced' or 'r', got {mode!r:.60}")
    k = min(rows, columns)
    both = _qr(a if columns == k else a[..., :k])
    q, r = both[..., :rows, :], t(both[..., rows:, :])
    if columns > k:
        r = concatenate([r, matmul(t(q), a[..., k:])], -1)
    return r if mode == "r" else QRResult(q, r)
