"""adbench.tape compiled with fast math: sums reordered, products fused, NaN and infinity ignored."""

from collections.abc import Callable
from typing import Any

from adbench import Operator

from . import tape_compiled as exact

REQUIRES = ("llvmlite", "scipy")
VARIANT_OF = "tape"
before_timing = exact.before_timing
BATCHED = True


xp, NESTED, SPARSE_JACOBIAN = exact.xp, exact.NESTED, exact.SPARSE_JACOBIAN


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return exact.prepare(operator, f, args, wrt, fast_math=True)
