"""The recording: a tape of records, and the cells in which adjoints accumulate.

A node of the expression graph is one record on the tape:

    (rule, out, cells, (val, inputs), params, ASK)

for val = rule(*inputs, **params). The adjoints of the result and of the arguments accumulate in `out` and `cells`: the
`Scalar` itself, or the `AdjointCell` of an `Array`. A constant has None for its cell: no edge. ASK tells the sweep to
ask the rule for the contributions. Fast paths put other things there (`fast.quick_records`).
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
    swept      whether to set adjoints to zero before the next sweep
    remembers  whether values on it know the calls that made them (`identities`), so operators must check
    """

    __slots__ = ("__weakref__", "level", "remembers", "swept")
    __hash__ = object.__hash__  # type: ignore[assignment]  # equal only to itself, see __eq__

    def __init__(self, level: int) -> None:
        self.level = level
        self.swept = False
        self.remembers = False

    def __eq__(self, other: object) -> bool:
        return self is other

    def edges(self) -> int:
        """The number of edges of the expression graph: the active arguments of all nodes."""
        return sum(cell is not None for record in self for cell in record[2])

    def zero_adjoints(self) -> None:
        """Set the adjoint of every value on the tape to zero."""
        for record in self:
            record[1].adj = 0.0
        self.swept = False


class AdjointCell:
    """The cell in which the adjoint of an array accumulates.

    adj    the sum of the contributions so far. A float means an array full of it, so it starts as 0.0
    own    whether no one else holds the array `adj`, so that the sweep may add into it
    """

    __slots__ = ("adj", "own", "shape")

    adj: Value
    own: bool  # unset until the first contribution
    shape: tuple[int, ...]

    def writable(self) -> Any:
        """The adjoint as an array that you may change in place."""
        if not isinstance(self.adj, Active) and (type(self.adj) is float or not self.own):
            self.adj, self.own = np.zeros(self.shape) + self.adj, True
        return self.adj


def new_cell(shape: tuple[int, ...]) -> AdjointCell:
    """An empty cell. (`AdjointCell()` takes no arguments because that is quicker.)"""
    cell = AdjointCell()
    cell.adj = 0.0
    cell.shape = shape
    return cell
