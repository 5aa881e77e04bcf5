"""Expressions of scalars, written by casadi as C, compiled by the system's compiler and loaded again."""

from collections.abc import Callable
from typing import Any

import casadi

from adbench import Operator, Unsupported, phase
from adbench.execution.native.build import shared_object

from . import casadi as virtual_machine

VARIANT_OF = "casadi"
BUILDS = True
DEBIAN = ("g++",)
SPARSE_JACOBIAN = True

KNOWN = {
    **virtual_machine.KNOWN,
    "solve": "at some points half a digit beyond the function's own noise: the compiler fuses products with sums",
}

# A program without loops: 8,000 instructions take gcc 8 s, a hundred thousand minutes.
MOST_INSTRUCTIONS = 6_000

# Not as C++, which the text could be as well: there it takes hypot, log1p and expm1 to be missing and has poor ones.
AS_C = ("-x", "c", "-std=gnu11", "-DGCC_HASCLASSVISIBILITY")

xp, to_native, NESTED = virtual_machine.xp, virtual_machine.to_native, virtual_machine.NESTED


def compiled(function: Any) -> Any:
    length = function.n_instructions()
    if length > MOST_INSTRUCTIONS:
        raise Unsupported(f"{length:,} instructions are too many in one C function: the compiler's time grows faster")
    with phase("lower"):
        writer = casadi.CodeGenerator(function.name())
        writer.add(function)
        text = writer.dump()
    path = shared_object(text, AS_C, (), AS_C, f"casadi's C, {length:,} instructions")
    return casadi.external(function.name(), str(path))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return virtual_machine.recorded(operator, f, args, wrt, casadi.SX, compiled)
