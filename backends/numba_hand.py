"""The case's gradient by hand, compiled by numba: what Python could reach without differentiating anything."""

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from adbench import Operator, Unsupported, phase

REQUIRES = ("numba",)
LICENCE = "BSD-2-Clause"
DEFAULT = False  # it differentiates nothing

NESTED = "a gradient by hand is no mode of a library"


@cache
def dispatcher(gradient: Callable[..., Any]) -> Any:
    """One for each gradient, as its users write it: for other sizes of the same types numba compiles nothing again."""
    return numba.njit(gradient)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    case, names = f.case, f.names  # type: ignore[attr-defined]  # what the harness gives every function of a case
    if operator != "gradient":
        raise Unsupported(f"a gradient by hand is no {operator}")
    if case.gradient is None:
        raise Unsupported("the case has no gradient by hand")
    parameters = signature(case.gradient).parameters
    if not set(parameters) <= set(names):  # a trap's takes any inputs, for it is the truth at one point
        raise Unsupported("the case declares what is true of it: numbers, no gradient by hand")
    if not all(isinstance(arg, np.ndarray | float | int) for arg in args):
        raise Unsupported("numba compiles functions of numbers and arrays; an input is nested")
    order = [names.index(name) for name in parameters]
    places = [case.wrt.index(names[i]) for i in wrt]
    compiled = dispatcher(case.gradient)
    try:
        with phase("compile"):
            compiled(*(args[i] for i in order))
    except NumbaError as error:
        raise Unsupported(f"numba cannot compile the gradient by hand: {_reason(error)}") from error

    def gradient(*args: Any) -> tuple[Any, ...]:
        found = compiled(*[args[i] for i in order])
        return tuple([found[k] for k in places])

    return gradient


def _reason(error: NumbaError) -> str:
    """The line of numba's report that names what it lacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = (line for line in lines if line.startswith(("No ", "Unknown", "Use of", "Invalid", "Untyped", "Cannot")))
    return next(telling, lines[0])
