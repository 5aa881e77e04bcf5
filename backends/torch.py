"""Eager: records tensor operations anew at every call, in double precision."""

from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import optree
import torch
from torch import func

from adbench import Namespace, Operator, on_active

REQUIRES = ("torch", "array-api-compat")

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # else `xp.zeros(3)` in a case would be single precision

xp = Namespace(array_api_compat.torch)


def to_native(leaf: Any) -> Any:
    return torch.tensor(leaf, dtype=torch.float64)  # copies


def pull_back(g: Callable[..., Any], x: Any, w: Any = None) -> tuple[Any, Any]:
    """(g(x), wᵀ J) as torch's users write it: mark, compute, sweep back; the graph is freed."""
    # Users mark their parameters once. To mark a view at each call costs about as little, and leaves the caller's
    # tensors as they are: one marked for this call would be recorded by another that holds it constant.
    plain, structure = optree.tree_flatten(x)
    leaves = [leaf.detach().requires_grad_() for leaf in plain]
    value = g(optree.tree_unflatten(structure, leaves))
    # An input that the value does not depend on has gradient zero.
    gradient = torch.autograd.grad(value, leaves, w, materialize_grads=True)
    return value.detach(), optree.tree_unflatten(structure, gradient)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: pull_back(g, x)[1],
    "value_and_gradient": pull_back,
    "vjp": lambda g, x, w: pull_back(g, x, w)[1],
    # What eager sweeps do not give in one call, torch.func does.
    "jacobian": lambda g, x: func.jacrev(g)(x),
    "jvp": lambda g, x, v: func.jvp(g, (x,), (v,))[1],
    "hvp": lambda g, x, v: func.jvp(func.grad(g), (x,), (v,))[1],
    "hessian": lambda g, x: func.hessian(g)(x),
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
