"""autograd: record numpy operations at every call."""

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy
from autograd.misc.flatten import flatten

from adbench import Namespace, Operator, Unsupported, on_active

REQUIRES = ("autograd",)
THREADED = True  # in numpy's BLAS
LICENCE = "MIT"

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    "trap_atan2_large": "raises",
    "trap_atan2_small": "nan",
    "trap_broadcast_to": "raises: broadcast_to with more axes has no derivative (HIPS/autograd#384)",
    "trap_broadcast_where": "raises: the derivative of where does not sum over broadcast axes",
    "trap_cholesky_lower_half": "raises: the derivative of cholesky lacks the option `upper`",
    "trap_cholesky_upper_half": "gradient in the half not read",
    "trap_clip_difference": "0",
    "trap_det_of_zero": "raises (HIPS/autograd#549)",
    "trap_det_rank_zero": "raises (HIPS/autograd#549)",
    "trap_det_singular": "raises (HIPS/autograd#549)",
    "trap_equal_eigenvalues": "nan",
    "trap_equal_singular_values": "nan: 1 / (σ_i² - σ_j²) between equal singular values",
    "trap_equality_branch": "0",
    "trap_exp_of_log": "nan (HIPS/autograd#151)",
    "trap_half_square_hypot": "nan",
    "trap_half_square_root": "nan (HIPS/autograd#151)",
    "trap_large_singular_values": "nan: σ_i² - σ_j² is inf - inf (as pytorch/pytorch#194705)",
    "trap_log1p_exp_overflow": "nan",
    "trap_log_add_exp_equal_large": "few digits",
    "trap_log_add_exp_of_nothing": "nan",
    "trap_log_add_exp_with_nothing": "nan",
    "trap_logistic_far": "0",
    "trap_logistic_tail": "nan",
    "trap_masked_angle": "nan",
    "trap_masked_count_log": "nan",
    "trap_masked_infinity": "nan",
    "trap_masked_overflow": "nan",
    "trap_masked_sinc": "nan",
    "trap_masked_sqrt": "raises: x^-½ of Python's float at -1 is complex (as jax-ml/jax#2630)",
    "trap_masked_steep": "raises: x^-½ of Python's float 0 (as jax-ml/jax#5798)",
    "trap_norm_at_zero": "nan (HIPS/autograd#151)",
    "trap_prod_one_zero": "nan: product / x at x = 0 (HIPS/autograd#93)",
    "trap_prod_two_zeros": "nan (HIPS/autograd#93)",
    "trap_prod_zero": "nan (HIPS/autograd#93)",
    "trap_quotient_large": "1e-200",
    "trap_saved_by_reference": "0",
    "trap_second_derivative_of_sinc": "nan",
    "trap_simple_eigenvector": "nan",
    "trap_sinc_near_zero": "five digits",
    "trap_square_of_angle": "nan",
    "trap_square_of_singular_values": "nan",
    "trap_square_of_sqrt": "raises: x^-½ of Python's float 0 (HIPS/autograd#151)",
    "trap_square_std_of_constant": "nan",
    "trap_std_of_constant": "nan",
    "trap_unread_entry": "nan",
    "trap_x_sqrt_x": "raises: x^-½ of Python's float 0 (HIPS/autograd#151)",
    # Second order: the key ends with the operators that fail.
    "trap_power_mixed hvp hessian hvp_*": "wrong (as jax-ml/jax#12033)",
    "trap_power_three_halves hvp hessian hvp_*": "raises: x^-½ of Python's float 0 (as HIPS/autograd#581)",
    "trap_square_of_abs hvp hessian hvp_*": "0",
}

# autograd has derivatives for numpy's older names only: `cumsum`, not `cumulative_sum`.
xp = Namespace(
    autograd.numpy,
    prefer_older=True,
    derivative=lambda g, x: autograd.grad(g)(x),
    linalg={"diagonal": lambda x: autograd.numpy.diagonal(x, axis1=-1, axis2=-2)},
    matrix_transpose=lambda x: autograd.numpy.swapaxes(x, -1, -2),
)


def hvp(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """∇ (∇g(x) · v), reverse over reverse: autograd's hessian_vector_product for nested x."""
    direction, _ = flatten(v)
    return autograd.grad(lambda at: autograd.numpy.dot(flatten(autograd.grad(g)(at))[0], direction))(x)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: autograd.grad(g)(x),
    "value_and_gradient": lambda g, x: autograd.value_and_grad(g)(x),
    "jvp": lambda g, x, v: autograd.make_jvp(g)(x)(v)[1],
    "vjp": lambda g, x, w: autograd.make_vjp(g)(x)[0](w),
    "hvp": hvp,
}
NESTED = {mode: OPERATIONS[mode] for mode in ("jvp", "vjp")}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"autograd has no {operator} of several arguments")
    return on_active(OPERATIONS[operator], operator, f, wrt)
