"""adbench.tape compiled with fast math: sums reordered, products fused, NaN and infinity ignored."""

from collections.abc import Callable
from typing import Any

from adbench import Operator

from . import tape_compiled as exact

REQUIRES = ("llvmlite", "scipy")
VARIANT_OF = "tape"
BATCHED = True

_NAN = "nan: 0 · inf, which fast math ignores"

# `projectile` breaks a relation: with a NaN angle the comparison that ends the flight may go either way.
KNOWN = {
    "projectile": "a number for a NaN input: fast math ignores NaN where the flight ends",
    "trap_atan2_large": "0: a quotient reordered, and x² + y² overflows",
    "trap_exp_of_log": _NAN,
    "trap_log_add_exp_with_nothing": "3e-323: fast math assumes that there are no infinities",
    "trap_logistic_tail": _NAN,
    "trap_masked_sinc": _NAN,
    "trap_norm_at_zero": _NAN,
    "trap_std_of_constant": _NAN,
    "trap_x_sqrt_x": _NAN,
}

xp, NESTED, SPARSE_JACOBIAN = exact.xp, exact.NESTED, exact.SPARSE_JACOBIAN


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return exact.prepare(operator, f, args, wrt, fast_math=True)
