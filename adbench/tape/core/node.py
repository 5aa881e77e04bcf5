"""Values on a tape, `Scalar` (a float) and `Array` (everything else), and how a rule's call becomes a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adbench.tape.core.recording import ASK, LEAF, AdjointCell, Tape, new_cell
from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.values import constant, seen_inside, settle, shape_of


class Recorded(Active):
    """A value on a tape: `val` (plain, or a value of an outer level), the tape, and the cell of its adjoint.

    `origin`, if set, is the call that made it: (val, rule, args, params); see `identities`.
    """

    __slots__ = ()
    origin: tuple[Any, ...]
    tape: Tape
    cell: Any

    @property
    def level(self) -> int:
        """The level of its tape."""
        return self.tape.level

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """Evaluate the rule on the values and record it; arguments of other levels are constants."""
        tape = self.tape
        cells = [arg.cell if isinstance(arg, Recorded) and arg.tape is tape else None for arg in args]
        rule.check(cells)
        inputs = [constant(arg, rule.name, i) if cells[i] is None else arg.val for i, arg in enumerate(args)]
        val = settle(seen_inside(rule, inputs)(*inputs, **params))
        return push(tape, rule, val, cells, (val, inputs), params)


def push(tape: Tape, rule: Rule, val: Value, cells: Sequence[Any], saved: Any, params: dict[str, Any]) -> Any:
    """Append a record and return its result, a new value on the tape; `val` is in normal form."""
    node: Any
    if type(val) is float:
        node = Scalar()
        node.adj = 0.0
    else:
        node = Array()
        node.cell = new_cell(val.shape)
    node.val = val
    node.tape = tape
    tape.append((rule, node.cell, cells, saved, params, ASK))
    return node


def new_leaf(tape: Tape, val: Value) -> Any:
    """An independent variable on the tape."""
    return push(tape, LEAF, val, (), val, {})


class Array(Recorded):
    """An array on a tape, or a value of an outer level, of any shape: `val` is an ndarray or an active value."""

    __slots__ = ("cell", "gradient", "origin", "reads", "tape", "val")

    cell: AdjointCell
    reads: tuple[list[AdjointCell], tuple[None, list[AdjointCell]]]  # see `fast.quick_records`

    @property
    def adj(self) -> Value:
        """The adjoint, an array of the variable's shape. You may add to it."""
        return self.cell.writable() if self.cell.shape else self.cell.adj

    @adj.setter
    def adj(self, value: Value) -> None:
        if shape_of(value) != self.cell.shape:
            raise ValueError(f"adj: expected shape {self.cell.shape}, got {shape_of(value)}")
        self.cell.adj = value
        self.cell.own = False


class Scalar(Recorded):
    """A float on a tape."""

    __slots__ = ("adj", "gradient", "origin", "tape", "val")

    adj: Value

    @property
    def cell(self) -> Scalar:
        """The cell of its adjoint: the scalar itself."""
        return self

    shape = ()
