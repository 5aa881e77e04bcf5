"""Values on a tape: `Scalar`, a float, and `Array`, everything else; and how a rule's call becomes a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.recording import ASK, LEAF, Cell, Tape, new_cell
from adbench.tape.core.rule import Active, Rule, TapeError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.values import FLOAT64, constant, settle, shape_of


class Recorded(Active):
    """A value on a tape: its plain value (or a value of an outer level), the tape, and where its adjoint collects."""

    __slots__ = ()
    tape: Tape
    val: Any
    cell: Any

    @property
    def level(self) -> int:
        """The level of its tape."""
        return self.tape.level

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """Evaluates the rule on the values and records it; arguments of other levels are constants."""
        tape = self.tape
        cells = [arg.cell if isinstance(arg, Recorded) and arg.tape is tape else None for arg in args]
        keep_val, *keep = rule.kept(tuple([cell is not None for cell in cells]))
        inputs = [
            constant(arg, rule.name, i, keep=keep[i]) if cells[i] is None else arg.val for i, arg in enumerate(args)
        ]
        try:
            val = rule(*inputs, **params)
        except ValueError as error:
            raise with_shapes(error, rule, inputs) from None
        # What no gradient function reads is not kept; a cell stands in, which has the shape and no more.
        for i, cell in enumerate(cells):
            if cell is not None and not keep[i]:
                inputs[i] = cell
        return push(tape, rule, val, cells, (val if keep_val else None, inputs), params)

    def grad(self, wrt: Any = None) -> Any:
        """Sweeps the tape from this scalar: afterwards v.adj = ∂self/∂v for every v on the tape.

        With `wrt`, a variable or a list of variables, also returns their adjoints. Every sweep starts from zero
        adjoints, so calling it again, or from another result, gives no stale sums.
        """
        if self.cell.shape != ():
            raise TapeError(
                f"grad: expected a scalar, got a value of shape {self.cell.shape}; use jacobian, or vjp with weights"
            )
        wanted = [] if wrt is None else wrt if isinstance(wrt, (list, tuple)) else [wrt]
        for v in wanted:
            if getattr(v, "tape", None) is not self.tape:
                raise TapeError(f"grad: wrt must hold variables of the result's tape, got {v!r:.60}")
        leaves = [record[1] for record in self.tape if record[0] is LEAF]
        propagate(self.tape, [(self.cell, 1.0)], leaves, keep=True)
        if wrt is None:
            return None
        return [v.adj for v in wanted] if isinstance(wrt, (list, tuple)) else wrt.adj

    def __repr__(self) -> str:
        return f"Var({self.val!r})"


def with_shapes(error: ValueError, rule: Rule, inputs: Sequence[Value]) -> ValueError:
    """The same error, naming the function and the shapes it was given."""
    shapes = ", ".join(str(shape_of(x)) for x in inputs if x is not None)
    return type(error)(f"{rule.name} of shapes {shapes}: {error}")


def push(
    tape: Tape, rule: Rule, val: Value, cells: Sequence[Any], saved: tuple[Any, ...], params: dict[str, Any] | None
) -> Value:
    """Appends a record and returns its result, a new variable of value `val`."""
    if type(val) is np.float64:
        val = float(val)
    elif type(val) is not np.ndarray or val.dtype is not FLOAT64 or not val.ndim:
        val = settle(val)
    node = new_node(tape, val)
    tape.append((rule, node.cell, cells, saved, params, ASK))
    return node


def new_node(tape: Tape, val: Value) -> Any:
    """A value on the tape that no record makes yet."""
    node: Any
    if type(val) is float:
        node = Scalar()
        node.adj = 0.0
    else:
        node = Array()
        node.cell = new_cell(val.shape)
    node.val = val
    node.tape = tape
    return node


def new_leaf(tape: Tape, val: Value) -> Any:
    """An independent variable on the tape; `val` must be in normal form."""
    node = new_node(tape, val)
    tape.append((LEAF, node.cell, (), val, {}, ASK))
    return node


class Array(Recorded):
    """An array on a tape, or (of any shape) a value of an outer level: `val` is an ndarray or an active value."""

    __slots__ = ("cell", "gradient", "tape", "val")

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

    def rebind(self, new: Array) -> None:
        """Makes this variable stand for another value: x[index] = v. The old value stays on the tape."""
        self.val, self.cell = new.val, new.cell


class Scalar(Recorded):
    """A float on a tape."""

    __slots__ = ("adj", "gradient", "tape", "val")

    adj: Value
    gradient: dict[str, Any]  # of the results of `with_gradient` only

    @property
    def cell(self) -> Scalar:
        """Where its adjoint collects: itself."""
        return self

    shape = ()  # a constant is enough, and quicker than the property
