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

from ._torch_device import PLACE, on_cuda
from ._torch_modes import CONSTANT_FACTORS, OVER_FORWARD, batch_gradient, of_func
from ._torch_modes import NESTED as NESTED
from ._torch_modes import to_numpy as to_numpy

REQUIRES = ("torch", "array-api-compat")
LICENCE = "BSD-3-Clause"
BATCHED = True
THREADED = True
DEVICES = ("cuda",)

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    "trap_atan2_large": "0",
    "trap_cholesky_lower_half": "gradient in the other half: the derivative is symmetrised (pytorch/pytorch#137284)",
    "trap_cholesky_upper_half": "gradient in the half not read (pytorch/pytorch#137284)",
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
    "trap_saved_by_reference": "raises: torch detects that a saved tensor was changed in place (pytorch/pytorch#9391)",
    "trap_second_derivative_of_sinc": "nan (pytorch/pytorch#196885)",
    "trap_simple_eigenvector": "nan (pytorch/pytorch#47599)",
    "trap_sinc_near_zero": "five digits (pytorch/pytorch#196885)",
    "trap_square_of_angle": "nan",
    "trap_square_of_sqrt": "nan (pytorch/pytorch#2421)",
    "trap_unread_entry": "nan (pytorch/pytorch#26799)",
    "trap_x_sqrt_x": "nan (pytorch/pytorch#2421)",
    # Second order: the key ends with the operators that fail.
    "trap_p_norm_zero_entry hessian": "nan: |x|^-½ x at 0, differentiated",
    **{
        f"{case} {OVER_FORWARD}": f"terms are missing: {CONSTANT_FACTORS}"
        for case in (
            *("gaussian_process", "kalman_filter", "log_determinant", "multi_normal"),
            *("robot_arm", "robot_arm_rollout", "solve"),
        )
    },
    "trap_atan2_small hvp_forward_over_forward hvp_reverse_*": "nan",
    f"trap_cumulative_product_zero {OVER_FORWARD}": "0 or nan: its tangent divides by factors (pytorch/pytorch#196701)",
    "trap_det_of_multiple_of_identity hvp hessian hvp_*": f"nan: equal singular values; or 8: {CONSTANT_FACTORS}",
    "trap_det_of_zero hvp_reverse_over_forward": "5e15: a rounding error instead of 0 (as pytorch/pytorch#192540)",
    "trap_det_rank_zero hvp hessian hvp_*_over_reverse": "nan: equal singular values (pytorch/pytorch#192521)",
    "trap_eigenvector_turns hvp_reverse_over_forward": "nan: 0/0 on the diagonal, which the tangent masks",
    "trap_equal_singular_values hvp hessian hvp_*": "nan: 1 / (σ_i² - σ_j²) of equal ones (as pytorch/pytorch#192521)",
    "trap_half_square_norm hvp hessian hvp_*": "0 or nan: the masked slope is differentiated (pytorch/functorch#1097)",
    "trap_large_eigenvalues hvp_reverse_over_forward": "nan: 0/0 on the diagonal, which the tangent masks",
    "trap_large_singular_values hvp hessian hvp_*": "nan: σ_i² - σ_j² is inf - inf (pytorch/pytorch#194705)",
    f"trap_log_abs_det_negative {OVER_FORWARD}": f"0: {CONSTANT_FACTORS}",
    "trap_log_add_exp_far hvp hessian hvp_*": "nan: inf / inf² in the derivative of a weight",
    "trap_masked_angle hvp_reverse_*": "nan",
    "trap_power_mixed hvp hessian hvp_*": "wrong",
    "trap_power_negative_bases hvp_reverse_over_forward": "nan",
    "trap_power_zero hvp_reverse_*": "nan",
    f"trap_solve_unsymmetric {OVER_FORWARD}": f"8 for 30: {CONSTANT_FACTORS}",
    "trap_square_of_abs hvp hessian hvp_*": "0",
    "trap_square_of_singular_values hvp hessian hvp_*": "nan (as pytorch/pytorch#192521)",
    "trap_square_std_of_constant h*": "0 or nan: the masked slope is differentiated (as pytorch/functorch#1097)",
    "trap_zero_to_a_power hvp_reverse_*": "nan",
}

# Relations between calls that eager torch breaks.
LIMITS = {"apart": "where J is the identity, wᵀ J is the tensor w itself"}

torch.set_num_threads(allowed_threads())
torch.set_default_dtype(torch.float64)  # or `xp.zeros(3)` in a case would be single precision

xp = Namespace(array_api_compat.torch, derivative=lambda g, x: func.grad(g)(x))


def to_native(leaf: Any) -> Any:
    return torch.tensor(np.array(leaf, order="C"), dtype=torch.float64, **PLACE)  # torch takes no negative strides


def use_device(name: str) -> Device:
    return on_cuda(name, xp)


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
