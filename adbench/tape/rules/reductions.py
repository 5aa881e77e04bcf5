"""Reductions along axes, and cumulative functions.

Conventions: `max` and `min` share their derivative equally among the elements that attain them (the parts sum to 1).
`prod` and `cumprod` are right with any number of zeros. `std` of equal elements has derivative 0. `logsumexp` gives
weight 0 to elements of -inf, even if all are.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Rule, Value, own_gradients
from adbench.tape.numpy_names import publish
from adbench.tape.rules.elementwise import exp_difference, sqrt, square, stop_gradient, where
from adbench.tape.rules.indexing import diagonal
from adbench.tape.rules.shapes import (
    Axes,
    Shape,
    asarray,
    broadcast_to,
    concatenate,
    flip,
    keep_axes,
    linear,
    moveaxis,
    normal_axes,
    ravel,
    reshape,
    stack,
)
from adbench.tape.singular import along_direction, direction, irregular, may_change, some, strict, undefined
from adbench.tape.values import ONE, all_finite, any_active, is_nested, shape_of, value_of


def _back(adj: Value, x: Value, axes: Shape | None) -> Value:
    """A reduced adjoint repeated along the reduced axes of x; None means all axes."""
    shape = shape_of(x)
    return broadcast_to(adj if axes is None or len(axes) == len(shape) else keep_axes(adj, x, axes), shape)


def _shared(adj: Value, share: Value, axes: Shape) -> Value:
    """adj · share for every element; 0 where the share is a plain 0, also of an infinite adjoint."""
    return _weighted(_back(adj, share, axes), share)


def _weighted(adj: Value, share: Value) -> Value:
    """adj · share, elementwise; 0 where the share is a plain 0, also of an infinite or unknown factor."""
    part, plain = adj * share, value_of(adj)
    if isinstance(plain, Active):
        wins = getattr(plain, "careful", False) and not may_change(share)
        return where(share == 0.0, 0.0, part) if wins else part
    if isinstance(share, Active) or all_finite(plain):
        return part
    return where(share == 0.0, 0.0, part)


def _over_axes(rule: Rule, law: str) -> Callable[..., Value]:
    """The function of a rule, with numpy's parameters."""

    def reduced(x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
        x = asarray(x)
        axes = normal_axes(axis, len(shape_of(x)))
        y = rule(x, axes=axes)
        return keep_axes(y, x, axes) if keepdims else y

    reduced.__name__, reduced.__doc__ = rule.name, law
    return reduced


# Sums

_sum = linear(
    lambda x, axes: np.add.reduce(x, axes),
    lambda _v, adj, _x, axes: _back(adj, _x, axes),
    "sum",
    slope=ONE,
)


_sum_over = _over_axes(_sum, "Σ x over the axes.")


def sum(x: Value, axis: Axes = None, keepdims: bool = False) -> Value:  # numpy's name
    """Σ x over the axes, by default all; the adjoint is repeated along them."""
    if axis is None and not keepdims and isinstance(x, Active):
        return _sum(x, axes=None)
    return _sum_over(x, axis, keepdims)


def _count(x: Value, axis: Axes) -> int:
    shape = shape_of(x)
    return math.prod(shape[i] for i in normal_axes(axis, len(shape)))


def mean(x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """Σ x / n over the axes."""
    x = asarray(x)
    return sum(x, axis, keepdims) / _count(x, axis)


def _freedom(ddof: float, correction: float | None) -> float:
    if correction is not None and ddof:
        raise ValueError(f"give ddof or correction, which mean the same; got {ddof} and {correction}")
    return ddof if correction is None else correction


def var(
    x: Value, axis: Axes = None, ddof: float = 0, keepdims: bool = False, *, correction: float | None = None
) -> Value:
    """Σ (x - mean)² / (n - ddof) over the axes; a constant, 0, for a single element. `correction` is another name of
    ddof, that of the array API; both raise ValueError."""
    x, ddof = asarray(x), _freedom(ddof, correction)
    if _count(x, axis) == 1:  # so that its root has a derivative, too
        x = stop_gradient(value_of(x))
    return sum(square(x - mean(x, axis, True)), axis, keepdims) / (_count(x, axis) - ddof)


def std(
    x: Value, axis: Axes = None, ddof: float = 0, keepdims: bool = False, *, correction: float | None = None
) -> Value:
    """The square root of `var`; its derivative is 0 where all elements are equal."""
    ddof = _freedom(ddof, correction)
    variance = var(x, axis, ddof, keepdims)
    if isinstance(variance, Active) and not np.all(value_of(variance)):  # at 0, a norm knows more than a root
        axes = normal_axes(axis, len(shape_of(x)))
        y = norm2((x - mean(x, axis, True)) / math.sqrt(_count(x, axis) - ddof), axes=axes)
        return keep_axes(y, x, axes) if keepdims else y
    return sqrt(variance)


def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The sum of the diagonal of each matrix in the two axes."""
    return sum(diagonal(x, offset, axis1, axis2), -1)


# Lengths

TINY, HUGE = 2.0**-500, 2.0**500
"""Between these, squares neither overflow nor lose digits, even in sums of 2⁹⁰ terms."""


def _norm2_value(x: Value, axes: tuple[int, ...]) -> Value:
    """√Σx², scaled by the largest element where the squares would overflow or vanish."""
    largest = np.maximum.reduce(np.abs(x), axes, keepdims=True, initial=0.0)
    usual = (largest == 0.0) | ((largest > TINY) & (largest < HUGE)) | ~np.isfinite(largest)
    if np.all(usual):
        return np.sqrt(np.add.reduce(np.square(x), axes))
    scale = np.where(usual, 1.0, largest)
    return np.sqrt(np.add.reduce(np.square(x / scale), axes)) * np.max(scale, axes)


def _ratio(val: Value, x: Value, axes: tuple[int, ...]) -> Value:
    """x / |x|, and 0 where x is 0."""
    length = keep_axes(val, x, axes)
    return x / where(value_of(length) == 0.0, 1.0, length)


def _norm2_back(val: Value, adj: Value, x: Value, axes: tuple[int, ...]) -> Value:
    back = _shared(adj, _ratio(val, x, axes), axes)
    if type(x) is np.ndarray or not is_nested(x):
        return back
    at = np.equal(value_of(val), 0.0)
    if (towards := direction(x)) is not None and some(at):  # along it, x / |x| is its ratio; see `absolute`
        size = _norm2_value(towards, axes)
        known = at & (size != 0.0) & np.equal(value_of(adj), 0.0)
        along_direction(known)
        ratio = np.where(keep_axes(known, x, axes), _ratio(size, towards, axes), 0.0)
        back = back + ratio * keep_axes(adj, x, axes)
        at = at & ~known
    unknown = undefined(at, adj, x, axes)
    if type(unknown) is float:
        return back
    weights = 1.0 if isinstance(value_of(x), Active) else irregular(shape_of(x))
    return back + keep_axes(unknown, x, axes) * weights


def _norm2_along(val: Value, tan: Value, x: Value, axes: tuple[int, ...]) -> Value:
    along = _sum(_ratio(val, x, axes) * tan, axes=axes)
    if type(x) is np.ndarray or not is_nested(x):
        return along
    return along + undefined(np.equal(value_of(val), 0.0), tan, x, axes, value=math.nan)


norm2 = own_gradients(_norm2_value, reverse=(_norm2_back,), forward=(_norm2_along,), name="norm")
norm2.inner = strict(norm2, one_sided=_norm2_value)


# Extrema


def _attained(val: Value, x: Value, axes: Shape) -> Value:
    """At elements that attain the extremum, 1 divided by their number; 0 elsewhere."""
    plain = value_of(x)
    ties = plain == keep_axes(value_of(val), plain, axes)
    return ties / np.add.reduce(ties, axes, keepdims=True)


def _extremum(value: np.ufunc, name: str) -> Rule:
    return own_gradients(
        lambda x, axes: value.reduce(x, axes),
        reverse=(lambda val, adj, x, axes: _shared(adj, _attained(val, x, axes), axes),),
        forward=(lambda val, tan, x, axes: _sum(_weighted(tan, _attained(val, x, axes)), axes=axes),),
        name=name,
    )


_max = _extremum(np.maximum, "max")
_min = _extremum(np.minimum, "min")
max = _over_axes(_max, "The largest element over the axes; elements that tie share the derivative equally.")
min = _over_axes(_min, "The smallest element over the axes; elements that tie share the derivative equally.")


def argmax(x: Value, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the first largest element: a plain integer or array, without derivative."""
    return np.argmax(value_of(asarray(x)), axis, keepdims=keepdims)


def argmin(x: Value, axis: int | None = None, keepdims: bool = False) -> Any:
    """The position of the first smallest element: a plain integer or array, without derivative."""
    return np.argmin(value_of(asarray(x)), axis, keepdims=keepdims)


# Products


def _others(x: Value) -> Value:
    """For each element of the last axis, the product of the others; right with zeros, and differentiable."""
    plain = value_of(x)
    if any_active((x,)):
        if np.all(plain) and not _differ_much(plain):
            return keep_axes(_prod(x, axes=(plain.ndim - 1,)), plain, (plain.ndim - 1,)) / x
        others: Value = np.ones(plain.shape)
        for j in range(plain.shape[-1]):  # n products of n elements, only where the quotient fails
            others = others * where(np.arange(plain.shape[-1]) == j, 1.0, x[..., j : j + 1])
        return others
    before, after = np.ones_like(x), np.ones_like(x)
    np.multiply.accumulate(x[..., :-1], -1, out=before[..., 1:])
    np.multiply.accumulate(x[..., :0:-1], -1, out=after[..., -2::-1])
    return before * after


def _differ_much(x: Value) -> bool:
    """Whether a second derivative by the quotient would lose digits: P/(x_i x_j) next to P/x_i² - P/x_i²."""
    if isinstance(x, Active):
        return False
    sizes = np.abs(x)
    return bool(
        np.any(np.maximum.reduce(sizes, -1, initial=0.0) > 100.0 * np.minimum.reduce(sizes, -1, initial=np.inf))
    )


def _others_over(x: Value, axes: Shape) -> Value:
    """`_others` over several axes at once, in the shape of x."""
    shape = shape_of(x)
    if not shape:
        return 1.0
    last = tuple(range(len(shape) - len(axes), len(shape)))
    moved = moveaxis(x, axes, last)
    flat = reshape(moved, (*shape_of(moved)[: len(shape) - len(axes)], -1 if math.prod(shape) else 0))
    return moveaxis(reshape(_others(flat), shape_of(moved)), last, axes)


_prod = own_gradients(
    lambda x, axes: np.multiply.reduce(x, axes),
    reverse=(lambda _v, adj, x, axes: _shared(adj, _others_over(x, axes), axes),),
    forward=(lambda _v, tan, x, axes: _sum(tan * _others_over(x, axes), axes=axes),),
    name="prod",
)
prod = _over_axes(_prod, "Π x over the axes; ∂/∂x[i] is the product of the others, formed without dividing.")


# Log-sum-exp


def _logsumexp_value(x: Value, axes: Shape) -> Value:
    top = np.maximum.reduce(x, axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):  # log 0 = -inf and exp inf = inf are correct values
        return np.log(np.add.reduce(np.exp(x - top), axes)) + top.reshape(np.add.reduce(top, axes).shape)


def _softmax_weights(val: Value, x: Value, axes: Shape) -> Value:
    """The softmax. If the result is so large that its rounding shows, divide the weights by their sum."""
    weights = exp_difference(x, keep_axes(val, x, axes))
    plain = value_of(val)
    if isinstance(plain, Active) and plain.tape.outer is not None:  # type: ignore[attr-defined]  # no guard in a loop
        return weights
    if not np.any((np.abs(plain) > 64.0) & np.isfinite(plain)):
        return weights
    total = keep_axes(_sum(weights, axes=axes), x, axes)
    return weights / where(value_of(total) == 0.0, 1.0, total)


_logsumexp = own_gradients(
    _logsumexp_value,
    reverse=(lambda val, adj, x, axes: _back(adj, x, axes) * _softmax_weights(val, x, axes),),
    forward=(lambda val, tan, x, axes: _sum(tan * _softmax_weights(val, x, axes), axes=axes),),
    name="logsumexp",
)
logsumexp = _over_axes(_logsumexp, "log Σ exp x over the axes, without overflow; the derivative is the softmax.")


# Cumulative functions

_cumsum: Rule = linear(
    lambda x, axis: np.add.accumulate(x, axis),
    lambda _v, adj, _x, axis: flip(_cumsum(flip(adj, axis), axis=axis), axis),
    "cumsum",
)


def _line(x: Value, axis: int | None) -> tuple[Value, int]:
    """The array and axis of a cumulative function; without an axis, the flattened array."""
    x = asarray(x)
    return (ravel(x), 0) if axis is None else (x, normal_axes(axis, len(shape_of(x)))[0])


def cumsum(x: Value, axis: int | None = None) -> Value:
    """y[k] = Σ_{j≤k} x[j]."""
    x, along = _line(x, axis)
    return _cumsum(x, axis=along)


def _cumprod_back(val: Value, adj: Value, x: Value, axis: int) -> Value:
    """x̄[i] = Σ_{k≥i} ȳ[k] Π_{j≤k, j≠i} x[j]; by a quotient where x[i] is not zero.

    The derivative of a quotient would lose digits where the x[j] differ much. So an x that is differentiated once more
    takes a recurrence, s[i] = ȳ[i] + x[i+1] s[i+1] and x̄[i] = y[i-1] s[i].
    """
    x, val, adj = (moveaxis(a, axis, -1) for a in (x, val, adj))
    if any_active((x,)) and not x.symbolic:
        last = shape_of(x)[-1] - 1
        rest = [adj[..., last]]
        for k in builtins.range(last, 0, -1):
            rest.append(adj[..., k - 1] + x[..., k] * rest[-1])
        before = concatenate([np.ones((*shape_of(x)[:-1], 1)), val[..., :-1]], -1)
        return moveaxis(before * stack(rest[::-1], -1), -1, axis)
    is_zero = value_of(x) == 0.0
    sums = flip(_cumsum(flip(adj * val, -1), axis=len(shape_of(x)) - 1), -1)
    back = sums / where(is_zero, 1.0, x)
    if is_zero.any():
        columns = [back[..., i] for i in range(shape_of(x)[-1])]
        for i in np.flatnonzero(is_zero.any(axis=tuple(range(is_zero.ndim - 1)))):
            columns[i] = where(is_zero[..., i], _without(x, adj, int(i)), columns[i])
        back = stack(columns, -1)
    return moveaxis(back, -1, axis)


def _without(x: Value, adj: Value, i: int) -> Value:
    """Σ_{k≥i} ȳ[k] Π_{j≤k, j≠i} x[j] along the last axis, for one i."""
    rest = concatenate([np.ones((*shape_of(x)[:-1], 1)), x[..., i + 1 :]], -1)
    return prod(x[..., :i], -1) * sum(adj[..., i:] * cumprod(rest, -1), -1)


_cumprod = own_gradients(
    lambda x, axis: np.multiply.accumulate(x, axis),
    reverse=(_cumprod_back,),
    forward=(lambda _v, tan, x, axis: _cumprod_along(tan, x, axis),),
    name="cumprod",
)


def _cumprod_along(tan: Value, x: Value, axis: int) -> Value:
    """ẏ[k] = ẏ[k-1] x[k] + y[k-1] ẋ[k], the recurrence itself: right with zeros."""
    x, tan = moveaxis(x, axis, -1), moveaxis(tan, axis, -1)
    y, rate, rates = x[..., 0], tan[..., 0], [tan[..., 0]]
    for k in range(1, shape_of(x)[-1]):
        rate = rate * x[..., k] + y * tan[..., k]
        y = y * x[..., k]
        rates.append(rate)
    return moveaxis(stack(rates, -1), -1, axis)


def cumprod(x: Value, axis: int | None = None) -> Value:
    """y[k] = Π_{j≤k} x[j]; its derivative is right with any number of zeros."""
    x, along = _line(x, axis)
    return _cumprod(x, axis=along) if shape_of(x)[along] else x


def diff(x: Value, n: int = 1, axis: int = -1) -> Value:
    """y[i] = x[i + 1] - x[i] along an axis, n times over."""
    before = (slice(None),) * (axis % len(shape_of(x)))
    for _ in builtins.range(n):
        x = x[(*before, slice(1, None))] - x[(*before, slice(None, -1))]
    return x


def softmax(x: Value, axis: Axes = -1) -> Value:
    """exp x / Σ exp x along an axis."""
    x = asarray(x)
    axes = normal_axes(axis, len(shape_of(x)))
    return _softmax_weights(_logsumexp(x, axes=axes), x, axes)


# The array API's names

amax, amin = max, min
cumulative_prod, cumulative_sum = cumprod, cumsum

publish(globals(), helpers="norm2")
