"""The QR factors, one node: an array (..., m + k, k) with Q above Rᵀ, for m >= n = k."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adbench.tape.core.rule import Value, function_gradients
from adbench.tape.linalg.solving import matrix, triangular
from adbench.tape.linalg.spectrum import is_symbol, surely
from adbench.tape.rules.elementwise import absolute
from adbench.tape.rules.indexing import diagonal
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import max as largest
from adbench.tape.rules.reductions import min as least
from adbench.tape.rules.shapes import concatenate, matrix_transpose, tril
from adbench.tape.values import shape_of, value_of

t = matrix_transpose


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


def _over_r(x: Value, r: Value) -> Value:
    """X R⁻¹."""
    return t(triangular(r, t(x), lower=False, transposed=True))


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
    scaled = _over_r(tan, r)
    c = matmul(t(q), scaled)
    below = tril(c, -1)
    rate = c - below + t(below)
    return concatenate([scaled - matmul(q, rate), t(matmul(rate, r))], -2)


_qr = function_gradients(_qr_value, reverse=(_qr_back,), forward=(_qr_along,), name="qr", fresh=True)


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
