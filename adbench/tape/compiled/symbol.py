"""Symbols: what stands for the numbers of calls to come while a function is recorded for compilation.

A `Symbol` is an active value at the lowest level, in the place of a plain number or array. Operations on symbols are
recorded on a `Trace`, which is a `Tape` with records of the general form. So nothing of the engine is there twice:

* rules dispatch on a symbol as on any active value, whatever levels of derivatives lie over it;
* the engine's own `sweep` runs over a trace, calls the rules' own gradient functions with symbols, and what they
  compute is recorded behind. The trace then holds value and gradient: the program that is lowered to machine code.

No symbol has a number that may flow into the result. A comparison gives a symbol again, of booleans. Where Python
needs one answer (`if`, `while`, `int`, an index), it is computed for the example point, and noted down as a *guard*:
the recording holds for those points only at which all its guards come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import elementwise as e
from .. import reductions
from ..indexing import getitem
from ..operand import Operand
from ..plain import constant, settle, shape_of
from ..recording import ASK, LEAF, Record, Tape
from ..rule import Active, Rule, Value
from ..variable import next_level
from .forms import BY_A_NUMBER, recorded_form
from .predicates import ALL, ANY, LOGIC, NUMBER, PREDICATES, REPLACED, SAME, TAKE, takes_booleans
from .shaping import result_shape
from .simplify import simplified

Shape = tuple[int, ...]


class DependsOnDataError(Exception):
    """A loop's body asks for a number that differs from turn to turn: the loop has to be unrolled."""


