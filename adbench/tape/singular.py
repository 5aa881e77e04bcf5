"""Second derivatives at points where the first derivative is only a convention.

At 0 the slope of |x| jumps, and the norm has no gradient. The engine takes 0 there, by convention, and a convention
cannot be differentiated again. If it counted as a constant, the second derivative of |x|² at 0 would be 2 · 0 · 0 = 0,
where it is 2. So if a gradient function uses a convention and is itself being differentiated, its contribution has the
derivative NaN. (`identities` replaces the compositions it knows, as |x|², by smooth functions.)

In forward mode the tangent itself is NaN there, because later operations could not distinguish it from a true 0.

There is no NaN where it would be wrong. The contribution is (adjoint) · (slope). If the adjoint is 0 and does not
change to first order, the derivative of the product is 0, whatever the slope is. This covers branches that `where` did
not take, and |x|³.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core import sweep
from adbench.tape.core.forward import Dual
from adbench.tape.core.recording import CALLBACK
from adbench.tape.core.rule import Active, Rule, Value, function_gradients
from adbench.tape.core.sweep import propagate
from adbench.tape.levels import current, leaves_of
from adbench.tape.values import PLAIN, shape_of, value_of

_GOLDEN = 0.6180339887498949


def _nan_unless_zero(z: Value) -> Value:
    """NaN where z is not 0."""
    return np.where(value_of(z) == 0.0, 0.0, np.nan)


def _sizes(tan: Value, axes: tuple[int, ...]) -> Value:
    sizes = np.abs(value_of(tan))
    return np.add.reduce(sizes, axes) if axes else sizes


def _everywhere(adj: Value, shape: tuple[int, ...], axes: tuple[int, ...]) -> Value:
    return np.broadcast_to(np.expand_dims(_nan_unless_zero(adj), axes), shape) + 0.0


UNDEFINED = function_gradients(
    lambda x, axes, value: np.full([n for i, n in enumerate(shape_of(x)) if i not in axes], value),
    reverse=(lambda _v, adj, _x, axes, value: _everywhere(adj, shape_of(_x), axes),),
    forward=(lambda _v, tan, _x, axes, value: _nan_unless_zero(_sizes(tan, axes) + abs(value)),),
    name="undefined",
)
"""`value`, with the derivative NaN in all elements along the axes. If `value` is NaN, also along zero directions."""


UNKNOWN_SLOPE = function_gradients(
    lambda x: np.zeros(shape_of(x))[()],
    reverse=(lambda _v, adj, _x: np.where(value_of(adj) == 0.0, 0.0, np.nan)[()],),
    forward=(lambda _v, tan, _x: np.full(shape_of(tan), np.nan)[()],),
    name="unknown slope",
)
"""0, with the derivative NaN, also along directions that leave x as it is."""


def some(at: Value) -> bool:
    """Whether a condition holds or a number is not 0 anywhere; True for active values, whose 0 may have derivatives."""
    return isinstance(at, Active) or bool(np.any(at))


def is_symbol(plain: Value) -> bool:
    """Whether this plain value is a symbol of compiled code, whose numbers are unknown."""
    return isinstance(plain, Active)


def surely(condition: Value, symbol: Any, what: str) -> None:
    """Let compiled code check a condition on a symbol at every call. Raises TapeError where it does not hold."""
    if not bool(condition):
        symbol._refuse(what)


def flat(z: Value, at: Value) -> Value:
    """Where z is 0 and does not change to first order at the next derivative's level; checked only where `at` holds."""
    if isinstance(z, Active) and z.symbolic and may_change(z):
        return is_masked(z)
    zero = np.equal(value_of(z), 0.0)
    return np.logical_and(zero, still(z, np.logical_and(zero, at)))


def still(z: Value, where: Value) -> Value:
    """The elements selected by `where` that do not change to first order at the next derivative's level."""
    if not isinstance(z, Active):
        return True
    if isinstance(z, Dual):
        fixed = np.equal(value_of(z.tangent), 0.0)
        return fixed if getattr(z.val, "symbolic", False) else np.logical_and(fixed, still(z.val, where))
    if z.symbolic:
        return is_masked(z) if may_change(z) else True
    rates = _gradients(z, where) if np.any(where) else None
    return rates is not None and not any(np.any(value_of(rate)) for rate in rates)


