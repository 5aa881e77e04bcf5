"""Values on a tape: `Scalar`, a float, and `Array`, everything else."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import elementwise as e
from . import indexing
from .operand import Operand
from .plain import constant, settle, shape_of, value_of
from .recording import ASK, LEAF, Cell, Tape
from .rule import Rule, Value
from .sweep import grad_from


class Recorded(Operand):
    """A value on a tape."""

    __slots__ = ()
    tape: Tape

    @property
    def level(self) -> int:
        """The level of its tape."""
        return self.tape.level

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """Evaluates the rule on the values and records it; arguments of other levels are constants."""
        tape = self.tape
        cells: list[Any] = []
        inputs: list[Value] = []
        for arg in args:
            kind = type(arg)
            if kind is Array and arg.tape is tape:
                cells.append(arg.cell)
                inputs.append(arg.val)
            elif kind is Scalar and arg.tape is tape:
                cells.append(arg)
                inputs.append(arg.val)
            else:
                cells.append(None)
                inputs.append(arg)
        kept = rule.kept(tuple([cell is not None for cell in cells]))
        for i, cell in enumerate(cells):
            if cell is None and type(inputs[i]) is not float:
                inputs[i] = constant(inputs[i], f"{rule.name}: argument {i}", keep=kept is None or kept[i + 1])
        val = settle(_evaluate(rule, inputs, params))
        return push(tape, rule, val, cells, inputs, params, kept)

    def grad(self, wrt: Any = None) -> Any:
        """Sweeps the tape from this scalar: afterwards v.adj = ∂self/∂v for every v on the tape.

        With `wrt`, a variable or a list of variables, also returns their adjoints. Every sweep starts from zero
        adjoints, so calling it again, or from another result, gives no stale sums.
        """
        return grad_from(self, wrt)

    def __repr__(self) -> str:
        return f"Var({self.val!r})"

    def _observe(self, compare: Any, other: Any) -> Any:
        result = compare(value_of(self), value_of(other))
        if self.tape.observed is not None:
            self.tape.observed.append((compare, self, other, result))
        return result


def _evaluate(rule: Rule, inputs: list[Value], params: dict[str, Any]) -> Value:
    try:
        return rule(*inputs, **params)
    except ValueError as error:
        shapes = ", ".join(str(shape_of(x)) for x in inputs if x is not None)
        raise type(error)(f"{rule.name} of shapes {shapes}: {error}") from None


def push(
    tape: Tape,
    rule: Rule,
    val: Value,
    cells: list[Any],
    inputs: list[Value],
    params: dict[str, Any],
    kept: tuple[bool, ...] | None,
) -> Value:
    """Appends a record of the general form and returns its result, a new variable."""
    node: Any
    if type(val) is float:
        node = out = Scalar()
        node.adj = 0.0
    else:
        node = Array()
        node.cell = out = Cell(val.shape)
    node.val = val
    node.tape = tape
    if kept is None:
        saved = (val, inputs)
    else:
        # What no gradient function reads is not kept; a cell stands in, which has the shape and no more.
        for i, cell in enumerate(cells):
            if cell is not None and not kept[i + 1]:
                inputs[i] = cell
        saved = (val if kept[0] else None, inputs)
    tape.append((rule, out, cells, saved, params, ASK))
    return node


class Array(Recorded):
    """An array on a tape, or (of any shape) a value of an outer level: `val` is an ndarray or an active value."""

    __slots__ = ("cell", "tape", "val")

    val: Any
    cell: Cell

    @property
    def adj(self) -> Value:
        """The adjoint, an array of the variable's shape that may be added to."""
        return self.cell.writable() if self.cell.shape else self.cell.adj

    @adj.setter
    def adj(self, value: Value) -> None:
        if shape_of(value) != self.cell.shape:
            raise ValueError(f"adj: expected shape {self.cell.shape}, got {shape_of(value)}")
        self.cell.adj = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.cell.shape

    def __getitem__(self, index: Any) -> Value:
        val = self.val
        if type(index) is int and type(val) is np.ndarray and val.ndim == 1:
            node = Scalar()
            node.val = val.item(index)
            node.adj = 0.0
            node.tape = tape = self.tape
            tape.append((indexing.getitem, node, [self.cell], (None, [self.cell]), {"index": index}, ASK))
            return node
        return indexing.getitem(self, index=indexing.normal_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Rebinds this variable to a new value with the elements replaced; the old value stays on the tape."""
        new = indexing.set_at(self, value, index=indexing.normal_index(index))
        if type(new) is not Array or new.tape is not self.tape:
            raise TypeError(
                "x[index] = v: v belongs to an inner derivative and x to an outer one; "
                "make the array inside, for example with tape.zeros_like(v)"
            )
        self.val, self.cell = new.val, new.cell


class Scalar(Recorded):
    """A float on a tape. Its operators are the engine's innermost loop and record the compact form."""

    __slots__ = ("adj", "tape", "val")

    val: float
    adj: Value

    @property
    def cell(self) -> Scalar:
        """Where its adjoint collects: itself."""
        return self

    shape = ()  # type: ignore[assignment]  # a constant is enough, and quicker than the property

    def __add__(self, other: Any) -> Value:
        kind = type(other)
        if kind is Scalar:
            tape = self.tape
            if other.tape is tape:
                node = Scalar()
                node.adj = 0.0
                node.tape = tape
                node.val = self.val + other.val
                tape.append((e.add, node, self, other, 1.0, 1.0))
                return node
        elif kind is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = self.val + other
            tape.append((e.add, node, self, None, 1.0, other))
            return node
        return e.add(self, other)

    def __sub__(self, other: Any) -> Value:
        kind = type(other)
        if kind is Scalar:
            tape = self.tape
            if other.tape is tape:
                node = Scalar()
                node.adj = 0.0
                node.tape = tape
                node.val = self.val - other.val
                tape.append((e.subtract, node, self, other, 1.0, -1.0))
                return node
        elif kind is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = self.val - other
            tape.append((e.subtract, node, self, None, 1.0, other))
            return node
        return e.subtract(self, other)

    def __mul__(self, other: Any) -> Value:
        kind = type(other)
        if kind is Scalar:
            tape = self.tape
            if other.tape is tape:
                node = Scalar()
                node.adj = 0.0
                node.tape = tape
                node.val = (a := self.val) * (b := other.val)
                tape.append((e.multiply, node, self, other, b, a))
                return node
        elif kind is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = self.val * other
            tape.append((e.multiply, node, self, None, other, other))
            return node
        return e.multiply(self, other)

    def __truediv__(self, other: Any) -> Value:
        # The partials of a scalar quotient are computed at once: that costs less than to ask for them later.
        kind = type(other)
        try:
            if kind is Scalar:
                tape = self.tape
                if other.tape is tape:
                    b = other.val
                    val = self.val / b
                    node = Scalar()
                    node.adj = 0.0
                    node.tape = tape
                    node.val = val
                    tape.append((e.divide, node, self, other, 1.0 / b, -val / b))
                    return node
            elif kind is float or kind is int:
                val = self.val / other
                node = Scalar()
                node.adj = 0.0
                node.tape = tape = self.tape
                node.val = val
                tape.append((e.divide, node, self, None, 1.0 / other, other))
                return node
        except (ZeroDivisionError, OverflowError):
            pass  # numpy's answer, inf or nan with a warning, is the one wanted
        return e.divide(self, other)

    def __radd__(self, other: Any) -> Value:
        kind = type(other)
        if kind is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = other + self.val
            tape.append((e.add, node, None, self, other, 1.0))
            return node
        return e.add(other, self)

    def __rsub__(self, other: Any) -> Value:
        kind = type(other)
        if kind is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = other - self.val
            tape.append((e.subtract, node, None, self, other, -1.0))
            return node
        return e.subtract(other, self)

    def __rmul__(self, other: Any) -> Value:
        kind = type(other)
        if kind is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = other * self.val
            tape.append((e.multiply, node, None, self, other, other))
            return node
        return e.multiply(other, self)

    def __rtruediv__(self, other: Any) -> Value:
        kind = type(other)
        if (kind is float or kind is int) and (b := self.val):
            val = other / b
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = val
            tape.append((e.divide, node, None, self, other, -val / b))
            return node
        return e.divide(other, self)

    def __neg__(self) -> Value:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = -self.val
        tape.append((e.negative, node, self, None, -1.0, None))
        return node

    def __pow__(self, other: Any) -> Value:
        if type(other) in (int, float) and other == 2:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = (a := self.val) * a
            tape.append((e.power, node, self, None, a + a, other))
            return node
        return e.power(self, other)


def new_leaf(tape: Tape, val: Value) -> Any:
    """An independent variable on the tape; `val` must be in normal form."""
    node: Any
    if type(val) is float:
        node = Scalar()
        node.adj = 0.0
    else:
        node = Array()
        node.cell = Cell(val.shape)
    node.val = val
    node.tape = tape
    tape.append((LEAF, node.cell, (), None, {}, ASK))
    return node
