"""Norms of vectors and matrices, with numpy's orders, and quadratic forms.

Conventions where a norm has no derivative (each is an element of the subdifferential): 0 at x = 0 for every order;
equal largest or smallest elements share the derivative; a singular value of 0 has derivative 0. The count of non-zeros
(order 0) has derivative 0 everywhere.

Quadratic forms have the names of the Stan Math library, and are one node each. A has shape (..., n, n); B is a vector
(n,) or has shape (..., n, k); stacks broadcast as in matmul. Derivatives: Giles (2008), section 2.3.2, for C = Bᵀ A B:

    Ā = B C̄ Bᵀ,   B̄ = A B C̄ᵀ + Aᵀ B C̄,   Ċ = Ḃᵀ A B + Bᵀ Ȧ B + Bᵀ A Ḃ
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.rule import Rule, Value, own_gradients
from adbench.tape.linalg.singular.singular_values import svdvals
from adbench.tape.linalg.solving import cover, square, t
from adbench.tape.rules.elementwise import absolute, multiply, power, where
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import max, min, norm2, sum  # numpy's names
from adbench.tape.rules.shapes import Axes, asarray, keep_axes, moveaxis, normal_axes, ravel, reshape, sum_to
from adbench.tape.values import shape_of, value_of


def _p_norm(x: Value, p: float, axes: tuple[int, ...]) -> Value:
    """(Σ |x|ᵖ)^(1/p), scaled by the largest element. The scale cancels, so the derivative treats it as a constant."""
    size = absolute(x)
    plain = value_of(size)
    pick = np.maximum.reduce if p > 0.0 else np.minimum.reduce
    scale = pick(plain, axes, keepdims=True)
    scale = np.where((scale == 0.0) | ~np.isfinite(scale), 1.0, scale)
    is_zero = plain == 0.0
    if p > 0.0:  # |x|ᵖ has no finite slope at 0 for p < 1, and the convention is 0
        size = where(is_zero, 1.0, size)
    terms = power(size / scale, p)
    if p > 0.0:
        terms = where(is_zero, 0.0, terms)
    total = sum(terms, axes)
    empty = value_of(total) == 0.0
    root = where(empty, 0.0, power(where(empty, 1.0, total), 1.0 / p))
    return multiply(root, np.reshape(scale, shape_of(root)))


def vector_norm(x: Value, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Value:  # numpy's name
    """(Σ |x|ᵖ)^(1/p) over the axes (by default all), with p = `ord`. ±inf gives the largest or smallest |x|.

    2: x̄ = ȳ x / y, and 0 at x = 0.
    """
    x = asarray(x)
    axes = normal_axes(axis, len(shape_of(x)))
    if isinstance(ord, str) or ord is None:
        raise ValueError(f"vector_norm: argument ord: expected a number, got {ord!r:.60}")
    if not shape_of(x):
        y = absolute(x)
    elif ord == 2:
        y = norm2(x, axes=axes)
    elif ord == np.inf:
        y = max(absolute(x), axes)
    elif ord == -np.inf:
        y = min(absolute(x), axes)
    elif ord == 0:
        y = np.sum(value_of(x) != 0.0, axes, dtype=float)
    elif ord == 1:
        y = sum(absolute(x), axes)
    else:
        y = _p_norm(x, float(ord), axes)
    return keep_axes(y, x, axes) if keepdims else y


def matrix_norm(x: Value, keepdims: bool = False, ord: Any = "fro") -> Value:  # numpy's name
    """A norm of each matrix of a stack, (..., m, n) -> (...).

    "fro"   √Σx²                    "nuc"   the sum of the singular values
    2, -2   the largest and the smallest singular value
    1, -1   the largest and the smallest sum of |x| in a column
    ±inf    the largest and the smallest sum of |x| in a row
    """
    x = asarray(x)
    ndim = len(shape_of(x))
    if ndim < 2:
        raise ValueError(f"matrix_norm: argument x: expected matrices (..., m, n), got shape {shape_of(x)}")
    axes = (ndim - 2, ndim - 1)
    if ord in (None, "fro"):
        y = norm2(x, axes=axes)
    elif ord == "nuc":
        y = sum(svdvals(x), -1)
    elif ord in (2, -2):
        y = (max if ord > 0 else min)(svdvals(x), -1)
    elif ord in (1, -1, np.inf, -np.inf):
        y = (max if ord > 0 else min)(sum(absolute(x), -2 if abs(ord) == 1 else -1), -1)
    else:
        raise ValueError(f"matrix_norm: argument ord: expected 'fro', 'nuc', ±1, ±2 or ±inf, got {ord!r:.60}")
    return keep_axes(y, x, axes) if keepdims else y


def norm(x: Value, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Value:  # numpy's name
    """numpy.linalg.norm: √Σx² over the axes (by default all), or the norm of another order.

    With an order, it is the vector norm over one axis or the matrix norm over two; see `vector_norm`, `matrix_norm`.
    """
    x = asarray(x)
    ndim = len(shape_of(x))
    if ord is None:
        return vector_norm(ravel(x) if axis is None and not keepdims else x, axis, keepdims)
    axes = normal_axes(axis, ndim)
    if len(axes) == 1:
        return vector_norm(x, axes, keepdims, ord)
    if len(axes) != 2:
        raise ValueError(f"norm: argument axis: expected one or two axes with an order, got {len(axes)}")
    y = matrix_norm(moveaxis(x, axes, (-2, -1)), False, ord)
    return keep_axes(y, x, axes) if keepdims else y


_form: Rule = own_gradients(
    lambda a, b: np.swapaxes(b, -1, -2) @ a @ b,
    reverse=(
        lambda _c, adj, _a, b: sum_to(matmul(matmul(b, adj), t(b)), shape_of(_a)),
        lambda _c, adj, a, b: sum_to(matmul(matmul(a, b), t(adj)) + matmul(matmul(t(a), b), adj), shape_of(b)),
    ),
    forward=(
        lambda _c, tan, _a, b: _form(tan, b),
        lambda _c, tan, a, b: matmul(t(tan), matmul(a, b)) + matmul(t(b), matmul(a, tan)),
    ),
    name="quad_form",
)

_trace: Rule = own_gradients(
    lambda a, b: np.add.reduce(b * (a @ b), (-2, -1)),
    reverse=(
        lambda _c, adj, _a, b: sum_to(cover(adj) * matmul(b, t(b)), shape_of(_a)),
        lambda _c, adj, a, b: sum_to(cover(adj) * matmul(a + t(a), b), shape_of(b)),
    ),
    forward=(
        lambda _c, tan, _a, b: _trace(tan, b),
        lambda _c, tan, a, b: sum(tan * matmul(a + t(a), b), (-2, -1)),
    ),
    name="trace_quad_form",
)


def _arguments(name: str, a: Value, b: Value) -> tuple[Value, Value, bool]:
    """The checked A and B, with B as matrices, and whether B was a vector."""
    a, b = square(name, a), asarray(b)
    is_vector = len(shape_of(b)) == 1
    b = reshape(b, (-1, 1)) if is_vector else b
    if len(shape_of(b)) < 2 or shape_of(b)[-2] != shape_of(a)[-1]:
        n = shape_of(a)[-1]
        raise ValueError(f"{name}: argument b: expected shape ({n},) or (..., {n}, k), got {shape_of(b)}")
    return a, b, is_vector


def quad_form(a: Value, b: Value) -> Value:
    """Bᵀ A B, shape (..., k, k). If B is a vector, one number per matrix, shape (...)."""
    a, b, is_vector = _arguments("quad_form", a, b)
    c = _form(a, b)
    return reshape(c, shape_of(c)[:-2]) if is_vector else c


def quad_form_sym(a: Value, b: Value) -> Value:
    """Bᵀ A B for a symmetric A, made exactly symmetric: (C + Cᵀ)/2. Raises ValueError if A is not symmetric.

    The derivative in A is that of the formula in all entries: a symmetric matrix.
    """
    a, b, is_vector = _arguments("quad_form_sym", a, b)
    plain = value_of(a)
    off = np.max(np.abs(plain - np.swapaxes(plain, -1, -2)), initial=0.0)
    if not off <= 1e-8 * np.max(np.abs(plain), initial=0.0):
        raise ValueError(f"quad_form_sym: argument a: expected a symmetric matrix, got differences up to {off:.3g}")
    c = _form(a, b)
    return reshape(c, shape_of(c)[:-2]) if is_vector else 0.5 * (c + t(c))


def trace_quad_form(a: Value, b: Value) -> Value:
    """tr(Bᵀ A B), shape (...); Ā = C̄ B Bᵀ, B̄ = C̄ (A + Aᵀ) B."""
    a, b, _ = _arguments("trace_quad_form", a, b)
    return _trace(a, b)
