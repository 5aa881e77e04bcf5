"""Dual numbers from Rust, in numpy arrays of objects: forward mode at every call, all directions at once."""

import re
from collections.abc import Callable
from typing import Any

import num_dual
import numpy as np

from adbench import Namespace, Operator, Unsupported
from adbench.suite.catalog import first_line

from ._flat import on_numbers

REQUIRES = ("num-dual",)
LICENCE = "MIT OR Apache-2.0"

KNOWN: dict[str, str] = {}

xp = Namespace(np)  # which calls the dual numbers' own methods: np.sin(x) is x.sin()


def values(g: Callable[[Any], Any], x: list[Any]) -> list[Any]:
    """The values of g as dual numbers, also where it does not depend on x."""
    return [part + 0.0 * x[0] for part in np.ravel(np.asarray(g(x), dtype=object))]


def jvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    found = np.asarray(g([num_dual.Dual64(a, b) for a, b in zip(x, v, strict=True)]), dtype=object)
    slopes = [getattr(part, "first_derivative", 0.0) for part in found.ravel()]
    return np.array(slopes, dtype=np.float64).reshape(found.shape)


def hvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    def along(t: list[Any], x: list[Any]) -> Any:  # ∂²/∂t∂x g(x + t v)
        return values(g, [a + t[0] * b for a, b in zip(x, v, strict=True)])[0]

    return num_dual.partial_hessian(along, [0.0], x)[3][0]


OPERATIONS: dict[Operator, Callable[..., Any]] = {  # of a function of a list of numbers
    "gradient": lambda g, x: num_dual.gradient(lambda y: values(g, y)[0], x)[1],
    "value_and_gradient": lambda g, x: num_dual.gradient(lambda y: values(g, y)[0], x),
    "jacobian": lambda g, x: num_dual.jacobian(lambda y: values(g, y), x)[1],
    "jvp": jvp,
    "hvp": hvp,
    "hessian": lambda g, x: num_dual.hessian(lambda y: values(g, y)[0], x)[2],
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"dual numbers have no {operator}: they go forwards")
    call = on_numbers(OPERATIONS[operator], operator, f, wrt)

    def honest(*args: Any) -> Any:
        try:
            return call(*args)
        except (TypeError, AttributeError) as error:  # how Python says that a dual number has no such operation
            if "dual" not in str(error).lower() and "ufunc" not in str(error):
                raise
            what = re.sub(r"'?builtins\.\w+'?", "a dual number", first_line(error))
            raise Unsupported(f"numpy and num_dual have no such dual numbers: {what}") from error

    return honest
