"""torch's two modes as nestable transforms without torch.func: reverse by autograd.grad, forward by dual tensors.

And the gradient at many points, by torch.func.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import torch
from torch import func
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from adbench import Unsupported


def to_numpy(leaf: Any) -> Any:
    # The tensor may require a gradient, or be a zero tensor without memory.
    return leaf.numpy(force=True) if isinstance(leaf, torch.Tensor) else np.asarray(leaf)


def forward(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """J v by dual tensors, which do not nest in each other."""
    try:
        with forward_ad.dual_level():
            value = g(tuple(map(forward_ad.make_dual, x, v)))
            tangents = optree.tree_map(_tangent, value)
    except RuntimeError as error:
        if "Nested forward mode AD" not in str(error):
            raise
        raise Unsupported("torch's dual tensors cannot be nested; use torch_func") from error
    return tangents


def _tangent(dual: Any) -> Any:
    if not isinstance(dual, torch.Tensor):  # a plain number
        return torch.zeros(())
    primal, tangent = forward_ad.unpack_dual(dual)
    return torch.zeros_like(primal) if tangent is None else tangent


def reverse(g: Callable[..., Any], x: Any, w: Any) -> Any:
    """wᵀ J, itself recorded. Marking a view keeps the tangent and graph of inputs that come from another derivative."""
    leaves = tuple(leaf.view_as(leaf).requires_grad_() for leaf in x)
    value = g(leaves)
    if not getattr(value, "requires_grad", False):  # independent of the inputs, which autograd.grad refuses
        return tuple(map(torch.zeros_like, leaves))
    if any(leaf.requires_grad for leaf in x):  # inside another reverse mode
        refuse_once_differentiable(value.grad_fn)
    return torch.autograd.grad(value, leaves, w, create_graph=True, materialize_grads=True)


def refuse_once_differentiable(node: Any) -> None:
    """Raise Unsupported if a custom function in the graph marks its backward as once_differentiable.

    torch raises only if the result depends on that derivative; otherwise it takes the derivative as 0.
    """
    waiting, seen = [node], {None}
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
            own: Any = getattr(type(node), "_forward_cls", None)
            if getattr(getattr(own, "backward", None), "__code__", None) is ONCE:
                raise Unsupported(f"the backward of {own.__name__} is marked once_differentiable")


ONCE = once_differentiable(len).__code__
"""The code object of every backward marked once_differentiable."""


def batch_gradient(g: Callable[..., Any], x: Any) -> Any:
    """The gradient at all points at once, as torch.func gives it."""
    try:
        return func.vmap(func.grad(g))(x)
    except RuntimeError as error:
        if "vmap" not in str(error):
            raise
        raise Unsupported("torch.func.vmap takes no branch or loop that depends on data") from error


NESTED = {"jvp": forward, "vjp": reverse}


def of_func(transform: Callable[..., Any]) -> Callable[..., Any]:
    """An operator by torch.func. Raises Unsupported for a custom function that only autograd takes."""

    def operator(*args: Any) -> Any:
        try:
            return transform(*args)
        except RuntimeError as error:
            if "setup_context" not in str(error):
                raise
            raise Unsupported(f"RuntimeError: {str(error).splitlines()[0]}") from error

    return operator
