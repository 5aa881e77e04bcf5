"""Symbols: placeholders for the numbers of future calls, used to record a function for compilation.

A `Symbol` is an active value at the lowest level, instead of a plain number or array. Operations on symbols are
recorded on a `Trace`, a `Tape` with records of the general form. So the engine is not duplicated:

* rules dispatch on a symbol as on any active value, under any levels of derivatives;
* the engine's own `sweep` runs over a trace and calls the rules' own gradient functions with symbols, and their
  operations are recorded too. The trace then holds value and gradient: the program to lower to machine code.

A symbol has no number that could flow into the result. A comparison returns a symbol of booleans. If Python needs an
answer (`if`, `while`, `int`, an index), it is computed for the example point and recorded as a *guard*: the recording
is valid only at points where all its guards have the same outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.rule import Rule, Value, function_gradients
from adbench.tape.operand import Operand, operator_of
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import reductions
from adbench.tape.rules.indexing import getitem, set_at
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

TAKES_BOOLEANS = frozenset(LOGIC.values()) | {NUMBER, ANY, ALL, e.where}
"""Rules that take booleans as their (first) argument; other rules get 1.0 and 0.0."""

Shape = tuple[int, ...]


class DependsOnDataError(Exception):
    """A loop's body needs a number that differs between iterations, so the loop must be unrolled."""


