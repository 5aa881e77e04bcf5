"""The Cholesky factor of matrices and stacks of matrices, one node. Only one triangle is read, see `linalg`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adbench.tape.core.rule import AllInputs, Value, function_gradients
from adbench.tape.linalg.solving import square, triangular
from adbench.tape.rules.products import matmul
from adbench.tape.rules.shapes import matrix_transpose, tril
from adbench.tape.values import shape_of

t = matrix_transpose


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


_blocked_adjoint = function_gradients(
    _blocked_value,
    reverse=AllInputs(_blocked_back),
    forward=AllInputs(_blocked_along),
    name="cholesky_adjoint",
    fresh=True,
)


def _cholesky_back(lower: Value, adj: Value, _a: Value) -> Value:
    shape = shape_of(lower)
    return (_blocked_adjoint if len(shape) == 2 and shape[0] > BLOCK else _whole_adjoint)(lower, adj)


def _cholesky_along(lower: Value, tan: Value, _a: Value) -> Value:
    """L̇ = L Φ(L⁻¹ Ȧ L⁻ᵀ) (Murray 2016)."""
    left = triangular(lower, from_lower(tan), lower=True, transposed=False)
    return matmul(lower, _lower_half(triangular(lower, t(left), lower=True, transposed=False)))


_cholesky = function_gradients(
    np.linalg.cholesky, reverse=(_cholesky_back,), forward=(_cholesky_along,), name="cholesky", fresh=True
)


def cholesky(a: Value, *, upper: bool = False) -> Value:
    """The lower triangular L with A = L Lᵀ, (..., n, n); with `upper` the upper triangular R with A = RᵀR.

    Reads only that triangle of A: the other has derivative exactly 0. Raises LinAlgError unless A is positive definite.
    Source: I. Murray (2016), "Differentiation of the Cholesky decomposition".
    """
    a = square("cholesky", a)
    return t(_cholesky(t(a))) if upper else _cholesky(a)
