"""The trace: a tape of symbols that records equal operations on equal operands once.

It can compute its symbols' numbers at the example point. It does so only if Python needs one, and then records a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.recorded_forms import BY_A_NUMBER, RecordedRule, recorded_form, result_shape
from adbench.tape.compiled.trace.simplify import simplified
from adbench.tape.compiled.trace.symbol import (
    ALL,
    ANY,
    LOGIC,
    NUMBER,
    PREDICATES,
    SAME,
    TAKES_BOOLEANS,
    DependsOnDataError,
    Shape,
    Symbol,
)
from adbench.tape.core.recording import ASK, LEAF, Record, Tape
from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.levels import next_level
from adbench.tape.rules import elementwise as e
from adbench.tape.values import constant, settle, shape_of


class Trace(Tape):
    """A tape of symbols.

    outer     None, or True for the trace of a loop's body, which has no example point
    careful   whether sweeps over it handle zero times infinity at every node
    counter   the symbol of a loop's counter, for the trace of a loop's body
    reads_ahead  whether the body reads a row at the counter plus an integer
    guards    (symbol, its outcome at the example point), in order
    known     operation and operands -> its record
    masks     number of a record -> where its array may differ from zero; None for everywhere
    foreign   whether an active value of another trace was used
    is_differentiated  whether a sweep will follow the current part of the recording
    """

    def __init__(self, *, careful: bool = False, outer: Any = None) -> None:
        super().__init__(next_level())
        self.careful = careful
        self.outer = outer
        self.counter: Symbol | None = None
        self.reads_ahead = False
        self.foreign = False
        self.is_differentiated = False
        self.guards: list[tuple[Symbol, bool]] = []
        self.known: dict[Any, int] = {}
        self.masks: dict[int, Any] = {}
        self._constants: dict[Any, Any] = {}
        self._alive: list[Any] = []  # constants whose identity is a key of `known`

    def leaf(self, shape: Shape, value: Value = None, *, active: bool = False, integer: bool = False) -> Symbol:
        """Add an input; `value` is its example."""
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
        keeps_booleans = rule in TAKES_BOOLEANS
        inputs, keys = [], []
        active, numbers = False, True  # whether any is differentiated; whether all are numbers
        for i, arg in enumerate(args):
            kind = type(arg)
            if i and rule is e.where:
                keeps_booleans = False
            if kind is Symbol:
                if arg.boolean and not keeps_booleans:
                    arg = NUMBER(arg)
                elif rule in _LOGIC and not arg.boolean:
                    arg = PREDICATES[np.not_equal](arg, 0.0)
                if arg.tape is self:
                    keys.append(arg.number)
                else:
                    self.foreign = True
                    keys.append(~id(arg))
                active = active or arg.active
                numbers = numbers and not arg.shape
            elif kind is float:
                keys.append(repr(arg))
            else:
                if kind is bool or kind is np.bool_:
                    arg = bool(arg) if keeps_booleans else float(arg)
                    keys.append(repr(arg))
                else:
                    arg = self._constant(arg, rule, i)
                    if type(arg) is np.ndarray and arg.dtype.kind == "b" and not keeps_booleans:
                        arg = arg.astype(np.float64)
                    keys.append(repr(arg) if type(arg) is float else ~id(arg))
                    if isinstance(arg, Active):
                        self.foreign = active = True
                    numbers = False
            inputs.append(arg)
        if rule is e.where and not (inputs[0] is True or inputs[0] is False or _is_boolean(inputs[0])):
            return rule(PREDICATES[np.not_equal](inputs[0], 0.0), *inputs[1:])
        simpler = simplified(rule, inputs, params, self.producer)
        if simpler is not None:
            return simpler
        key = (rule, tuple(keys), hashable(params) if params else None)
        known = self.known.get(key)
        if known is not None:
            return self[known][1]
        shape = () if numbers and rule.elementwise else result_shape(rule, inputs, params)
        active = active and rule.reverse is not None and rule is not e.stop_gradient
        boolean = rule in _GIVES_BOOLEANS
        symbol = self._symbol(rule, tuple(inputs), None, params, shape, active=active, boolean=boolean)
        self.known[key] = symbol.number
        return symbol

    def producer(self, symbol: Any) -> tuple[Rule, tuple[Value, ...], dict[str, Any]] | None:
        """The rule, inputs and parameters that made a symbol of this trace; None for inputs and foreign symbols."""
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
        """Make the object `old` represent `new` from here on; earlier records get a new object for the old value.

        So an assignment to elements changes the array for every holder, but no value computed earlier.
        """
        before = Symbol()
        for name in ("tape", "number", "shape", "active", "boolean", "integer", "adj", "users", "_val"):
            setattr(before, name, getattr(old, name))
        self._replace(old, before)
        for name in ("number", "active", "integer", "users", "_val"):
            setattr(old, name, getattr(new, name))
        self._replace(new, old)

    def _replace(self, old: Symbol, new: Symbol) -> None:
        """Let the records that use the object `old` use `new` instead."""
        for number in dict.fromkeys([old.number, *(old.users or ())]):
            rule, out, cells, saved, params, ask = self[number]
            if rule is not LEAF:
                saved = (new if saved[0] is old else saved[0], tuple([new if x is old else x for x in saved[1]]))
                cells = tuple([new if x is old else x for x in cells])
            self[number] = (rule, new if out is old else out, cells, saved, params, ask)

    # Examples

    def example(self, symbol: Symbol) -> Value:
        """The value of a symbol at the example point."""
        waiting = [symbol]
        with np.errstate(all="ignore"):
            while waiting:
                s = waiting[-1]
                if s._val is not None:
                    waiting.pop()
                    continue
                if s.tape.outer is not None:
                    raise DependsOnDataError("a loop's body needs a number that differs between iterations")
                rule, inputs, params = made_by(s.tape[s.number]) or (LEAF, (), {})
                if rule is LEAF:
                    raise DependsOnDataError("an input has no example")
                missing = [x for x in inputs if type(x) is Symbol and x._val is None]
                if missing:
                    waiting.extend(missing)
                    continue
                value = rule.value(*(x._val if type(x) is Symbol else x for x in inputs), **params)
                s._val = bool(value) if s.boolean and not s.shape else value if s.boolean else settle(value)
                waiting.pop()
        return symbol._val

    def decide(self, condition: Any) -> bool:
        """Decide a condition at the example point, and record a guard."""
        if not isinstance(condition, Symbol):
            return bool(condition)
        if condition.tape.outer is not None:
            raise DependsOnDataError("a loop's body branches on a value")
        trace = condition.tape
        outcome = bool(trace.example(condition))
        key = ("guard", condition.number)
        if key not in trace.known:
            trace.known[key] = condition.number
            trace.guards.append((condition, outcome))
        return outcome


def made_by(record: Record) -> tuple[Rule, tuple[Value, ...], dict[str, Any]] | None:
    """(rule, inputs, params) of a trace's record, with the rule that was called; None for an input."""
    rule = record[0]
    if rule is LEAF:
        return None
    return rule.origin if type(rule) is RecordedRule else rule, record[3][1], record[4]


def _as_one_number(array: Any) -> Any:
    """The array; if all elements are equal, as a view of one number."""
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
_LOGIC = frozenset(LOGIC.values())
_GIVES_BOOLEANS = _PREDICATES | _LOGIC | {ANY, ALL}


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
