"""Eigenvalues above eigenvectors of symmetric matrices: one node, an array (..., 1 + n, n).

At equal eigenvalues, vectors have no derivative; only functions that do not depend on their choice do. Reverse mode
gives the derivative of such a function if the group's vectors cancel out of it, as in tr(V exp(w) Vᵀ); if it cannot
know, it raises EqualEigenvaluesError. Forward mode of `eigh` chooses the vectors that the direction singles out, and is
right for every such function. Functions of the values alone are always safe with `eigvalsh`. "Equal" means closer than
8 n rounding errors of the largest. The same holds for singular values (`singular_values`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adbench.tape.core.rule import Active, TapeError, Value, own_gradients
from adbench.tape.linalg.solving import diagonal_matrix, square, t
from adbench.tape.linalg.triangular_factors import as_lower, from_lower
from adbench.tape.rules.elementwise import absolute, where
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import max, min, sum  # numpy's names
from adbench.tape.rules.shapes import concatenate, reshape
from adbench.tape.singular import is_symbol, some, surely
from adbench.tape.values import shape_of, value_of

Evidence = Sequence[tuple[Value, Value]]

_ROUNDINGS = 8.0
"""Values are equal if they differ by at most this many rounding errors, times n, of the largest."""

_NOTHING = 2.0**-36
"""A numerator this small relative to its neighbours counts as rounding."""


class EqualEigenvaluesError(TapeError, np.linalg.LinAlgError):
    """Eigenvalues or singular values are equal, so the derivative through their vectors does not exist."""


def equal_pairs(w: Value) -> Value:
    """Whether w[i] and w[j] are equal up to rounding, for each i ≠ j: (..., n) -> (..., n, n), w in order.

    Symbols of compiled code are all different: it checks this.
    """
    n = w.shape[-1]
    if is_symbol(w):
        if n > 1:
            gaps, sizes = absolute(w[..., 1:] - w[..., :-1]), max(absolute(w), -1, keepdims=True)
            surely(min(gaps - _ROUNDINGS * n * 2.0**-53 * sizes) > 0.0, w, "a decision on equal eigenvalues")
        return np.zeros((*w.shape, n), bool)
    return close_pairs(w)


def close_pairs(w: Value) -> Value:
    """`equal_pairs` without a decision: of a symbol, a condition."""
    n = shape_of(w)[-1]
    if not n:
        return np.zeros((*shape_of(w), n), bool)
    gaps = absolute(w[..., None, :] - reshape(w, (*shape_of(w), 1)))
    near = gaps <= _ROUNDINGS * n * 2.0**-53 * max(absolute(w), -1, keepdims=True)[..., None]
    return np.logical_and(near, ~np.eye(n, dtype=bool))


def zero_pairs(s: Value, shape: tuple[int, ...]) -> Value:
    """A mask of this shape: the columns that belong to a singular value of 0. Symbols are not 0, see `equal_pairs`."""
    if is_symbol(s):
        largest = max(s, -1, keepdims=True)
        surely(min(s - _ROUNDINGS * np.max(shape[-2:]) * 2.0**-53 * largest) > 0.0, s, "a decision on singular values")
        return np.zeros(shape, bool)
    return np.broadcast_to(close_to_zero(s, shape)[..., None, :], shape)


def close_to_zero(s: Value, shape: tuple[int, ...]) -> Value:
    """Which singular values of a matrix of this shape are 0, up to rounding; of symbols, a condition."""
    if not shape_of(s)[-1]:
        return np.zeros(shape_of(s), bool)
    return s <= _ROUNDINGS * np.max(shape[-2:]) * 2.0**-53 * max(s, -1, keepdims=True)


def quotient(numerator: Value, gaps: Value, equal: Value, evidence: Evidence, what: str) -> Value:
    """numerator / gaps, and 0 where two values are equal or a gap is 0, provided the evidence there is only rounding.

    The evidence is everything that could make the derivative depend on the vectors of the equal values: pairs of
    matrices and their source. If it exceeds rounding, the derivative does not exist or is unknown: raises
    EqualEigenvaluesError with the text `what`.
    """
    if np.any(equal):
        for matrices, source in evidence:
            largest = np.max(np.abs(value_of(source)), (-2, -1), keepdims=True, initial=0.0)
            if np.any(equal & (np.abs(value_of(matrices)) > _NOTHING * largest)):
                raise EqualEigenvaluesError(what)
    return divided(numerator, gaps, equal | (value_of(gaps) == 0.0))


def divided(numerator: Value, denominator: Value, skipped: Value) -> Value:
    """numerator / denominator, and 0 where `skipped` holds."""
    return where(skipped, 0.0, numerator / where(skipped, 1.0, denominator))


def _groups(equal: Value) -> list[slice]:
    """The runs of two or more equal values, which are neighbours because they are sorted."""
    linked = np.diagonal(equal, 1)
    groups, start = [], 0
    for i in range(len(linked) + 1):
        if i == len(linked) or not linked[i]:
            if i > start:
                groups.append(slice(start, i + 1))
            start = i + 1
    return groups


def direction_basis(a: Value) -> Value:
    """For forward mode at equal eigenvalues: Q, such that the direction singles out the columns of V Q.

    Any orthonormal basis of the eigenspace holds eigenvectors of A. The basis that continues along A + εȦ, and so has a
    derivative, diagonalises VᵀȦV within the space (Rellich). Returns None, meaning the identity, in all other cases.
    """
    tangent = None
    while isinstance(a, Active) and tangent is None and not a.symbolic:
        tangent = getattr(a, "tangent", None)
        a = a.val
    plain, along = value_of(a), value_of(tangent)
    if tangent is None:
        return None
    w, v = np.linalg.eigh(plain)
    equal = equal_pairs(w)
    if not np.any(equal):
        return None
    lower = np.tril(along)
    symmetric = lower + np.swapaxes(np.tril(along, -1), -1, -2)
    p = np.swapaxes(v, -1, -2) @ symmetric @ v
    basis = np.broadcast_to(np.eye(w.shape[-1]), p.shape).copy()
    for place in np.ndindex(w.shape[:-1]):
        for group in _groups(equal[place]):
            basis[(*place, group, group)] = np.linalg.eigh(p[(*place, group, group)])[1]
    return basis


def eigenvalue_rates(w: Value, p: Value) -> Value:
    """ẇ from P = VᵀȦV: its diagonal, or for a group of equal eigenvalues the eigenvalues of their block of P."""
    plain = value_of(p)
    rates = sum(p * np.eye(plain.shape[-1]), -1)
    equal = equal_pairs(value_of(w))
    if isinstance(p, Active) or not np.any(equal):
        return rates
    for place in np.ndindex(equal.shape[:-2]):
        for group in _groups(equal[place]):
            rates[(*place, group)] = np.linalg.eigvalsh(plain[(*place, group, group)])
    return rates


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


_eigh = own_gradients(_eigh_value, reverse=(_eigh_back,), forward=(_eigh_along,), name="eigh")


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
