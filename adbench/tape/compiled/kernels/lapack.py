"""BLAS and LAPACK through the C pointers that scipy publishes for Cython."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
from scipy.linalg import cython_blas, cython_lapack

from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer, Location
from adbench.tape.machine.simd import Name

_known: set[str] = set()


def address_of(name: str) -> int:
    """The address of a function of BLAS or LAPACK in this process."""
    module: Any = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return int(pointer)


def symbol_of(name: str) -> str:
    """The name by which native code calls the function."""
    symbol = f"adbench_{name}"
    if name not in _known:
        llvm.add_symbol(symbol, address_of(name))
        _known.add(name)
    return symbol


def call_lapack(emission: Emission, name: str, *arguments: str | int | Name) -> None:
    """Write a call with all arguments passed by address, as in Fortran.

    An integer is a constant of four bytes, a single letter a character, a text starting with 0x a double, and any other
    name a pointer. "info" is LAPACK's error number: if it is not 0, the function returns.
    """
    code, module = emission.code, emission.module
    pointers, info = [], None
    for argument in arguments:
        if isinstance(argument, int):
            pointers.append(module.constant(f"i32 {argument}"))
        elif argument == "info":
            info = code.variable("i32")
            code.store("0", info, "i32")
            pointers.append(info)
        elif len(argument) == 1:
            pointers.append(module.constant(f"i8 {ord(argument)}"))
        elif argument.startswith("0x"):
            pointers.append(module.constant(f"double {argument}"))
        else:
            pointers.append(argument)
    kinds = ", ".join(["ptr"] * len(pointers))
    function = module.declare(symbol_of(name), f"void {{}}({kinds})")
    code.do(f"call void {function}({', '.join(f'ptr {p}' for p in pointers)})")
    if info is not None:
        code.leave_if(code.emit(f"icmp ne i32 {code.load(info, 'i32')}, 0"), emission.leave_on_error())


def oriented(emission: Emission, location: Location) -> tuple[Buffer, bool, int]:
    """A matrix in BLAS's terms: (array, whether its rows are BLAS's rows, leading dimension)."""
    array = emission.in_memory(location)
    orientation_of = orientation(array)
    if orientation_of is None:
        return emission.contiguous(array), False, max(array.shape[1], 1)
    return array, *orientation_of


def orientation(array: Buffer) -> tuple[bool, int] | None:
    """Whether the rows of a matrix, or of each in a stack, are BLAS's rows, and the leading dimension.

    None if BLAS cannot read it.
    """
    (rows, columns), (m, n) = array.strides[-2:], array.shape[-2:]
    if columns == 1 and (rows >= n or m == 1):
        return False, max(rows, n)
    if rows == 1 and (columns >= m or n == 1):
        return True, max(columns, m)
    return None
