"""adbench.tape with dense Jacobians: carry whole Jacobians forwards, with every entry stored."""

from collections.abc import Callable
from typing import Any

from adbench import Operator

from . import tape_compact as compact

VARIANT_OF = "tape"
before_timing = compact.before_timing

xp, NESTED = compact.xp, compact.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return compact.prepare(operator, f, args, wrt, mode="dense")
