"""Eager: records tensor operations anew at every call, in double precision."""

from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import optree
import torch

from adbench import Namespace, Operator, Unsupported

REQUIRES = ("torch", "array-api-compat")

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # else `xp.zeros(3)` in a case would be single precision

xp = Namespace(array_api_compat.torch)


def to_native(leaf: Any) -> Any:
    return torch.tensor(leaf, dtype=torch.float64)  # copies


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    def value_and_gradient(*args: Any) -> tuple[Any, Any]:
        # Users mark their parameters once. To mark a view at each call costs about as little, and leaves the caller's
        # tensors as they are: one marked for this call would be recorded by another that holds it constant.
        arguments: Any = tuple(args[i] for i in wrt)
        plain, structure = optree.tree_flatten(arguments)
        leaves = [leaf.detach().requires_grad_() for leaf in plain]
        active = dict(zip(wrt, optree.tree_unflatten(structure, leaves), strict=True))
        value = f(*(active.get(i, arg) for i, arg in enumerate(args)))
        # The graph is freed here; an input that the value does not depend on has gradient zero.
        gradient = torch.autograd.grad(value, leaves, materialize_grads=True)
        return value.detach(), optree.tree_unflatten(structure, gradient)

    if operator == "value":
        return f
    if operator == "gradient":
        return lambda *args: value_and_gradient(*args)[1]
    if operator == "value_and_gradient":
        return value_and_gradient
    raise Unsupported(f"adbench asks torch for value, gradient and value_and_gradient, not {operator}")
