"""Inverses, linear systems, determinants and the matrix exponential, one node each.

A has shape (..., n, n); leading axes are a stack and broadcast as in numpy. Overbars are adjoints, dots are tangents.
Derivatives come from M. Giles (2008), "An extended collection of matrix derivative results for forward and reverse mode
automatic differentiation", unless another source is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adbench.tape.core.rule import Active, AllInputs, Value, function_gradients, own_gradients
from adbench.tape.lazy import scipy_linalg
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import asarray, broadcast_to, concatenate, matrix_transpose, reshape, sum_to, tril, triu
from adbench.tape.values import shape_of, value_of

t = matrix_transpose


def cover(scale: Value) -> Value:
    """One factor per matrix, shape (...), reshaped to (..., 1, 1) to multiply the matrices."""
    return reshape(scale, (*shape_of(scale), 1, 1)) if shape_of(scale) else scale


def diagonal_matrix(d: Value) -> Value:
    """diag(d) for each vector of a stack: shape (..., n) -> (..., n, n)."""
    return reshape(d, (*shape_of(d), 1)) * np.eye(shape_of(d)[-1])


def square(name: str, a: Value) -> Value:
    """The argument as one value. Raises LinAlgError unless it is a square matrix or a stack of them."""
    a = asarray(a)
    shape = shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise np.linalg.LinAlgError(f"{name}: argument a: expected square matrices (..., n, n), got shape {shape}")
    return a


def matrix(name: str, a: Value) -> Value:
    """The argument as one value. Raises LinAlgError unless it is a matrix or a stack of them."""
    a = asarray(a)
    if len(shape_of(a)) < 2:
        raise np.linalg.LinAlgError(f"{name}: argument a: expected matrices (..., m, n), got shape {shape_of(a)}")
    return a


_inv = own_gradients(
    np.linalg.inv,
    reverse=(lambda c, adj, _a: -matmul(t(c), matmul(adj, t(c))),),
    forward=(lambda c, tan, _a: -matmul(c, matmul(tan, c)),),
)


def inv(a: Value) -> Value:
    """C = A⁻¹, (..., n, n); Ā = -Cᵀ C̄ Cᵀ, Ċ = -C Ȧ C (section 2.2.3). Raises LinAlgError for a singular A."""
    return _inv(square("inv", a))


def _pinv_back(c: Value, adj: Value, a: Value, **_rcond: Any) -> Value:
    back = -matmul(t(c), matmul(adj, t(c)))
    ca, ac = matmul(c, a), matmul(a, c)
    back = back + matmul(t(adj) - matmul(ac, t(adj)), matmul(c, t(c)))
    return back + matmul(matmul(t(c), c), t(adj) - matmul(t(adj), ca))


def _pinv_along(c: Value, tan: Value, a: Value, **_rcond: Any) -> Value:
    ca, ac = matmul(c, a), matmul(a, c)
    left, right = matmul(matmul(c, t(c)), t(tan)), matmul(t(tan), matmul(t(c), c))
    return left - matmul(left, ac) + right - matmul(ca, right) - matmul(c, matmul(tan, c))


_pinv = own_gradients(
    lambda a, rcond: np.linalg.pinv(a, rcond), reverse=(_pinv_back,), forward=(_pinv_along,), name="pinv"
)


def pinv(a: Value, rcond: float | None = None) -> Value:
    """The pseudo-inverse C = A⁺, (..., m, n) -> (..., n, m); singular values under rcond times the largest count as 0.

    Ċ = -C Ȧ C + C Cᵀ Ȧᵀ (I - A C) + (I - C A) Ȧᵀ Cᵀ C while the rank stays the same. Without full rank, this is the
    derivative within the matrices of the same rank.
    Source: Golub & Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate".
    """
    a = asarray(a)
    return _pinv(a, rcond=max(shape_of(a)[-2:]) * 2.0**-52 if rcond is None else float(rcond))


# Linear systems


def _column(b: Value, is_vector: bool) -> Value:
    return reshape(b, (*shape_of(b), 1)) if is_vector else b


def _flat(x: Value, is_vector: bool) -> Value:
    return reshape(x, shape_of(x)[:-1]) if is_vector else x


def _is_vector(b: Value) -> bool:
    """Numpy's rule: b of one axis is a vector for every matrix of the stack, else a stack of matrices."""
    return len(shape_of(b)) == 1


