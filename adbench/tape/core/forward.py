"""Forward mode: a value with the derivative of everything so far along one direction.

The same rules as the sweep uses, asked the other way: ẏ = Σ gradient(y, ẋ_i, *x), over the active arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.operand import Operand
from adbench.tape.core.rule import AllInputs, Rule, RuleError, TapeError, Value
from adbench.tape.core.sweep import zero_wins
from adbench.tape.core.values import constant, may_have_nan, settle, shape_of, with_infinities
from adbench.tape.rules import indexing
from adbench.tape.rules.shapes import broadcast_to


class Dual(Operand):
    """val + tangent ε at one level; both of the same shape, and both may be active values of outer levels."""

    __slots__ = ("_level", "gradient", "tangent", "val")

    gradient: dict[str, Any]  # of the results of `with_gradient` only

    def __init__(self, level: int, val: Value, tangent: Value) -> None:
        self._level = level
        self.val = val
        self.tangent = tangent

    @property
    def level(self) -> int:
        """The level of the functional that made it."""
        return self._level

    def __repr__(self) -> str:
        return f"Dual({self.val!r}, {self.tangent!r})"

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """Evaluates the rule on the values and its gradient functions on the tangents."""
        inputs: list[Value] = []
        tans: list[Value] = []
        for i, arg in enumerate(args):
            active = isinstance(arg, Dual) and arg._level == self._level
            inputs.append(arg.val if active else constant(arg, f"{rule.name}: argument {i}", keep=False))
            tans.append(arg.tangent if active else None)
        val = settle(rule(*inputs, **params))
        with np.errstate(all="ignore"):
            tangent = _tangent(rule, val, inputs, tans, params)
        if shape_of(tangent) != shape_of(val):
            tangent = _fitted(rule, val, tangent)
        return Dual(self._level, val, settle(tangent))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Rebinds this value to a new one with the elements replaced."""
        new = indexing.set_at(self, value, index=indexing.normal_index(index))
        if not isinstance(new, Dual) or new._level != self._level:
            raise TypeError(
                "x[index] = v: v belongs to an inner derivative and x to an outer one; "
                "make the array inside, for example with tape.zeros_like(v)"
            )
        self.val, self.tangent = new.val, new.tangent


def _tangent(rule: Rule, val: Value, inputs: list[Value], tans: list[Value], params: dict[str, Any]) -> Value:
    if type(rule.forward) is AllInputs:
        return rule.forward.fn(val, tans, *inputs, **params)
    total: Value = None
    for i, tan in enumerate(tans):
        if tan is None:
            continue
        gradient = rule.forward[i] if rule.forward is not None else None
        if gradient is None:
            raise RuleError(f"{rule.name} has no derivative in argument {i} in forward mode")
        try:
            part = gradient(val, tan, *inputs, **params)
        except ArithmeticError:
            gradient = with_infinities(gradient)
            part = gradient(val, tan, *inputs, **params)
        if rule.elementwise and may_have_nan(part):
            part = zero_wins(part, tan, gradient(val, 1.0, *inputs, **params))
        total = part if total is None else total + part
    return total


def _fitted(rule: Rule, val: Value, tangent: Value) -> Value:
    expected, got = shape_of(val), shape_of(tangent)
    if rule.elementwise and len(got) <= len(expected):
        return broadcast_to(settle(tangent), expected)
    raise RuleError(f"{rule.name}: the tangent of the result has the wrong shape: expected {expected}, got {got}")


def tangent_of(value: Value, level: int) -> Value:
    """The tangent at this level; zeros for a value that does not depend on the input."""
    if isinstance(value, Dual) and value._level == level:
        return value.tangent
    if isinstance(value, Dual) and value._level > level:
        raise TapeError("a value of a finished inner derivative was returned by the function")
    return np.zeros(shape_of(value)) if shape_of(value) else 0.0
