"""Calls with nests of arguments, and with vectors for several: flatten, run the entry of the leaves, rebuild."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree

from adbench.tape.compiled.runtime.entry import CompiledEntry
from adbench.tape.trees import NAMESPACE, tree_flatten


def not_here(*_args: Any) -> None:
    """The answer of an entry of leaves that cannot handle a call: None, which is no result."""


class NestedEntry:
    """An entry point for nests of one structure, around the entry of their leaves.

    call         a function of the arguments
    vectorcall   0: it has no machine code of its own
    """

    vectorcall = 0

    def __init__(
        self, entry: CompiledEntry, args: Sequence[Any], wrt: int | Sequence[int] | None, otherwise: Any
    ) -> None:
        """`args`: a call's arguments. `wrt`: the argument, or those, whose structure the derivative has; None if it
        has that of the function's value. Other calls go to `otherwise`.
        """
        self._entry = entry  # keeps its code in memory
        self._otherwise: Callable[..., Any] = otherwise
        flatten: Any = optree.tree_flatten
        unflatten, run = optree.tree_unflatten, entry.call
        structure = tree_flatten(tuple(args))[1]
        active = args[wrt] if isinstance(wrt, int) else tuple(args[k] for k in wrt or ())
        derivative = tree_flatten(active)[1]
        rebuilds, after_value = wrt is not None, entry.form == "value+many"

        def call(*args: Any) -> Any:
            leaves, nesting = flatten(args, namespace=NAMESPACE)
            parts = run(*leaves) if nesting == structure else None
            if parts is None:
                return self._otherwise(*args)
            if not rebuilds:
                return parts
            return (parts[0], unflatten(derivative, parts[1])) if after_value else unflatten(derivative, parts)

        self.call = call

    def pass_on(self, otherwise: Callable[..., Any]) -> None:
        """Pass calls that this entry does not handle on to another function."""
        self._otherwise = otherwise
