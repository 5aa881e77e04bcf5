"""Eager: records tensor operations anew at every call, in double precision."""

from collections.abc import Callable
from typing import Any

import array_api_compat.torch
import optree
import torch
from torch import func

from adbench import Namespace, Operator, on_active

REQUIRES = ("torch", "array-api-compat")
LICENCE = "BSD-3-Clause"

# Wrong or failing on these cases, as measured: adbench check -c 'trap_*'. What is mended is removed.
KNOWN = {
    "trap_atan2_large": "0: x² + y² overflows in the derivative of atan2",
    "trap_cholesky_lower_half": "a share for the other half: the derivative is symmetrised (pytorch/pytorch#137284)",
    "trap_cholesky_upper_half": "a share for the half not read: the derivative is symmetrised (pytorch/pytorch#137284)",
    "trap_clip_difference": "2: a slope of 1 at the bounds (pytorch/pytorch#7049)",
    "trap_det_singular": "0, silently: det · A⁻ᵀ where det = 0 (pytorch/pytorch#104675)",
    "trap_equal_eigenvalues": "nan: 1 / (w_i - w_j) between equal eigenvalues (pytorch/pytorch#47599)",
    "trap_equality_branch": "0: the derivative of the branch taken, a constant (EnzymeAD/Enzyme.jl#1601)",
    "trap_exp_of_log": "nan: 0 · inf, where log has its pole (pytorch/pytorch#4132)",
    "trap_half_square_hypot": "nan: 0/0 in the derivative of hypot (as pytorch/pytorch#2421)",
    "trap_half_square_root": "nan: 0 · inf, where sqrt is vertical (pytorch/pytorch#2421)",
    "trap_log1p_exp_overflow": "nan: inf / inf, for exp overflows in the value too (pytorch/pytorch#17455)",
    "trap_log_add_exp_of_nothing": "nan: -inf - -inf (pytorch/pytorch#49724)",
    "trap_log_add_exp_with_nothing": "nan: -inf - -inf (pytorch/pytorch#49724)",
    "trap_logistic_far": "0: (1 + exp x)² overflows in the derivative of the quotient (as jax-ml/jax#40825)",
    "trap_logistic_tail": "nan: inf · 0, for exp overflows",
    "trap_masked_count_log": "nan: 0 · inf at the masked log (as stan-dev/math#2494)",
    "trap_masked_infinity": "nan: 0 · inf in the branch not taken (pytorch/pytorch#68425)",
    "trap_masked_overflow": "nan: 0 · inf in the branch not taken (pytorch/pytorch#68425)",
    "trap_masked_sinc": "nan: 0/0 in the branch not taken (pytorch/pytorch#16317)",
    "trap_masked_sqrt": "nan: 0 · nan in the branch not taken (pytorch/pytorch#68425)",
    "trap_masked_steep": "nan: 0 · inf in the branch not taken (pytorch/pytorch#68425)",
    "trap_norm_at_zero": "nan: 0 · inf, where sqrt is vertical (pytorch/pytorch#2421)",
    "trap_repeated_scatter": "(1, 1, 0): what was overwritten gets a share all the same (pytorch/pytorch#473)",
    "trap_saved_by_reference": "raises: what it kept was changed in place, and it says so (pytorch/pytorch#9391)",
    "trap_second_derivative_of_sinc": "nan: 0/0 in the second derivative of sinc (pytorch/pytorch#196885)",
    "trap_simple_eigenvector": "nan: eigenvalues of other eigenvectors are equal (pytorch/pytorch#47599)",
    "trap_sinc_near_zero": "five digits: cos - sin x / x cancels (pytorch/pytorch#196885)",
    "trap_square_of_angle": "nan: 0 · inf, where acos is vertical (as casadi/casadi#3598)",
    "trap_square_of_sqrt": "nan: 0 · inf, where sqrt is vertical (pytorch/pytorch#2421)",
    "trap_unread_entry": "nan: 0/0 in the entry not read (pytorch/pytorch#26799)",
    "trap_x_sqrt_x": "nan: 0 · inf, where sqrt is vertical (pytorch/pytorch#2421)",
}

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # else `xp.zeros(3)` in a case would be single precision

xp = Namespace(array_api_compat.torch, derivative=lambda g, x: func.grad(g)(x))


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