class Symbol(Operand):
    """A float, or a float64 or boolean array, of a call to come.

    tape      the trace it was computed on; None in its place for a constant
    number    the place of its record on the trace
    active    whether it depends on an input that is differentiated
    boolean   whether it holds booleans
    integer   whether the plain input that it stands for is an array of integers
    adj, own  where its adjoint collects: a symbol is its own cell
    users     for an array the numbers of the records that read it
    """

    __slots__ = ("_val", "active", "adj", "boolean", "gradient", "integer", "number", "own", "shape", "tape", "users")

    symbolic = True
    tape: Trace
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
        return self.tape.level

    @property
    def cell(self) -> Symbol:
        """Where its adjoint collects: itself."""
        return self

    @property
    def careful(self) -> bool:
        """Whether zero times infinity is to be seen to at every node (see `sweep`)."""
        return self.tape.careful

    @property
    def val(self) -> Value:
        """The same number as a constant to derivatives."""
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
        return self.tape.decide(symbol if symbol.shape == () else symbol.reshape(()))

    def has_nan(self) -> bool:
        """Whether it holds a NaN: a guard."""
        return bool(ANY(PREDICATES[np.isnan](self)))

    def concrete(self) -> Any:
        """The number or array at the example point, under the guard that it is the same, bit by bit."""
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

    def _refuse(self, what: str) -> NoReturn:
        super()._refuse(what)

    # Comparisons and logic give symbols
    def __lt__(self, other: Any) -> Any:
        return PREDICATES[np.less](self, other)

    def __le__(self, other: Any) -> Any:
        return PREDICATES[np.less_equal](self, other)

    def __gt__(self, other: Any) -> Any:
        return PREDICATES[np.greater](self, other)

    def __ge__(self, other: Any) -> Any:
        return PREDICATES[np.greater_equal](self, other)

    def __eq__(self, other: Any) -> Any:
        return PREDICATES[np.equal](self, other)

    def __ne__(self, other: Any) -> Any:
        return PREDICATES[np.not_equal](self, other)

    def __and__(self, other: Any) -> Any:
        return LOGIC[np.logical_and](self, other)

    def __or__(self, other: Any) -> Any:
        return LOGIC[np.logical_or](self, other)

    def __xor__(self, other: Any) -> Any:
        return LOGIC[np.logical_xor](self, other)

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
        if isinstance(index, Symbol) and index.shape == () and index.tape.counter is index:
            return TAKE(self, index) if index.tape.outer is not None else super().__getitem__(index)
        return getitem(self, index=_plain_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Rebinds this symbol to a new one with the elements replaced."""
        from ..indexing import set_at

        new = set_at(self, value, index=_plain_index(index))
        if not isinstance(new, Symbol) or new.tape is not self.tape:
            raise DependsOnDataError("an array of an outer level is written into")
        self.tape.rebind(self, new)

    # numpy's functions
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            rule = PREDICATES.get(ufunc) or LOGIC.get(ufunc)
            if rule is None and ufunc in BITWISE:
                rule = LOGIC[BITWISE[ufunc]]
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
    """any or all over axes: of everything by one rule, else by counting."""
    truth = x if x.boolean else x != 0.0
    if axis is None and not keepdims:
        return rule(truth) if truth.shape else truth
    count = reductions.sum(NUMBER(truth), axis, keepdims)
    if function is np.any:
        return count > 0.0
    axes = range(len(truth.shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return count == float(np.prod([truth.shape[a] for a in axes], dtype=int))


def _plain_index(index: Any) -> Any:
    """An index as plain data; symbols in it are looked at, under a guard."""
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


class Trace(Tape):
    """A tape of symbols.

    outer     None, or the function that says whether a value lies outside of this loop body; a body has no example
    careful   whether sweeps over it are to see to zero times infinity at every node
    counter   the symbol of a loop's counter, for the trace of a loop's body
    guards    (symbol, what it was at the example point), in the order in which Python asked
    known     what was computed already: the same operation on the same operands is recorded once
    """

    __slots__ = ("_alive", "_constants", "careful", "counter", "guards", "known", "outer")

    def __init__(self, *, careful: bool = False, outer: Any = None) -> None:
        super().__init__(next_level())
        self.careful = careful
        self.outer = outer
        self.counter: Symbol | None = None
        self.guards: list[tuple[Symbol, bool]] = []
        self.known: dict[Any, int] = {}
        self._constants: dict[Any, Any] = {}
        self._alive: list[Any] = []  # constants whose identity is a key of `known`

    def leaf(self, shape: Shape, value: Value = None, *, active: bool = False, integer: bool = False) -> Symbol:
        """An input; `value` is its example."""
        return self._symbol(LEAF, (), value, {}, shape, active=active, integer=integer)

    def _symbol(
        self,
        rule: Rule,
        inputs: tuple[Value, ...],
        value: Value,
        params: dict[str, Any],
        shape: Shape,
        *,
        active: bool,
        boolean: bool = False,
        integer: bool = False,
    ) -> Symbol:
        symbol = Symbol()
        symbol.tape = self
        symbol.number = len(self)
        symbol.shape = shape
        symbol.active = active
        symbol.boolean = boolean
        symbol.integer = integer
        symbol.adj = 0.0
        symbol._val = value
        symbol.users = [] if shape else None
        for x in inputs:
            if type(x) is Symbol and x.users is not None and x.tape is self:
                x.users.append(symbol.number)
        if rule is LEAF:
            self.append((LEAF, symbol, (), value, {}, ASK))
        else:
            cells = tuple([x if type(x) is Symbol and x.active and x.tape is self else None for x in inputs])
            form = BY_A_NUMBER if rule is e.divide and shape and shape_of(inputs[1]) == () else recorded_form(rule)
            self.append((form, symbol, cells, (symbol, inputs), params, ASK))
        return symbol

    def apply(self, rule: Rule, args: Sequence[Value], params: dict[str, Any]) -> Value:
        """The symbol of rule(*args, **params)."""
        keeps_booleans = takes_booleans(rule)
        inputs, keys = [], []
        for i, arg in enumerate(args):
            kind = type(arg)
            if kind is Symbol:
                if arg.boolean and not (keeps_booleans and (rule is not e.where or i == 0)):
                    arg = NUMBER(arg)
                inputs.append(arg)
                keys.append(arg.number if arg.tape is self else id(arg))
                keys.append(arg.level)
                continue
            if kind is bool or kind is np.bool_:
                arg = bool(arg) if keeps_booleans else float(arg)
            elif kind is not float:
                arg = self._constant(arg, rule, i)
                if type(arg) is np.ndarray and arg.dtype.kind == "b" and not keeps_booleans:
                    arg = arg.astype(np.float64)
            inputs.append(arg)
            keys.append(repr(arg) if type(arg) is float else id(arg))
        if rule is e.where and not (inputs[0] is True or inputs[0] is False or _is_boolean(inputs[0])):
            return rule(PREDICATES[np.not_equal](inputs[0], 0.0), *inputs[1:])
        found = simplified(rule, inputs, params, self.producer)
        if found is not None:
            return found
        key = (rule, tuple(keys), hashable(params) if params else None)
        known = self.known.get(key)
        if known is not None:
            return self[known][1]
        shape = result_shape(rule, inputs, params)
        depends = [x.active if type(x) is Symbol else isinstance(x, Active) for x in inputs]
        active = rule.reverse is not None and rule is not e.stop_gradient and any(depends)
        boolean = rule in _GIVES_BOOLEANS
        symbol = self._symbol(rule, tuple(inputs), None, params, shape, active=active, boolean=boolean)
        self.known[key] = symbol.number
        return symbol

    def producer(self, symbol: Any) -> tuple[Rule, tuple[Value, ...], dict[str, Any]] | None:
        """The rule, inputs and parameters that made a symbol of this trace; None for an input, or another's symbol."""
        if type(symbol) is not Symbol or symbol.tape is not self:
            return None
        return made_by(self[symbol.number])

    def _constant(self, value: Value, rule: Rule, place: int) -> Value:
        value = constant(value, rule.name, place)
        if type(value) is np.ndarray:
            value = _as_one_number(value)
            key = ("constant", value.shape, value.dtype.char, value.tobytes() if value.size <= 64 else None)
            if key[-1] is not None:
                value = self._constants.setdefault(key, value)
            self._alive.append(value)
        return value

    def rebind(self, old: Symbol, new: Symbol) -> None:
        """From here on the object `old` is what `new` is; what it was goes on under a new object, also in the records.

        So an assignment to elements is seen by all who hold the array, and by nothing that was computed before.
        """
        kept = Symbol()
        for name in ("tape", "number", "shape", "active", "boolean", "integer", "adj", "users", "_val"):
            setattr(kept, name, getattr(old, name))
        for number in dict.fromkeys([old.number, *(old.users or ())]):
            rule, out, cells, saved, params, ask = self[number]
            if rule is not LEAF:
                saved = (kept if saved[0] is old else saved[0], tuple([kept if x is old else x for x in saved[1]]))
                cells = tuple([kept if x is old else x for x in cells])
            self[number] = (rule, kept if out is old else out, cells, saved, params, ask)
        for name in ("number", "active", "integer", "users", "_val"):
            setattr(old, name, getattr(new, name))
        for number in dict.fromkeys([new.number, *(new.users or ())]):
            rule, out, cells, saved, params, ask = self[number]
            saved = (old if saved[0] is new else saved[0], tuple([old if x is new else x for x in saved[1]]))
            cells = tuple([old if x is new else x for x in cells])
            self[number] = (rule, old if out is new else out, cells, saved, params, ask)

    # Examples

    def example(self, symbol: Symbol) -> Value:
        """The number or array that a symbol is at the example point."""
        waiting = [symbol]
        with np.errstate(all="ignore"):
            while waiting:
                s = waiting[-1]
                if s._val is not None:
                    waiting.pop()
                    continue
                if s.tape.outer is not None:
                    raise DependsOnDataError("a number is needed that differs from turn to turn")
                rule, inputs, params = made_by(s.tape[s.number]) or (LEAF, (), {})
                if rule is LEAF:
                    raise DependsOnDataError("an input without example")
                missing = [x for x in inputs if type(x) is Symbol and x._val is None]
                if missing:
                    waiting.extend(missing)
                    continue
                value = rule.value(*(x._val if type(x) is Symbol else x for x in inputs), **params)
                s._val = bool(value) if s.boolean and not s.shape else value if s.boolean else settle(value)
                waiting.pop()
        return symbol._val

    def decide(self, condition: Any) -> bool:
        """The truth of a condition at the example point, noted down as a guard."""
        if not isinstance(condition, Symbol):
            return bool(condition)
        if condition.tape.outer is not None:
            raise DependsOnDataError("a branch in a loop's body")
        trace = condition.tape
        outcome = bool(trace.example(condition))
        key = ("guard", condition.number)
        if key not in trace.known:
            trace.known[key] = condition.number
            trace.guards.append((condition, outcome))
        return outcome


def made_by(record: Record) -> tuple[Rule, tuple[Value, ...], dict[str, Any]] | None:
    """(rule, inputs, params) of a trace's record, the rule as it was called; None for an input."""
    rule, _, _, saved, params, _ = record
    if rule is LEAF:
        return None
    called: Any = getattr(rule, "origin", rule)
    return called, saved[1], params


def operation(trace: Trace, number: int) -> tuple[Rule, tuple[Value, ...], dict[str, Any]]:
    """`made_by` of what is known to be no input."""
    made = made_by(trace[number])
    if made is None:
        raise IndexError(f"record {number} is an input")
    return made


def _as_one_number(array: Any) -> Any:
    """An array whose elements are all the same as a view of one."""
    if array.size > 1 and array.dtype.kind == "f" and any(array.strides):
        first = array[(0,) * array.ndim]
        if (
            first == array[(-1,) * array.ndim]
            and np.all(array == first)
            and not np.any(np.signbit(array) != np.signbit(first))
        ):
            return np.broadcast_to(first.copy(), array.shape)
    return array


_PREDICATES = frozenset(PREDICATES.values()) | {SAME}
_GIVES_BOOLEANS = _PREDICATES | frozenset(LOGIC.values()) | {ANY, ALL}


def _is_boolean(x: Any) -> bool:
    return x.boolean if type(x) is Symbol else isinstance(x, np.ndarray) and x.dtype.kind == "b"


def hashable(x: Any) -> Any:
    """Parameters as a key: equal keys mean equal parameters."""
    if isinstance(x, dict):
        return tuple((k, hashable(v)) for k, v in x.items())
    if isinstance(x, (tuple, list)):
        return (type(x), *map(hashable, x))
    if isinstance(x, slice):
        return ("slice", x.start, x.stop, x.step)
    if isinstance(x, np.ndarray):
        return ("array", x.shape, x.dtype.str, x.tobytes())
    if isinstance(x, float):
        return ("float", repr(x))
    try:
        hash(x)
    except TypeError:
        return ("object", id(x))
    return (type(x), x)


Function = Callable[..., Any]
__all__ = ["DependsOnDataError", "Function", "Symbol", "Trace", "hashable", "made_by", "shape_of"]
