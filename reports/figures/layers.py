"""Lays out an expression graph in layers, the value above its operands.

A node's layer is the length of the longest path from the value. Within a layer the mean place of their neighbours
orders the nodes, in a few passes down and up, which leaves few crossings (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

SWEEPS = 8


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