def may_change(z: Value) -> bool:
    """Whether a value may change at the next derivative's level; a symbol only if a sweep that reaches it follows."""
    return isinstance(z, Active) and (not z.symbolic or bool(getattr(z, "active", True) and z.is_differentiated))


def bends(z: Value, where: Value) -> Value:
    """Whether these elements, all with a zero gradient, change to second order: x² at 0, but not a branch not taken.

    At such a point √z is |t| along a line, so its slope is unknown, and not 0. For values on a tape; of symbols, those
    along a direction, for which the answer is a symbol.
    """
    steady, straight = True, True
    for rate in _gradients(z, where) or ():
        steady = np.logical_and(steady, np.all(np.equal(value_of(rate), 0.0)))
        if type(rate) is Dual or not isinstance(where, Active):  # no tangent: it does not change along the direction
            straight = np.logical_and(straight, np.all(still(rate, True)))
    return np.logical_and(steady, np.logical_not(straight))


def irregular(shape: tuple[int, ...]) -> Value:
    """Weights between ½ and 3/2, with which numbers do not cancel by chance."""
    return 0.5 + np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape) * _GOLDEN % 1.0


def _gradients(z: Any, where: Value) -> list[Value] | None:
    """The gradients, in the tape's variables, of a sum of these elements with irregular weights.

    None if the tape has a callback, which must not run for this.
    """
    if any(record[0] is CALLBACK for record in z.tape):
        return None
    leaves = [cell for cell, _ in leaves_of(z.tape)]
    if isinstance(where, Active):
        return _symbolic_gradients(z, where, leaves)
    where = _fitted(where, shape_of(z))
    weights = np.where(where, irregular(np.shape(where)), 0.0)
    propagate(z.tape, [(z.cell, weights if shape_of(z) else float(weights))], leaves)
    return [leaf.adj for leaf in leaves]


def _symbolic_gradients(z: Any, where: Value, leaves: list[Any]) -> list[Value]:
    """The gradients for symbols, in one pass, without deciding whether a NaN was reached. Leaves the tape as it was."""
    z.cell.adj = np.where(where, irregular(shape_of(z))[()], 0.0)
    z.cell.own = False
    sweep.PASSES[0](reversed(z.tape))
    rates = [leaf.adj for leaf in leaves]
    z.tape.zero_adjoints()
    return rates


def _fitted(where: Value, shape: tuple[int, ...]) -> Value:
    """A mask of a broadcast result as a mask of an argument of this shape."""
    where = np.broadcast_to(where, np.broadcast_shapes(np.shape(where), shape))
    lead = where.ndim - len(shape)
    repeated = tuple(k for k in range(where.ndim) if k < lead or shape[k - lead] == 1)
    return np.any(where, repeated, keepdims=True).reshape(shape)


def is_masked(z: Value) -> Value:
    """Where z is a 0 that cannot change. For symbols, also a 0 that `where` inserted and that was only multiplied."""
    if not isinstance(z, Active) or (z.symbolic and not z.active):  # type: ignore[attr-defined]
        return np.equal(z, 0.0)
    if isinstance(z, Dual) and not getattr(z.val, "symbolic", False):
        return False
    if isinstance(z, Dual):
        return np.logical_and(is_masked(z.val), is_masked(z.tangent))
    operation = z.tape.producer(z) if z.symbolic else None  # type: ignore[attr-defined]
    if operation is None:
        return False
    name, inputs = operation[0].name, operation[1]
    if name == "where":
        return np.where(inputs[0], is_masked(inputs[1]), is_masked(inputs[2]))
    if name == "multiply":
        return np.logical_or(is_masked(inputs[0]), is_masked(inputs[1]))
    return is_masked(inputs[0]) if name in ("divide", "negative", "positive") else False


