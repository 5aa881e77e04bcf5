"""BLAS and LAPACK through the C pointers that scipy publishes for Cython."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from scipy.linalg import cython_blas, cython_lapack

from adbench.tape.compiled.kernels.simd import Name
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import SMALL, Big, Place, Shape, Small, size_of

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


def result_of(emission: Emission, array: Big) -> Place:
    """A result in memory, in registers if it is small."""
    return Small(emission.elements(array), array.shape) if size_of(array.shape) <= SMALL else array


def home_for(emission: Emission, shape: Shape, target: Big | None) -> Big:
    """Memory for a result: where it is wanted, if it can be made there."""
    return target if target is not None and target.is_contiguous else emission.room(shape)


def oriented(emission: Emission, place: Place) -> tuple[Big, bool, int]:
    """A matrix as BLAS takes it: (array, whether its rows are BLAS's rows, distance of its lines)."""
    array = emission.in_memory(place)
    rows, columns = array.strides
    m, n = array.shape
    if columns == 1 and (rows >= n or m == 1):
        return array, False, max(rows, n)
    if rows == 1 and (columns >= m or n == 1):
        return array, True, max(columns, m)
    array = emission.contiguous(array)
    return array, False, max(n, 1)


def at(emission: Emission, array: Big) -> Name:
    """The address of an array's first element."""
    if array.offset == 0:
        return array.base
    return emission.code.emit(f"getelementptr inbounds double, ptr {array.base}, i64 {array.offset}")
