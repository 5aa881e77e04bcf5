"""Forward mode with compact Jacobians: each value carries its whole ∂value/∂x, for every tracked variable x.

One evaluation of a function propagates J_y = Σ_i L_i J_i through each rule, where L_i = ∂y/∂input_i is the local
Jacobian. It comes from the same rule as in the other modes:

    elementwise rules            the gradient function of 1: `Diagonal`, or `OneInRow` where an input is broadcast
    rules that move elements     the value function of the elements' positions: `OneInRow`
    sums and scattering          the gradient function of the elements' positions: `OneInColumn`
    matmul                       `Kronecker`
    all others                   the gradient functions, one row or column at a time: `Implicit`

Two modes differ where no compact form is closed. "forward" multiplies small products out (see `compact`). "hybrid"
multiplies only on request, in the cheaper order: compact forms forwards, all others in reverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.rule import AllInputs, Rule, RuleError, TapeError, Value
from adbench.tape.core.sweep import contributions
from adbench.tape.levels import forward_level
from adbench.tape.operand import Operand
from adbench.tape.pqr.compact import CompactJacobian, Dense, add, compose, identity
from adbench.tape.pqr.compact_forms import Implicit, Kronecker, OneInColumn, OneInRow, on_diagonal
from adbench.tape.rules import indexing, reductions, shapes
from adbench.tape.rules.products import matmul
from adbench.tape.rules.shapes import asarray, broadcast_to, ravel, reshape, transpose
from adbench.tape.values import constant, leaf_value, settle, shape_of, size_of


def places(value: Value) -> Value:
    """The elements' numbers, counted from 1 row by row, in the value's shape."""
    return np.arange(1.0, size_of(value) + 1.0).reshape(shape_of(value)) if shape_of(value) else 1.0


# Local Jacobians: ∂val/∂input_i of one rule


def local_jacobian(rule: Rule, i: int, val: Value, inputs: list[Value], params: dict[str, Any]) -> CompactJacobian:
    """∂val/∂inputs[i], in the most compact form known for the rule."""
    if isinstance(rule, JacobianRule):
        return rule.local(i, val, *inputs, **params)
    if rule.elementwise:
        return _elementwise(rule, i, val, inputs, params)
    if rule in _LOCAL:
        return _LOCAL[rule](rule, i, val, inputs, params)
    return _by_products(rule, i, val, inputs, params)


def _elementwise(rule: Rule, i: int, val: Value, inputs: list[Value], params: dict[str, Any]) -> CompactJacobian:
    partial = settle(Dual.part(rule, i, val, 1.0, inputs, params))
    x = inputs[i]
    if shape_of(x) == shape_of(val):
        return on_diagonal(ravel(broadcast_to(partial, shape_of(val))) if shape_of(partial) else partial, size_of(val))
    columns = np.broadcast_to(places(x), shape_of(val)).ravel().astype(int) - 1
    entries = ravel(broadcast_to(partial, shape_of(val))) if shape_of(partial) else partial
    return OneInRow(columns, entries, size_of(x))


def _moved(rule: Rule, i: int, _val: Value, inputs: list[Value], params: dict[str, Any]) -> CompactJacobian:
    """The Jacobian of a function that moves or drops elements or inserts zeros, from the elements' positions."""
    sources = [places(x) if k == i else np.zeros(shape_of(x)) if shape_of(x) else 0.0 for k, x in enumerate(inputs)]
    columns = np.asarray(rule.value(*sources, **params)).ravel().astype(int) - 1
    return OneInRow(columns, 1.0, size_of(inputs[i]))


def _summed(rule: Rule, i: int, val: Value, inputs: list[Value], params: dict[str, Any]) -> CompactJacobian:
    """The Jacobian of a function that sums elements, from the position that receives each element."""
    size = size_of(inputs[i])
    if size_of(val) == 1:
        return OneInColumn(np.broadcast_to(0, (size,)), 1.0, 1)
    rows = np.asarray(rule.reverse[i](val, places(val), *inputs, **params)).ravel().astype(int) - 1
    return OneInColumn(rows, 1.0, size_of(val))


def _matrix_product(rule: Rule, i: int, val: Value, inputs: list[Value], params: dict[str, Any]) -> CompactJacobian:
    """For Y = A B: ∂Y/∂A = I ⊗ Bᵀ, ∂Y/∂B = A ⊗ I. A vector is a matrix of one row or column."""
    a, b = inputs
    if len(shape_of(a)) > 2 or len(shape_of(b)) > 2:
        return _by_products(rule, i, val, inputs, params)
    left = reshape(a, (1, -1)) if len(shape_of(a)) == 1 else a
    right = reshape(b, (-1, 1)) if len(shape_of(b)) == 1 else b
    if i == 0:
        rows = shape_of(left)[0]
        return Dense(transpose(right)) if rows == 1 else Kronecker(rows, transpose(right))
    columns = shape_of(right)[1]
    return Dense(left) if columns == 1 else Kronecker(left, columns)


