"""Rules for symbols only: comparisons, logic, and reading at a loop's counter.

In the eager engine a comparison is plain numpy, and a loop's counter is a plain integer. For symbols, both are
operations to record and lower.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adbench.tape.core.rule import Rule, Value, function_gradients
from adbench.tape.rules import elementwise as e
from adbench.tape.values import shape_of


def _silent(name: str, value: Callable[..., Value]) -> Rule:
    """Make a rule without derivative."""
    return Rule(name, value, None, None, elementwise=True)


PREDICATES: dict[np.ufunc, Rule] = {
    ufunc: _silent(ufunc.__name__, ufunc)
    for ufunc in (
        *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
        *(np.isnan, np.isinf, np.isfinite, np.signbit),
    )
}
"""numpy's comparison -> the rule: numbers in, booleans out."""

LOGIC: dict[np.ufunc, Rule] = {
    ufunc: _silent(ufunc.__name__, ufunc) for ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
}
"""Booleans in, booleans out."""

NUMBER = _silent("number", lambda x: np.multiply(x, 1.0))
"""1.0 for true, 0.0 for false."""

ANY = Rule("any", lambda x: np.any(x), None, None)
ALL = Rule("all", lambda x: np.all(x), None, None)


def _same(x: Value, y: Value) -> Value:
    return np.equal(np.asarray(x, np.float64).view(np.int64), np.asarray(y, np.float64).view(np.int64))


SAME = _silent("same", _same)
"""Whether two numbers have the same bits: NaN equals itself, and -0.0 differs from 0.0."""

TAKE: Rule = function_gradients(
    lambda x, i: x[int(i)],
    reverse=(lambda _v, adj, _x, i: PUT(adj, i, length=shape_of(_x)[0]), None),
    forward=(lambda _v, tan, _x, i: TAKE(tan, i), None),
    name="take",
)
"""x[i] for a loop's counter i."""


def _put(row: Value, i: Value, length: int) -> Value:
    rows = np.zeros((length, *np.shape(row)))
    rows[int(i)] = row
    return rows


PUT: Rule = function_gradients(
    _put,
    reverse=(lambda _v, adj, _row, i, length: TAKE(adj, i), None),
    forward=(lambda _v, tan, _row, i, length: PUT(tan, i, length=length), None),
    name="put_row",
)
"""Zeros but for row i."""

WITH_SLOPE: Rule = function_gradients(
    lambda y, _slope, _x: +y, (None, None, lambda _v, adj, _y, slope, _x: adj * slope), name="with slope"
)
"""y, an elementwise function of x with this derivative: y and the derivative are computed together, before."""

REPLACED = frozenset(
    (
        *(np.argsort, np.argmax, np.argmin, np.searchsorted, np.nonzero, np.count_nonzero, np.flatnonzero),
        *(np.allclose, np.isclose, np.array_equal, np.argwhere, np.linalg.matrix_rank),
    )
)
"""Numpy's functions that return positions or decisions: evaluated at the example point, under a guard."""

_BOOLEAN_ARGUMENTS = frozenset(LOGIC.values()) | {NUMBER, ANY, ALL, e.where}


def takes_booleans(rule: Rule) -> bool:
    """Whether a rule takes booleans as its (first) argument; other rules get 1.0 and 0.0."""
    return rule in _BOOLEAN_ARGUMENTS
