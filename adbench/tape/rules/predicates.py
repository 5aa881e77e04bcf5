"""Truth values: comparisons, classification of numbers, logic. They read plain values and return plain booleans.

A branch has no derivative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Value
from adbench.tape.numpy_names import publish
from adbench.tape.rules.shapes import Axes, asarray
from adbench.tape.values import value_of

Compare = Callable[[Any, Any], Any]

_MEETINGS = {operator.eq: True, np.equal: True, operator.ne: False, np.not_equal: False}
"""Comparison -> its result for equal sides."""


class MeetingNumber(int):
    """A true equality (1) or a false inequality (0) between equal numbers."""

    def __invert__(self) -> bool:
        return not self

    def __repr__(self) -> str:
        return repr(bool(self))


class MeetingArray(np.ndarray[Any, Any]):
    """Truths of equalities, or of inequalities, between arrays with some equal elements."""

    holds: bool
    """Whether they belong to equalities."""

    def __array_finalize__(self, source: Any) -> None:
        self.holds = getattr(source, "holds", True)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Plain truths, except for a negation or two equalities joined by `and`, which keep their mark."""
        plain = [x.view(np.ndarray) if isinstance(x, MeetingArray) else x for x in inputs]
        options = {k: tuple(x.view(np.ndarray) for x in v) if k == "out" else v for k, v in options.items()}
        result = getattr(ufunc, method)(*plain, **options)
        joins = (np.bitwise_and, np.logical_and) if self.holds else (np.bitwise_or, np.logical_or)
        negates = ufunc in (np.invert, np.logical_not)
        if method != "__call__" or not (negates or ufunc in joins) or not isinstance(result, np.ndarray):
            return result
        marked = result.view(MeetingArray)
        marked.holds = self.holds is not negates
        return marked


def meeting(function: Compare, result: Any) -> Any:
    """The result of an equality or inequality, marked if sides are equal, where `where` checks both branches."""
    holds = _MEETINGS[function]
    if isinstance(result, np.ndarray):
        if np.any(result if holds else ~result):
            result = result.view(MeetingArray)
            result.holds = holds
    elif isinstance(result, (bool, np.bool_)) and bool(result) is holds:
        return MeetingNumber(holds)
    return result


def of_both_sides(condition: Any, x: Value, y: Value) -> Any:
    """The condition that selects the derivative of `where`.

    where(x = 2, 4, 2x) is 2x, written with a special case. If an equality picks a branch at single points, and the
    other branch has the same value there, the derivative is that of the other branch, which is the function nearby.
    """
    if isinstance(condition, MeetingNumber):
        holds = bool(condition)
    elif isinstance(condition, MeetingArray):
        holds, condition = condition.holds, condition.view(np.ndarray)
    elif isinstance(condition, Active) and condition.symbolic:
        operation = condition.tape.producer(condition)  # type: ignore[attr-defined]
        if operation is None or operation[0].name not in ("equal", "not_equal"):
            return condition
        holds = operation[0].name == "equal"
    else:
        return condition
    same = np.equal(value_of(x), value_of(y))
    return np.logical_and(condition, np.logical_not(same)) if holds else np.logical_or(condition, same)


def compare(function: Compare, left: Value, right: Value) -> Any:
    """function(left, right) of the plain values."""
    result = function(value_of(left), value_of(right))
    return meeting(function, result) if function in _MEETINGS else result


def _named(predicate: Callable[..., Any], ufunc: np.ufunc, arguments: str) -> Callable[..., Any]:
    predicate.__name__ = ufunc.__name__
    predicate.__doc__ = f"`numpy.{ufunc.__name__}` of {arguments}: booleans."
    return predicate


def _binary(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return _named(lambda x1, x2: compare(ufunc, asarray(x1), asarray(x2)), ufunc, "the plain values")


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    return _named(lambda x: ufunc(value_of(asarray(x))), ufunc, "the plain values")


less, less_equal = _binary(np.less), _binary(np.less_equal)
greater, greater_equal = _binary(np.greater), _binary(np.greater_equal)
equal, not_equal = _binary(np.equal), _binary(np.not_equal)
isnan, isinf, isfinite, signbit = _unary(np.isnan), _unary(np.isinf), _unary(np.isfinite), _unary(np.signbit)


def _truth(x: Value) -> Any:
    """x as a condition: a number counts as true unless it is 0."""
    return compare(np.not_equal, x, 0.0) if isinstance(x, Active) else x


def _logical(ufunc: np.ufunc) -> Callable[..., Any]:
    return _named(lambda *conditions: ufunc(*map(_truth, conditions)), ufunc, "conditions")


logical_and, logical_or = _logical(np.logical_and), _logical(np.logical_or)
logical_xor, logical_not = _logical(np.logical_xor), _logical(np.logical_not)


def _over_axes(function: Callable[..., Any], law: str) -> Callable[..., Any]:
    def reduced(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:
        return function(_truth(x), tuple(axis) if isinstance(axis, Sequence) else axis, keepdims=keepdims)

    reduced.__name__, reduced.__doc__ = function.__name__, law
    return reduced


any = _over_axes(np.any, "Whether one of the conditions holds, over the axes.")
all = _over_axes(np.all, "Whether all of the conditions hold, over the axes.")
count_nonzero = _over_axes(np.count_nonzero, "The number of conditions that hold, over the axes.")


def nonzero(x: Value) -> tuple[Any, ...]:
    """The positions at which the conditions hold, for each axis."""
    return np.nonzero(_truth(x))


publish(globals(), helpers="compare meeting of_both_sides MeetingNumber MeetingArray")
