"""The public names of `adbench.tape`, and the functions that replace numpy's on active values.

The tables are empty here; families of functions fill them: `function` with one row for each elementwise function,
`publish` with those of a module, and `stand_for`. `__array_ufunc__` and `__array_function__` read them. A function
that is not listed raises `UnsupportedError`, because running it on plain values would silently make a constant of a
variable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from adbench.optional import library
from adbench.tape.core.rule import Gradient, Rule, TapeError, Value

PUBLIC: dict[str, Any] = {}
"""Public name of `adbench.tape` -> its object."""

UFUNCS: dict[Any, Callable[..., Any]] = {}
"""A ufunc of numpy's -> ours."""

METHODS: dict[tuple[Any, str], Callable[..., Value]] = {}
"""(ufunc, name of a method) -> our function for ufunc.method(…)."""

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""Any other function of numpy's -> ours."""

ROWS: list[Rule] = []
"""All elementwise functions, see `function`."""

_OF_SCIPY: dict[str, Callable[..., Any]] = {}
"""A ufunc of scipy's, by its full name -> ours; moved to `UFUNCS` once scipy is loaded."""


class UnsupportedError(TapeError, TypeError):
    """A numpy function without a derivative here was called on an active value."""


def stand_for(ours: Callable[..., Any], *theirs: Any) -> None:
    """Call `ours` instead of these functions on active values. Scipy's functions are given by name."""
    for function in theirs:
        if isinstance(function, str):
            _OF_SCIPY[function] = ours
        else:
            (UFUNCS if isinstance(function, np.ufunc) else FUNCTIONS)[function] = ours


def stand_for_namesakes(family: dict[str, Any], names: Iterable[str], source: Any) -> None:
    """Call our functions instead of numpy's of the same name, or those of a similar module."""
    for name in names:
        if callable(theirs := getattr(source, name, None)) and not isinstance(theirs, type):
            stand_for(family[name], theirs)


def publish(family: dict[str, Any], *, helpers: str = "", unlike_numpy: str = "") -> None:
    """Publish the functions and rules of a module, given by its `globals()`, under their names.

    helpers        names that stay private
    unlike_numpy   names with another meaning in numpy
    """
    for name, value in family.items():
        is_own = isinstance(value, FunctionType) and value.__module__ == family["__name__"]
        if (is_own or isinstance(value, Rule)) and not name.startswith("_") and name not in helpers.split():
            PUBLIC[name] = value
            if name not in unlike_numpy.split():
                stand_for_namesakes(family, [name], np)


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


def _of_ufunc(ufunc: Any) -> Callable[..., Any] | None:
    if ufunc not in UFUNCS:
        for path in list(_OF_SCIPY):  # a caller of a scipy function has loaded its module
            module, _, name = path.rpartition(".")
            if module in sys.modules:
                UFUNCS[getattr(sys.modules[module], name)] = _OF_SCIPY.pop(path)
    return UFUNCS.get(ufunc)


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Value:
    """Evaluate `ufunc.method(*inputs, **options)` on active values."""
    if options.get("out") is not None or "where" in options or options.get("dtype") is not None:
        names = sorted(k for k, v in options.items() if v is not None)
        raise UnsupportedError(f"numpy.{ufunc.__name__}: options {names} are not differentiable; leave them out")
    options = {k: v for k, v in options.items() if k in ("axis", "keepdims")}
    ours = _of_ufunc(ufunc) if method == "__call__" else METHODS.get((ufunc, method))
    if ours is None:
        raise UnsupportedError(_advice(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")))
    return ours(*inputs, **options)


def call_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Evaluate `function(*args, **options)` on active values."""
    if function not in FUNCTIONS:
        raise UnsupportedError(_advice(f"{function.__module__}.{function.__name__}"))
    options = {k: v for k, v in options.items() if v is not None and v is not np._NoValue}
    try:
        return FUNCTIONS[function](*args, **options)
    except TypeError as error:
        if "unexpected keyword" in str(error) or "positional argument" in str(error):
            raise UnsupportedError(
                f"numpy.{function.__name__}: {error}; leave out options without a derivative"
            ) from None
        raise


def _advice(name: str) -> str:
    return (
        f"{name} has no derivative here. Write it with functions of adbench.tape, give its derivative with "
        f"function_gradients, or pass the plain value .val if it is a constant"
    )
