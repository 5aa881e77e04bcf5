"""Expressions of scalars, written by casadi as C, compiled by the system's compiler and loaded again."""

from collections.abc import Callable
from typing import Any

import casadi

from adbench import Operator, Unsupported, phase
from adbench.suite.native.build import shared_object

from . import casadi as virtual_machine

VARIANT_OF = "casadi"
BUILDS = True
DEBIAN = ("g++",)
SPARSE_JACOBIAN = True

KNOWN = virtual_machine.KNOWN

# A program without loops: the compiler's time grows faster than its length, to minutes at a hundred thousand.
MOST_INSTRUCTIONS = 5_000

xp, to_native = virtual_machine.xp, virtual_machine.to_native


def compiled(function: Any) -> Any:
    length = function.n_instructions()
    if length > MOST_INSTRUCTIONS:
        raise Unsupported(f"{length:,} instructions in one C function take the compiler minutes")
    with phase("lower"):
        writer = casadi.CodeGenerator(function.name(), {"cpp": True})
        writer.add(function)
        text = writer.dump()
    path = shared_object(text, ("-DGCC_HASCLASSVISIBILITY",), (), (), f"casadi's C, {length:,} instructions")
    return casadi.external(function.name(), str(path))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator in ("hvp", "hessian"):
        raise Unsupported(f"no program is built for {operator}: casadi's virtual machine has it")
    return virtual_machine.recorded(operator, f, args, wrt, casadi.SX, compiled)
