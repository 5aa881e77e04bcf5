"""Function transforms: torch.func's grad, vjp, jvp and jacrev, composed; recorded anew at every call."""

from collections.abc import Callable
from typing import Any

from torch import func

from adbench import Operator, on_active

from . import torch as eager

VARIANT_OF = "torch"

# Under torch.func a determinant is differentiated by another formula, which is right where it is zero.
KNOWN = {case: reason for case, reason in eager.KNOWN.items() if case != "trap_det_singular"}

xp, to_native, to_numpy = eager.xp, eager.to_native, eager.to_numpy


def value_and_gradient(g: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    gradient, value = func.grad_and_value(g)(x)
    return value, gradient


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    **eager.OPERATIONS,
    "gradient": lambda g, x: func.grad(g)(x),
    "value_and_gradient": value_and_gradient,
    "vjp": lambda g, x, w: func.vjp(g, x)[1](w)[0],
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
