"""The types of values, and how plain numbers become values.

The engine computes in float64. A scalar is a Python `float`; an array is a float64 `numpy.ndarray` of at least one
dimension. Integers, booleans and narrower floats are promoted; complex numbers are refused. Boolean arrays stay
boolean, because they are conditions and not numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Gradient, Rule, TapeError, Value

FLOAT64 = np.dtype(np.float64)
"""numpy's only object for float64 in native byte order."""

PLAIN = (float, np.ndarray)
"""The two types of a plain value."""

ONE, MINUS_ONE = 1.0, -1.0
"""The slopes of sums and differences. Fast paths recognise these objects and skip the multiplication."""

_NUMERIC = frozenset("fiu")

_THREADED = 10_000
"""From this size on, a dot product may use several threads, and then waits for a processor that others use."""


class ComplexError(TapeError, TypeError):
    """A complex number was given; the engine computes with real numbers."""


def settle(value: Value) -> Value:
    """The result of a value function in normal form: a float, or a float64 array of one or more dimensions."""
    if isinstance(value, np.ndarray) and value.ndim:
        if value.dtype == np.float64:
            return value
        if value.dtype.kind == "c":
            raise ComplexError(
                f"expected real numbers, got an array of {value.dtype}; take its real and imaginary parts"
            )
        return value.astype(np.float64)
    if isinstance(value, Active):
        return value
    if isinstance(value, (complex, np.complexfloating)):
        raise ComplexError(f"expected a real number, got {value!r}; take its real and imaginary parts")
    return float(value)


def constant(value: Value, what: str, place: int | None = None, *, keep: bool = True) -> Value:
    """A constant argument in normal form. Errors name the function (`what`) and the argument's position (`place`).

    With `keep`, copy an array that its owner could still change: the sweep must read the same numbers as the forward
    pass.
    """
    if type(value) is np.ndarray and value.dtype is FLOAT64 and value.ndim:
        return snapshot(value) if keep else value
    if isinstance(value, (float, int)):  # np.float64 is a float, and bool is an int
        return float(value)
    if isinstance(value, Active) or value is None:
        return value
    what = what if place is None else f"{what}: argument {place}"
    if isinstance(value, (np.ndarray, list, tuple, np.generic)):
        return _constant_array(value, what, keep)
    if hasattr(value, "__array__"):
        return _constant_array(np.asarray(value), what, keep)
    if isinstance(value, complex):
        raise ComplexError(f"{what}: expected real numbers, got {value!r}")
    raise TypeError(f"{what}: expected numbers, got {type(value).__name__} {value!r:.60}")


def _constant_array(value: Value, what: str, keep: bool) -> Value:
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind == "c":
        raise ComplexError(f"{what}: expected real numbers, got an array of {array.dtype}")
    if array.ndim == 0 and kind in "fiub":
        return bool(array) if kind == "b" else float(array)
    if kind == "b":
        return array.copy() if keep else array
    if kind not in _NUMERIC:
        raise TypeError(f"{what}: expected an array of numbers, got an array of {array.dtype}")
    if array.dtype != np.float64:
        return array.astype(np.float64)
    return snapshot(array) if keep and array is value else array


def snapshot(array: Any) -> Any:
    """The array as it is now: a copy if anyone can still write into it."""
    return array.copy() if can_change(array) else array


def can_change(array: Any) -> bool:
    """Whether anyone can still write into this array, directly or through the array that it views."""
    if array.flags.writeable:
        return True
    owner = array.base
    return owner is not None and (type(owner) is not np.ndarray or owner.flags.writeable)


def leaf_value(value: Value, what: str) -> Value:
    """An independent variable in normal form. The engine owns it: later changes to `value` do not reach it."""
    if type(value) is float:
        return value
    if type(value) is np.ndarray and value.dtype is FLOAT64 and value.ndim:
        return snapshot(value)
    if isinstance(value, Active):
        return value
    value = constant(value, what)
    if value is None or (isinstance(value, np.ndarray) and value.dtype.kind == "b"):
        raise TypeError(f"{what}: expected real numbers, got {'None' if value is None else 'an array of booleans'}")
    return value