def _triangle(a: Value, lower: bool | None) -> Value:
    """The triangle that is read; all of A if `lower` is None."""
    return a if lower is None else tril(a) if lower else triu(a)


def _solved(a: Value, b: Value, lower: bool | None, transposed: bool) -> Value:
    """A⁻¹ B or, if `transposed`, A⁻ᵀ B, for a triangle of A or for all of it."""
    if lower is None:
        return solve(t(a) if transposed else a, b)
    return triangular(a, b, lower=lower, transposed=transposed)


def _system_back(
    wanted: Sequence[bool],
    x: Value,
    adj: Value,
    a: Value,
    b: Value,
    lower: bool | None = None,
    transposed: bool = False,
) -> tuple[Value, Value]:
    is_vector = _is_vector(b)
    b_back = _solved(a, _column(adj, is_vector), lower, not transposed)
    a_back = None
    if wanted[0]:
        columns = _column(x, is_vector)
        full = matmul(columns, t(b_back)) if transposed else matmul(b_back, t(columns))
        a_back = -_triangle(sum_to(full, shape_of(a)), lower)
    return a_back, sum_to(_flat(b_back, is_vector), shape_of(b)) if wanted[1] else None


def _system_along(
    x: Value, tans: Sequence[Value], a: Value, b: Value, lower: bool | None = None, transposed: bool = False
) -> Value:
    a_tan, b_tan = tans
    is_vector = _is_vector(b)
    right = None if b_tan is None else _column(b_tan, is_vector)
    if a_tan is not None:
        half = _triangle(a_tan, lower)
        moved = matmul(t(half) if transposed else half, _column(x, is_vector))
        right = -moved if right is None else right - moved
    return _flat(_solved(a, right, lower, transposed), is_vector)


_solve = own_gradients(np.linalg.solve, reverse=AllInputs(_system_back), forward=AllInputs(_system_along))


def solve(a: Value, b: Value) -> Value:
    """X = A⁻¹ B; B̄ = A⁻ᵀ X̄, Ā = -B̄ Xᵀ, Ẋ = A⁻¹ (Ḃ - Ȧ X) (section 2.3.1).

    B of shape (n,) is a vector. Any other B is a stack of matrices (..., n, k), which broadcasts with the stack of A.
    Raises LinAlgError for a singular A.
    """
    return _solve(square("solve", a), asarray(b))


def _triangular_value(a: Value, b: Value, lower: bool, transposed: bool) -> Value:
    """Scipy's triangular solver for every matrix of a stack. It does not read the other triangle of a."""
    is_vector = b.ndim == 1
    columns = b[:, None] if is_vector else b
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    if not batch:
        x = _one_triangular(a, columns, lower, transposed)
    else:
        x = np.empty((*batch, *columns.shape[-2:]))
        matrices = np.broadcast_to(a, (*batch, *a.shape[-2:]))
        right = np.broadcast_to(columns, x.shape)
        for place in np.ndindex(batch):
            x[place] = _one_triangular(matrices[place], right[place], lower, transposed)
    return x[..., 0] if is_vector else x


def _one_triangular(a: Value, b: Value, lower: bool, transposed: bool) -> Value:
    if not b.size:
        return np.zeros(b.shape)
    return scipy_linalg.solve_triangular(a, b, trans="T" if transposed else "N", lower=lower, check_finite=False)


triangular = own_gradients(
    _triangular_value, reverse=AllInputs(_system_back), forward=AllInputs(_system_along), name="solve_triangular"
)


