"""Eigenvalues above eigenvectors of symmetric matrices: one node, an array (..., 1 + n, n).

At equal eigenvalues, vectors have no derivative; only functions that do not depend on their choice do. Reverse mode
gives the derivative of such a function if the group's vectors cancel out of it, as in tr(V exp(w) Vᵀ); if it cannot
know, it raises EqualEigenvaluesError. Forward mode of `eigh` chooses the vectors that the direction singles out, and is
right for every such function. Functions of the values alone are always safe with `eigvalsh`. "Equal" means closer than
8 n rounding errors of the largest. The same holds for singular values (`singular_values`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adbench.tape.core.rule import Active, Value, function_gradients
from adbench.tape.linalg.cholesky_factor import as_lower, from_lower
from adbench.tape.linalg.solving import diagonal_matrix, square
from adbench.tape.linalg.spectrum import EqualEigenvaluesError, direction_basis, equal_pairs, quotient
from adbench.tape.rules.elementwise import where
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import concatenate, matrix_transpose, reshape
from adbench.tape.singular import some
from adbench.tape.values import shape_of, value_of

t = matrix_transpose


class EighResult(NamedTuple):
    """Eigenvalues in ascending order (..., n) and orthonormal eigenvectors as columns (..., n, n)."""

    eigenvalues: Value
    eigenvectors: Value


def _eigh_value(a: Value, basis: Value) -> Value:
    w, v = np.linalg.eigh(a)
    return np.concatenate([w[..., None, :], v if basis is None else v @ basis], -2)


def _differences(w: Value) -> Value:
    """D[i, j] = w_j - w_i."""
    return w[..., None, :] - reshape(w, (*shape_of(w), 1))


def off_diagonal(m: Value) -> Value:
    """Square matrices with 0 on the diagonal."""
    return where(np.eye(shape_of(m)[-1], dtype=bool), 0.0, m)


def equal_values(val: Value, w: Value, what: str) -> Value:
    """`equal_pairs` of w. Raises EqualEigenvaluesError if any exist while the result itself is being differentiated."""
    equal = equal_pairs(value_of(w))
    if isinstance(val, Active) and np.any(equal):
        raise EqualEigenvaluesError(what)
    return equal


def _eigh_back(val: Value, adj: Value, _a: Value, basis: Value) -> Value:
    """V (diag w̄ + F ∘ VᵀV̄) Vᵀ, F[i, j] = 1/(w_j - w_i) (Giles 2008, section 3.1), for the triangle that was read.

    Only the symmetric part counts: F ∘ (M - Mᵀ)/2 for M = VᵀV̄. Its numerator vanishes at equal eigenvalues if the
    function does not depend on the choice of their vectors.
    """
    w, v = val[..., 0, :], val[..., 1:, :]
    inner = diagonal_matrix(adj[..., 0, :])
    if some(adj[..., 1:, :]):
        m = matmul(t(v), adj[..., 1:, :])
        equal = equal_values(val, w, "eigh: a second derivative through eigenvectors" + ADVICE)
        off = off_diagonal(m)
        evidence = [(m, adj[..., 1:, :])]
        inner = inner + quotient(0.5 * (off - t(off)), _differences(w), equal, evidence, "eigh" + ADVICE)
    return as_lower(matmul(v, matmul(inner, t(v))))


def _eigh_along(val: Value, tan: Value, _a: Value, basis: Value) -> Value:
    """ẇ = diag(VᵀȦV), V̇ = V (F ∘ VᵀȦV)."""
    w, v = val[..., 0, :], val[..., 1:, :]
    p = matmul(t(v), matmul(from_lower(tan), v))
    equal = equal_values(val, w, "eigh: a second derivative through eigenvectors" + ADVICE)
    turn = quotient(off_diagonal(p), _differences(w), equal, [(p, tan)], "eigh: forward mode" + ADVICE)
    return concatenate([sum(p * np.eye(shape_of(w)[-1]), -1)[..., None, :], matmul(v, turn)], -2)


ADVICE = (
    " at equal eigenvalues is undefined, or unknown from these eigenvectors; use eigvalsh or svdvals for functions "
    "of the values alone, and expm, inv, solve, cholesky or det for functions of the whole matrix"
)


_eigh = function_gradients(_eigh_value, reverse=(_eigh_back,), forward=(_eigh_along,), name="eigh", fresh=True)


def _triangle(name: str, a: Value, uplo: str) -> Value:
    a = square(name, a)
    if uplo not in ("L", "U"):
        raise ValueError(f"{name}: argument UPLO: expected 'L' or 'U', got {uplo!r:.60}")
    return a if uplo == "L" else t(a)


def eigh(a: Value, UPLO: str = "L") -> EighResult:  # numpy's name
    """(w, V) with A = V diag(w) Vᵀ for a symmetric A of shape (..., n, n). Reads one triangle, see `linalg`.

    Source: Giles (2008), section 3.1. At equal eigenvalues see the conventions of this module.
    """
    a = _triangle("eigh", a, UPLO)
    both = _eigh(a, basis=direction_basis(a))
    return EighResult(both[..., 0, :], both[..., 1:, :])
