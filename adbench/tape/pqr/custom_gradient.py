"""A function with a custom gradient, returned together with its value, after pqR's `compute gradient`.

    @compute_gradient
    def sigmoid(x):
        v = 1.0 / (1.0 + np.exp(-x))
        return v, lambda: v * (1.0 - v)

The function returns its value and how to compute its gradient, which can use all that the value needed on its way.
Nobody asks for the gradient when no argument is being differentiated, or when the result is not used: then it is
skipped. For a rule that many places use, or whose value is computed outside of Python and wanted to higher orders,
see `function_gradients`.
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
    """A differentiable function from one that returns (value, gradient), as a decorator or called.

    `gradient` is a function of no arguments, called at most once and only if asked for, that returns the gradient in
    each argument; or a tuple of such functions, one for each argument, where the unasked ones are not called. A
    gradient, for a value A of n elements and an argument B of m:

        A.shape + B.shape, or (n, m)    the Jacobian, J[i, j] = ∂A_i/∂B_j: a number if both are scalars, an array of
                                        B's shape if A is a scalar
        A.shape, if B has the same      the diagonal of a diagonal Jacobian
        a function of left or right     the Jacobian by its products: fn(left=W) = W J for a matrix W of shape (k, n),
                                        fn(right=V) = J V for a matrix V of shape (m, k)
        a `CompactJacobian`             of shape (n, m)

    The arguments are numbers and arrays; those by keyword only are options and not differentiated. The value is
    computed on plain numbers. For a derivative of the gradient f runs again on values being differentiated, so then
    what it does must be differentiable. Source: pqR slides, "Specifying the gradient in `compute gradient`".
    """
    name = getattr(f, "__name__", type(f).__name__)

    signature = inspect.signature(f)

    @functools.wraps(f)
    def differentiable(*args: Value, **options: Any) -> Value:
        given = signature.bind(*args, **options)
        given.apply_defaults()
        if any_active(list(given.kwargs.values())):
            raise TypeError(f"{name}: an argument by keyword only is an option, which cannot be differentiated")
        return _Once(name, functools.partial(f, **given.kwargs), len(given.args)).rule(*given.args)

    return differentiable


class _Once:
    """One call of such a function: its rule, and what was computed for it so far."""

    def __init__(self, name: str, f: Callable[..., Any], count: int) -> None:
        self.name, self.f, self.count = name, f, count
        self.gradients: Any = None
        self.known: dict[int, CompactJacobian] = {}
        self.rule = JacobianRule(f"compute_gradient of {name}", self.value, self.local)

    def pair(self, inputs: tuple[Value, ...]) -> tuple[Value, Any]:
        result = self.f(*inputs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuleError(
                f"compute_gradient: {self.name} should return (value, gradient), got {type(result).__name__}"
            )
        return result

    def value(self, *inputs: Value) -> Value:
        value, self.gradients = self.pair(inputs)
        if any_active([value]):
            raise TapeError(
                f"compute_gradient: {self.name} uses a variable that is not among its arguments, and its derivative "
                f"would be lost; make it an argument"
            )
        return asarray(value)

    def local(self, i: int, val: Value, *inputs: Value) -> CompactJacobian:
        """∂val/∂inputs[i]. On plain inputs the gradient is computed once, whatever the number of sweeps."""
        if any_active(inputs):
            return self.one(self.parts(self.pair(inputs)[1]), i, val, inputs[i])
        if i not in self.known:
            self.gradients = self.parts(self.gradients)
            self.known[i] = self.one(self.gradients, i, val, inputs[i])
        return self.known[i]

    def parts(self, gradients: Any) -> tuple[Any, ...]:
        """The gradient, or a way to compute it, for each argument."""
        if callable(gradients) and not _sides(gradients):
            gradients = gradients()
        parts = gradients if isinstance(gradients, tuple) else (gradients,)
        if len(parts) != self.count:
            raise RuleError(
                f"compute_gradient: {self.name} has {self.count} arguments and should give a tuple of as many "
                f"gradients, got {len(parts)}"
            )
        return parts

    def one(self, parts: tuple[Any, ...], i: int, val: Value, x: Value) -> CompactJacobian:
        part = parts[i]
        if callable(part) and not _sides(part):
            part = part()
        return _as_jacobian(part, val, x, f"compute_gradient: {self.name}, gradient for argument {i}")


def _sides(function: Any) -> frozenset[str]:
    """Which of `left` and `right` a function takes."""
    try:
        return frozenset(inspect.signature(function).parameters) & {"left", "right"}
    except (TypeError, ValueError):  # some functions written in C tell nothing about their parameters
        return frozenset()


def _as_jacobian(part: Any, val: Value, x: Value, what: str) -> CompactJacobian:
    """A gradient in any of the forms of `compute_gradient`."""
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
