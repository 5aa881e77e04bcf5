"""Eager torch: record tensor operations at every call, in double precision."""

from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import numpy as np
import optree
import torch
from torch import func

from adbench import Device, Namespace, Operator, on_active
from adbench.model.settings import allowed_threads

from .support.torch_device import PLACE, create_tensors_in, on_cuda
from .support.torch_modes import NESTED as NESTED
from .support.torch_modes import batch_gradient, of_func
from .support.torch_modes import to_numpy as to_numpy

REQUIRES = ("torch", "array-api-compat")
LICENCE = "BSD-3-Clause"
BATCHED = True
THREADED = True
DEVICES = ("cuda",)
DTYPES = ("float32", "bfloat16", "float16")

# Relations between calls that eager torch breaks.
LIMITS = {"apart": "where J is the identity, wᵀ J is the tensor w itself"}

torch.set_num_threads(allowed_threads())
torch.set_default_dtype(torch.float64)  # or `xp.zeros(3)` in a case would be single precision

xp = Namespace(array_api_compat.torch, derivative=lambda g, x: func.grad(g)(x))


def to_native(leaf: Any) -> Any:
    # torch takes no negative strides
    return torch.tensor(np.array(leaf, order="C"), dtype=torch.get_default_dtype(), **PLACE)


def use_device(name: str) -> Device:
    return on_cuda(name, xp)


def use_dtype(name: str) -> None:
    create_tensors_in(name, xp)


def pull_back(g: Callable[..., Any], x: Any, w: Any = None) -> tuple[Any, Any]:
    """(g(x), wᵀ J) the way torch users write it: mark the inputs, compute, sweep back; this frees the graph."""
    # Users mark their parameters once. Marking a detached view costs little and leaves the caller's tensors unmarked:
    # another call may hold them constant.
    plain, structure = optree.tree_flatten(x)
    leaves = [leaf.detach().requires_grad_() for leaf in plain]
    value = g(optree.tree_unflatten(structure, leaves))
    # `materialize_grads`: gradient zero for an input that does not affect the value.
    gradient = torch.autograd.grad(value, leaves, w, materialize_grads=True)
    return value.detach(), optree.tree_unflatten(structure, gradient)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: pull_back(g, x)[1],
    "value_and_gradient": pull_back,
    "vjp": lambda g, x, w: pull_back(g, x, w)[1],
    # One eager sweep cannot give these; torch.func can.
    "jacobian": of_func(lambda g, x: func.jacrev(g)(x)),
    "jvp": lambda g, x, v: func.jvp(g, (x,), (v,))[1],
    "hvp": of_func(lambda g, x, v: func.jvp(func.grad(g), (x,), (v,))[1]),
    "hessian": of_func(lambda g, x: func.hessian(g)(x)),
    "batch_gradient": batch_gradient,
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
