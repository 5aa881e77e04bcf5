"""AADC: record scalar operations once, replay them as machine code with adjoints; free for non-commercial use."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import aadc
import numpy as np
from aadc import math

from adbench import Namespace, Operator, Unsupported, phase
from adbench.catalog.discovery import first_line
from adbench.vocabulary import of_numpy

from .support.flat import Leaves, result
from .support.symbols import Kind

REQUIRES = ("aadc",)
LICENCE = "LicenseRef-Matlogica-EULA"
DEFAULT = False  # prints a line about its licence on import, and allows no commercial use without one

NESTED = "AADC replays first-order adjoints of a recording"


def number(x: Any) -> Any:
    return x if isinstance(x, aadc.idouble) else aadc.idouble(float(x))


def of_number(function: Callable[..., Any], x: Any) -> Any:
    return function(number(x))


def logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y), which AADC lacks."""
    top, low = math.max(number(x), number(y)), math.min(number(x), number(y))
    return top + math.log(1.0 + math.exp(low - top))


def where(condition: Any, a: Any, b: Any) -> Any:
    return aadc.iif(condition, number(a), number(b)) if isinstance(condition, aadc.ibool) else a if condition else b


UNARY = "sin cos tan exp log sqrt sinh cosh tanh asin acos atan erf floor log2 log10"
OF_NUMBERS: Mapping[str, Callable[..., Any]] = {
    **{
        name: partial(of_number, getattr(math, its))
        for name, its in of_numpy(UNARY.split()).items()
        if hasattr(math, its)
    },
    "absolute": lambda x: abs(number(x)),
    "log1p": lambda x: math.log(1.0 + number(x)),
    "logaddexp": logaddexp,
    "hypot": lambda x, y: math.sqrt(number(x) * number(x) + number(y) * number(y)),
    "maximum": lambda x, y: math.max(number(x), number(y)),
    "minimum": lambda x, y: math.min(number(x), number(y)),
    "power": lambda x, y: number(x) ** y,
    "less": lambda x, y: number(x) < y,
    "less_equal": lambda x, y: number(x) <= y,
    "greater": lambda x, y: number(x) > y,
    "greater_equal": lambda x, y: number(x) >= y,
    "where": where,
}
NUMBERS = Kind("AADC", OF_NUMBERS)


def refuse(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise Unsupported(f"AADC has no {name}")

    return refused


xp = Namespace(np, derivative=refuse("derivative inside a function"), stop_gradient=refuse("stop_gradient"))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator not in ("value", "gradient", "value_and_gradient", "vjp"):
        raise Unsupported(f"AADC has no {operator}: it replays first-order adjoints")
    count = len(args) - (operator == "vjp")
    given, x = Leaves(args[:count]), Leaves(tuple(args[i] for i in wrt))
    with phase("trace"):
        kernel, places, outputs, shape = recorded(f, args[:count], given)
        work = kernel.create_workspace(kind="scalar")
    owners = [k for k, arg in enumerate(args[:count]) for _ in range(Leaves(arg).size)]
    of_input = {i: [place for place, owner in zip(places, owners, strict=True) if owner == i] for i in wrt}
    active = [place for i in wrt for place in of_input[i]]

    def call(*args: Any) -> Any:
        for place, entry in zip(places, given.flat(args[:count]), strict=True):
            work.set_val(place, entry)
        work.forward()
        values = [work.val(output) for output in outputs]
        if operator == "value":
            return result(operator, values, x, shape)
        for output, weight in zip(outputs, np.ravel(args[count]) if operator == "vjp" else (1.0,), strict=True):
            work.set_diff(output, weight)
        work.reverse()
        slopes = [work.diff(place) for place in active]
        return result(operator, (values[0], slopes) if operator == "value_and_gradient" else slopes, x, shape)

    return call


def recorded(f: Callable[..., Any], args: tuple[Any, ...], given: Leaves) -> Any:
    """(kernel, handles of the inputs, handles of the outputs, shape of f's value)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with aadc.record_kernel() as kernel:
            symbols = [aadc.idouble(float(entry)) for entry in given.flat(args)]
            places = [symbol.mark_as_input() for symbol in symbols]
            try:
                value = f(*given.nested(symbols, NUMBERS.array))
            except (TypeError, AttributeError) as error:
                raise Unsupported(f"AADC: {first_line(error)}") from error
            entries = np.asarray(value, dtype=object)
            outputs = [number(entry).mark_as_output() for entry in entries.ravel()]
    if kernel.num_passive_warnings():
        raise Unsupported("AADC records one branch, but this program branches on data")
    return kernel, places, outputs, entries.shape