def direction(x: Value) -> Value:
    """The plain tangent of a value that is differentiated by one outer level of forward mode only; else None."""
    known = isinstance(x, Dual) and type(x.val) in PLAIN and type(x.tangent) in PLAIN
    return x.tangent if known else None


def along_direction(known: Value) -> None:
    """Note that the slope of a kink was taken along the direction, where `known` holds; see `jacobians.linear`."""
    if np.any(known):
        current.one_sided = True


def undefined(at: Value, adj: Value, x: Value, axes: tuple[int, ...] = (), value: float = 0.0) -> Value:
    """`unknown` where `at` holds, except where the adjoint or tangent is `flat`, or NaN (`value`) and x is `still`."""
    if not some(at):
        return 0.0
    if math.isnan(value):
        at = np.logical_and(at, np.logical_not(_rests(x, at, axes)))
    is_tangent = len(shape_of(adj)) > len(shape_of(at))  # it still has these axes
    zero = np.all(flat(adj, True), axes) if is_tangent else flat(adj, at)
    return unknown(np.logical_and(at, np.logical_not(zero)), x, axes, value)


def _rests(x: Value, at: Value, axes: tuple[int, ...] = ()) -> Value:
    """Where x is `still`, in all elements along the axes."""
    fixed = still(x, np.expand_dims(at, axes) if axes else at)
    return np.all(fixed, axes) if axes and shape_of(fixed) else fixed


def moving(at: Value, tan: Value, x: Value) -> Value:
    """`unknown`, and NaN, where `at` holds, the tangent is not 0, and x moves at the next derivative's level, too."""
    at = np.logical_and(at, np.not_equal(value_of(tan), 0.0))
    return unknown(np.logical_and(at, np.logical_not(_rests(x, at))), x, value=math.nan) if some(at) else 0.0


def unknown(at: Value, x: Value, axes: tuple[int, ...] = (), value: float = 0.0) -> Value:
    """0, or `value`, with the derivative NaN in x (along the axes) where `at` holds.

    The number 0 if `at` holds nowhere; otherwise an array of its shape.
    """
    if not some(at):
        return 0.0
    return np.where(at, UNDEFINED(x, axes=axes, value=value), 0.0)


def strict(
    rule: Rule,
    of: tuple[int, ...] = (0, 1),
    singular: Callable[..., Value] = lambda val, *_inputs: np.equal(value_of(val), 0.0),
    one_sided: Callable[..., Value] | None = None,
) -> Rule:
    """The rule with the derivative NaN where it is singular: its form for outer levels inside another derivative.

    There |x| occurs next to its own slope, and a derivative of 0 for one of them would look like a true 0. `of` lists
    the arguments without a known derivative; `singular(val, *inputs)` is where, by default where the value is 0.
    `one_sided(tan, axes)`, if given, is the tangent there, in the direction of the tangent of a plain argument.
    """

    def of_argument(gradient: Any, back: bool) -> Any:
        def with_nan(val: Value, adj: Value, *inputs: Value, axes: tuple[int, ...] = (), **params: Any) -> Value:
            at, shape = singular(val, *inputs), shape_of(inputs[0])
            if not rule.elementwise:
                params["axes"] = axes
            part = gradient(val, adj, *inputs, **params)
            if not some(at):
                return part
            if back and axes:
                return part + _everywhere(np.where(at, value_of(adj), 0.0), shape, axes)
            if not back and one_sided is not None and type(adj) in PLAIN and type(inputs[0]) in PLAIN:
                return np.where(at, one_sided(adj, axes), part)
            return part + np.where(at, _nan_unless_zero(_sizes(adj, axes)), 0.0)

        return with_nan

    reverse = tuple(of_argument(g, True) if i in of else g for i, g in enumerate(rule.reverse))
    forward = tuple(of_argument(g, False) if i in of else g for i, g in enumerate(rule.forward))
    strict_rule = Rule(rule.name, rule.value, reverse, forward, elementwise=rule.elementwise, fresh=rule.fresh)
    strict_rule.native = rule.native
    return strict_rule
