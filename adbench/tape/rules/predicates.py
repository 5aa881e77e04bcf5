"""Truth values: comparisons, classification of numbers, logic. They look at plain values and return plain booleans.

A branch has no derivative; but a recording that is to be used again holds only as long as its branches do. So each
look at a value is noted down on the tape that holds the value, if that tape wants to know (`Tape.observed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Value
from adbench.tape.numpy_names import publish
from adbench.tape.rules.shapes import Axes, asarray

Compare = Callable[[Any, Any], Any]


def compare(function: Compare, left: Value, right: Value) -> Any:
    """function(left, right) of the plain values, noted down on every tape that one of the two lies on."""
    plain, watching = [], []
    for x in (left, right):
        while isinstance(x, Active) and not x.symbolic:
            tape = getattr(x, "tape", None)
            if tape is not None and tape.observed is not None and tape not in watching:
                watching.append(tape)
            x = x.val
        plain.append(x)
    result = function(*plain)
    for tape in watching:
        tape.observed.append((function, _at(tape.level, left), _at(tape.level, right), result))
    return result


def _at(level: int, x: Value) -> Value:
    """x as it is known at this level: without the levels inside of it."""
    while isinstance(x, Active) and x.level > level and not x.symbolic:
        x = x.val
    return x


def _binary(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def predicate(x1: Value, x2: Value) -> Any:
        return compare(ufunc, *(x if isinstance(x, Active) else asarray(x) for x in (x1, x2)))

    predicate.__name__ = ufunc.__name__
    predicate.__doc__ = f"`numpy.{ufunc.__name__}` of the plain values: booleans."
    return predicate


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def of_the_first(x: Value, _nothing: None) -> Any:  # one and the same for every look, so that it can be known
        return ufunc(x)

    def predicate(x: Value) -> Any:
        return compare(of_the_first, x if isinstance(x, Active) else asarray(x), None)

    predicate.__name__ = ufunc.__name__
    predicate.__doc__ = f"`numpy.{ufunc.__name__}` of the plain values: booleans."
    return predicate


less, less_equal = _binary(np.less), _binary(np.less_equal)
greater, greater_equal = _binary(np.greater), _binary(np.greater_equal)
equal, not_equal = _binary(np.equal), _binary(np.not_equal)
isnan, isinf, isfinite, signbit = _unary(np.isnan), _unary(np.isinf), _unary(np.isfinite), _unary(np.signbit)


def _truth(x: Value) -> Any:
    """x as a condition: a number is true unless it is 0."""
    return compare(np.not_equal, x, 0.0) if isinstance(x, Active) else x


def _logical(ufunc: np.ufunc) -> Callable[..., Any]:
    def predicate(*conditions: Value) -> Any:
        return ufunc(*map(_truth, conditions))

    predicate.__name__ = ufunc.__name__
    predicate.__doc__ = f"`numpy.{ufunc.__name__}` of conditions."
    return predicate


logical_and, logical_or = _logical(np.logical_and), _logical(np.logical_or)
logical_xor, logical_not = _logical(np.logical_xor), _logical(np.logical_not)


def any(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:  # numpy's name for it
    """Whether one of the conditions holds, over the axes."""
    return np.any(_truth(x), _numpy_axis(axis), keepdims=keepdims)


def all(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:  # numpy's name for it
    """Whether all of the conditions hold, over the axes."""
    return np.all(_truth(x), _numpy_axis(axis), keepdims=keepdims)


def count_nonzero(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:
    """The number of conditions that hold, over the axes."""
    return np.count_nonzero(_truth(x), _numpy_axis(axis), keepdims=keepdims)


def nonzero(x: Value) -> tuple[Any, ...]:
    """Where the conditions hold: for each axis the positions."""
    return np.nonzero(_truth(x))


def _numpy_axis(axis: Axes) -> Any:
    return tuple(axis) if isinstance(axis, Sequence) else axis


publish(globals(), helpers="compare")
