"""A recording as plain data and as text: the expression graph, and the forward and reverse tables of the paper.

    print(explain(f, 1.3, 0.5, 1.2))        # f(y, mu, sigma), any program of numbers and arrays

Nodes are called v1, v2, … in the order of the recording, and their adjoints a1, a2, …. The forward table lists each
node's operation, value and partial derivatives. The reverse table lists every addition to an adjoint, in the order of
the sweep. Nothing is computed in a second way: the real sweep runs, one operand at a time. The formula of a partial is
the rule's own gradient function, called with names instead of numbers.

Source: Carpenter et al., "The stan::agrad C++ automatic differentiation library", section 1.1, figures 1 to 3.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from adbench.tape.core.functionals import Function, NotScalarError, is_on
from adbench.tape.core.node import new_leaf
from adbench.tape.core.recording import ASK, CALLBACK, LEAF, Record, Tape
from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.explain.notation import aligned, drawn, formula_of, symbol_of, text_of, written
from adbench.tape.fast.quick_sweep import spelled_out, sweep
from adbench.tape.levels import on_tape
from adbench.tape.trees import NAMESPACE, described, tree_flatten, tree_unflatten
from adbench.tape.values import has_nan, leaf_value, settle, shape_of, value_of

# Records of all forms


@dataclass(frozen=True)
class FullRecord:
    """A record of any form, in full: out = rule(*inputs, **params).

    cells      the cell of each operand's adjoint, None for a constant
    inputs     the plain value of each operand
    """

    record: Record
    rule: Rule
    out: Any
    cells: tuple[Any, ...]
    inputs: tuple[Value, ...]
    params: dict[str, Any]

    def only(self, i: int) -> Record:
        """The record with only operand i active: its sweep is one edge of the graph."""
        rule, out, a, b, p, q = self.record
        if q is not ASK:
            return (rule, out, a if i == 0 else None, b if i == 1 else None, p, q)
        return (rule, out, [cell if k == i else None for k, cell in enumerate(a)], b, p, q)


def operands_of(record: Record) -> tuple[tuple[Any, ...], tuple[Value, ...], dict[str, Any], Value]:
    """(cells, values of constants, params, result's value if it is kept) of a record of any form, see `recording`.

    Add any new form here and in `FullRecord.only`.
    """
    rule, _, a, b, p, q = record
    if rule is LEAF:
        return (), (), {}, b
    if rule is CALLBACK:
        return (), (), p, p.get("value")
    if q is not ASK or p is None:  # compact forms: a function of one argument leaves the second position empty
        cells, partials = ((a, b), (p, q)) if q is not ASK else (a, b)
        count = len(rule.reverse)
        return tuple(cells)[:count], tuple(partials)[:count], {}, None
    val, inputs = b
    return tuple(a), tuple(inputs), p, val


# Plain data


@dataclass(frozen=True)
class Partial:
    """∂result/∂operand of one edge.

    formula  the rule's formula in the names of the nodes; "" if it is not short
    value    a number; for an array the gradient of a scalar result, or the diagonal of an elementwise function's
             Jacobian; None for a larger Jacobian, which is never written out
    shape    of the Jacobian: result.shape + operand.shape
    """

    result: str
    operand: str
    formula: str
    value: Value
    shape: tuple[int, ...]

    def __str__(self) -> str:
        left = f"∂{self.result}/∂{self.operand}"
        if self.value is None:
            return f"{left} {self.formula and f'= {self.formula} '}of shape {self.shape}"
        number = text_of(self.value)
        return f"{left} = {number}" if self.formula in ("", number) else f"{left} = {self.formula} = {number}"


@dataclass(frozen=True)
class Node:
    """One value of the recording.

    symbol    the label in a drawing: the operator, the function's name, or an input's name
    operation the formula of its value, in the names of its operands
    operands  names of nodes, and constants as text; empty for an input
    value     a number or an array
    """

    name: str
    symbol: str
    operation: str
    operands: tuple[str, ...]
    value: Value
    shape: tuple[int, ...]
    partials: tuple[Partial, ...]


@dataclass(frozen=True)
class Update:
    """One addition to an adjoint: target += source · partial. `partial` is None if a Python callback added it."""

    target: str
    source: str
    partial: Partial | None
    adjoint: Value

    def __str__(self) -> str:
        if self.partial is None:
            return f"(by the callback of {self.source})"
        p = self.partial
        factor = p.formula or (text_of(p.value) if p.shape == () else f"∂{p.result}/∂{p.operand}")
        return f"{self.source} × ({factor})"


@dataclass(frozen=True)
class Explanation:
    """The record of one evaluation and its reverse sweep.

    nodes     in the order of the recording: operands before results
    updates   in the order of the sweep
    root      name of the node of the function's value; "" if the value is a constant
    gradient  the derivative in each argument, in its structure; for an array value, of the sum of its elements
    """

    nodes: tuple[Node, ...]
    updates: tuple[Update, ...]
    root: str
    value: Value
    gradient: tuple[Any, ...]

    def graph(self) -> str:
        """Draw the expression graph from the value down to the inputs; a shared node is drawn once."""
        if not self.root:
            return f"{text_of(self.value)}, a constant"
        return "\n".join(drawn(self.root, {node.name: (node.symbol, node.operands) for node in self.nodes}))

    def forward(self, width: int | None = None) -> str:
        """The forward table: variable, operation, value, partials; these below each other if `width` is too small."""
        rows = [["var", "operation", "value", "partials"]]
        for node in self.nodes:
            rows.append([node.name, node.operation, text_of(node.value), *map(str, node.partials)])
        table = aligned(rows)
        if width is None or max(map(len, table.splitlines())) <= width:
            return table
        return aligned([part for row in rows for part in (row[:4], *(["", "", "", partial] for partial in row[4:]))])

    def reverse(self) -> str:
        """The reverse table: each addition to an adjoint, and the adjoint after it."""
        rows = [("var", "", "operation", "result")]
        if self.root:
            number = int(self.root[1:])
            zero = f"a1:{number - 1}" if number == len(self.nodes) > 2 else "others"
            one = "1" if shape_of(self.value) == () else "ones"
            if len(self.nodes) > 1:
                rows.append((zero, "=", "0", f"{zero} = 0"))
            rows.append((adjoint_of(self.root), "=", one, f"{adjoint_of(self.root)} = {one}"))
        rows += [(u.target, "+=", str(u), f"{u.target} = {text_of(u.adjoint)}") for u in self.updates]
        return aligned(rows)

    def __str__(self) -> str:
        parts = (("Expression graph", self.graph()), ("Forward", self.forward()), ("Reverse", self.reverse()))
        return "\n\n".join(f"{title}\n\n{text}" for title, text in parts)


def explain(f: Function, *args: Any, names: Sequence[str] | None = None) -> Explanation:
    """Evaluate f(*args), differentiate it in all arguments, and explain each step.

    Arguments are numbers, arrays or nests. `names` defaults to the names of f's parameters. f returns a number or an
    array. For an array, the sum of its elements is differentiated: all its adjoints begin as 1.
    """
    names = _parameter_names(f, len(args)) if names is None else list(names)
    if len(names) != len(args):
        raise ValueError(f"explain: expected {len(args)} names, one for each argument, got {len(names)}: {names}")
    with on_tape() as tape:
        flat, structure = tree_flatten(args)
        texts = labels_of(args, names)
        leaves = [
            new_leaf(tape, leaf_value(value, f"explain: {text}" if text else "explain"))
            for value, text in zip(flat, texts, strict=True)
        ]
        cells = [leaf.cell for leaf in leaves]  # before calling f, where x[i] = v may rebind a leaf
        labels = {id(cell): text for cell, text in zip(cells, texts, strict=True)}
        values = {id(leaf.cell): value_of(leaf.val) for leaf in leaves}
        y: Any = f(*tree_unflatten(structure, leaves))
        root = y.cell if is_on(y, tape) else None
        if not isinstance(y, (Active, float, int, np.ndarray)):
            raise NotScalarError(f"explain: f should return a number or an array, got {described(y)}")
        recording = _Recording(tape, labels, values)
        nodes = tuple(recording.nodes())
        updates = tuple(recording.updates(nodes, root, cells))
        return Explanation(
            nodes,
            updates,
            "" if root is None else recording.names[id(root)],
            copy(value_of(y) if isinstance(y, Active) else settle(y)),
            tree_unflatten(structure, [_now(cell) for cell in cells]),
        )


def _parameter_names(f: Function, count: int) -> list[str]:
    if isinstance(f, Rule):
        return [""] * count
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return [""] * count
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return named + [""] * (count - len(named))


def labels_of(args: tuple[Any, ...], names: Sequence[str]) -> list[str]:
    """Label all leaves: theta for a number or an array, theta[0], theta['rate'] for the leaves of a nest."""
    tree_flatten(args)  # registers its dataclasses
    paths: Any = optree.tree_paths(args, namespace=NAMESPACE)  # type: ignore[arg-type]  # a tuple of anything
    return [names[i] + "".join(f"[{entry!r}]" for entry in rest) for i, *rest in paths]


def adjoint_of(name: str) -> str:
    """a5 for v5."""
    return "a" + name[1:]


def _seed(cell: Any) -> None:
    """Adjoint 1 for a scalar, ones for an array."""
    cell.adj = np.ones(cell.shape) if cell.shape else 1.0
    if cell.shape:
        cell.own = False


def _now(cell: Any) -> Value:
    """A copy of a cell's adjoint, a plain number or array. (A number in an array's cell applies to all elements.)"""
    adj = value_of(cell.adj)
    return np.zeros(cell.shape) + adj if cell.shape else adj


class _Recording:
    """A tape with a name and a value for every cell, by the cell's id."""

    def __init__(self, tape: Tape, labels: dict[int, str], values: dict[int, Value]) -> None:
        self.labels = labels
        self.values = values
        self.records: list[FullRecord] = []
        self.names: dict[int, str] = {}
        for record in tape:
            rule, out, *_ = record
            cells, constants, params, val = operands_of(record)
            inputs = tuple(
                value_of(x) if cell is None else values[id(cell)] for cell, x in zip(cells, constants, strict=True)
            )
            self.records.append(FullRecord(record, rule, out, cells, inputs, params))
            if rule is CALLBACK and not params:  # a callback without a variable
                continue
            self.names[id(out)] = f"v{len(self.names) + 1}"
            if id(out) in values:
                continue
            if val is not None or hasattr(out, "val"):
                values[id(out)] = value_of(out.val if val is None else val)
            else:
                with np.errstate(all="ignore"):  # the forward pass has warned of all this
                    values[id(out)] = settle(rule.value(*inputs, **params))

    def nodes(self) -> Iterator[Node]:
        """Every named record as data."""
        for step in self.records:
            key = id(step.out)
            if key not in self.names:
                continue
            operands = [
                text_of(value) if cell is None else self.names[id(cell)]
                for cell, value in zip(step.cells, step.inputs, strict=True)
                if cell is not None or value is not None
            ]
            if step.cells:
                symbol, operation = symbol_of(step.rule), written(step.rule, operands, step.params)
            else:
                symbol = operation = self.labels.get(key, "") or step.rule.name
            value, partials = copy(self.values[key]), tuple(self.partials(step))
            yield Node(self.names[key], symbol, operation, tuple(operands), value, step.out.shape, partials)

    def partials(self, step: FullRecord) -> Iterator[Partial]:
        """The partials: the amounts that the sweep adds to adjoints of 0 if the result's adjoint is 1."""
        shape, result = step.out.shape, self.names[id(step.out)]
        letters = [None if cell is None else self.names[id(cell)] for cell in step.cells]
        for i, cell in enumerate(step.cells):
            if cell is None:
                continue
            value = None
            if shape == () or (step.rule.elementwise and cell.shape == shape):
                _seed(step.out)
                with np.errstate(all="ignore"):
                    sweep([step.only(i)], keep=True)
                value = _now(cell)
                step.out.adj = cell.adj = 0.0
            formula = formula_of(step.rule, i, (result, self.values[id(step.out)]), letters, step.inputs, step.params)
            yield Partial(result, self.names[id(cell)], formula, value, shape + cell.shape)

    def updates(self, nodes: Sequence[Node], root: Any, leaves: Sequence[Any]) -> list[Update]:
        """Sweep edge by edge; if a NaN reaches a leaf, sweep again carefully (see `sweep`)."""
        partials = {node.name: node.partials for node in nodes}
        updates: list[Update] = []
        for careful in (False, True):
            for step in self.records:
                step.out.adj = 0.0
            if root is None:
                break
            _seed(root)
            with np.errstate(all="ignore"):
                updates = [
                    update for step in reversed(self.records) for update in self.updates_at(step, partials, careful)
                ]
            if not any(has_nan(leaf.adj) for leaf in leaves):
                break
        return updates

    def updates_at(self, step: FullRecord, partials: dict[str, tuple[Partial, ...]], careful: bool) -> Iterator[Update]:
        """The additions of one record to the adjoints of its operands."""
        if step.rule is CALLBACK:
            yield from self.updates_by_callback(step)
            return
        adj = step.out.adj
        if type(adj) is float and adj == 0.0:  # as in the sweep, it contributes nothing
            return
        name = self.names[id(step.out)]
        edges = [i for i, cell in enumerate(step.cells) if cell is not None]
        for i, partial in zip(edges, partials[name], strict=True):
            one = step.only(i)
            sweep([spelled_out(one) if careful else one], careful=careful, keep=True)
            yield Update(adjoint_of(partial.operand), adjoint_of(name), partial, _now(step.cells[i]))

    def updates_by_callback(self, step: FullRecord) -> Iterator[Update]:
        """The additions of a callback, found by comparing adjoints before and after, because it is opaque."""
        cells = {self.names[id(s.out)]: s.out for s in self.records if id(s.out) in self.names}
        before = {name: _now(cell) for name, cell in cells.items()}
        sweep([step.record], keep=True)
        for name, cell in cells.items():
            if not np.array_equal(before[name], now := _now(cell), equal_nan=True):
                yield Update(adjoint_of(name), self.names.get(id(step.out), "no variable"), None, now)