def with_infinities(gradient: Gradient) -> Gradient:
    """A gradient function whose floats divide like numpy's: 1 / 0 is inf, where Python raises an error."""

    def lifted(*args: Value, **params: Any) -> Value:
        return gradient(*(np.float64(v) if type(v) is float else v for v in args), **params)

    return lifted


def divided_as_numpy(gradient: Gradient, *args: Value, **params: Any) -> Value:
    """gradient(*args, **params), with infinities where Python's division raises an error."""
    try:
        return gradient(*args, **params)
    except ArithmeticError:
        return with_infinities(gradient)(*args, **params)


def value_of(value: Value) -> Value:
    """The plain number or array under all levels of derivatives; while compiling, its symbol."""
    while isinstance(value, Active) and not value.symbolic:
        value = value.val
    return value


def is_nested(value: Value) -> bool:
    """Whether a value that is plain to one level of derivatives is being differentiated at another."""
    return isinstance(value, Active) and value.is_differentiated


def seen_inside(rule: Rule, inputs: Sequence[Value]) -> Rule:
    """The form of `rule` that a level of derivatives evaluates on values of outer levels."""
    return rule.inner if rule.inner is not None and any(map(is_nested, inputs)) else rule


def shape_of(value: Value) -> tuple[int, ...]:
    """Shape of a float, an array or an active value; () for a scalar."""
    kind = type(value)
    if kind is float or (kind is not np.ndarray and isinstance(value, (float, int))):
        return ()
    shape: tuple[int, ...] = np.shape(value) if kind is list else value.shape
    return shape


def size_of(value: Value) -> int:
    """The number of elements of a float, an array or an active value."""
    return math.prod(shape_of(value))


def has_nan(value: Value) -> bool:
    """Whether a float, an array or an active value holds a NaN."""
    if isinstance(value, Active):
        value = value_of(value)
        if isinstance(value, Active):
            return bool(value.has_nan())  # type: ignore[attr-defined]  # symbols answer this
    if isinstance(value, np.ndarray):
        # NaN if and only if an element is NaN; these are the quickest checks
        value = _square_sum(value) if value.size < _THREADED else np.maximum.reduce(value, None)
    return bool(value != value)


def may_have_nan(value: Value) -> bool:
    """`has_nan` without looking at symbols: for these False in the first, plain sweep, and True in a careful one."""
    plain = value_of(value)
    return bool(plain.careful) if isinstance(plain, Active) else has_nan(plain)  # type: ignore[attr-defined]


def _square_sum(array: Any) -> Any:
    return array.dot(array) if array.ndim == 1 else np.vdot(array, array)


def all_finite(value: Value) -> bool:
    """Whether a float or an array holds neither an infinity nor a NaN; False for symbols."""
    if isinstance(value, Active):
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if value.size >= _THREADED:
        return bool(np.isfinite(value).all())
    # A finite sum of squares proves it at a third of the cost. An infinite sum proves nothing: 1e200² overflows.
    return math.isfinite(_square_sum(value)) or bool(np.isfinite(value).all())


def asarray(x: Value) -> Value:
    """x as one value. Nested lists are stacked if they hold active values; plain lists become an array."""
    if (type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim) or isinstance(x, Active):
        return x
    if isinstance(x, (list, tuple)):
        return np.stack([asarray(v) for v in x]) if any_active(x) else np.asarray(x, float)
    return np.asarray(x, float)[()]


def any_active(values: Any) -> bool:
    """Whether any of these is an active value, at any depth of lists and tuples."""
    if isinstance(values, (list, tuple)):
        return any(any_active(v) for v in values)
    return isinstance(values, Active)
