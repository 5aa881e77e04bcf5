"""casadi MX: record matrix operations once as nodes of a graph."""

from collections.abc import Callable
from typing import Any

import casadi

from adbench import Operator

from . import casadi as of_scalars

VARIANT_OF = "casadi"
SPARSE_JACOBIAN = True
BATCHED = True

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    **of_scalars.KNOWN,
    "saddle_nested": "half a digit beyond the function's noise at some points: rounded in another order",
    "trap_det_of_zero": "raises",
    "trap_det_rank_zero": "raises",
    "trap_det_singular": "raises",
    "trap_log_add_exp_of_nothing": "nan",
    "trap_log_add_exp_with_nothing": "nan",
    "trap_power_zero": "nan",
    "trap_unread_entry": "nan",
    # Second order: the key ends with the operators that fail.
    "trap_half_square_norm hvp_forward_over_forward": "nan: 0 / 0, where sqrt is vertical (casadi/casadi#3898)",
}

xp, to_native, NESTED = of_scalars.xp, of_scalars.to_native, of_scalars.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return of_scalars.recorded(operator, f, args, wrt, casadi.MX)
