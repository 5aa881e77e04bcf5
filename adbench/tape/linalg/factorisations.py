"""Factorisations, each one node, for matrices and stacks of matrices: Cholesky, symmetric eigenvalues, SVD, QR.

A node has one result, so the factors of a matrix are blocks of one array on the tape.

Conventions
-----------
* `cholesky`, `eigh` and `eigvalsh` read only one triangle of A, the lower by default. The entries of the other triangle
have derivative exactly 0, and an off-diagonal entry that is read carries the weight of both of its positions. (For the
gradient in the space of symmetric matrices, take (G + Gᵀ)/2 of the result G.)
* At equal eigenvalues or singular values, vectors have no derivative; only functions that do not depend on their choice
do. Reverse mode gives the derivative of such a function if the group's vectors cancel out of it, as in tr(V exp(w) Vᵀ);
if it cannot know, it raises EqualEigenvaluesError. Forward mode of `eigh` chooses the vectors that the direction
singles out, and is right for every such function. Functions of the values alone are always safe with `eigvalsh` and
`svdvals`. A singular value of exactly 0 has derivative 0, like the absolute value.
* "Equal" means closer than 8 n rounding errors of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.rule import Active, AllInputs, Value, function_gradients
from adbench.tape.linalg.solving import diagonal_matrix, square, triangular
from adbench.tape.linalg.spectrum import (
    EqualEigenvaluesError,
    direction_basis,
    eigenvalue_rates,
    equal_pairs,
    is_symbol,
    quotient,
    surely,
    zero_pairs,
)
from adbench.tape.rules.elementwise import absolute, where
from adbench.tape.rules.indexing import diagonal
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import max as largest
from adbench.tape.rules.reductions import min as least
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import asarray, concatenate, flip, matrix_transpose, reshape, tril
from adbench.tape.singular import UNDEFINED
from adbench.tape.values import is_nested, shape_of, value_of

t = matrix_transpose


class EighResult(NamedTuple):
    """Eigenvalues in ascending order (..., n) and orthonormal eigenvectors as columns (..., n, n)."""

    eigenvalues: Value
    eigenvectors: Value


class SVDResult(NamedTuple):
    """A = U diag(S) Vh; S in descending order."""

    U: Value
    S: Value
    Vh: Value


class QRResult(NamedTuple):
    """A = Q R, Q with orthonormal columns and R upper triangular."""

    Q: Value
    R: Value


# Cholesky


def _lower_half(a: Value) -> Value:
    """The lower triangle with half the diagonal: Φ in Murray (2016)."""
    n = shape_of(a)[-1]
    return a * (np.tri(n) - 0.5 * np.eye(n))


def _as_lower(symmetric: Value) -> Value:
    """The gradient in the lower triangle, from that in a symmetric matrix: off-diagonal entries count twice."""
    return _lower_half(symmetric + t(symmetric))


def _from_lower(tan: Value) -> Value:
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
    return _as_lower(t(triangular(lower, t(left), lower=True, transposed=True)))


def _blocked_value(lower: Value, adj: Value) -> Value:
    """The same by blocks, from the last column to the first, mostly by matrix products (Murray 2016, section 3.3)."""
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
        found = adj[block, block] = _whole_adjoint(diagonal, adj[block, block])
        adj[block, above] -= (found + found.T) @ left
    return adj


def _blocked_back(
    wanted: Sequence[bool], val: Value, adj: Value, lower: Value, of_factor: Value
) -> tuple[Value, Value]:
    """For G = Φ(S + Sᵀ): R = Φ(L⁻¹ W L⁻ᵀ), W = Φ(Ḡ) + Φ(Ḡ)ᵀ; the adjoint of L̄ is L R, that of L is
    L̄ Rᵀ - (G + Gᵀ) W L⁻ᵀ."""
    half = triangular(lower, _from_lower(adj), lower=True, transposed=False)
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
    left = triangular(lower, _from_lower(tan), lower=True, transposed=False)
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


# Symmetric eigenvalues: one array (..., 1 + n, n), eigenvalues above eigenvectors


def _eigh_value(a: Value, basis: Value) -> Value:
    w, v = np.linalg.eigh(a)
    return np.concatenate([w[..., None, :], v if basis is None else v @ basis], -2)


def _needs_vectors(adj: Value) -> bool:
    """Whether any adjoint is not 0, or is active: an active 0 may have derivatives."""
    return isinstance(adj, Active) or bool(np.any(adj))


def _differences(w: Value) -> Value:
    """D[i, j] = w_j - w_i."""
    return w[..., None, :] - reshape(w, (*shape_of(w), 1))


def _off_diagonal(m: Value) -> Value:
    """Square matrices with 0 on the diagonal."""
    return where(np.eye(shape_of(m)[-1], dtype=bool), 0.0, m)


def _equal(val: Value, w: Value, what: str) -> Value:
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
    if _needs_vectors(adj[..., 1:, :]):
        m = matmul(t(v), adj[..., 1:, :])
        equal = _equal(val, w, "eigh: a second derivative through eigenvectors" + _ADVICE)
        off = _off_diagonal(m)
        evidence = [(m, adj[..., 1:, :])]
        inner = inner + quotient(0.5 * (off - t(off)), _differences(w), equal, evidence, "eigh" + _ADVICE)
    return _as_lower(matmul(v, matmul(inner, t(v))))


def _eigh_along(val: Value, tan: Value, _a: Value, basis: Value) -> Value:
    """ẇ = diag(VᵀȦV), V̇ = V (F ∘ VᵀȦV)."""
    w, v = val[..., 0, :], val[..., 1:, :]
    p = matmul(t(v), matmul(_from_lower(tan), v))
    equal = _equal(val, w, "eigh: a second derivative through eigenvectors" + _ADVICE)
    turn = quotient(_off_diagonal(p), _differences(w), equal, [(p, tan)], "eigh: forward mode" + _ADVICE)
    return concatenate([sum(p * np.eye(shape_of(w)[-1]), -1)[..., None, :], matmul(v, turn)], -2)


_ADVICE = (
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
    """(w, V) with A = V diag(w) Vᵀ for a symmetric A of shape (..., n, n). Reads one triangle, see the module.

    Source: Giles (2008), section 3.1. At equal eigenvalues see the conventions of this module.
    """
    a = _triangle("eigh", a, UPLO)
    both = _eigh(a, basis=direction_basis(a))
    return EighResult(both[..., 0, :], both[..., 1:, :])


def _eigvalsh_back(_w: Value, adj: Value, a: Value) -> Value:
    v = eigh(a).eigenvectors
    return _as_lower(matmul(v * adj[..., None, :], t(v)))


def _eigvalsh_along(w: Value, tan: Value, a: Value) -> Value:
    v = eigh(a).eigenvectors
    return eigenvalue_rates(w, matmul(t(v), matmul(_from_lower(tan), v)))


_eigvalsh = function_gradients(
    np.linalg.eigvalsh, reverse=(_eigvalsh_back,), forward=(_eigvalsh_along,), name="eigvalsh", fresh=True
)


def _eigvalsh_back_inside(w: Value, adj: Value, a: Value) -> Value:
    """`_eigvalsh_back` inside another derivative: raises if it would need one eigenvalue of a group of equal ones."""
    plain = value_of(adj)
    if np.any(equal_pairs(value_of(w)) & (plain[..., None, :] != plain[..., :, None])):
        raise EqualEigenvaluesError("eigvalsh: a second derivative by reverse mode of reverse mode" + _ADVICE)
    return _eigvalsh_back(w, adj, a)


_eigvalsh.inner = function_gradients(
    np.linalg.eigvalsh, reverse=(_eigvalsh_back_inside,), forward=(_eigvalsh_along,), name="eigvalsh", fresh=True
)


def eigvalsh(a: Value, UPLO: str = "L") -> Value:
    """The eigenvalues of a symmetric A in ascending order, (..., n, n) -> (..., n); Ā = V diag(w̄) Vᵀ.

    Among equal eigenvalues, the derivative of a single one is a convention; derivatives of symmetric functions are
    right.
    """
    return _eigvalsh(_triangle("eigvalsh", a, UPLO))


# Singular values: one array (..., m + 1 + n, k) with U, the values and V stacked, k = min(m, n)


def _svd_value(a: Value) -> Value:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([u, s[..., None, :], np.swapaxes(vh, -1, -2)], -2)


def _blocks(packed: Value, rows: int) -> tuple[Value, Value, Value]:
    return packed[..., :rows, :], packed[..., rows, :], packed[..., rows + 1 :, :]


_SVD = "svd" + _ADVICE.replace("eigenvectors", "singular vectors").replace("equal eigenvalues", "equal singular values")


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
    if not (_needs_vectors(u_adj) or _needs_vectors(v_adj)):
        return matmul(u, matmul(inner, t(v)))
    uu, vv = matmul(t(u), u_adj), matmul(t(v), v_adj)
    uu, vv = _off_diagonal(uu), _off_diagonal(vv)
    row, column = s[..., None, :], reshape(s, (*shape_of(s), 1))
    turned = (uu - t(uu)) * row + column * (vv - t(vv))
    evidence = [(uu, u_adj), (vv, v_adj)]
    equal = _equal(val, s, _SVD)
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
    off = _off_diagonal(p)
    row, column = s[..., None, :], reshape(s, (*shape_of(s), 1))
    gaps = (row - column) * (row + column)
    equal = _equal(val, s, _SVD)
    u_tan = matmul(u, quotient(off * row + column * t(off), gaps, equal, [(off, tan)], _SVD))
    v_tan = matmul(v, quotient(column * off + t(off) * row, gaps, equal, [(off, tan)], _SVD))
    if rows > k:
        u_tan = u_tan + _over(av - matmul(u, p), s, av)
    if columns > k:
        v_tan = v_tan + _over(atu - matmul(v, t(p)), s, atu)
    return concatenate([u_tan, sum(p * np.eye(k), -1)[..., None, :], v_tan], -2)


_svd = function_gradients(_svd_value, reverse=(_svd_back,), forward=(_svd_along,), name="svd", fresh=True)


def svd(a: Value, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> SVDResult | Value:
    """(U, S, Vh) with A = U diag(S) Vh, A of shape (..., m, n), k = min(m, n): (..., m, k), (..., k), (..., k, n).

    `full_matrices=True`, numpy's default, is differentiable only for square matrices, where it changes nothing: the
    additional columns of U or V are an arbitrary basis. Without `compute_uv`, this is `svdvals`.
    Source: Townsend (2016), "Differentiating the singular value decomposition".
    """
    a = _matrix("svd", a)
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


def _matrix(name: str, a: Value) -> Value:
    a = asarray(a)
    if len(shape_of(a)) < 2:
        raise np.linalg.LinAlgError(f"{name}: argument a: expected matrices (..., m, n), got shape {shape_of(a)}")
    return a


def _has_zero(s: Value, shape: tuple[int, ...]) -> bool:
    """Whether one of the singular values of a matrix of this shape is 0, up to rounding."""
    return bool(np.any(zero_pairs(s, (*shape[:-2], max(shape[-2:]), s.shape[-1]))))


def _is_tied(a: Value) -> bool:
    """Whether a plain matrix has equal singular values, but none of 0."""
    s = np.linalg.svd(a, compute_uv=False)
    return bool(np.any(equal_pairs(s))) and not _has_zero(s, a.shape)


def _around(a: Value) -> Value:
    """[[0, Aᵀ], [A, 0]], whose eigenvalues are -s, zeros if A is not square, and s, in ascending order."""
    *lead, rows, columns = shape_of(a)
    above = concatenate([np.zeros((*lead, columns, columns)), t(a)], -1)
    return concatenate([above, concatenate([a, np.zeros((*lead, rows, rows))], -1)], -2)


def _singular_vectors(a: Value) -> tuple[Value, Value, bool]:
    """(U, V, False), or (U, V, True) as constants if their own derivative is unknown."""
    plain = value_of(a)
    if is_nested(a) and not isinstance(plain, Active):
        packed = _svd_value(plain)
        u, s, v = _blocks(packed, plain.shape[-2])
        if np.any(equal_pairs(s)) or _has_zero(s, plain.shape):
            return u, v, True
    u, _, v = _blocks(_svd(a), shape_of(a)[-2])
    return u, v, False


def _has_direction(a: Value) -> bool:
    """Whether forward mode gives the direction that selects the vectors of equal singular values."""
    return isinstance(a, Dual) and type(a.val) is np.ndarray and _is_tied(a.val)


def _svdvals_back(s: Value, adj: Value, a: Value) -> Value:
    if _has_direction(a):
        *lead, rows, columns = shape_of(a)
        others = np.zeros((*lead, rows + columns - shape_of(adj)[-1]))
        return _eigvalsh_back(None, concatenate([others, flip(adj, -1)], -1), _around(a))[..., columns:, :columns]
    u, v, unknown = _singular_vectors(a)
    back = matmul(u * where(value_of(s) == 0.0, 0.0, adj)[..., None, :], t(v))
    return back + UNDEFINED(a, axes=tuple(range(len(shape_of(a)))), value=0.0) if unknown else back


def _svdvals_along(s: Value, tan: Value, a: Value) -> Value:
    if _has_direction(a):
        return _rates_around(s, tan, a)
    u, v, unknown = _singular_vectors(a)
    along = where(value_of(s) == 0.0, 0.0, sum(u * matmul(tan, v), -2))
    return along + UNDEFINED(a, axes=tuple(range(len(shape_of(a)))), value=math.nan) if unknown else along


def _rates_around(s: Value, tan: Value, a: Value) -> Value:
    """ṡ of equal values in the order of the vectors that the direction selects, see `direction_basis`."""
    plain = value_of(s)
    zeros = np.zeros((*plain.shape[:-1], abs(shape_of(a)[-2] - shape_of(a)[-1])))
    w = np.concatenate([-plain, zeros, np.flip(plain, -1)], -1)
    return flip(_eigvalsh_along(w, _around(tan), _around(a))[..., -plain.shape[-1] :], -1)


def _svdvals_along_inside(s: Value, tan: Value, a: Value) -> Value:
    """`_svdvals_along` inside another derivative."""
    return _rates_around(s, tan, a) if type(a) is np.ndarray and _is_tied(a) else _svdvals_along(s, tan, a)


def _svdvals_value(a: Value) -> Value:
    return np.linalg.svd(a, compute_uv=False)


_svdvals = function_gradients(
    _svdvals_value, reverse=(_svdvals_back,), forward=(_svdvals_along,), name="svdvals", fresh=True
)
_svdvals.inner = function_gradients(
    _svdvals_value, reverse=(_svdvals_back,), forward=(_svdvals_along_inside,), name="svdvals", fresh=True
)


def svdvals(a: Value) -> Value:
    """The singular values in descending order, (..., m, n) -> (..., k); Ā = U diag(s̄) Vᵀ. A 0 has derivative 0."""
    return _svdvals(_matrix("svdvals", a))


# QR: one array (..., m + k, k) with Q above Rᵀ, for m >= n = k


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
    a = _matrix("qr", a)
    rows, columns = shape_of(a)[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and rows <= columns):
        raise NotImplementedError(f"qr: argument mode: expected 'reduced' or 'r', got {mode!r:.60}")
    k = min(rows, columns)
    both = _qr(a if columns == k else a[..., :k])
    q, r = both[..., :rows, :], t(both[..., rows:, :])
    if columns > k:
        r = concatenate([r, matmul(t(q), a[..., k:])], -1)
    return r if mode == "r" else QRResult(q, r)
