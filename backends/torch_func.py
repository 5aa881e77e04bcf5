"""torch.func: compose grad, vjp, jvp and jacrev; record at every call."""

from collections.abc import Callable
from typing import Any

from torch import func

from adbench import Operator, on_active

from . import torch as eager

VARIANT_OF = "torch"
BATCHED = True
DEVICES = ("cuda",)
DTYPES = ("float32", "bfloat16", "float16")

LIMITS = eager.LIMITS

xp, to_native, to_numpy = eager.xp, eager.to_native, eager.to_numpy
use_device, use_dtype = eager.use_device, eager.use_dtype


def value_and_gradient(g: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    gradient, value = func.grad_and_value(g)(x)
    return value, gradient


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    **eager.OPERATIONS,
    "gradient": lambda g, x: func.grad(g)(x),
    "value_and_gradient": value_and_gradient,
    "vjp": lambda g, x, w: func.vjp(g, x)[1](w)[0],
}
NESTED = {mode: OPERATIONS[mode] for mode in ("jvp", "vjp")}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
