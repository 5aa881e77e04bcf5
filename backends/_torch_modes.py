"""torch's own two modes as transforms that nest: reverse over the tape, forward by dual tensors, without torch.func."""

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import torch
from torch.autograd import forward_ad

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
    return torch.autograd.grad(value, leaves, w, create_graph=True, materialize_grads=True)


NESTED = {"jvp": forward, "vjp": reverse}
