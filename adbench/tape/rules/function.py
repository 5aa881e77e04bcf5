"""One row per elementwise function: its value, derivative, names, and machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.optional import library
from adbench.tape.core.rule import Gradient, Rule, Value
from adbench.tape.numpy_names import PUBLIC, stand_for

ROWS: list[Rule] = []
"""All rows."""


def function(
    value: Callable[..., Value] | str,
    *gradients: Gradient | None,
    name: str | None = None,
    aliases: str = "",
    numpy: tuple[Any, ...] | None = None,
    native: Any = None,
    slope: float | None = None,
) -> Rule:
    """An elementwise function of `adbench.tape`. One row registers it everywhere:

        arccos = function(np.arccos, lambda _v, adj, x: -adj / sqrt(1.0 - x * x), aliases="acos", native="acos")

    value      a ufunc or another function. Give a function of scipy by its full name; the first call imports it
    gradients  for each argument (val, adj, *inputs) -> adj · ∂f/∂input, for both modes; None for no derivative
    name       in `adbench.tape`, errors and tables; by default the name of `value`
    aliases    more names in `adbench.tape`, separated by blanks
    numpy      functions of numpy, or full names of scipy's, that it replaces on active values; by default `value`
    native     its machine code, see `compiled.kernels.natives`; without it, compiled code calls `value`. The name of a
               function in `math` also makes calls with numbers quick, see `fast.scalar_functions`
    slope      for a function of one argument: its derivative, if that is one number
    """
    if numpy is None:
        numpy = (value,) if isinstance(value, (str, np.ufunc)) else ()
    name = name or (value.rpartition(".")[2] if isinstance(value, str) else value.__name__)

    def late(*inputs: Value) -> Value:
        """Import the function at the first call; later the rule calls it directly."""
        module, _, function_there = str(value).rpartition(".")
        rule.value = getattr(library(module, str(value)), function_there)
        return rule.value(*inputs)

    evaluate = late if isinstance(value, str) else value
    rule = Rule(name, evaluate, gradients, gradients, elementwise=True, fresh=True, slope=slope)
    rule.native = native
    ROWS.append(rule)
    for alias in (name, *aliases.split()):
        PUBLIC[alias] = rule
        if isinstance(ufunc := getattr(np, alias, None), np.ufunc) and numpy:
            stand_for(rule, ufunc)
    stand_for(rule, *numpy)
    return rule