def _by_products(rule: Rule, i: int, val: Value, inputs: list[Value], params: dict[str, Any]) -> CompactJacobian:
    """A Jacobian whose products call the rule's gradient functions, one row or column at a time."""
    y_shape, x_shape = shape_of(val), shape_of(inputs[i])
    cells = [k == i or None for k in range(len(inputs))]

    def left(w: Value) -> Value:
        if isinstance(rule.reverse, tuple) and rule.reverse[i] is None:
            raise RuleError(f"{rule.name} has no derivative in argument {i} in reverse mode")
        adjoints = (fold(w[k], y_shape) for k in range(shape_of(w)[0]))
        parts = [contributions(rule, adj, cells, (val, inputs), params)[i] for adj in adjoints]
        return asarray([_vector(rule, part, inputs[i], f"the gradient for argument {i}") for part in parts])

    def right(v: Value) -> Value:
        tangents = (fold(v[:, k], x_shape) for k in range(shape_of(v)[1]))
        if isinstance(rule.forward, AllInputs):
            parts = [rule.forward.fn(val, [tan if c else None for c in cells], *inputs, **params) for tan in tangents]
        else:
            parts = [Dual.part(rule, i, val, tan, inputs, params) for tan in tangents]
        return transpose(asarray([_vector(rule, part, val, "the tangent of the result") for part in parts]))

    held = size_of(val) + sum(size_of(x) for x in inputs if x is not None)
    sides = (left if rule.reverse is not None else None, right if rule.forward is not None else None)
    return Implicit((math.prod(y_shape), math.prod(x_shape)), *sides, held)


def fold(x: Value, shape: tuple[int, ...]) -> Value:
    """x in this shape, a float for ()."""
    return settle(reshape(x, shape))


def _vector(rule: Rule, part: Value, like: Value, what: str) -> Value:
    part, expected = settle(part), shape_of(like)
    if shape_of(part) == expected:
        return ravel(part) if expected else reshape(part, (1,))
    if type(part) is float and part == 0.0:
        return np.zeros(math.prod(expected))
    raise RuleError(f"{rule.name}: {what} has the wrong shape: expected {expected}, got {shape_of(part)}")


Local = Callable[[Rule, int, Value, list[Value], dict[str, Any]], CompactJacobian]

_LOCAL: dict[Any, Local] = {
    **dict.fromkeys((shapes._reshape, shapes.copy), lambda _rule, _i, val, _inputs, _params: identity(val)),
    shapes._zeros: lambda _rule, i, val, inputs, _params: no_jacobian(val, inputs[i]),
    **dict.fromkeys((shapes._broadcast, shapes._transpose, shapes._flip, shapes._roll, shapes._tril), _moved),
    **dict.fromkeys((shapes._triu, shapes._repeat, shapes._concatenate, shapes._gather_scalars), _moved),
    **dict.fromkeys((indexing.getitem, indexing.set_at), _moved),
    **dict.fromkeys((reductions._sum, shapes._sum_to, indexing.put), _summed),
    matmul: _matrix_product,
}
"""Rules of known structure. The table is here, so rules need not know this mode."""


class JacobianRule(Rule):
    """A rule defined by its local Jacobians: local(i, val, *inputs) -> ∂val/∂inputs[i], a `CompactJacobian`.

    Both modes follow: adj → adj J and tan → J tan. `local` is called only for active arguments.
    """

    __slots__ = ("local",)

    def __init__(self, name: str, value: Callable[..., Value], local: Callable[..., CompactJacobian]) -> None:
        super().__init__(name, value, AllInputs(self._adjoints), AllInputs(self._tangent))
        self.local = local

    def _adjoints(self, wanted: list[bool], val: Value, adj: Value, *inputs: Value) -> list[Value]:
        row = reshape(adj, (1, -1))
        return [
            fold(self.local(i, val, *inputs).left(row), shape_of(x)) if wanted[i] else None
            for i, x in enumerate(inputs)
        ]

    def _tangent(self, val: Value, tans: list[Value], *inputs: Value) -> Value:
        total: Value = None
        for i, tan in enumerate(tans):
            if tan is not None:
                part = self.local(i, val, *inputs).right(reshape(tan, (-1, 1)))
                total = part if total is None else total + part
        return fold(total, shape_of(val))


