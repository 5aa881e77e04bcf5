"""The recording: a tape of records, and the cells where adjoints collect.

A node of the expression graph is one record on the tape:

    (rule, out, cells, (val, inputs), params, ASK)

for val = rule(*inputs, **params). `out` and `cells` are where the adjoints of result and arguments collect: the
`Scalar` itself, or the `Cell` of an `Array`. A constant has None in its place: no edge. ASK says that the sweep asks
the rule for the contributions; fast paths have records with other things in its place (`fast.quick_records`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Rule, Value

ASK = object()

LEAF = Rule("independent variable", lambda x: x, (), None)
"""The rule of a record that only introduces an independent variable; its value replaces `(val, inputs)`."""

CALLBACK = Rule("callback", lambda: None, (), None)
"""The rule of a record that runs a Python function in the sweep; the function replaces `(val, inputs)`."""

Record = tuple[Any, Any, Any, Any, Any, Any]


class Tape(list[Record]):
    """The recording: an append-only stack of records, operands before results.

    level      orders nested tapes
    observed   None, or a list to which every comparison of a value on this tape adds (compare, left, right, result)
    swept      whether adjoints have to be set to zero before the next sweep
    remembers  whether values on it know the calls that made them (`identities`), so that operators have to ask
    """

    __slots__ = ("__weakref__", "level", "observed", "remembers", "swept")
    __hash__ = object.__hash__  # type: ignore[assignment]  # equal only to itself, see __eq__

    def __init__(self, level: int) -> None:
        self.level = level
        self.observed: list[tuple[Any, Any, Any, bool]] | None = None
        self.swept = False
        self.remembers = False

    def __eq__(self, other: object) -> bool:
        return self is other

    def edges(self) -> int:
        """Number of edges of the expression graph: active arguments, counted at each node."""
        return sum(cell is not None for record in self for cell in record[2])

    def zero_adjoints(self) -> None:
        """Sets the adjoint of every value on the tape to zero."""
        for record in self:
            record[1].adj = 0.0
        self.swept = False


class Cell:
    """Where the adjoint of an array collects.

    adj    the sum of the contributions so far; a float means an array full of it, so it is 0.0 at first
    own    whether the array `adj` belongs to nobody else, so that it may be added into
    """

    __slots__ = ("adj", "own", "shape")

    adj: Value
    own: bool  # unset until the first contribution
    shape: tuple[int, ...]

    def writable(self) -> Any:
        """The adjoint as an array that may be changed in place."""
        if not isinstance(self.adj, Active) and (type(self.adj) is float or not self.own):
            self.adj, self.own = np.zeros(self.shape) + self.adj, True
        return self.adj


def new_cell(shape: tuple[int, ...]) -> Cell:
    """A cell with nothing in it yet. (`Cell()` takes no arguments because that is quicker.)"""
    cell = Cell()
    cell.adj = 0.0
    cell.shape = shape
    return cell
