"""Forward mode: each value carries its derivative along one direction.

It uses the same rules as the sweep, in the other direction: ẏ = Σ gradient_i(y, ẋ_i, *x), over the active arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, AllInputs, Rule, RuleError, TapeError, Value
from adbench.tape.values import constant, divided_as_numpy, seen_inside, settle, shape_of


class Dual(Active):
    """val + tangent ε at one level. Both have the same shape, and both may be active values of outer levels.

    `origin`, if set, is the call that made it: (val, rule, args, params); see `identities`.
    """

    __slots__ = ("gradient", "level", "origin", "tangent", "val")

    level: int
    origin: tuple[Any, ...] | None

    def __init__(self, level: int, val: Value, tangent: Value) -> None:
        self.level = level
        self.val = val
        self.tangent = tangent
        self.origin = None

    def __repr__(self) -> str:
        return f"Dual({self.val!r}, {self.tangent!r})"

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """Evaluate the rule on the values and its gradient functions on the tangents."""
        inputs, tans = [], []
        for i, arg in enumerate(args):
            active = isinstance(arg, Dual) and arg.level == self.level
            inputs.append(arg.val if active else constant(arg, rule.name, i, keep=False))
            tans.append(arg.tangent if active else None)
        val = settle((rule if rule.inner is None else seen_inside(rule, inputs))(*inputs, **params))
        with np.errstate(all="ignore"):
            if type(rule.forward) is AllInputs:
                tangent = rule.forward.fn(val, tans, *inputs, **params)
            else:
                tangent = None
                for i, tan in enumerate(tans):
                    if tan is not None:
                        part = self.part(rule, i, val, tan, inputs, params)
                        tangent = part if tangent is None else tangent + part
        tangent = settle(tangent)
        result = Dual(self.level, val, tangent if shape_of(tangent) == shape_of(val) else _fitted(rule, val, tangent))
        if rule.remembered:
            result.origin = (val, rule, args, params)
        return result

    @staticmethod
    def part(rule: Rule, i: int, val: Value, tan: Value, inputs: list[Value], params: dict[str, Any]) -> Value:
        """The contribution of argument i's tangent to the result's tangent."""
        gradient = rule.forward[i] if rule.forward is not None else None
        if gradient is None:
            raise RuleError(f"{rule.name} has no derivative in argument {i} in forward mode")
        return divided_as_numpy(gradient, val, tan, *inputs, **params)


def _fitted(rule: Rule, val: Value, tangent: Value) -> Value:
    """The tangent in the result's shape."""
    expected, got = shape_of(val), shape_of(tangent)
    if rule.elementwise and len(got) <= len(expected):
        return np.broadcast_to(tangent, expected)
    raise RuleError(f"{rule.name}: the tangent of the result has the wrong shape: expected {expected}, got {got}")


def tangent_of(value: Value, level: int) -> Value:
    """The tangent at this level; zeros if the value does not depend on the input."""
    if isinstance(value, Dual) and value.level == level:
        return value.tangent
    if isinstance(value, Dual) and value.level > level:
        raise TapeError("the function returned a value of an inner derivative that has ended; return its .val")
    return np.zeros(shape_of(value)) if shape_of(value) else 0.0
