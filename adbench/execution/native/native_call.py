"""A prepared operator: inputs bound once, result memory reused unless the caller still holds it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from sys import getrefcount
from typing import Any

import numpy as np

from adbench.execution.native.shared_object import Opened
from adbench.model.backend import WITH_VECTOR, Call, Operator
from adbench.model.errors import Unsupported
from adbench.model.operator import DEFINITIONS, definition
from adbench.model.tree import filled, leaves, map_leaves

GRADIENTS = tuple(one.name for one in DEFINITIONS.values() if one.order < 2 and one.vector != "tangent")
"""The operators of a unit built for the gradient alone."""


@dataclass(frozen=True)
class ArgumentLayout:
    """The properties of inputs that stay the same between calls: one leaf lies after the other, each with its kind.

    kinds     the C++ type of each input's kind: `Real<1>`, `Whole`, `Nest<Real<2>, Real<0>>`
    shapes    of each leaf, None for a static leaf
    """

    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...] | None, ...]


def layout(args: Sequence[Any]) -> ArgumentLayout:
    """The layout of native inputs. Raises Unsupported for an input without a C++ type."""
    shapes = tuple(leaf.shape if isinstance(leaf, np.ndarray) else None for leaf in leaves(tuple(args)))
    return ArgumentLayout(tuple(map(_kind, args)), shapes)


def _kind(arg: Any) -> str:
    if isinstance(arg, dict):
        return _nest([arg[key] for key in sorted(arg)])
    if isinstance(arg, list | tuple):
        return _nest(arg)
    if isinstance(arg, np.ndarray):
        return f"adbench::Real<{arg.ndim}>"
    for kind, name in ((bool, "Truth"), (int, "Whole"), (str, "Text")):
        if isinstance(arg, kind):
            return f"adbench::{name}"
    raise Unsupported(f"a C++ implementation takes no input of type {type(arg).__name__}")


def _nest(parts: Sequence[Any]) -> str:
    return f"adbench::Nest<{', '.join(map(_kind, parts))}>"


class NativeNumbers:
    """The numbers from C++: a gradient, or a Hessian row by row, or the gradients of many points.

    `parts` makes arrays of them, untimed.
    """

    def __init__(self, inputs: Sequence[Any], wrt: tuple[int, ...], *, square: bool, points: int) -> None:
        places = sorted(wrt)  # C++ has the active inputs in their own order
        self._x, self._order = tuple(inputs[place] for place in places), tuple(map(places.index, wrt))
        self._shapes = [np.shape(leaf) for leaf in leaves(self._x)]
        sizes = list(map(math.prod, self._shapes))
        self._ends, total = np.cumsum(sizes), sum(sizes)
        self._lead = (points,) if points else ()
        self.numbers = np.zeros((total, total) if square else (*self._lead, total))

    def fresh(self) -> NativeNumbers:
        """Memory for another result."""
        other = copy(self)
        other.numbers = np.zeros(self.numbers.shape)
        return other

    def parts(self) -> tuple[Any, ...]:
        """Copies: one entry with its structure for each active input of a gradient; a tuple of rows of blocks for a
        Hessian."""
        ends, shapes = self._ends[:-1], self._shapes
        if self.numbers.ndim == 2 and not self._lead:
            rows = [np.split(row, ends, axis=1) for row in np.split(self.numbers, ends)]
            return tuple(
                tuple(rows[i][j].copy().reshape(shapes[i] + shapes[j]) for j in self._order) for i in self._order
            )
        pairs = zip(np.split(self.numbers, ends, axis=-1), shapes, strict=True)
        gradient = filled(self._x, [part.copy().reshape(self._lead + shape) for part, shape in pairs])
        return tuple(gradient[i] for i in self._order)


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
                # is fine; larger arrays have no truth value.
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
        self.parts = tuple(leaves(args)) if self._nested else args
        self.row = NativeNumbers(one, self._wrt, square=self._of.result == "hessian", points=self._points)
        self.renew()

    def renew(self) -> None:
        """Allocate memory for the results."""
        self.row = self.row.fresh()
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