def solve_triangular(a: Value, b: Value, *, lower: bool = False, transposed: bool = False) -> Value:
    """X = T⁻¹ B, or T⁻ᵀ B if `transposed`, where T is the lower or upper triangle of A; shapes as for `solve`.

    The other triangle of A has derivative exactly 0. B̄ = T⁻ᵀ X̄, T̄ = -tri(B̄ Xᵀ).
    Raises LinAlgError if the diagonal holds a zero.
    """
    return triangular(square("solve_triangular", a), asarray(b), lower=bool(lower), transposed=bool(transposed))


# Determinants


def invertible(name: str, a: Value) -> Value:
    """A⁻¹; for a singular A, an error that names the function."""
    try:
        return _inv(a)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"{name} needs an invertible matrix; this one is singular") from None


_log_abs_det = own_gradients(
    lambda a: np.linalg.slogdet(a)[1],
    reverse=(lambda _v, adj, a: cover(adj) * t(invertible("slogdet: the derivative of log |det A|", a)),),
    forward=(lambda _v, tan, a: sum(t(invertible("slogdet: the derivative of log |det A|", a)) * tan, (-2, -1)),),
    name="slogdet",
)

_sign_of_det = function_gradients(
    lambda a: np.linalg.slogdet(a)[0][()],
    reverse=(lambda _v, _adj, _a: 0.0,),
    forward=(lambda v, _tan, _a: 0.0 * v,),
    name="sign of det",
)


class SlogdetResult(NamedTuple):
    """The sign of a determinant, a plain number, and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


def slogdet(a: Value) -> SlogdetResult:
    """(sign det A, log |det A|); Ā = adj · A⁻ᵀ for the logarithm, for either sign. The sign is a constant."""
    a = square("slogdet", a)
    return SlogdetResult(_sign_of_det(value_of(a)), _log_abs_det(a))


def log_determinant(a: Value) -> Value:
    """log |det A|, shape (...); -inf for a singular A, where the derivative raises LinAlgError."""
    return _log_abs_det(square("log_determinant", a))


def matrix_power(a: Value, n: int) -> Value:
    """Aⁿ for an integer n by repeated squaring; for a negative n, a power of A⁻¹."""
    a = square("matrix_power", a)
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"matrix_power: argument n: expected an integer, got {n!r:.60}")
    if n < 0:
        a, n = inv(a), -n
    result: Value = None
    while n:
        if n & 1:
            result = a if result is None else matmul(result, a)
        n >>= 1
        if n:
            a = matmul(a, a)
    # A⁰ = I, a constant for every A.
    return broadcast_to(np.eye(shape_of(a)[-1]), shape_of(a)) if result is None else result


def _frechet(a: Value, e: Value) -> Value:
    """The derivative of exp at A along E: the upper right block of exp [[A, E], [0, A]].

    It is linear in E, so E is scaled: the exponential of a block with large entries loses digits in all others.
    """
    n = shape_of(a)[-1]
    zero, size = np.zeros(shape_of(a)), _size(e)
    block = concatenate([concatenate([a, e / size], -1), concatenate([zero, a], -1)], -2)
    return _expm(block)[..., :n, n:] * size


def _size(e: Value) -> Value:
    """A power of two near the largest entry of each matrix; 1 while compiling, where the entries are unknown."""
    plain = value_of(e)
    if isinstance(plain, Active):
        return 1.0
    most = np.max(np.abs(plain), axis=(-2, -1), keepdims=True, initial=0.0)
    return np.where((most > 0.0) & np.isfinite(most), np.ldexp(1.0, np.frexp(most)[1]), 1.0)


_expm = own_gradients(
    lambda a: scipy_linalg.expm(a),
    reverse=(lambda _v, adj, a: _frechet(t(a), adj),),
    forward=(lambda _v, tan, a: _frechet(a, tan),),
    name="expm",
)


def expm(a: Value) -> Value:
    """exp A = Σ Aᵏ/k!. Its derivative along E is a block of exp [[A, E], [0, A]], and the transpose of that at Aᵀ.

    Correct at equal eigenvalues, unlike a computation through `eigh`.
    Sources: Giles (2008), section 2.3.5; Higham (2008), "Functions of matrices", section 3.2, for the block.
    """
    return _expm(square("expm", a))
