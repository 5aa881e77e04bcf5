"""One row per elementwise function: its value, its derivative, its names, and how it is written in machine code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.rule import Gradient, Rule, Value
from adbench.tape.numpy_names import PUBLIC, stand_for


class Function(Rule):
    """An elementwise function of `adbench.tape`, entered everywhere by its row:

        arccos = Function(np.arccos, lambda _v, adj, x: -adj / sqrt(1.0 - x * x), aliases="acos", native="acos")

    value      computes it: a ufunc or another function; one of scipy's is given by its full name, and imported when it
               is first called
    gradients  for each argument (val, adj, *inputs) -> adj · ∂f/∂input, for both modes; None where it has no derivative
    name       in `adbench.tape`, errors and tables; by default that of `value`
    aliases    more names in `adbench.tape`, separated by blanks
    numpy      functions of numpy's, or full names of scipy's, in whose place it is called; by default `value`
    native     its value as machine code, see `compiled.kernels.natives`; without it, compiled code calls `value`
    slope      for a function of one argument: its derivative, where that is one number
    """

    __slots__ = ("native",)

    rows: list[Function] = []  # noqa: RUF012  # all there are

    def __init__(
        self,
        value: Callable[..., Value] | str,
        *gradients: Gradient | None,
        name: str | None = None,
        aliases: str = "",
        numpy: tuple[Any, ...] | None = None,
        native: Any = None,
        slope: float | None = None,
    ) -> None:
        if numpy is None:
            numpy = (value,) if isinstance(value, (str, np.ufunc)) else ()
        name = name or (value.rpartition(".")[2] if isinstance(value, str) else value.__name__)
        found = self._when_called(value) if isinstance(value, str) else value
        super().__init__(name, found, gradients, gradients, elementwise=True, fresh=True, slope=slope)
        self.native = native
        self.rows.append(self)
        for alias in (name, *aliases.split()):
            PUBLIC[alias] = self
            if isinstance(ufunc := getattr(np, alias, None), np.ufunc) and numpy:
                stand_for(self, ufunc)
        stand_for(self, *numpy)

    def _when_called(self, path: str) -> Callable[..., Value]:
        """A function that imports its module at the first call, and then is replaced by the module's."""

        def load(*inputs: Value) -> Value:
            module, _, function = path.rpartition(".")
            self.value = getattr(importlib.import_module(module), function)
            return self.value(*inputs)

        return load
