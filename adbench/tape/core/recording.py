"""The recording: a tape of records, and the cells where adjoints collect.

A node of the expression graph is one record, a tuple on the tape, in one of three forms:

    (rule, out, a, b, p, q)                          a scalar of one or two scalars: p = ∂out/∂a, q = ∂out/∂b. A
                                                     constant argument has None for a or b, and p or q is then the
                                                     constant itself
    (rule, out, cells, partials, None, ASK)          the same in tuples, with an array among them: all arrays have one
                                                     shape, and what is not an array is a scalar
    (rule, out, cells, (val, inputs), params, ASK)   any other: the sweep asks the rule for the contributions

A partial of an array in a scalar may also be a pair (array, number), to be multiplied if somebody wants to know.
`out`, `a`, `b` and `cells` are where adjoints collect: the `Scalar` itself, or the `Cell` of an `Array`. A constant
has None in its place: no edge. Of `val` and `inputs` only what the rule's gradient functions read is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.rule import TapeError, Value, function_gradients
from adbench.tape.fast.blocks import full

ASK = object()
"""In the place of a partial: ask the rule in the reverse sweep."""

LEAF = function_gradients(lambda x: x, reverse=(), name="independent variable")
"""The rule of a record that only introduces an independent variable; its value is in the place of `(val, inputs)`."""

CALLBACK = function_gradients(lambda: None, reverse=(), name="callback")
"""The rule of a record that runs a Python function in the sweep; the function is in the place of `(val, inputs)`, and
`params` has the value of the variable that it made, if it made one."""

Record = tuple[Any, Any, Any, Any, Any, Any]


class ClosedTapeError(TapeError):
    """A variable was used after the tape that held it was cleared."""


class Tape(list[Record]):
    """The recording: an append-only stack of records, operands before results.

    `level` orders nested tapes. `observed` is None, or a list to which every comparison that looks at a value on this
    tape adds (compare, left, right, result): what a compiled recording has to check before it may be used again.
    """

    __slots__ = ("__weakref__", "level", "observed", "swept")
    __hash__ = object.__hash__  # type: ignore[assignment]  # equal only to itself, see __eq__

    def __init__(self, level: int) -> None:
        self.level = level
        self.observed: list[tuple[Any, Any, Any, bool]] | None = None
        self.swept = False

    def __eq__(self, other: object) -> bool:
        return self is other

    def close(self) -> None:
        """Frees all records. Using a variable of this tape afterwards is an error."""
        self.clear()
        self.__class__ = ClosedTape

    def edges(self) -> int:
        """Number of edges of the expression graph: active arguments, counted at each node."""
        count = 0
        for _, _, a, b, _, q in self:
            count += sum(c is not None for c in a) if q is ASK else (a is not None) + (b is not None)
        return count

    def zero_adjoints(self) -> None:
        """Sets the adjoint of every value on the tape to zero."""
        for record in self:
            record[1].adj = 0.0
        self.swept = False


class ClosedTape(Tape):
    """A tape that has given its memory back."""

    __slots__ = ()

    def append(self, record: Record) -> None:
        """Refuses: nothing may be recorded any more."""
        raise ClosedTapeError(
            f"{record[0].name}: an argument is a variable of a tape that was cleared: its `gradient` or `nested` block "
            f"has ended. Take what should outlive the block with .val"
        )


class Cell:
    """Where the adjoint of an array collects.

    adj    the sum of the contributions so far; a float stands for an array full of it. So it is 0.0 at first, and
           what comes back through a sum stays one number for as long as nobody needs the array
    own    whether `adj` was made by the sweep and belongs to nobody else, so that it may be added into
    """

    __slots__ = ("adj", "own", "shape")

    adj: Value
    own: bool  # unset until the first contribution
    shape: tuple[int, ...]

    def writable(self) -> Any:
        """The adjoint as an array that may be changed in place."""
        adj = self.adj
        if type(adj) is float:
            self.adj, self.own = full(self.shape, adj), True
        elif isinstance(adj, np.ndarray) and not self.own:
            self.adj, self.own = adj.copy(), True
        return self.adj


def new_cell(shape: tuple[int, ...]) -> Cell:
    """A cell with nothing in it yet. (`Cell()` takes no arguments because that is quicker, see `Var`.)"""
    cell = Cell()
    cell.adj = 0.0
    cell.shape = shape
    return cell
