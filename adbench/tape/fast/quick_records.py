"""Record in less time and memory, with two more forms of records:

    (rule, out, a, b, p, q)                   a scalar of one or two scalars: p = ∂out/∂a, q = ∂out/∂b. A constant
                                              argument has None for a or b, and p or q is then the constant itself
    (rule, out, cells, partials, None, ASK)   the same in tuples, with an array among them: all arrays have one shape,
                                              and all other operands are scalars

The partial of an array with respect to a scalar may also be a pair (array, number), multiplied only if needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.node import Array, Recorded, Scalar
from adbench.tape.core.recording import ASK, AdjointCell, Tape
from adbench.tape.core.rule import AllInputs, Gradient, Rule, Value
from adbench.tape.fast.blocks import full
from adbench.tape.rules import indexing
from adbench.tape.values import FLOAT64, PLAIN, constant, seen_inside, settle, shape_of

# The values that gradient functions read: a record keeps only these


def kept(rule: Rule, active: tuple[bool, ...]) -> tuple[bool, ...]:
    """The positions in (val, *inputs) that the gradient functions of the active arguments read."""
    try:
        return rule.reads[active]
    except KeyError:
        rule.check([None if not is_active else rule for is_active in active])
        everything = (True,) * (1 + len(active))
        if isinstance(rule.reverse, AllInputs):
            positions = everything
        else:
            asked = [g for g, is_active in zip(rule.reverse, active, strict=True) if is_active]
            each = [_parameters_read(gradient, len(everything)) for gradient in asked]
            positions = tuple(map(any, zip(*each, strict=True))) if each else (False,) * len(everything)
        rule.reads[active] = positions
        return positions


def _parameters_read(gradient: Gradient, count: int) -> tuple[bool, ...]:
    """The positions in (val, *inputs) that a gradient function reads: all parameters without a leading underscore.

    Records do not keep the others. Instead, the function gets an object that has only `.shape`.
    """
    try:
        parameters = list(inspect.signature(gradient).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return (True,) * count
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return (True,) * count
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    reads = [not name.startswith("_") for name in names[:1] + names[2:]]
    return tuple(reads[:count] + [False] * (count - len(reads)))


# Functions of one and of two arguments


def interpret(node: Recorded, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """`Recorded.interpret` that keeps less, has no loops for one or two arguments, and names shapes in errors."""
    try:
        if len(args) == 1:
            return _interpret_one(node, rule, params)
        if len(args) == 2:
            return _interpret_two(node.tape, rule, *args, params)
        return _interpret_any(node.tape, rule, args, params)
    except ValueError as error:
        shapes = ", ".join(str(shape_of(x)) for x in args if x is not None)
        raise type(error)(f"{rule.name} of shapes {shapes}: {error}") from None


_ONE_ACTIVE = (True,)


def _interpret_one(node: Any, rule: Rule, params: dict[str, Any]) -> Value:
    """`interpret` for a function of one argument."""
    a, cell = node.val, node.cell
    val = rule.value(a, **params) if type(a) in PLAIN else seen_inside(rule, (a,))(a, **params)
    slope = rule.slope
    if slope is not None and type(cell) is AdjointCell and shape_of(val) == (cell.shape if rule.elementwise else ()):
        return push(node.tape, rule, val, (cell,), (slope,), None)
    keep_val, keep_a = kept(rule, _ONE_ACTIVE)
    result = push(node.tape, rule, val, (cell,), (val if keep_val else None, (a if keep_a else cell,)), params)
    if rule.remembered and type(cell) is AdjointCell:
        result.origin = (result.val, rule, (node,), params)
    return result


def _interpret_two(tape: Tape, rule: Rule, a: Value, b: Value, params: dict[str, Any]) -> Value:
    """`interpret` for a function of two arguments, without loops."""
    a_cell = b_cell = None
    if (type(a) is Array or type(a) is Scalar) and a.tape is tape:
        a, a_cell = a.val, a.cell
    if (type(b) is Array or type(b) is Scalar) and b.tape is tape:
        b, b_cell = b.val, b.cell
    keep_val, keep_a, keep_b = kept(rule, (a_cell is not None, b_cell is not None))
    if a_cell is None and type(a) is not float:
        a = constant(a, rule.name, 0, keep=keep_a)
    if b_cell is None and type(b) is not float:
        b = constant(b, rule.name, 1, keep=keep_b)
    if type(a) in PLAIN and type(b) in PLAIN:
        val = rule.value(a, b, **params)
    else:
        val = seen_inside(rule, (a, b))(a, b, **params)
    inputs = (a if keep_a or a_cell is None else a_cell, b if keep_b or b_cell is None else b_cell)
    return push(tape, rule, val, (a_cell, b_cell), (val if keep_val else None, inputs), params)


def push(
    tape: Tape, rule: Rule, val: Value, cells: Sequence[Any], saved: tuple[Any, ...], params: dict[str, Any] | None
) -> Value:
    """`core.node.push`, inlined."""
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
        node.cell = out = AdjointCell()
        out.shape = val.shape
    out.adj = 0.0
    node.val = val
    node.tape = tape
    tape.append((rule, out, cells, saved, params, ASK))
    return node


def _interpret_any(tape: Tape, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """`Recorded.interpret` that keeps only the values that gradient functions read."""
    cells = [arg.cell if isinstance(arg, Recorded) and arg.tape is tape else None for arg in args]
    keep_val, *keep = kept(rule, tuple([cell is not None for cell in cells]))
    inputs = [constant(x, rule.name, i, keep=keep[i]) if cells[i] is None else x.val for i, x in enumerate(args)]
    val = rule(*inputs, **params)
    # A cell replaces an input that is not kept: it has only the shape.
    saved = [x if cell is None or is_kept else cell for x, cell, is_kept in zip(inputs, cells, keep, strict=True)]
    return push(tape, rule, val, cells, (val if keep_val else None, saved), params)


PARAMS: tuple[dict[str, Any], ...] = tuple({"index": i} for i in range(4096))
"""What records of the first elements of vectors share."""


def getitem(self: Array, index: Any) -> Value:
    """x[index], with quick paths for an element of a vector or matrix, and for a slice."""
    val, kind = self.val, type(index)
    if type(val) is not np.ndarray:
        return indexing.read(self, index)
    if kind is slice:
        cells = (self.cell,)
        return push(self.tape, indexing.getitem, val[index], cells, (None, cells), {"index": index})
    if (kind is int and val.ndim == 1) or (
        kind is tuple and len(index) == val.ndim == 2 and type(index[0]) is type(index[1]) is int
    ):
        node = Scalar()
        node.val = val.item(index)
        node.adj = 0.0
        node.tape = tape = self.tape
        reads = getattr(self, "reads", None)
        if reads is None or reads[0][0] is not self.cell:  # x[i] = v gives x another cell
            self.reads = reads = [self.cell], (None, [self.cell])
        params = PARAMS[index] if kind is int and 0 <= index < len(PARAMS) else {"index": index}
        tape.append((indexing.getitem, node, *reads, params, ASK))
        return node
    return indexing.read(self, index)


shape = property(lambda self: self.cell.shape)
"""`Array.shape`, read without the value."""


def edges(tape: Tape) -> int:
    """`Tape.edges` for records of every form."""
    count = 0
    for _, _, a, b, _, q in tape:
        count += sum(c is not None for c in a) if q is ASK else (a is not None) + (b is not None)
    return count


def writable(cell: AdjointCell) -> Any:
    """`AdjointCell.writable`, in a block of memory if it is large."""
    adj = cell.adj
    if type(adj) is float:
        cell.adj, cell.own = full(cell.shape, adj), True
    elif isinstance(adj, np.ndarray) and not cell.own:
        cell.adj, cell.own = adj.copy(), True
    return cell.adj
