"""Norms of vectors and matrices, with numpy's orders.

Conventions where a norm has no derivative (each is an element of the subdifferential): 0 at x = 0 for every order;
equal largest or smallest elements share the derivative; a singular value of 0 has derivative 0. The count of non-zeros
(order 0) has derivative 0 everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.rule import Value
from adbench.tape.linalg.singular.singular_values import svdvals
from adbench.tape.rules.elementwise import absolute, multiply, power, where
from adbench.tape.rules.reductions import keeping_axes, max, min, norm2, sum  # numpy's names
from adbench.tape.rules.shapes import Axes, asarray, moveaxis, normal_axes, ravel
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
    return keeping_axes(y, x, axes) if keepdims else y


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
    return keeping_axes(y, x, axes) if keepdims else y


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
    return keeping_axes(y, x, axes) if keepdims else y
