"""pytensor's default mode: simplify and fuse the graph, compile it with numba."""

from collections.abc import Callable
from typing import Any

import pytensor

from adbench import Operator

from . import pytensor as virtual_machine

VARIANT_OF = "pytensor"

MOST_OPERATIONS = 300  # in a graph: numba takes about 0.1 s each, the first time

pytensor.config.mode = "NUMBA"
xp, to_native, NESTED = virtual_machine.xp, virtual_machine.to_native, virtual_machine.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return virtual_machine.compiled(operator, f, args, wrt, "NUMBA", MOST_OPERATIONS)
