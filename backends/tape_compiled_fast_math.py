"""adbench's own reference engine, compiled with fast math: sums reordered, products fused, NaN not seen to."""

from collections.abc import Callable
from typing import Any

from adbench import Operator

from . import tape_compiled as exact

VARIANT_OF = "tape"

_NAN = "nan: 0 · inf, which fast math does not see to"

# As measured: adbench check -c 'trap_*'.
# Of `projectile` it is a relation: with a NaN for an angle the comparison that ends the flight may come out either way.
KNOWN = {
    "projectile": "a number: an input is NaN, which fast math does not see to where the flight ends",
    "trap_atan2_large": "0: a quotient reordered, and x² + y² overflows",
    "trap_exp_of_log": _NAN,
    "trap_log_add_exp_with_nothing": "3e-323: infinities are taken not to be there",
    "trap_logistic_tail": _NAN,
    "trap_masked_sinc": _NAN,
    "trap_norm_at_zero": _NAN,
    "trap_std_of_constant": _NAN,
    "trap_x_sqrt_x": _NAN,
}

xp, NESTED = exact.xp, exact.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return exact.prepare(operator, f, args, wrt, fast_math=True)
