"""numdifftools: central differences with adaptive steps and Richardson extrapolation, on numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numdifftools
import numpy as np

from adbench import Operator, Unsupported

from .support.flat import on_numbers

REQUIRES = ("numdifftools",)
LICENCE = "BSD-3-Clause"
DEFAULT = False  # a gradient takes 30 evaluations for each input


CLAIMED_RELATIVE_ERROR = 1e-8

NESTED = "differences of differences keep too few digits"


def differentiated(method: Any, g: Callable[[Any], Any], x: list[float]) -> Any:
    """One of the library's classes at x; it passes a vector of one entry as a number."""
    if not x:
        return np.zeros(0)
    return np.atleast_1d(method(lambda y: g(np.atleast_1d(y)))(x))


OPERATIONS: dict[Operator, Callable[..., Any]] = {  # for functions of a list of numbers
    "gradient": lambda g, x: differentiated(numdifftools.Gradient, g, x),
    "value_and_gradient": lambda g, x: (g(x), differentiated(numdifftools.Gradient, g, x)),
    "jacobian": lambda g, x: differentiated(numdifftools.Jacobian, lambda y: np.ravel(g(y)), x),
}


def doubles(x: Any) -> Any:
    """One input of f."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) else float(x)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator in ("hvp", "hessian"):
        raise Unsupported(f"numdifftools.Hessian has too few digits to be checked; adbench asks for no {operator}")
    if operator not in OPERATIONS:
        raise Unsupported(f"numdifftools differentiates entry by entry and has no {operator}")
    return on_numbers(OPERATIONS[operator], operator, f, wrt, doubles)
