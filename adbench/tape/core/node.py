"""Values on a tape: `Scalar`, a float, and `Array`, everything else; and how a rule's call becomes a record.

Here every operator goes through its rule. `operators` gives the two classes quicker ones, which record the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.operand import Operand
from adbench.tape.core.recording import ASK, LEAF, Cell, Tape, new_cell
from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.core.sweep import grad_from
from adbench.tape.core.values import FLOAT64, PLAIN, constant, settle, shape_of
from adbench.tape.rules import indexing


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
        if len(args) == 2:
            return _interpret_two(tape, rule, *args, params)
        cells: list[Any] = []
        inputs: list[Value] = []
        is_plain = True
        for arg in args:
            kind = type(arg)
            if kind is Array and arg.tape is tape:
                cells.append(arg.cell)
                inputs.append(arg.val)
                is_plain = is_plain and type(arg.val) is np.ndarray
            elif kind is Scalar and arg.tape is tape:
                cells.append(arg)
                inputs.append(arg.val)
            else:
                cells.append(None)
                inputs.append(arg)
                is_plain = is_plain and not isinstance(arg, Active)
        kept = rule.kept(tuple([cell is not None for cell in cells]))
        for i, cell in enumerate(cells):
            if cell is None and type(inputs[i]) is not float:
                inputs[i] = constant(inputs[i], rule.name, i, keep=kept[i + 1])
        try:
            val = (rule.value if is_plain else rule)(*inputs, **params)
        except ValueError as error:
            raise _with_shapes(error, rule, inputs) from None
        # What no gradient function reads is not kept; a cell stands in, which has the shape and no more.
        for i, cell in enumerate(cells):
            if cell is not None and not kept[i + 1]:
                inputs[i] = cell
        return push(tape, rule, val, cells, (val if kept[0] else None, inputs), params)

    def grad(self, wrt: Any = None) -> Any:
        """Sweeps the tape from this scalar: afterwards v.adj = ∂self/∂v for every v on the tape.

        With `wrt`, a variable or a list of variables, also returns their adjoints. Every sweep starts from zero
        adjoints, so calling it again, or from another result, gives no stale sums.
        """
        return grad_from(self, wrt)

    def __repr__(self) -> str:
        return f"Var({self.val!r})"


_ONE_ACTIVE = (True,)


def _interpret_one(node: Any, rule: Rule, params: dict[str, Any]) -> Value:
    """`interpret` for a function of one argument, which needs no sorting of arguments."""
    a, cell = node.val, node.cell
    try:
        val = rule.value(a, **params) if type(a) in PLAIN else rule(a, **params)
    except ValueError as error:
        raise _with_shapes(error, rule, [a]) from None
    slope = rule.slope
    if slope is not None and type(cell) is Cell and shape_of(val) == (cell.shape if rule.elementwise else ()):
        return push(node.tape, rule, val, (cell,), (slope,), None)
    kept = rule.kept(_ONE_ACTIVE)
    return push(node.tape, rule, val, (cell,), (val if kept[0] else None, (a if kept[1] else cell,)), params)


def _interpret_two(tape: Tape, rule: Rule, a: Value, b: Value, params: dict[str, Any]) -> Value:
    """`interpret` for a function of two arguments, without its loops."""
    a_cell = b_cell = None
    if (type(a) is Array or type(a) is Scalar) and a.tape is tape:
        a, a_cell = a.val, a.cell
    if (type(b) is Array or type(b) is Scalar) and b.tape is tape:
        b, b_cell = b.val, b.cell
    keep_val, keep_a, keep_b = rule.kept((a_cell is not None, b_cell is not None))
    if a_cell is None and type(a) is not float:
        a = constant(a, rule.name, 0, keep=keep_a)
    if b_cell is None and type(b) is not float:
        b = constant(b, rule.name, 1, keep=keep_b)
    try:
        val = rule.value(a, b, **params) if type(a) in PLAIN and type(b) in PLAIN else rule(a, b, **params)
    except ValueError as error:
        raise _with_shapes(error, rule, [a, b]) from None
    inputs = (a if keep_a or a_cell is None else a_cell, b if keep_b or b_cell is None else b_cell)
    return push(tape, rule, val, (a_cell, b_cell), (val if keep_val else None, inputs), params)


def _with_shapes(error: ValueError, rule: Rule, inputs: list[Value]) -> ValueError:
    """The same error, naming the function and the shapes it was given."""
    shapes = ", ".join(str(shape_of(x)) for x in inputs if x is not None)
    return type(error)(f"{rule.name} of shapes {shapes}: {error}")


def push(
    tape: Tape, rule: Rule, val: Value, cells: Sequence[Any], saved: tuple[Any, ...], params: dict[str, Any] | None
) -> Value:
    """Appends a record and returns its result, a new variable of value `val`."""
    node: Any
    out: Any
    if type(val) is np.float64:
        val = float(val)
    elif type(val) is not np.ndarray or val.dtype is not FLOAT64 or not val.ndim:
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
    tape.append((rule, out, cells, saved, params, ASK))
    return node


class Array(Recorded):
    """An array on a tape, or (of any shape) a value of an outer level: `val` is an ndarray or an active value."""

    __slots__ = ("cell", "gradient", "tape", "val")

    val: Any
    cell: Cell
    gradient: dict[str, Any]  # of the results of `with_gradient` only

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
        if type(index) is slice and type(val) is np.ndarray:
            cells = (self.cell,)
            return push(self.tape, indexing.getitem, val[index], cells, (None, cells), {"index": index})
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
    """A float on a tape."""

    __slots__ = ("adj", "gradient", "tape", "val")

    val: float
    adj: Value
    gradient: dict[str, Any]  # of the results of `with_gradient` only

    @property
    def cell(self) -> Scalar:
        """Where its adjoint collects: itself."""
        return self

    shape = ()  # a constant is enough, and quicker than the property


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
