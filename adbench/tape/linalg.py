"""Matrix functions, each one node, for matrices and stacks of matrices.

Source: M. Giles (2008), "An extended collection of matrix derivative results for forward and reverse mode automatic
differentiation"; for cholesky also I. Murray (2016), "Differentiation of the Cholesky decomposition".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .elementwise import absolute, power, where
from .plain import shape_of, value_of
from .products import matmul, outer
from .reductions import max, min, sum  # numpy's names for them
from .rule import AllInputs, Value, function_gradients
from .shapes import Axes, matrix_transpose, normal_axes, ravel, reshape, sum_to, tril

__all__ = ["cholesky", "det", "inv", "matmul", "matrix_transpose", "norm", "outer", "slogdet", "solve"]


def _t(a: Value) -> Value:
    return matrix_transpose(a)


inv = function_gradients(
    np.linalg.inv,
    reverse=(lambda c, adj, _a: -matmul(_t(c), matmul(adj, _t(c))),),
    forward=(lambda c, tan, _a: -matmul(c, matmul(tan, c)),),
    name="inv",
    fresh=True,
)
"""C = A⁻¹; Ā = -Cᵀ C̄ Cᵀ, Ċ = -C Ȧ C (Giles, section 2.2.3)."""


def _cover(scale: Value) -> Value:
    """A scalar per matrix as something that multiplies the matrices."""
    return reshape(scale, (*shape_of(scale), 1, 1)) if shape_of(scale) else scale


det = function_gradients(
    np.linalg.det,
    reverse=(lambda val, adj, a: _cover(adj * val) * _t(inv(a)),),
    forward=(lambda val, tan, a: val * sum(_t(inv(a)) * tan, (-2, -1)),),
    name="det",
    fresh=True,
)
"""C = det A; Ā = C̄ C A⁻ᵀ, Ċ = C tr(A⁻¹ Ȧ) (Giles, section 2.2.4); A must be invertible."""

_log_abs_det = function_gradients(
    lambda a: np.linalg.slogdet(a)[1],
    reverse=(lambda _v, adj, a: _cover(adj) * _t(inv(a)),),
    forward=(lambda _v, tan, a: sum(_t(inv(a)) * tan, (-2, -1)),),
    name="slogdet",
    fresh=True,
)


class SlogdetResult(NamedTuple):
    """The sign of a determinant, a plain number, and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


def slogdet(a: Value) -> SlogdetResult:
    """(sign det A, log |det A|); Ā = adj · A⁻ᵀ for the logarithm, whatever the sign."""
    return SlogdetResult(np.linalg.slogdet(value_of(a))[0][()], _log_abs_det(a))


def _is_vector(b: Value) -> bool:
    return len(shape_of(b)) == 1


def _column(b: Value) -> Value:
    return reshape(b, (*shape_of(b), 1)) if _is_vector(b) else b


def _solve_back(wanted: Sequence[bool], x: Value, adj: Value, a: Value, b: Value) -> tuple[Value, Value]:
    b_back = solve(_t(a), adj)
    a_back = -matmul(_column(b_back), _t(_column(x))) if wanted[0] else None
    return (a_back if a_back is None else sum_to(a_back, shape_of(a))), sum_to(b_back, shape_of(b))


def _solve_along(x: Value, tans: Sequence[Value], a: Value, _b: Value) -> Value:
    a_tan, b_tan = tans
    if a_tan is None:
        return solve(a, b_tan)
    right = -matmul(a_tan, x)
    return solve(a, right if b_tan is None else right + b_tan)


solve = function_gradients(
    np.linalg.solve,
    reverse=AllInputs(_solve_back),
    forward=AllInputs(_solve_along),
    name="solve",
    fresh=True,
)
"""X = A⁻¹ B; B̄ = A⁻ᵀ X̄, Ā = -B̄ Xᵀ, Ẋ = A⁻¹ (Ḃ - Ȧ X) (Giles, section 2.3.1)."""


def _lower_half(a: Value) -> Value:
    """The lower triangle with half the diagonal: Φ in Murray (2016)."""
    n = shape_of(a)[-1]
    return a * (np.tri(n) - 0.5 * np.eye(n))


def _cholesky_back(lower: Value, adj: Value, _a: Value) -> Value:
    """S = L⁻ᵀ Φ(Lᵀ L̄) L⁻¹, then what its two halves mean for the lower triangle, the only one that was read."""
    inner = _lower_half(matmul(_t(lower), tril(adj)))
    s = solve(_t(lower), _t(solve(_t(lower), _t(inner))))
    return _lower_half(s + _t(s))


def _cholesky_along(lower: Value, tan: Value, _a: Value) -> Value:
    half = _lower_half(tan)
    symmetric = half + _t(half)
    return matmul(lower, _lower_half(solve(lower, _t(solve(lower, symmetric)))))


cholesky = function_gradients(
    np.linalg.cholesky, reverse=(_cholesky_back,), forward=(_cholesky_along,), name="cholesky", fresh=True
)
"""A = L Lᵀ. Only the lower triangle of A is read, so the upper entries have derivative 0."""


# Norms

_norm2 = function_gradients(
    lambda x, axes: np.sqrt(np.add.reduce(np.square(x), axes)),
    reverse=(lambda val, adj, x, axes: _ratio(val, x, axes) * _over(adj, x, axes),),
    forward=(lambda val, tan, x, axes: sum(_ratio(val, x, axes) * tan, axes),),
    name="norm",
    fresh=True,
)


def _over(y: Value, x: Value, axes: tuple[int, ...]) -> Value:
    return reshape(y, tuple(1 if i in axes else n for i, n in enumerate(shape_of(x))))


def _ratio(val: Value, x: Value, axes: tuple[int, ...]) -> Value:
    """x / |x|, and 0 where x is 0."""
    length = _over(val, x, axes)
    return x / where(value_of(length) == 0.0, 1.0, length)


def norm(x: Value, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Value:  # numpy's name
    """The Euclidean (Frobenius) norm over the axes, or for vectors the p-norm; its derivative at 0 is taken as 0."""
    axes = normal_axes(axis, len(shape_of(x)))
    if len(axes) != 1 and ord not in (None, "fro"):
        if axis is not None or len(shape_of(x)) != 1:
            raise NotImplementedError(f"norm: order {ord!r} of a matrix is not differentiable here")
    if ord in (None, "fro") or (ord == 2 and len(axes) == 1):
        y = _norm2(x, axes=axes)
        return _over(y, x, axes) if keepdims else y
    if ord == np.inf:
        return max(absolute(x), axis, keepdims)
    if ord == -np.inf:
        return min(absolute(x), axis, keepdims)
    if ord == 1:
        return sum(absolute(x), axis, keepdims)
    return power(sum(power(absolute(x), float(ord)), axis, keepdims), 1.0 / float(ord))


def vector_norm(x: Value, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Value:
    """The p-norm of the elements along an axis, by default of all."""
    return norm(ravel(x) if axis is None else x, ord, -1 if axis is None else axis, keepdims)
