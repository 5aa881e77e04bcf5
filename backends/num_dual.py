"""num-dual: dual numbers from Rust in numpy arrays of objects; forward mode, all directions at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import num_dual
import numpy as np

from adbench import Operator, Unsupported

from .support.flat import on_numbers
from .support.objects import Objects

REQUIRES = ("num-dual",)
LICENCE = "MIT OR Apache-2.0"


def is_dual(x: Any) -> bool:
    return hasattr(type(x), "from_re")


def power(x: Any, y: Any) -> Any:
    """x^y, also for a plain base, which num_dual lacks."""
    if is_dual(x) or not is_dual(y):
        return x**y
    return y * 0.0 if x == 0.0 and y > 0.0 else (y * float(np.log(x))).exp()


def derivative(*_: Any) -> Any:
    raise Unsupported("num_dual nests dual numbers in Rust, not in Python")


# numpy calls methods of the same name for other functions: np.sin(x) is x.sin().
DUALS = Objects("num_dual", is_dual, lambda x, like: type(like).from_re(x), {"power": power})
bare, dressed = DUALS.bare, DUALS.dressed
xp = DUALS.namespace(lambda dual: float(dual.value), derivative=derivative)


def values(g: Callable[[Any], Any], x: list[Any]) -> list[Any]:
    """The values of g as dual numbers, also if g does not depend on x."""
    lift = type(x[0]).from_re
    entries = np.asarray(bare(g(x)), dtype=object).ravel()
    return [entry if is_dual(entry) else lift(float(entry)) for entry in entries]


def jvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    found = values(g, [num_dual.Dual64(a, b) for a, b in zip(x, v, strict=True)])
    return [part.first_derivative for part in found]


def hvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    def along(t: list[Any], x: list[Any]) -> Any:  # ∂²/∂t∂x g(x + t v)
        return values(g, [a + t[0] * b for a, b in zip(x, v, strict=True)])[0]

    return num_dual.partial_hessian(along, [0.0], x)[3][0]


OPERATIONS: dict[Operator, Callable[..., Any]] = {  # for functions of a list of numbers
    "gradient": lambda g, x: num_dual.gradient(lambda y: values(g, y)[0], x)[1],
    "value_and_gradient": lambda g, x: num_dual.gradient(lambda y: values(g, y)[0], x),
    "jacobian": lambda g, x: num_dual.jacobian(lambda y: values(g, y), x)[1],
    "jvp": jvp,
    "hvp": hvp,
    "hessian": lambda g, x: num_dual.hessian(lambda y: values(g, y)[0], x)[2],
}


NESTED = "num_dual's numbers hold floats and cannot be nested; hyper-dual numbers carry both derivatives at once"


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"num_dual has forward mode only, no {operator}")
    return on_numbers(OPERATIONS[operator], operator, f, wrt, dressed)
