"""Operators of `Dual` on numbers, without a call of their rules: forward mode takes a quarter of the time.

They compute the rules' values and tangents, also where value and tangent are scalars on a tape or duals of an outer
level, and leave every other case to the rule: arrays, symbols, singular points, and squares of roots.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.node import Scalar
from adbench.tape.core.rule import Active, AllInputs, Rule, Value
from adbench.tape.rules.elementwise import add, divide, multiply, negative, subtract
from adbench.tape.values import seen_inside, settle

Formula = Callable[[Value, Value, Value, Value, Value], Value]


def _sum(_val: Value, _x: Value, s: Value, _y: Value, t: Value) -> Value:
    return t if s is None else s if t is None else s + t


def _difference(_val: Value, _x: Value, s: Value, _y: Value, t: Value) -> Value:
    return -t if s is None else s if t is None else s - t


def _product(_val: Value, x: Value, s: Value, y: Value, t: Value) -> Value:
    of_x, of_y = _scaled(s, y), _scaled(t, x)
    return of_y if of_x is None else of_x if of_y is None else of_x + of_y


def _quotient(val: Value, _x: Value, s: Value, y: Value, t: Value) -> Value:
    of_x = s if s is None or (type(s) is float and s == 0.0) else s / y
    if t is None:
        return of_x
    of_y = _scaled(t, val / -y)
    return of_y if of_x is None else of_x + of_y


def _scaled(tangent: Value, factor: Value) -> Value:
    """tangent · factor; 0 stays 0 for any factor."""
    return tangent if tangent is None or (type(tangent) is float and tangent == 0.0) else tangent * factor


def _is_number(x: Value) -> bool:
    """Whether it is a number, or a scalar or dual that is one."""
    kind = type(x)
    return kind is float or kind is Scalar or (kind is Dual and _is_number(x.val))


FORMULAS: dict[Rule, tuple[Callable[[float, float], float], Formula]] = {
    add: (operator.add, _sum),
    subtract: (operator.sub, _difference),
    multiply: (operator.mul, _product),
    divide: (operator.truediv, _quotient),
}
"""The rule for floats, and (value, x, its tangent or None, y, its tangent or None) -> tangent."""


def _computed(rule: Rule, level: int, a: Value, b: Value) -> Dual | None:
    """The result, or None if the rule has to decide."""
    x, s = (a.val, a.tangent) if type(a) is Dual and a.level == level else (a, None)
    y, t = (b.val, b.tangent) if type(b) is Dual and b.level == level else (b, None)
    if type(y) is int:
        y = float(y)
    elif type(x) is int:
        x = float(x)
    for part in (x, y, s, t):
        if type(part) is not float and part is not None and not _is_number(part):
            return None
    if s is None and t is None:
        return None
    of_floats, formula = FORMULAS[rule]
    try:
        # The operators of outer levels drop inputs that a later root has to see.
        val = of_floats(x, y) if type(x) is float and type(y) is float else rule(x, y)
        tangent = formula(val, x, s, y, t)
    except ArithmeticError:
        return None
    plain = tangent
    while type(plain) is not float:
        plain = plain.val
    if plain != plain or (plain == 0.0 and rule is divide):  # 0 · inf, or a tangent that underflows
        return None
    return Dual(level, val, tangent)


def _operator(rule: Rule) -> Callable[[Any, Any], Value]:
    def operate(self: Dual, other: Value) -> Value:
        kind = type(other)
        if kind is not float and kind is not int:
            if not isinstance(other, Active) or other.level > self.level:
                return PLAIN[rule](self, other)
            if rule is multiply and kind is Dual and self.origin is not None:  # perhaps the square of a root
                return PLAIN[rule](self, other)
        result = _computed(rule, self.level, self, other)
        return PLAIN[rule](self, other) if result is None else result

    return operate


def _reflected(rule: Rule) -> Callable[[Any, Any], Value]:
    def operate(self: Dual, other: Value) -> Value:
        kind = type(other)
        result = _computed(rule, self.level, other, self) if kind is float or kind is int else None
        return rule(other, self) if result is None else result

    return operate


PLAIN: dict[Rule, Callable[[Any, Any], Value]] = {rule: rule for rule in FORMULAS}
"""The rule, or `Operand`'s own operator, which also knows squares of roots."""
PLAIN[multiply] = lambda self, other: Active.__mul__(self, other)  # type: ignore[operator]  # from Operand


def _negated(self: Dual) -> Value:
    return Dual(self.level, -self.val, -self.tangent) if type(self.val) is float else negative(self)


OPERATORS: dict[str, Callable[..., Value]] = {"neg": _negated}
"""Name of an operator -> the fast method of `Dual`."""
for _name, _rule in (("add", add), ("sub", subtract), ("mul", multiply), ("truediv", divide)):
    OPERATORS |= {_name: _operator(_rule), f"r{_name}": _reflected(_rule)}

_interpret = Dual.interpret


def interpret(self: Dual, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """`Dual.interpret` without loops for a number's function, and with the operators' formulas."""
    if rule in FORMULAS:
        computed = _computed(rule, self.level, *args)
        return _interpret(self, rule, args, params) if computed is None else computed
    val, tan = self.val, self.tangent
    if len(args) != 1 or not rule.elementwise or not _is_number(val) or not _is_number(tan):
        return _interpret(self, rule, args, params)
    if type(rule.forward) is AllInputs or (rule.inner is not None and type(val) is not float):
        return _interpret(self, rule, args, params)
    y = settle(rule(val, **params) if rule.inner is None else seen_inside(rule, [val])(val, **params))
    with np.errstate(all="ignore"):
        tangent = settle(self.part(rule, 0, y, tan, [val], params))
    result = Dual(self.level, y, tangent)
    if rule.remembered:
        result.origin = (y, rule, args, params)
    return result
