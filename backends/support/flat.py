"""For scalar libraries: flatten nested inputs to a list of numbers, and rebuild results from such lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench import Operator, on_active
from adbench.model import tree


class Leaves:
    """The numbers in nested inputs, in order, without static leaves."""

    def __init__(self, x: Any) -> None:
        self._x = x
        self.shapes = [np.shape(leaf) for leaf in tree.leaves(x) if not tree.is_static(leaf)]
        self.ends: list[int] = [0, *np.cumsum([np.prod(shape, dtype=int) for shape in self.shapes]).tolist()]

    @property
    def size(self) -> int:
        """The count of numbers."""
        return self.ends[-1]

    def flat(self, x: Any) -> Any:
        """Flatten inputs of the same structure to a vector."""
        return np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in tree.leaves(x) if not tree.is_static(leaf))])

    def entries(self) -> list[Any]:
        """The entries of the inputs, as any objects."""
        leaves = (leaf for leaf in tree.leaves(self._x) if not tree.is_static(leaf))
        return [entry for leaf in leaves for entry in np.asarray(leaf, dtype=object).ravel().tolist()]

    def nested(self, entries: Sequence[Any], wrap: Callable[[Any], Any]) -> Any:
        """Rebuild the structure from entries; `wrap` receives one entry for a number, else an array of objects."""
        parts = (wrap(self._part(entries, k)) for k in range(len(self.shapes)))
        return tree.map_leaves(lambda leaf: leaf if tree.is_static(leaf) else next(parts), self._x)

    def split(self, found: Any, before: tuple[int, ...] = ()) -> Any:
        """Rebuild the structure from the last axis of an array; `before` is the shape of the other axes."""
        cuts = zip(self.ends, self.ends[1:], self.shapes, strict=False)
        return tree.filled(self._x, [found[..., a:b].reshape((*before, *shape)) for a, b, shape in cuts])

    def split_first(self, arrays: Any) -> Any:
        """Rebuild the structure from the first axis of every array."""
        cuts = zip(self.ends, self.ends[1:], self.shapes, strict=False)
        parts = [
            tree.map_leaves(lambda leaf: leaf[a:b].reshape((*shape, *leaf.shape[1:])), arrays)  # noqa: B023 - called now
            for a, b, shape in cuts
        ]
        return tree.filled(self._x, parts)

    def _part(self, entries: Sequence[Any], k: int) -> Any:
        if not self.shapes[k]:
            return entries[self.ends[k]]
        part = np.empty(self.ends[k + 1] - self.ends[k], dtype=object)
        part[:] = entries[self.ends[k] : self.ends[k + 1]]  # by slice, because an object may look like a sequence
        return part.reshape(self.shapes[k])


def result(operator: Operator, found: Any, x: Leaves, shape: tuple[int, ...]) -> Any:
    """Rebuild an operator's result from its numbers. `shape` is f's, x the active inputs; H and J are matrices."""
    if operator in ("value", "jvp"):
        return np.asarray(found, dtype=np.float64).reshape(shape)
    if operator == "value_and_gradient":
        return np.float64(found[0]), x.split(np.asarray(found[1], dtype=np.float64))
    matrix = np.asarray(found, dtype=np.float64)
    if operator == "jacobian":
        return x.split(matrix.reshape(-1, x.size), shape)
    if operator == "hessian":
        blocks = x.split(matrix.reshape(x.size, x.size), (x.size,))  # [n, *s] for every input's shape s
        return x.split_first(blocks)
    return x.split(matrix)


def on_numbers(
    operation: Callable[..., Any],
    operator: Operator,
    f: Callable[..., Any],
    wrt: tuple[int, ...],
    wrap: Callable[[Any], Any],
) -> Callable[..., Any]:
    """call(*args) from operation(g, x, *vector) on lists of numbers.

    x is the list of active numbers, g is f as a function of it. The operation returns a number, a list, or a list of
    lists. `wrap` turns one number, or an array of them, into an input of f.
    """

    def on_lists(g: Callable[[Any], Any], x: Any, *vectors: Any) -> Any:
        active = Leaves(x)
        shape: list[tuple[int, ...]] = []

        def of_list(entries: Sequence[Any]) -> Any:
            value = g(active.nested(entries, wrap))
            shape[:] = [np.shape(value)]
            return value

        numbers = (active.flat(part).tolist() for part in (x, *vectors))
        found = operation(of_list, *numbers)
        return result(operator, found, active, shape[0])

    return on_active(on_lists, operator, f, wrt)
