"""The operators of `Scalar` and `Array`, quicker than through their rules. They record the same.

Without this module the engine would be as right, and slower: scalar code three times, code on arrays of a hundred
numbers twice. A scalar's operator makes one record and calls nothing; what it does not know it leaves to the rule.
Spelled out, because each step more is a step in the innermost loop.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import ASK, Cell
from adbench.tape.core.rule import Rule, Value
from adbench.tape.fast.blocks import LARGE, room, snapshot
from adbench.tape.rules.elementwise import add, divide, multiply, negative, power, square, subtract
from adbench.tape.values import FLOAT64, MINUS_ONE, ONE

Operator = Callable[[Any, Any], Value]

# Arrays: with an array of the same shape, a scalar, or a constant of either kind


def _array_operator(
    rule: Rule, compute: Callable[[Any, Any], Any], partials: tuple[float, float] | None, reflected: bool = False
) -> Operator:
    """array ∘ other, or other ∘ array if reflected.

    `partials` are constants, or None for a product, each of whose partials is the other argument.
    """

    def operate(self: Array, other: Any) -> Value:
        kind, tape, cell, mine = type(other), self.tape, self.cell, self.val
        theirs, its_cell, known = other, None, type(mine) is np.ndarray
        if kind is Array:
            theirs, its_cell = other.val, other.cell
            known = known and other.tape is tape and type(theirs) is np.ndarray and its_cell.shape == cell.shape
        elif kind is Scalar:
            theirs, its_cell = other.val, other
            known = known and other.tape is tape
        elif kind is np.ndarray:
            known = known and other.shape == cell.shape and other.dtype is FLOAT64
            if known and partials is None:
                theirs = snapshot(other)
        elif kind is not float and kind is not int:
            known = False
        if not known:
            return rule(other, self) if reflected else rule(self, other)
        a, b = (theirs, mine) if reflected else (mine, theirs)
        node = Array()
        node.val = compute(a, b) if mine.size < LARGE else rule.value(a, b, room(cell.shape))
        node.tape = tape
        node.cell = out = Cell()
        out.adj = 0.0
        out.shape = cell.shape
        p, q = partials or (b, a)
        if its_cell is not None:
            cells = (its_cell, cell) if reflected else (cell, its_cell)
            tape.append((rule, out, cells, (p, q), None, ASK))
        elif reflected:
            tape.append((rule, out, (None, cell), (theirs, q), None, ASK))
        else:
            tape.append((rule, out, (cell, None), (p, theirs), None, ASK))
        return node

    return operate


def _beside_scalar(
    rule: Rule,
    compute: Callable[[Any, Any], Any],
    partials: tuple[float, float] | None,
    of_array: Operator,
    reflected: bool = False,
) -> Operator:
    """scalar ∘ array, or array ∘ scalar if reflected; `of_array` is the same from the array's side."""

    def operate(self: Scalar, other: Any) -> Value:
        if type(other) is Array:
            return of_array(other, self)
        if type(other) is not np.ndarray or other.dtype is not FLOAT64 or not other.ndim:
            return rule(other, self) if reflected else rule(self, other)
        theirs = other if partials else snapshot(other)
        a, b = (theirs, self.val) if reflected else (self.val, theirs)
        node = Array()
        node.val = compute(a, b) if other.size < LARGE else rule.value(a, b, room(other.shape))
        node.tape = tape = self.tape
        node.cell = out = Cell()
        out.adj = 0.0
        out.shape = other.shape
        p, q = partials or (b, a)
        if reflected:
            tape.append((rule, out, (None, self), (theirs, q), None, ASK))
        else:
            tape.append((rule, out, (self, None), (p, theirs), None, ASK))
        return node

    return operate


_array_add = _array_operator(add, operator.add, (ONE, ONE))
_array_subtract = _array_operator(subtract, operator.sub, (ONE, MINUS_ONE))
_array_multiply = _array_operator(multiply, operator.mul, None)
_array_radd = _array_operator(add, operator.add, (ONE, ONE), reflected=True)
_array_rsub = _array_operator(subtract, operator.sub, (ONE, MINUS_ONE), reflected=True)
_array_rmul = _array_operator(multiply, operator.mul, None, reflected=True)
_scalar_add_array = _beside_scalar(add, operator.add, (ONE, ONE), _array_radd)
_scalar_subtract_array = _beside_scalar(subtract, operator.sub, (ONE, MINUS_ONE), _array_rsub)
_scalar_multiply_array = _beside_scalar(multiply, operator.mul, None, _array_rmul)
_array_add_scalar = _beside_scalar(add, operator.add, (ONE, ONE), _array_add, reflected=True)
_array_subtract_scalar = _beside_scalar(subtract, operator.sub, (ONE, MINUS_ONE), _array_subtract, reflected=True)
_array_multiply_scalar = _beside_scalar(multiply, operator.mul, None, _array_multiply, reflected=True)


def _array_truediv(self: Any, other: Any) -> Value:
    kind, a, tape = type(other), self.val, self.tape
    if type(a) is np.ndarray:
        if kind is Scalar and other.tape is tape and (b := other.val):
            return _divided(self, other, b)
        if (kind is float or kind is int) and other:
            return _divided(self, None, other)
    return divide(self, other)


def _divided(self: Any, cell: Any, b: float) -> Value:
    """array / b, where b is the value of a scalar with this cell or, without one, a constant."""
    node = Array()
    a = self.val
    node.val = val = a / b if a.size < LARGE else np.divide(a, b, room(a.shape))
    node.tape = tape = self.tape
    node.cell = out = Cell()
    out.adj = 0.0
    out.shape = a.shape
    tape.append((divide, out, (self.cell, cell), (1.0 / b, b if cell is None else (val, -1.0 / b)), None, ASK))
    return node


