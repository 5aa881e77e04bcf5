"""Faults, and the correct backends in which they are planted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adbench import Case
from adbench.model import tree
from adbench.model.backend import Backend
from tests.backends.loaded import backend

GRADIENTS = ("gradient", "value_and_gradient", "vjp", "jacobian")
Change = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A wrong backend.

    kind         the sort of mistake, a row of the table
    name         the instance
    case         the function in which it is planted
    make         make() -> the wrong backend
    operators    operators that can show it; relations are always examined
    """

    kind: str
    name: str
    case: Case
    make: Callable[[], Backend]
    operators: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def wrapped(change: Change, operators: Sequence[str], library: str = "tape") -> Callable[[], Backend]:
    """The library with change(operator, result in numpy, args, wrt) after these operators."""

    def make() -> Backend:
        right = backend(library)

        def prepare(operator: Any, f: Any, args: Any, wrt: Any) -> Any:
            call = right.prepare(operator, f, args, wrt)
            if operator not in operators:
                return call
            return lambda *given: change(operator, right.numpy_result(call(*given)), given, wrt)

        return replace(right, prepare=prepare)

    return make


def in_gradient(change: Callable[[Any], Any]) -> Callable[[], Backend]:
    """change(the gradient of all active inputs as one flat vector) in each operator that returns a gradient."""

    def changed(operator: str, result: Any, args: Any, wrt: Any) -> Any:
        if operator == "value_and_gradient":
            return result[0], refilled(result[1], change)
        return refilled(result, change)

    return wrapped(changed, GRADIENTS)


def refilled(gradient: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with change(all its numbers as one vector)."""
    leaves = [np.array(leaf, dtype=np.float64) for leaf in tree.leaves(gradient)]
    flat = np.concatenate([leaf.ravel() for leaf in leaves])
    after = np.asarray(change(flat.copy()), dtype=np.float64)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = iter([part.reshape(leaf.shape) for part, leaf in zip(np.split(after, ends[:-1]), leaves, strict=True)])
    return tree.map_leaves(lambda _: next(parts), gradient)


def place(size: int, number: int) -> int:
    """An index that depends on the instance: the first, the last, then inside."""
    return [0, size - 1, size // 2, size // 3][number % 4] if number < 4 else (7919 * number) % size
