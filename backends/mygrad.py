"""MyGrad: record tensors on numpy arrays at every call and sweep back."""

from collections.abc import Callable
from typing import Any

import mygrad
import numpy as np

from adbench import Namespace, Operator, Unsupported
from adbench.catalog.discovery import first_line
from adbench.model import tree

REQUIRES = ("mygrad",)
THREADED = True  # in numpy's BLAS
LICENCE = "MIT"

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    "trap_atan2_large": "0",
    "trap_atan2_small": "nan",
    "trap_clip_difference": "0",
    "trap_equality_branch": "0",
    "trap_exp_of_log": "nan",
    "trap_half_square_norm": "nan: 0/0 in the derivative of the norm, even with nan_to_num (rsokl/MyGrad#378)",
    "trap_half_square_root": "nan",
    "trap_log1p_exp_overflow": "nan",
    "trap_log_add_exp_of_nothing": "nan",
    "trap_log_add_exp_with_nothing": "nan",
    "trap_logistic_far": "0",
    "trap_logistic_tail": "nan",
    "trap_masked_angle": "nan",
    "trap_masked_count_log": "nan",
    "trap_masked_infinity": "nan",
    "trap_masked_overflow": "nan",
    "trap_masked_sinc": "nan",
    "trap_masked_sqrt": "nan",
    "trap_masked_steep": "nan",
    "trap_maximum_tie_sums_to_one": "0: both slopes of a tie are 0",
    "trap_norm_at_zero": "nan: 0/0 in the derivative of the norm, even with nan_to_num (rsokl/MyGrad#378)",
    "trap_quotient_large": "1e-200",
    "trap_relu_difference": "0: both slopes of a tie are 0",
    "trap_saved_by_reference": "0",
    "trap_sinc_near_zero": "five digits",
    "trap_square_of_angle": "0: MyGrad sets the derivative of arccos to 0 at ±1, where it is infinite",
    "trap_square_of_sqrt": "nan",
    "trap_square_std_of_constant": "nan",
    "trap_std_of_constant": "nan",
    "trap_unread_entry": "nan",
    "trap_x_sqrt_x": "nan",
}

mygrad.turn_memory_guarding_off()  # for speed, as the documentation advises for tested programs

NESTED = "mygrad returns gradients as plain arrays, which cannot be differentiated again"

# mygrad's zeros and ones are single precision; numpy's are constants too.
PLAIN = {name: getattr(np, name) for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "asarray")}


def derivative(*_: Any) -> Any:
    raise Unsupported(NESTED)


xp = Namespace(
    mygrad,
    linalg={"vector_norm": mygrad.linalg.norm},
    derivative=derivative,
    matrix_transpose=lambda x: mygrad.swapaxes(x, -1, -2),
    stop_gradient=lambda x: mygrad.tensor(x, constant=True),
    **PLAIN,
)


def pull_back(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], w: Any) -> tuple[Any, Any]:
    """(f(x), wᵀ J)."""
    marked = list(args)
    for i in wrt:
        marked[i] = tree.map_leaves(lambda leaf: mygrad.tensor(leaf, copy=False), args[i])
    try:
        value = f(*marked)
    except (TypeError, ValueError) as error:  # how mygrad reports a missing derivative
        if "non-constant" not in str(error) and "Tensor data" not in str(error):
            raise
        raise Unsupported(f"mygrad: {first_line(error)}") from error
    if isinstance(value, mygrad.Tensor):
        value.backward(w)

    def slope(leaf: Any) -> Any:  # None for an input that does not affect the value
        return np.zeros(leaf.shape) if leaf.grad is None else leaf.grad

    return np.asarray(value), tuple(tree.map_leaves(slope, marked[i]) for i in wrt)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        plain: Callable[..., Any] = mygrad.no_autodiff(f, to_numpy=True)
        return plain
    if operator == "gradient":
        return lambda *args: pull_back(f, args, wrt, None)[1]
    if operator == "value_and_gradient":
        return lambda *args: pull_back(f, args, wrt, None)
    if operator == "vjp":
        return lambda *args: pull_back(f, args[:-1], wrt, args[-1])[1]
    raise Unsupported(f"mygrad has no {operator}: it has first-order reverse mode only")
