"""torch's own two modes as transforms that nest: reverse over the tape, forward by dual tensors, without torch.func."""

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import torch
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from adbench import Unsupported

OVER_FORWARD = "hvp_forward_over_forward hvp_reverse_over_forward"
CONSTANT_FACTORS = "the tangent's factorisation counts as constant (pytorch/pytorch#192540)"


def to_numpy(leaf: Any) -> Any:
    # It may still be recorded, or be one of torch's zeros without memory.
    return leaf.numpy(force=True) if isinstance(leaf, torch.Tensor) else np.asarray(leaf)


def forward(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """J v by torch's own dual tensors, which do not nest in themselves."""
    try:
        with forward_ad.dual_level():
            value = g(tuple(map(forward_ad.make_dual, x, v)))
            tangents = optree.tree_map(_tangent, value)
    except RuntimeError as error:
        if "Nested forward mode AD" not in str(error):
            raise
        raise Unsupported("torch's dual tensors do not nest in themselves; those of torch.func do") from error
    return tangents


def _tangent(dual: Any) -> Any:
    if not isinstance(dual, torch.Tensor):  # a number that the function returned as it is
        return torch.zeros(())
    primal, tangent = forward_ad.unpack_dual(dual)
    return torch.zeros_like(primal) if tangent is None else tangent


def reverse(g: Callable[..., Any], x: Any, w: Any) -> Any:
    """wᵀ J, itself recorded. A view is marked: what comes from another derivative keeps its tangent and its graph."""
    leaves = tuple(leaf.view_as(leaf).requires_grad_() for leaf in x)
    value = g(leaves)
    if not getattr(value, "requires_grad", False):  # it does not depend on them, which autograd.grad refuses
        return tuple(map(torch.zeros_like, leaves))
    if any(leaf.requires_grad for leaf in x):  # inside of another reverse mode
        refuse_once_differentiable(value.grad_fn)
    return torch.autograd.grad(value, leaves, w, create_graph=True, materialize_grads=True)


def refuse_once_differentiable(node: Any) -> None:
    """Raises Unsupported if a custom function of the graph says that its backward has no derivative.

    torch itself raises only where the result would depend on it, and else counts that derivative as 0.
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
"""The code of each backward that is marked so."""

NESTED = {"jvp": forward, "vjp": reverse}