def _array_pow(self: Any, other: Any) -> Value:
    if type(other) in (int, float) and other == 2:
        a = self.val
        if type(a) is not np.ndarray:
            return square(self)
        node = Array()
        node.val = a * a if a.size < LARGE else np.square(a, room(a.shape))
        node.tape = tape = self.tape
        node.cell = out = Cell()
        out.adj = 0.0
        out.shape = a.shape
        tape.append((square, out, (self.cell,), (None, (a,)), {}, ASK))
        return node
    return power(self, other)


def _array_neg(self: Any) -> Value:
    a = self.val
    if type(a) is not np.ndarray:
        return negative(self)
    node = Array()
    node.val = -a if a.size < LARGE else np.negative(a, room(a.shape))
    node.tape = tape = self.tape
    node.cell = out = Cell()
    out.adj = 0.0
    out.shape = a.shape
    tape.append((negative, out, (self.cell,), (MINUS_ONE,), None, ASK))
    return node


# Scalars


def _scalar_add(self: Any, other: Any) -> Value:
    if type(other) is Scalar:
        tape = self.tape
        if other.tape is tape:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape
            node.val = self.val + other.val
            tape.append((add, node, self, other, 1.0, 1.0))
            return node
    elif (kind := type(other)) is float or kind is int:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = self.val + other
        tape.append((add, node, self, None, 1.0, other))
        return node
    return _scalar_add_array(self, other)


def _scalar_sub(self: Any, other: Any) -> Value:
    if type(other) is Scalar:
        tape = self.tape
        if other.tape is tape:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape
            node.val = self.val - other.val
            tape.append((subtract, node, self, other, 1.0, -1.0))
            return node
    elif (kind := type(other)) is float or kind is int:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = self.val - other
        tape.append((subtract, node, self, None, 1.0, other))
        return node
    return _scalar_subtract_array(self, other)


def _scalar_mul(self: Any, other: Any) -> Value:
    if type(other) is Scalar:
        tape = self.tape
        if other.tape is tape:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape
            node.val = (a := self.val) * (b := other.val)
            tape.append((multiply, node, self, other, b, a))
            return node
    elif (kind := type(other)) is float or kind is int:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = self.val * other
        tape.append((multiply, node, self, None, other, other))
        return node
    return _scalar_multiply_array(self, other)


def _scalar_truediv(self: Any, other: Any) -> Value:
    # The partials of a scalar quotient are computed at once: that costs less than to ask for them later.
    try:
        if type(other) is Scalar:
            tape = self.tape
            if other.tape is tape:
                b = other.val
                val = self.val / b
                node = Scalar()
                node.adj = 0.0
                node.tape = tape
                node.val = val
                tape.append((divide, node, self, other, 1.0 / b, -val / b))
                return node
        elif (kind := type(other)) is float or kind is int:
            val = self.val / other
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = val
            tape.append((divide, node, self, None, 1.0 / other, other))
            return node
    except (ZeroDivisionError, OverflowError):
        pass  # numpy's answer, inf or nan with a warning, is the one wanted
    return divide(self, other)


def _scalar_radd(self: Any, other: Any) -> Value:
    if (kind := type(other)) is float or kind is int:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = other + self.val
        tape.append((add, node, None, self, other, 1.0))
        return node
    return _array_add_scalar(self, other)


def _scalar_rsub(self: Any, other: Any) -> Value:
    if (kind := type(other)) is float or kind is int:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = other - self.val
        tape.append((subtract, node, None, self, other, -1.0))
        return node
    return _array_subtract_scalar(self, other)


def _scalar_rmul(self: Any, other: Any) -> Value:
    if (kind := type(other)) is float or kind is int:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = other * self.val
        tape.append((multiply, node, None, self, other, other))
        return node
    return _array_multiply_scalar(self, other)


def _scalar_rtruediv(self: Any, other: Any) -> Value:
    if ((kind := type(other)) is float or kind is int) and (b := self.val):
        val = other / b
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = val
        tape.append((divide, node, None, self, other, -val / b))
        return node
    return divide(other, self)


def _scalar_neg(self: Any) -> Value:
    node = Scalar()
    node.adj = 0.0
    node.tape = tape = self.tape
    node.val = -self.val
    tape.append((negative, node, self, None, -1.0, None))
    return node


def _scalar_pow(self: Any, other: Any) -> Value:
    if type(other) in (int, float) and other == 2:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = (a := self.val) * a
        tape.append((power, node, self, None, a + a, other))
        return node
    return power(self, other)


OF_ARRAYS: dict[str, Callable[..., Value]] = {
    "add": _array_add,
    "sub": _array_subtract,
    "mul": _array_multiply,
    "truediv": _array_truediv,
    "pow": _array_pow,
    "neg": _array_neg,
    "radd": _array_radd,
    "rsub": _array_rsub,
    "rmul": _array_rmul,
}
OF_SCALARS: dict[str, Callable[..., Value]] = {
    "add": _scalar_add,
    "sub": _scalar_sub,
    "mul": _scalar_mul,
    "truediv": _scalar_truediv,
    "pow": _scalar_pow,
    "neg": _scalar_neg,
    "radd": _scalar_radd,
    "rsub": _scalar_rsub,
    "rmul": _scalar_rmul,
    "rtruediv": _scalar_rtruediv,
}
