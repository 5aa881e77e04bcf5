"""Expressions of arrays, recorded once on symbols: casadi's matrix operations as nodes."""

from collections.abc import Callable
from typing import Any

import casadi

from adbench import Operator

from . import casadi as of_scalars

VARIANT_OF = "casadi"
SPARSE_JACOBIAN = True

# Wrong or failing on these cases, as measured: adbench check -c 'trap_*'. What is mended is removed.
KNOWN = {
    **of_scalars.KNOWN,
    "saddle_nested": "at some points half a digit beyond the function's own noise: rounded in another order",
    "trap_det_of_zero": "raises: det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)",
    "trap_det_rank_zero": "raises: det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)",
    "trap_det_singular": "raises: det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)",
    "trap_log_add_exp_of_nothing": "nan: -inf - -inf (as jax-ml/jax#6811)",
    "trap_log_add_exp_with_nothing": "nan: -inf - -inf (as jax-ml/jax#6811)",
    "trap_power_zero": "nan: 0 · 0^-1 for an exponent 0.0 that is no integer (as jax-ml/jax#14397)",
    "trap_unread_entry": "nan: 0 / 0 in the entry not read (as pytorch/pytorch#26799)",
}

xp, to_native = of_scalars.xp, of_scalars.to_native


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return of_scalars.recorded(operator, f, args, wrt, casadi.MX)
