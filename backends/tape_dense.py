"""adbench's own reference engine with dense Jacobians: carried forwards whole, every number of them written out."""

from collections.abc import Callable
from typing import Any

from adbench import Operator

from . import tape_compact as compact

VARIANT_OF = "tape"

KNOWN = {**compact.KNOWN, "trap_norm_at_zero": "nan (as HIPS/autograd#151)"}

xp, NESTED = compact.xp, compact.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return compact.prepare(operator, f, args, wrt, mode="dense")
