"""A function that returns its value and a custom gradient, modelled on pqR's `compute gradient`.

    @compute_gradient
    def sigmoid(x):
        v = 1.0 / (1.0 + np.exp(-x))
        return v, lambda: v * (1.0 - v)

The function returns its value and a way to compute its gradient, which can reuse intermediate results of the value. The
gradient is skipped if no argument is being differentiated or the result is not used. Prefer `function_gradients` for a
rule used in many places, or for a value computed outside Python with higher orders.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from adbench.tape.core.rule import RuleError, TapeError, Value
from adbench.tape.pqr.compact import CompactJacobian, Dense
from adbench.tape.pqr.compact_forms import Diagonal, Implicit
from adbench.tape.pqr.compact_mode import JacobianRule
from adbench.tape.rules.shapes import asarray, ravel, reshape
from adbench.tape.values import any_active, settle, shape_of


def compute_gradient(f: Callable[..., tuple[Value, Any]]) -> Callable[..., Value]:
    """Make a function that returns (value, gradient) differentiable; use it as a decorator or a call.

    `gradient` is a function without arguments, called at most once and only if needed, that returns the gradient in
    each argument. Or it is a tuple of such functions, one per argument, of which only the needed ones are called. For a
    value A of n elements and an argument B of m elements, a gradient is:

        A.shape + B.shape, or (n, m)    the Jacobian, J[i, j] = ∂A_i/∂B_j: a number if both are scalars, an array of
                                        B's shape if A is a scalar
        A.shape, if B has the same      the diagonal of a diagonal Jacobian
        a function of left or right     the Jacobian's products: fn(left=W) = W J for a matrix W of shape (k, n),
                                        fn(right=V) = J V for a matrix V of shape (m, k)
        a `CompactJacobian`             of shape (n, m)

    The arguments are numbers and arrays; keyword-only arguments are options and not differentiated. The value is
    computed on plain numbers. For a derivative of the gradient, f runs again on values being differentiated, so its
    operations must then be differentiable. Source: pqR slides, "Specifying the gradient in `compute gradient`".
    """
    name = getattr(f, "__name__", type(f).__name__)

    signature = inspect.signature(f)

    @functools.wraps(f)
    def differentiable(*args: Value, **options: Any) -> Value:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        if any_active(list(bound.kwargs.values())):
            raise TypeError(f"{name}: a keyword-only argument is an option without derivative; make it positional")
        call = OneCall(f"compute_gradient: {name}", functools.partial(f, **bound.kwargs), len(bound.args))
        return call.rule(*bound.args)

    return differentiable


class OneCall:
    """One call of such a function: its rule, and the results computed so far. Errors begin with its name."""

    def __init__(self, name: str, f: Callable[..., Any], count: int) -> None:
        self.name, self.f, self.count = name, f, count
        self.gradients: Any = None
        self.known: dict[int, CompactJacobian] = {}
        self.rule = JacobianRule(name, self._value, self._local)

    def _pair(self, inputs: tuple[Value, ...]) -> tuple[Value, Any]:
        result = self.f(*inputs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuleError(f"{self.name} should return (value, gradient), got {type(result).__name__}")
        return result

    def _value(self, *inputs: Value) -> Value:
        value, self.gradients = self._pair(inputs)
        if any_active([value]):
            raise TapeError(
                f"{self.name} uses a variable that is not among its arguments, and its derivative "
                f"would be lost; make it an argument"
            )
        return asarray(value)

    def _local(self, i: int, val: Value, *inputs: Value) -> CompactJacobian:
        """∂val/∂inputs[i]. On plain inputs the gradient is computed once for all sweeps."""
        if any_active(inputs):
            return self._one(self._parts(self._pair(inputs)[1]), i, val, inputs[i])
        if i not in self.known:
            self.gradients = self._parts(self.gradients)
            self.known[i] = self._one(self.gradients, i, val, inputs[i])
        return self.known[i]

    def _parts(self, gradients: Any) -> tuple[Any, ...]:
        """The gradient in each argument, or a function that computes it."""
        if callable(gradients) and not _sides(gradients):
            gradients = gradients()
        parts = gradients if isinstance(gradients, tuple) else (gradients,)
        if len(parts) != self.count:
            raise RuleError(
                f"{self.name} has {self.count} arguments and should return as many gradients in a "
                f"tuple, got {len(parts)}"
            )
        return parts

    def _one(self, parts: tuple[Any, ...], i: int, val: Value, x: Value) -> CompactJacobian:
        part = parts[i]
        if callable(part) and not _sides(part):
            part = part()
        return _as_jacobian(part, val, x, f"{self.name}, gradient for argument {i}")


def _sides(function: Any) -> frozenset[str]:
    """The parameters among `left` and `right` that a function takes."""
    try:
        return frozenset(inspect.signature(function).parameters) & {"left", "right"}
    except (TypeError, ValueError):  # some functions written in C have no signature
        return frozenset()


def _as_jacobian(part: Any, val: Value, x: Value, what: str) -> CompactJacobian:
    """Convert a gradient from any form that `compute_gradient` accepts."""
    y_shape, x_shape = shape_of(val), shape_of(x)
    n, m = math.prod(y_shape), math.prod(x_shape)
    if isinstance(part, CompactJacobian):
        _check(part.shape, [(n, m)], what)
        return part
    if callable(part):
        return _from_products(part, n, m, what)
    part = settle(asarray(part))
    got = shape_of(part)
    forms = [y_shape + x_shape, (n, m)]
    if y_shape == x_shape and y_shape:
        forms.append(y_shape)
        if got == y_shape:
            return Diagonal(ravel(part))
    _check(got, forms, what)
    return Dense(reshape(part, (n, m)))


def _check(got: tuple[int, ...], forms: list[tuple[int, ...]], what: str) -> None:
    if got not in forms:
        raise RuleError(f"{what}: expected shape {' or '.join(map(str, dict.fromkeys(forms)))}, got {got}")


def _from_products(function: Callable[..., Value], n: int, m: int, what: str) -> CompactJacobian:
    sides = _sides(function)

    def left(w: Value) -> Value:
        product = asarray(function(left=w))
        _check(shape_of(product), [(shape_of(w)[0], m)], f"{what}: the product with left")
        return product

    def right(v: Value) -> Value:
        product = asarray(function(right=v))
        _check(shape_of(product), [(n, shape_of(v)[1])], f"{what}: the product with right")
        return product

    return Implicit((n, m), left if "left" in sides else None, right if "right" in sides else None)
