"""The case's hand-written gradient, compiled by numba: the best that Python could reach."""

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from adbench import Operator, Unsupported, phase

REQUIRES = ("numba",)
THREADED = True  # in numpy's BLAS
LICENCE = "BSD-2-Clause"
ROLE = "comparison"
DEFAULT = False  # it differentiates nothing

NESTED = "a hand-written gradient has no modes to compose"


@cache
def dispatcher(gradient: Callable[..., Any]) -> Any:
    """One dispatcher per gradient, so numba compiles once for all sizes of the same types."""
    return numba.njit(gradient)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    case, names = f.case, f.names  # type: ignore[attr-defined]  # the harness sets both
    if operator != "gradient":
        raise Unsupported(f"a hand-written gradient gives no {operator}")
    if case.gradient is None:
        raise Unsupported("the case has no hand-written gradient")
    parameters = signature(case.gradient).parameters
    if not set(parameters) <= set(names):  # a trap's gradient is the truth at one point
        raise Unsupported("the case declares its gradient as numbers, not as a function")
    if not all(isinstance(arg, np.ndarray | float | int) for arg in args):
        raise Unsupported("numba_hand takes numbers and arrays, but an input is nested")
    order = [names.index(name) for name in parameters]
    places = [case.wrt.index(names[i]) for i in wrt]
    compiled = dispatcher(case.gradient)
    try:
        with phase("compile"):
            compiled(*(args[i] for i in order))
    except NumbaError as error:
        raise Unsupported(f"numba cannot compile the hand-written gradient: {_reason(error)}") from error

    def gradient(*args: Any) -> tuple[Any, ...]:
        found = compiled(*[args[i] for i in order])
        return tuple([found[k] for k in places])

    return gradient


def _reason(error: NumbaError) -> str:
    """The line of numba's report that names the missing feature."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = (line for line in lines if line.startswith(("No ", "Unknown", "Use of", "Invalid", "Untyped", "Cannot")))
    return next(telling, lines[0])
