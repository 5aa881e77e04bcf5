"""Values on a tape: `Scalar`, a float, and `Array`, everything else."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import indexing
from .elementwise import add, divide, multiply, negative, power, square, subtract
from .operand import Operand
from .plain import FLOAT64, constant, settle, shape_of, value_of
from .recording import ASK, LEAF, MINUS_ONE, ONE, Cell, Tape, new_cell
from .rule import Active, Rule, Value
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
        if len(args) == 1:
            return _interpret_one(self, rule, params)
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
        try:
            val = rule(*inputs, **params)
        except ValueError as error:
            raise _with_shapes(error, rule, inputs) from None
        if kept is None:
            return push(tape, rule, val, cells, val, inputs, params)
        # What no gradient function reads is not kept; a cell stands in, which has the shape and no more.
        for i, cell in enumerate(cells):
            if cell is not None and not kept[i + 1]:
                inputs[i] = cell
        return push(tape, rule, val, cells, val if kept[0] else None, inputs, params)

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


def _interpret_one(node: Any, rule: Rule, params: dict[str, Any]) -> Value:
    """`interpret` for a function of one argument, which needs no sorting of arguments."""
    a, cell = node.val, node.cell
    try:
        val = rule(a, **params) if isinstance(a, Active) else rule.value(a, **params)
    except ValueError as error:
        raise _with_shapes(error, rule, [a]) from None
    kept = rule.kept((True,))
    if kept is None:
        return push(node.tape, rule, val, (cell,), val, (a,), params)
    return push(node.tape, rule, val, (cell,), val if kept[0] else None, (a if kept[1] else cell,), params)


def _with_shapes(error: ValueError, rule: Rule, inputs: list[Value]) -> ValueError:
    """The same error, naming the function and the shapes it was given."""
    shapes = ", ".join(str(shape_of(x)) for x in inputs if x is not None)
    return type(error)(f"{rule.name} of shapes {shapes}: {error}")


def push(
    tape: Tape,
    rule: Rule,
    val: Value,
    cells: Sequence[Any],
    kept_val: Value,
    kept_inputs: Sequence[Value],
    params: dict[str, Any],
) -> Value:
    """Appends a record of the general form and returns its result, a new variable of value `val`."""
    node: Any
    out: Any
    if type(val) is not np.ndarray or val.dtype is not FLOAT64 or not val.ndim:
        val = settle(val)
    if type(val) is float:
        node = out = Scalar()
    else:
        node = Array()
        node.cell = out = Cell()
        out.shape = val.shape
    out.adj = 0.0
    node.val = val
    node.tape = tape
    tape.append((rule, out, cells, (kept_val, kept_inputs), params, ASK))
    return node


def _array_operator(
    rule: Rule, compute: Callable[[Any, Any], Any], partials: tuple[float, float] | None, reflected: bool = False
) -> Callable[[Any, Any], Value]:
    """An operator between arrays of one shape, or an array and a constant: what the rule does, without detours.

    `partials` are constants, or None for a product, each of whose partials is the other argument.
    """

    def operate(self: Array, other: Any) -> Value:
        kind, tape, cell, mine = type(other), self.tape, self.cell, self.val
        if type(mine) is not np.ndarray:  # a value of an outer level
            return rule(other, self) if reflected else rule(self, other)
        if kind is Array and other.tape is tape and other.cell.shape == cell.shape and type(other.val) is np.ndarray:
            theirs, its_cell = other.val, other.cell
        elif kind is float or kind is int:
            theirs, its_cell = other, None
        elif kind is np.ndarray and other.shape == cell.shape and other.dtype is FLOAT64:
            theirs, its_cell = constant(other, rule.name, keep=partials is None), None
        else:
            return rule(other, self) if reflected else rule(self, other)
        a, b = (theirs, mine) if reflected else (mine, theirs)
        node = Array()
        node.val = compute(a, b)
        node.tape = tape
        node.cell = out = Cell()
        out.adj = 0.0
        out.shape = cell.shape
        p, q = partials or (b, a)
        if its_cell is not None:
            tape.append((rule, out, (cell, its_cell), (p, q), None, ASK))
        elif reflected:
            tape.append((rule, out, (None, cell), (theirs, q), None, ASK))
        else:
            tape.append((rule, out, (cell, None), (p, theirs), None, ASK))
        return node

    return operate


class Array(Recorded):
    """An array on a tape, or (of any shape) a value of an outer level: `val` is an ndarray or an active value."""

    __slots__ = ("cell", "gradient", "tape", "val")

    val: Any
    cell: Cell
    gradient: dict[str, Any]  # of the results of `with_gradient` only

    __add__ = _array_operator(add, operator.add, (ONE, ONE))
    __sub__ = _array_operator(subtract, operator.sub, (ONE, MINUS_ONE))
    __mul__ = _array_operator(multiply, operator.mul, None)

    def __pow__(self, other: Any) -> Value:
        return square(self) if type(other) in (int, float) and other == 2 else power(self, other)

    __radd__ = _array_operator(add, operator.add, (ONE, ONE), reflected=True)
    __rsub__ = _array_operator(subtract, operator.sub, (ONE, MINUS_ONE), reflected=True)
    __rmul__ = _array_operator(multiply, operator.mul, None, reflected=True)

    @property
    def adj(self) -> Value:
        """The adjoint, an array of the variable's shape that may be added to."""
        return self.cell.writable() if self.cell.shape else self.cell.adj

    @adj.setter
    def adj(self, value: Value) -> None:
        if shape_of(value) != self.cell.shape:
            raise ValueError(f"adj: expected shape {self.cell.shape}, got {shape_of(value)}")
        self.cell.adj = value
        self.cell.own = False

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

    __slots__ = ("adj", "gradient", "tape", "val")

    val: float
    adj: Value
    gradient: dict[str, Any]  # of the results of `with_gradient` only

    @property
    def cell(self) -> Scalar:
        """Where its adjoint collects: itself."""
        return self

    shape = ()  # a constant is enough, and quicker than the property

    def __add__(self, other: Any) -> Value:
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
        return add(self, other)

    def __sub__(self, other: Any) -> Value:
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
        return subtract(self, other)

    def __mul__(self, other: Any) -> Value:
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
        return multiply(self, other)

    def __truediv__(self, other: Any) -> Value:
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

    def __radd__(self, other: Any) -> Value:
        if (kind := type(other)) is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = other + self.val
            tape.append((add, node, None, self, other, 1.0))
            return node
        return add(other, self)

    def __rsub__(self, other: Any) -> Value:
        if (kind := type(other)) is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = other - self.val
            tape.append((subtract, node, None, self, other, -1.0))
            return node
        return subtract(other, self)

    def __rmul__(self, other: Any) -> Value:
        if (kind := type(other)) is float or kind is int:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = other * self.val
            tape.append((multiply, node, None, self, other, other))
            return node
        return multiply(other, self)

    def __rtruediv__(self, other: Any) -> Value:
        if ((kind := type(other)) is float or kind is int) and (b := self.val):
            val = other / b
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = val
            tape.append((divide, node, None, self, other, -val / b))
            return node
        return divide(other, self)

    def __neg__(self) -> Value:
        node = Scalar()
        node.adj = 0.0
        node.tape = tape = self.tape
        node.val = -self.val
        tape.append((negative, node, self, None, -1.0, None))
        return node

    def __pow__(self, other: Any) -> Value:
        if type(other) in (int, float) and other == 2:
            node = Scalar()
            node.adj = 0.0
            node.tape = tape = self.tape
            node.val = (a := self.val) * a
            tape.append((power, node, self, None, a + a, other))
            return node
        return power(self, other)


def new_leaf(tape: Tape, val: Value) -> Any:
    """An independent variable on the tape; `val` must be in normal form."""
    node: Any
    if type(val) is float:
        node = Scalar()
        node.adj = 0.0
    else:
        node = Array()
        node.cell = new_cell(val.shape)
    node.val = val
    node.tape = tape
    tape.append((LEAF, node.cell, (), val, {}, ASK))
    return node
