"""BLAS and LAPACK through the C pointers that scipy publishes for Cython."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from scipy.linalg import cython_blas, cython_lapack

from .emission import Emission
from .lanes import Name

_known: set[str] = set()


def address_of(name: str) -> int:
    """Where a function of BLAS or LAPACK is in this process."""
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
    """The name under which native code calls it."""
    symbol = f"adbench_{name}"
    if name not in _known:
        llvm.add_symbol(symbol, address_of(name))
        _known.add(name)
    return symbol


def call_lapack(emission: Emission, name: str, arguments: Sequence[str | int | Name]) -> None:
    """Writes a call. All arguments are handed over by address, as in Fortran.

    An integer is a constant of four bytes, a single letter a character, a text that begins with 0x a double, any other
    name a pointer. "info" stands for the number that LAPACK reports errors in: if it is not 0, the function is left.
    """
    code, module = emission.code, emission.module
    given, info = [], None
    for argument in arguments:
        if isinstance(argument, int):
            given.append(module.constant(f"i32 {argument}"))
        elif argument == "info":
            info = code.variable("i32")
            code.do(f"store i32 0, ptr {info}, align 4")
            given.append(info)
        elif len(argument) == 1:
            given.append(module.constant(f"i8 {ord(argument)}"))
        elif argument.startswith("0x"):
            given.append(module.constant(f"double {argument}"))
        else:
            given.append(argument)
    kinds = ", ".join(["ptr"] * len(given))
    function = module.declare(symbol_of(name), f"void {{}}({kinds})")
    code.do(f"call void {function}({', '.join(f'ptr {g}' for g in given)})")
    if info is not None:
        number = code.emit(f"load i32, ptr {info}, align 4")
        failed = code.emit(f"icmp ne i32 {number}, 0")
        went_well, bad = code.label(), emission.leave_on_error()
        code.do(f"br i1 {failed}, label %{bad}, label %{went_well}")
        code.begin(went_well)