class Symbol(Operand):
    """A float, or a float64 or boolean array, of a future call.

    tape      the trace it was computed on
    number    the index of its record on the trace
    active    whether it depends on an input that is differentiated
    boolean   whether it holds booleans
    integer   whether it is an input for an array of integers
    adj, own  its adjoint: a symbol is its own cell
    users     for an array, the numbers of the records that read it
    """

    __slots__ = ("_val", "active", "adj", "boolean", "gradient", "integer", "number", "own", "shape", "tape", "users")

    symbolic = True
    tape: Any  # a Trace, which imports this module
    number: int
    active: bool
    boolean: bool
    integer: bool
    shape: Shape
    adj: Value
    own: bool
    users: list[int] | None
    _val: Value
    gradient: dict[str, Any]

    @property
    def level(self) -> int:
        """The level of its trace."""
        return int(self.tape.level)

    @property
    def cell(self) -> Symbol:
        """The cell of its adjoint: the symbol itself."""
        return self

    @property
    def is_differentiated(self) -> bool:  # type: ignore[override]
        """Whether a sweep will follow the current part of the recording."""
        return bool(self.tape.is_differentiated)

    @property
    def careful(self) -> bool:
        """Whether every node has to handle zero times infinity (see `sweep`)."""
        return bool(self.tape.careful)

    @property
    def val(self) -> Value:
        """The same number as a constant for derivatives."""
        return e.stop_gradient(self) if self.active else self

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """The symbol of the result."""
        return self.tape.apply(rule, args, params)

    def __repr__(self) -> str:
        return f"<symbol {self.number} of shape {self.shape}>"

    # Answers that Python needs

    def __bool__(self) -> bool:
        if self.shape != () and self.size != 1:
            raise ValueError("the truth value of an array is ambiguous; use any() or all()")
        symbol = self if self.boolean else self != 0.0
        return bool(self.tape.decide(symbol if symbol.shape == () else symbol.reshape(())))

    def has_nan(self) -> bool:
        """Whether it holds a NaN; adds a guard.

        A loop's body cannot branch: its plain recording assumes none; a careful one replaces it if a NaN appears.
        """
        if self.tape.outer is not None and not self.careful:
            return False
        return bool(ANY(PREDICATES[np.isnan](self)))

    def concrete(self) -> Any:
        """The number or array at the example point, under the guard that it stays the same, bit by bit."""
        value = self.tape.example(self)
        if self.boolean:
            is_same = self == value if self.shape == () else ALL(~(self ^ value))
        else:
            is_same = SAME(self, value) if self.shape == () else ALL(SAME(self, value))
        if not self.tape.decide(is_same):
            raise AssertionError("a value that differs from itself")
        return value.astype(np.int64) if self.integer else value

    def _plain(self, what: str) -> Any:
        if self.active:
            self._refuse(what)
        return self.concrete()

    def __float__(self) -> float:
        return float(self._plain("float()"))

    def __int__(self) -> int:
        return int(self._plain("int()"))

    def __index__(self) -> int:
        value = self._plain("an index")
        if value != int(value):
            self._refuse("an index")
        return int(value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._plain("a numpy array"), dtype)

    # Comparisons and logic give symbols
    __lt__, __le__ = operator_of(PREDICATES[np.less]), operator_of(PREDICATES[np.less_equal])
    __gt__, __ge__ = operator_of(PREDICATES[np.greater]), operator_of(PREDICATES[np.greater_equal])
    __eq__, __ne__ = operator_of(PREDICATES[np.equal]), operator_of(PREDICATES[np.not_equal])
    __and__, __or__ = operator_of(LOGIC[np.logical_and]), operator_of(LOGIC[np.logical_or])
    __xor__ = operator_of(LOGIC[np.logical_xor])

    def __invert__(self) -> Any:
        return LOGIC[np.logical_not](self)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __hash__ = object.__hash__

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Whether one of the conditions holds."""
        return _over(np.any, ANY, self, axis, keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Whether all of the conditions hold."""
        return _over(np.all, ALL, self, axis, keepdims)

    def __contains__(self, item: Any) -> bool:
        return bool(ANY(self == item))

    def __getitem__(self, index: Any) -> Value:
        if isinstance(index, Symbol):
            return index.read_from(self)
        return getitem(self, index=_plain_index(index))

    def read_from(self, x: Value) -> Value:
        """x[self]: for the counter of a loop, or an integer added to it, the row of each iteration."""
        ahead = self._rows_ahead()
        if ahead is None:
            return getitem(x, index=_plain_index(self))
        if ahead:
            self.tape.reads_ahead = True
            x = x[ahead:]
        return TAKE(x, self.tape.counter)

    def _rows_ahead(self) -> int | None:
        """The k of an index i + k, for the counter i of a loop and an integer k from 0 on; None for any other index."""
        counter = self.tape.counter
        if counter is None or counter is self:
            return None if counter is None else 0
        operation = self.tape.producer(self)
        if operation is None or operation[0] is not e.add or not any(x is counter for x in operation[1]):
            return None
        added = operation[1][0] if operation[1][1] is counter else operation[1][1]
        return int(added) if isinstance(added, float) and added.is_integer() and added > 0 else None

    def __setitem__(self, index: Any, value: Any) -> None:
        """Rebind this symbol to a new one with the elements replaced."""
        new = set_at(self, value, index=_plain_index(index))
        if not isinstance(new, Symbol) or new.tape is not self.tape:
            raise DependsOnDataError("an array of an outer level is assigned to")
        self.tape.rebind(self, new)

    # numpy's functions
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            rule = PREDICATES.get(ufunc) or LOGIC.get(BITWISE.get(ufunc, ufunc))
            if rule is not None:
                return rule(*inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in (np.any, np.all):
            return _over(function, ANY if function is np.any else ALL, *args, **options)
        if function is np.asarray:
            return args[0]
        if function in REPLACED:
            return function(*map(_concrete, args), **{k: _concrete(v) for k, v in options.items()})
        return super().__array_function__(function, types, args, options)


BITWISE = {
    np.bitwise_and: np.logical_and,
    np.bitwise_or: np.logical_or,
    np.bitwise_xor: np.logical_xor,
    np.invert: np.logical_not,
}


def _concrete(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_concrete, x))
    return x.concrete() if isinstance(x, Symbol) else x


def _over(function: Any, rule: Rule, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """any or all over axes: by one rule for all elements, else by counting."""
    truth = x if x.boolean else x != 0.0
    if axis is None and not keepdims:
        return rule(truth) if truth.shape else truth
    count = reductions.sum(NUMBER(truth), axis, keepdims)
    if function is np.any:
        return count > 0.0
    axes = range(len(truth.shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return count == float(np.prod([truth.shape[a] for a in axes], dtype=int))


def _plain_index(index: Any) -> Any:
    """An index as plain data; symbols in it become numbers under a guard."""
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    if isinstance(index, Symbol):
        value = index.concrete() if index.boolean or index.integer else index.__index__()
        return value.astype(bool) if index.boolean and isinstance(value, np.ndarray) else value
    if isinstance(index, slice):
        return slice(*(x.__index__() if isinstance(x, Symbol) else x for x in (index.start, index.stop, index.step)))
    if isinstance(index, list):
        return np.asarray([_plain_index(i) for i in index], dtype=None if index else int)
    return index.copy() if isinstance(index, np.ndarray) else index
