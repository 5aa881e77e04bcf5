"""casadi MX: record matrix operations once as nodes of a graph."""

from collections.abc import Callable
from typing import Any

import casadi

from adbench import Operator

from . import casadi as of_scalars

VARIANT_OF = "casadi"
SPARSE_JACOBIAN = True
BATCHED = True

xp, to_native, NESTED = of_scalars.xp, of_scalars.to_native, of_scalars.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return of_scalars.recorded(operator, f, args, wrt, casadi.MX)
