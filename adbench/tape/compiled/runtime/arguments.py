"""Flatten a call's arguments, and compute the key of their signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from adbench.tape.compiled.runtime.entry_code import StaticArgument
from adbench.tape.trees import tree_flatten, tree_unflatten
from adbench.tape.values import constant


class Owner(Protocol):
    """The attributes of a compiled function that `FlatArguments` needs."""

    name: str
    operator: str
    count: int
    vectors: int
    wrt: tuple[int, ...]
    alive: list[Any]


class FlatArguments:
    """A call's arguments as flat data.

    key        the signature
    data       floats and contiguous float64 arrays, in order; the operator's vector last
    examples   the same, but integer and boolean arrays unchanged
    is_flat    whether each argument is one number or array
    """

    def __init__(self, owner: Owner, args: Sequence[Any]) -> None:
        count = owner.count
        if len(args) != count + owner.vectors:
            raise TypeError(
                f"{owner.name}: expected {count + owner.vectors} arguments as given to compile, got {len(args)}"
            )
        keys: list[Any] = []
        self.data: list[Any] = []
        self.examples: list[Any] = []
        self.active: list[bool] = []
        self.rebuilds: list[tuple[Any, list[Any]]] = []
        self.is_flat = True
        for k, arg in enumerate(args[:count]):
            wanted = k in owner.wrt
            if type(arg) is float or type(arg) is np.ndarray or isinstance(arg, (np.generic, int)):
                leaves, structure = [arg], None
            else:
                leaves, structure = tree_flatten(arg)
                if len(leaves) == 1 and leaves[0] is arg:
                    structure = None
                else:
                    self.is_flat = False
            keys.append(structure)
            slots = [self._leaf(x, wanted, keys, owner) for x in leaves]
            self.rebuilds.append((structure, slots))
        self.inputs = len(self.data)
        for vector in _in_order_of_arguments(owner, args[count:]):
            leaves = [vector] if isinstance(vector, (float, np.ndarray, int)) else tree_flatten(vector)[0]
            self.is_flat = self.is_flat and len(leaves) == 1 and leaves[0] is vector
            for x in leaves:
                value = constant(x, f"{owner.operator}: the vector")
                self.data.append(value)
                keys.append(np.shape(value))
        self.key = tuple(keys)

    def _leaf(self, x: Any, wanted: bool, keys: list[Any], owner: Owner) -> Any:
        """An index into the data, or a setting ("static", value)."""
        if wanted and isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            x = float(x)
        if isinstance(x, (float, np.floating)):
            keys.append("float")
            return self._add(float(x), float(x), wanted)
        if isinstance(x, (list, np.ndarray)) and np.ndim(x) == 0:
            x = x[()]  # type: ignore[call-overload]
            return self._leaf(x, wanted, keys, owner)
        if isinstance(x, np.ndarray):
            kind = x.dtype.kind
            if kind not in "fiub" or (wanted and kind == "b"):
                raise TypeError(f"{owner.name}: expected real numbers, got an array of {x.dtype}")
            keys.append((x.shape, "f" if kind == "f" or wanted else kind))
            data = np.ascontiguousarray(x, np.float64)
            if not data.flags.aligned:
                data = data.copy()
            example = data.copy() if kind == "f" or wanted else x.copy()
            return self._add(data, example, wanted)
        if wanted:
            raise TypeError(f"{owner.name}: expected numbers, got {type(x).__name__} {x!r:.60}")
        try:
            hash(x)
            keys.append((type(x), x))
        except TypeError:
            owner.alive.append(x)
            keys.append(("object", id(x)))
        return ("static", x)

    def _add(self, data: Any, example: Any, wanted: bool) -> int:
        self.data.append(data)
        self.examples.append(example)
        self.active.append(wanted)
        return len(self.data) - 1

    def in_order(self, shapes: Sequence[Any]) -> list[Any]:
        """The shape or the `StaticArgument` of each leaf."""
        rest, slots = iter(shapes), [slot for _, slots in self.rebuilds for slot in slots]
        leaves = [StaticArgument(slot[1]) if isinstance(slot, tuple) else next(rest) for slot in slots]
        return [*leaves, *rest]

    def nested(self, values: Sequence[Any]) -> list[Any]:
        """The function's arguments, with these values instead of the data."""
        args = []
        for structure, slots in self.rebuilds:
            leaves = [p[1] if isinstance(p, tuple) else values[p] for p in slots]
            args.append(leaves[0] if structure is None else tree_unflatten(structure, leaves))
        return args


def _in_order_of_arguments(owner: Owner, vectors: Sequence[Any]) -> Sequence[Any]:
    """The vector in the recorded program's order. v comes in the order of `wrt`; w does not belong to the inputs."""
    if owner.operator not in ("jvp", "hvp") or list(owner.wrt) == sorted(owner.wrt):
        return vectors
    pairs = zip(owner.wrt, vectors[0], strict=True)
    return [tuple(part for _, part in sorted(pairs, key=lambda pair: pair[0]))]