# Values that carry their Jacobians


class Frame:
    """One level of this mode.

    level    its number
    lazy     whether products stay lazy
    is_open  whether the level is open
    values   those of its variables
    """

    def __init__(self, level: int, lazy: bool, values: Sequence[Value]) -> None:
        self.level, self.lazy, self.is_open = level, lazy, True
        self.values = values

    def variables(self) -> list[Compact]:
        """New variables. The frame does not hold them, because they hold it and a circle would keep their memory."""
        return [Compact(self, value, {k: identity(value)}) for k, value in enumerate(self.values)]

    def _has(self, y: Value) -> bool:
        return isinstance(y, Compact) and y.frame is self

    def value(self, y: Value) -> Value:
        """The value of y one level down."""
        return y.val if self._has(y) else settle(y)

    def jacobian(self, y: Value, k: int) -> CompactJacobian:
        """∂y/∂x_k, of empty rows if y does not depend on x_k."""
        if self._has(y) and k in y.jacobians:
            return y.jacobians[k]  # type: ignore[no-any-return]  # y is a Compact
        return no_jacobian(y, self.values[k])

    def blocks(self, y: Value) -> list[Value]:
        """∂y/∂x for each variable, of shape y.shape + x.shape."""
        return [
            settle(reshape(self.jacobian(y, k).dense(), shape_of(y) + shape_of(x))) for k, x in enumerate(self.values)
        ]


class Compact(Operand):
    """val, and jacobians[k] = ∂val/∂x_k for the frame's variables x_k on which it depends."""

    __slots__ = ("frame", "gradient", "jacobians", "val")

    def __init__(self, frame: Frame, val: Value, jacobians: dict[int, CompactJacobian]) -> None:
        self.frame = frame
        self.val = val
        self.jacobians = jacobians

    @property
    def level(self) -> int:
        """The level of its frame."""
        return self.frame.level

    def __repr__(self) -> str:
        return f"Compact({self.val!r}, {self.jacobians!r})"

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """Evaluate the rule on the values, and the chain rule on the Jacobians."""
        frame = self.frame
        if not frame.is_open:
            raise TapeError(
                f"{rule.name}: an argument is a variable of a block that has ended; take its plain value with .val"
            )
        inputs: list[Value] = []
        carried: list[dict[int, CompactJacobian]] = []
        for i, arg in enumerate(args):
            if isinstance(arg, Compact) and arg.frame is frame:
                inputs.append(arg.val)
                carried.append(arg.jacobians)
            else:
                # A lazy Jacobian reads its constants later, so their owner must not be able to change them.
                inputs.append(constant(arg, f"{rule.name}: argument {i}", keep=not rule.elementwise))
                carried.append({})
        val = settle(rule(*inputs, **params))
        jacobians: dict[int, CompactJacobian] = {}
        with np.errstate(all="ignore"):  # products handle 0 · inf; the value has warned of the rest
            for i, before in enumerate(carried):
                if before:
                    first = local_jacobian(rule, i, val, inputs, params)
                    for k, rest in before.items():
                        part = compose(first, rest, lazy=frame.lazy)
                        jacobians[k] = add(jacobians[k], part, lazy=frame.lazy) if k in jacobians else part
        return Compact(frame, val, jacobians)


def compact_jacobian(f: Callable[[Value], Value], x: Value, mode: str = "forward") -> tuple[Value, CompactJacobian]:
    """(f(x), J) for a number or array x: J[i, j] = ∂f_i/∂x_j in compact form, shape (f(x).size, x.size).

    mode "forward" multiplies small products out, and "hybrid" keeps them lazy (see this module's docstring). "dense"
    stores all numbers from the first operation on, for comparison with the compact forms.
    """
    if mode not in ("forward", "hybrid", "dense"):
        raise ValueError(f"compact_jacobian: mode: expected 'forward', 'hybrid' or 'dense', got {mode!r}")
    value = leaf_value(x, "compact_jacobian: x")
    with forward_level() as level:
        frame = Frame(level, mode == "hybrid", [value])
        (variable,) = frame.variables()
        if mode == "dense":
            variable.jacobians[0] = Dense(np.eye(size_of(value)))
        y = asarray(f(variable))
        frame.is_open = False
    return frame.value(y), frame.jacobian(y, 0)


def no_jacobian(y: Value, x: Value) -> CompactJacobian:
    """∂y/∂x if y does not depend on x: empty rows."""
    return OneInRow(np.full(size_of(y), -1), 0.0, size_of(x))
