"""Expressions of arrays, recorded once on symbols: casadi's matrix operations as nodes."""

from collections.abc import Callable
from typing import Any

import casadi

from adbench import Operator

from . import casadi as of_scalars

VARIANT_OF = "casadi"
SPARSE_JACOBIAN = True

KNOWN: dict[str, str] = {}

xp, to_native = of_scalars.xp, of_scalars.to_native


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return of_scalars.recorded(operator, f, args, wrt, casadi.MX)
