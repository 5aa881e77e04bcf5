"""An expression graph as SVG, for a page: circles with what a node computes, constants as plain text.

Colours are the style sheet's, by class. Every node has a title, which browsers show next to the pointer and screen
readers read: its operation, its value, and its adjoint where the sweep has left one.

The graph is laid out in layers, the value above its operands. A node's layer is the length of the longest path from the
value. Within a layer the mean place of their neighbours orders the nodes, in a few passes down and up, which leaves few
crossings (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from adbench.tape.explain.explanation import Explanation
from adbench.tape.explain.notation import text_of

from ..content import formatting

MOST_NODES = 60
"""A larger graph is drawn from the value down until so many are there; the rest is three dots."""
ROW, COLUMN, EDGE = 74.0, 15.0, 12.0  # pixels; a column is about a letter and a half
PARALLEL = 12.0  # pixels between two lines that join the same nodes
MOST_LETTERS = 14
SWEEPS = 8


@dataclass(frozen=True)
class Circle:
    """A node at (x, y); `kind` is input, operation, constant, or more (dots for nodes not drawn)."""

    name: str
    label: str
    kind: str
    title: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Graph:
    """A drawing. A line is (x1, y1, x2, y2), from an operand up to its user, one for each use: x * x has two lines.
    `left_out` counts the nodes that are not drawn.
    """

    circles: tuple[Circle, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    width: float
    height: float
    left_out: int


def graph(explained: Explanation, adjoints: Mapping[str, str]) -> Graph:
    """The graph of the value; adjoints are those after the sweep, as text, by the names of the nodes."""
    nodes = {node.name: node for node in explained.nodes}
    below = {name: node.operands for name, node in nodes.items()}
    shown = _nearest(explained.root, below, MOST_NODES)
    every = _nearest(explained.root, below, len(nodes))
    operands: dict[str, list[str]] = {}
    labels: dict[str, tuple[str, str, str]] = {}  # label, kind, title
    for name in shown:
        node = nodes[name]
        drawn = []
        for k, operand in enumerate(node.operands):
            if operand in shown:
                drawn.append(operand)
                continue
            stub = f"{name}.{k}"
            drawn.append(stub)
            operands[stub] = []
            left_out = ("…", "more", f"{operand}, not drawn")
            labels[stub] = left_out if operand in nodes else (operand, "constant", operand)
        operands[name] = drawn
        kind = "operation" if node.operands else "input"
        value = f" = {text_of(node.value)}" if node.operands else ""
        adjoint = f"; adjoint {adjoints[name]}" if adjoints.get(name) else ""
        labels[name] = (node.symbol, kind, f"{name} = {node.operation}{value}{adjoint}")
    return _drawn(operands, labels, len(every) - len(shown))


def _nearest(root: str, operands: Mapping[str, Sequence[str]], most: int) -> dict[str, None]:
    """The nodes from the root down, level by level and in this order, until there are so many."""
    shown: dict[str, None] = {}
    waiting = deque([root] if root else [])
    while waiting and len(shown) < most:
        name = waiting.popleft()
        if name not in shown:
            shown[name] = None
            waiting.extend(o for o in operands[name] if o in operands)
    return shown


def _drawn(operands: Mapping[str, list[str]], labels: Mapping[str, tuple[str, str, str]], left_out: int) -> Graph:
    """Places in pixels."""
    short = {name: formatting.short(label, MOST_LETTERS) for name, (label, _, _) in labels.items()}
    widths = {name: max(len(short[name]) * 0.62 + 1.2, 3.4) for name in operands}
    places = placed(operands, widths)
    circles = {
        name: Circle(
            name if "." not in name else "",
            short[name],
            labels[name][1],
            labels[name][2],
            round(EDGE + column * COLUMN, 1),
            round(EDGE + ROW * (row + 0.35), 1),
            round(max(widths[name] * COLUMN / 2 - 5, 17), 1),
        )
        for name, (column, row) in places.items()
    }
    lines = [
        (
            round(circles[other].x + shift, 1),
            round(circles[other].y - 16, 1),
            round(circles[name].x + shift, 1),
            round(circles[name].y + 16, 1),
        )
        for name, below in operands.items()
        for other, uses in Counter(below).items()
        for shift in (PARALLEL * (k - (uses - 1) / 2) for k in range(uses))
    ]
    width = max((c.x + c.radius for c in circles.values()), default=0.0) + EDGE
    height = max((c.y for c in circles.values()), default=0.0) + ROW * 0.5
    return Graph(tuple(circles.values()), tuple(lines), round(width, 1), round(height, 1), left_out)


def placed(operands: Mapping[str, Sequence[str]], widths: Mapping[str, float]) -> dict[str, tuple[float, int]]:
    """The column and the row of each node of `operands`: name -> names of its operands, all of them nodes too.

    Columns may be fractions; the first of a row is no less than 0.

    widths   of the nodes, in columns: neighbours in a row do not overlap
    """
    rows = _rows(operands)
    users: dict[str, list[str]] = {name: [] for name in operands}
    for name, below in operands.items():
        for other in below:
            users[other].append(name)
    layers: list[list[str]] = [[] for _ in range(max(rows.values(), default=-1) + 1)]
    for name in _from_above(operands, [name for name, row in rows.items() if row == 0]):
        layers[rows[name]].append(name)
    columns = {name: float(k) for layer in layers for k, name in enumerate(layer)}
    for turn in range(SWEEPS):
        down = turn % 2 == 0
        neighbours = users if down else operands
        for layer in layers if down else reversed(layers):
            goals = {name: _mean([columns[o] for o in neighbours[name] or [name]]) for name in layer}
            layer.sort(key=lambda name: goals[name])
            columns |= _apart(layer, goals, widths)
    least = min((columns[name] - widths[name] / 2 for name in columns), default=0.0)
    return {name: (columns[name] - least, rows[name]) for name in operands}


def _from_above(operands: Mapping[str, Sequence[str]], roots: Sequence[str]) -> list[str]:
    """The nodes in the order of reading: a node, all of its first operand, all of its second."""
    found: dict[str, None] = {}
    waiting = list(reversed(roots))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting.extend(reversed(operands[name]))
    return list(found)


def _rows(operands: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Length of the longest path from a node that nothing uses."""
    rows = dict.fromkeys(operands, 0)
    for name in reversed(list(TopologicalSorter(operands).static_order())):  # users come before operands
        for other in operands[name]:
            rows[other] = max(rows[other], rows[name] + 1)
    return rows


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _apart(layer: Sequence[str], goals: Mapping[str, float], widths: Mapping[str, float]) -> dict[str, float]:
    """Columns near the goals, in this order, that do not overlap: pushed right, and then back as far as may be."""
    found: dict[str, float] = {}
    edge = float("-inf")
    for name in layer:
        found[name] = max(goals[name], edge + widths[name] / 2)
        edge = found[name] + widths[name] / 2
    shift = _mean([found[name] - goals[name] for name in layer])
    return {name: column - shift for name, column in found.items()}
