"""A prepared operator: inputs bound once, result memory reused unless the caller still holds it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from sys import getrefcount
from typing import Any

import numpy as np
import optree

from adbench.execution.native.argument_layout import ArgumentLayout, layout
from adbench.execution.native.shared_object import Opened
from adbench.model.backend import WITH_VECTOR, Call, Operator
from adbench.model.errors import Unsupported
from adbench.model.operator import DEFINITIONS, definition
from adbench.model.tree import NAMESPACE, leaves, map_leaves

GRADIENTS = tuple(one.name for one in DEFINITIONS.values() if one.order < 2 and one.vector != "tangent")
"""The operators of a unit built for the gradient alone."""


class NativeNumbers:
    """The numbers from C++: a gradient, or a Hessian row by row, or the gradients of many points.

    `parts` makes arrays of them, untimed.
    """

    def __init__(
        self, args: tuple[Any, ...], wrt: tuple[int, ...], sizes: ArgumentLayout, *, square: bool, points: int
    ) -> None:
        ends = np.cumsum([0, *map(sizes.size, sizes.leaves_of(wrt))])
        self._spans = {k: slice(ends[i], ends[i + 1]) for i, k in enumerate(sizes.leaves_of(wrt))}
        self._leaves = [sizes.leaves_of([w]) for w in wrt]
        self._shapes = {k: sizes.shapes[k] or () for k in self._spans}
        self._structures = [optree.tree_structure(args[w], namespace=NAMESPACE) for w in wrt]
        self._lead = (points,) if points else ()
        self.numbers = np.zeros((ends[-1],) * 2 if square else (*self._lead, ends[-1]))

    def parts(self) -> tuple[Any, ...]:
        """Copies: one entry with its structure for each active input of a gradient; a tuple of rows of blocks for a
        Hessian."""
        if self.numbers.ndim == 2 and not self._lead:
            leaves = [k for (k,) in self._leaves]
            return tuple(tuple(self._block(i, j) for j in leaves) for i in leaves)
        return tuple(
            optree.tree_unflatten(
                structure,
                [self.numbers[..., self._spans[k]].copy().reshape(self._lead + self._shapes[k]) for k in own],
            )
            for structure, own in zip(self._structures, self._leaves, strict=True)
        )

    def _block(self, i: int, j: int) -> Any:
        return self.numbers[self._spans[i], self._spans[j]].copy().reshape(self._shapes[i] + self._shapes[j])


class NativeOperator:
    """An operator of a C++ implementation, bound to arguments, and bound again for other arguments.

    open_for   opens the implementation for inputs of a layout; called again if the layout changes
    lacking    the reason to give if there is no such operator
    """

    def __init__(
        self,
        open_for: Callable[[ArgumentLayout], Opened],
        operator: Operator,
        args: tuple[Any, ...],
        wrt: tuple[int, ...],
        lacking: str,
    ) -> None:
        self._open_for, self._wrt = open_for, wrt
        self._inputs = len(args) - (1 if operator in WITH_VECTOR else 0)
        self._of = definition(operator)
        if self._of.code is None:
            raise Unsupported(lacking)
        parts = (*args[: self._inputs], *(args[-1] if self._of.vector == "tangent" else ()))
        self._nested = any(isinstance(part, dict | list | tuple) for part in parts)
        self._layout: ArgumentLayout | None = None
        self._points = 0
        self.bind(args)
        if not self.opened.shared.has(self.handle, self._of.code):
            raise Unsupported(lacking)
        if self._of.result == "hessian" and not all(isinstance(args[w], np.ndarray) for w in wrt):
            raise Unsupported("no Hessian for nested inputs; use hvp")

    def call(self) -> Call:
        """call(*args) -> a number, NativeNumbers, or the pair of both."""
        nested = self._nested
        gives_number = self._of.result == "value"
        gives_both = self._of.result == "pair"

        def call(*args: Any) -> Any:
            parts = tuple(leaves(args)) if nested else args
            try:
                # Tuples of the same objects are equal, in 30 ns. Different arrays of one entry may be equal too, which
                # is
                # fine; larger arrays have no truth value.
                bound = parts == self.parts
            except ValueError:
                bound = False
            if not bound:
                self.bind(args)
            elif getrefcount(self.row) != self.unheld:
                self.renew()  # the caller still holds the last result
            value = self.run(self.handle)
            if value != value:
                self.opened.complain()
            if gives_number:
                return value
            return (value, self.row) if gives_both else self.row

        return call

    def bind(self, args: tuple[Any, ...]) -> None:
        """Bind these arguments, and allocate memory for the results."""
        inputs, vector = args[: self._inputs], args[self._inputs :]
        one = inputs
        if self._of.at_points:
            one = tuple(
                map_leaves(lambda leaf: leaf[0, ...], arg) if k in self._wrt else arg for k, arg in enumerate(inputs)
            )
            self._points = len(leaves(inputs[self._wrt[0]])[0])
            vector = (np.array(float(self._points)),)
        sizes = layout(one)
        if sizes != self._layout:
            self.opened, self._layout = self._open_for(sizes), sizes
            self.run, self.handle = self.opened.shared.run, self.opened.handle
        self._kept: list[Any] = []
        self._leaves = self._table(leaves(inputs))
        if self._of.vector == "tangent":  # the vector is in the order of `wrt`; C++ uses that of the inputs
            vector = tuple(part for _, part in sorted(zip(self._wrt, vector[0], strict=True), key=lambda pair: pair[0]))
        self._vector = self._table(leaves(vector))
        self._args, self.parts = args, tuple(leaves(args)) if self._nested else args
        self.renew()

    def renew(self) -> None:
        """Allocate memory for the results."""
        assert self._layout is not None
        self.row = NativeNumbers(
            self._args, self._wrt, self._layout, square=self._of.result == "hessian", points=self._points
        )
        out = self.row.numbers.ctypes.data
        self.opened.shared.bind(self.handle, self._of.code, self._leaves, self._vector, out)
        self.unheld = getrefcount(self.row)

    def _table(self, values: Iterable[Any]) -> Any:
        """The addresses of leaves, which stay alive while they are bound."""
        memory = [_memory(leaf) for leaf in values]
        table = (ctypes.c_void_p * len(memory))(*(address for _, address in memory))
        self._kept += [*(owner for owner, _ in memory), table]
        return table


def _memory(leaf: Any) -> tuple[Any, int]:
    """The owner of a leaf's memory, and its address."""
    if isinstance(leaf, np.ndarray):
        return leaf, leaf.ctypes.data
    owner = ctypes.create_string_buffer(leaf.encode()) if isinstance(leaf, str) else ctypes.c_int64(leaf)
    return owner, ctypes.addressof(owner)
