"""casadi SX written out as C and compiled by the system's compiler."""

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
BATCHED = True

# The C code has no loops: gcc takes 8 s for 8,000 instructions and minutes for a hundred thousand.
MOST_INSTRUCTIONS = 6_000

# Not C++: there the generated code replaces hypot, log1p and expm1 with poor versions.
AS_C = ("-x", "c", "-std=gnu11", "-DGCC_HASCLASSVISIBILITY")

xp, to_native, NESTED = virtual_machine.xp, virtual_machine.to_native, virtual_machine.NESTED


def compiled(function: Any) -> Any:
    length = function.n_instructions()
    if length > MOST_INSTRUCTIONS:
        raise Unsupported(f"{length:,} C instructions, at most {MOST_INSTRUCTIONS:,} compile in seconds; use casadi")
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
