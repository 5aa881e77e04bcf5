"""Second derivatives where a first derivative is only a convention.

At 0 the slope of |x| jumps, and the norm has no gradient: the engine takes 0 there, which is a convention. A convention
cannot be differentiated again. Taken for a constant it made the second derivative of |x|² at 0 to 2 · 0 · 0 = 0, where
it is 2. So a gradient function that used a convention, and is itself being differentiated, says so: its contribution
has the derivative NaN. (Where the whole is known, as for |x|², `identities` has put something better in its place.)

In forward mode the tangent itself is NaN there: nothing later could tell it from a 0 that is one.

NaN is not said where it would be wrong: the contribution is (adjoint) · (slope), and where the adjoint is 0 and
does not change to first order the product's derivative is 0, whatever the slope is. That is so for a branch that
`where` did not take, and for |x|³.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.recording import CALLBACK, LEAF
from adbench.tape.core.rule import Active, Rule, Value, function_gradients
from adbench.tape.core.sweep import propagate
from adbench.tape.values import shape_of, value_of

_GOLDEN = 0.6180339887498949


def _spoilt(z: Value) -> Value:
    """NaN where z is not 0."""
    return np.where(value_of(z) == 0.0, 0.0, np.nan)


def _sizes(tan: Value, axes: tuple[int, ...]) -> Value:
    sizes = np.abs(value_of(tan))
    return np.add.reduce(sizes, axes) if axes else sizes


def _everywhere(adj: Value, shape: tuple[int, ...], axes: tuple[int, ...]) -> Value:
    return np.broadcast_to(np.expand_dims(_spoilt(adj), axes), shape) + 0.0


UNDEFINED = function_gradients(
    lambda x, axes, value: np.full([n for i, n in enumerate(shape_of(x)) if i not in axes], value),
    reverse=(lambda _v, adj, _x, axes, value: _everywhere(adj, shape_of(_x), axes),),
    forward=(lambda _v, tan, _x, axes, value: _spoilt(_sizes(tan, axes) + abs(value)),),
    name="undefined",
)
"""`value`, with the derivative NaN in all elements along the axes; if it is NaN, also along directions that are 0."""


def some(at: Value) -> bool:
    """Whether a condition holds anywhere; of a symbol nobody knows."""
    return isinstance(at, Active) or bool(np.any(at))


def flat(z: Value, at: Value) -> Value:
    """Where z is 0, and at the level of the next derivative does not change to first order; asked where `at` holds."""
    if isinstance(z, Active) and z.symbolic:
        return is_masked(z)
    zero = np.equal(value_of(z), 0.0)
    return np.logical_and(zero, still(z, np.logical_and(zero, at)))


def still(z: Value, where: Value) -> Value:
    """Which of the elements where `where` holds do not change to first order at the level of the next derivative."""
    if not isinstance(z, Active):
        return True
    if isinstance(z, Dual):
        fixed = np.equal(value_of(z.tangent), 0.0)
        return fixed if getattr(z.val, "symbolic", False) else np.logical_and(fixed, still(z.val, where))
    if z.symbolic:
        return is_masked(z)
    return np.any(where) and _is_stationary(z, where)


def _is_stationary(z: Any, where: Value) -> bool:
    """Whether these elements of a value on a tape do not depend on the tape's variables to first order."""
    records = list(z.tape)
    if any(record[0] is CALLBACK for record in records):
        return False
    leaves = [record[1] for record in records if record[0] is LEAF]
    weights = 0.5 + np.arange(1.0, 1.0 + np.size(where)).reshape(np.shape(where)) * _GOLDEN % 1.0
    weights = np.where(where, weights, 0.0)
    propagate(z.tape, [(z.cell, weights if shape_of(z) else float(weights))], leaves)
    return not any(np.any(value_of(leaf.adj)) for leaf in leaves)


def is_masked(z: Value) -> Value:
    """Where z is a plain 0; for symbols also where `where` has put one, and it was only multiplied since."""
    if not isinstance(z, Active):
        return np.equal(z, 0.0)
    if isinstance(z, Dual) and not getattr(z.val, "symbolic", False):
        return False
    if isinstance(z, Dual):
        return np.logical_and(is_masked(z.val), is_masked(z.tangent))
    made = z.tape.producer(z) if z.symbolic else None  # type: ignore[attr-defined]
    if made is None:
        return False
    name, inputs = made[0].name, made[1]
    if name == "where":
        return np.where(inputs[0], is_masked(inputs[1]), is_masked(inputs[2]))
    if name == "multiply":
        return np.logical_or(is_masked(inputs[0]), is_masked(inputs[1]))
    return is_masked(inputs[0]) if name in ("divide", "negative", "positive") else False


def undefined(at: Value, adj: Value, x: Value, axes: tuple[int, ...] = (), value: float = 0.0) -> Value:
    """`unknown` where `at` holds, unless the adjoint or tangent is flat there."""
    if not some(at):
        return 0.0
    is_tangent = len(shape_of(adj)) > len(shape_of(at))  # it has these axes
    zero = np.all(flat(adj, True), axes) if is_tangent else flat(adj, at)
    return unknown(np.logical_and(at, np.logical_not(zero)), x, axes, value)


def moving(at: Value, tan: Value, x: Value) -> Value:
    """`unknown`, and NaN, where `at` holds and the tangent is not 0."""
    return unknown(np.logical_and(at, np.not_equal(value_of(tan), 0.0)), x, value=math.nan)


def unknown(at: Value, x: Value, axes: tuple[int, ...] = (), value: float = 0.0) -> Value:
    """0, or another value, with the derivative NaN in x (along the axes) where `at` holds.

    It is a number where that is nowhere, otherwise of the shape of `at`.
    """
    if not some(at):
        return 0.0
    return np.where(at, UNDEFINED(x, axes=axes, value=value), 0.0)


def _is_zero(val: Value, *_inputs: Value) -> Value:
    return np.equal(value_of(val), 0.0)


def strict(rule: Rule, of: tuple[int, ...] = (0, 1), singular: Callable[..., Value] = _is_zero) -> Rule:
    """The rule with the derivative NaN where it is singular: what it is to outer levels inside of another derivative.

    There |x| occurs next to its own slope, and 0 for the change of one of them would look like knowledge. `of` are the
    arguments whose derivative is not known, `singular(val, *inputs)` says where; by default where the value is 0.
    """

    def of_argument(gradient: Any, back: bool) -> Any:
        def spoilt(val: Value, adj: Value, *inputs: Value, axes: tuple[int, ...] = (), **params: Any) -> Value:
            at, shape = singular(val, *inputs), shape_of(inputs[0])
            if not rule.elementwise:
                params["axes"] = axes
            part = gradient(val, adj, *inputs, **params)
            if not some(at):
                return part
            if back and axes:
                return part + _everywhere(np.where(at, value_of(adj), 0.0), shape, axes)
            return part + np.where(at, _spoilt(_sizes(adj, axes)), 0.0)

        return spoilt

    reverse = tuple(of_argument(g, True) if i in of else g for i, g in enumerate(rule.reverse))
    forward = tuple(of_argument(g, False) if i in of else g for i, g in enumerate(rule.forward))
    found = Rule(rule.name, rule.value, reverse, forward, elementwise=rule.elementwise, fresh=rule.fresh)
    found.native = rule.native
    return found
