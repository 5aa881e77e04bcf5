"""Eager: records tensor operations anew at every call, in double precision."""

from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import numpy as np
import optree
import torch
from torch import func

from adbench import Namespace, Operator, on_active

REQUIRES = ("torch", "array-api-compat")
LICENCE = "BSD-3-Clause"

# Faults that `adbench check` finds. A key alone, such as "nan", means the reason in the trap's `faults`.
KNOWN = {
    "trap_atan2_large": "0",
    "trap_cholesky_lower_half": "a share for the other half: the derivative is symmetrised (pytorch/pytorch#137284)",
    "trap_cholesky_upper_half": "a share for the half not read (pytorch/pytorch#137284)",
    "trap_clip_difference": "2 (pytorch/pytorch#7049)",
    "trap_det_singular": "0, silently: det · A⁻ᵀ where det = 0 (pytorch/pytorch#104675)",
    "trap_equal_eigenvalues": "nan (pytorch/pytorch#47599)",
    "trap_equality_branch": "0",
    "trap_exp_of_log": "nan (pytorch/pytorch#4132)",
    "trap_half_square_hypot": "nan (as pytorch/pytorch#2421)",
    "trap_half_square_root": "nan (pytorch/pytorch#2421)",
    "trap_log1p_exp_overflow": "nan (pytorch/pytorch#17455)",
    "trap_log_add_exp_of_nothing": "nan (pytorch/pytorch#49724)",
    "trap_log_add_exp_with_nothing": "nan (pytorch/pytorch#49724)",
    "trap_logistic_far": "0",
    "trap_logistic_tail": "nan",
    "trap_masked_count_log": "nan",
    "trap_masked_infinity": "nan (pytorch/pytorch#68425)",
    "trap_masked_overflow": "nan (pytorch/pytorch#68425)",
    "trap_masked_sinc": "nan (pytorch/pytorch#16317)",
    "trap_masked_sqrt": "nan (pytorch/pytorch#68425)",
    "trap_masked_steep": "nan (pytorch/pytorch#68425)",
    "trap_norm_at_zero": "nan (pytorch/pytorch#2421)",
    "trap_repeated_scatter": "(1, 1, 0) (pytorch/pytorch#473)",
    "trap_saved_by_reference": "raises: what it kept was changed in place, and it says so (pytorch/pytorch#9391)",
    "trap_second_derivative_of_sinc": "nan (pytorch/pytorch#196885)",
    "trap_simple_eigenvector": "nan (pytorch/pytorch#47599)",
    "trap_sinc_near_zero": "five digits (pytorch/pytorch#196885)",
    "trap_square_of_angle": "nan",
    "trap_square_of_sqrt": "nan (pytorch/pytorch#2421)",
    "trap_unread_entry": "nan (pytorch/pytorch#26799)",
    "trap_x_sqrt_x": "nan (pytorch/pytorch#2421)",
}

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # else `xp.zeros(3)` in a case would be single precision

xp = Namespace(array_api_compat.torch, derivative=lambda g, x: func.grad(g)(x))


def to_native(leaf: Any) -> Any:
    return torch.tensor(leaf, dtype=torch.float64)  # copies


def to_numpy(leaf: Any) -> Any:
    # A value that depends on a parameter of the user's own requires a gradient.
    return leaf.detach().numpy() if isinstance(leaf, torch.Tensor) else np.asarray(leaf)


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
