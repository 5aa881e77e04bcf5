"""The memory layout of CPython's floats and numpy's arrays.

The layouts come from the published C interfaces and are checked once, on real objects. If they differ, there is no
entry, and calls go through ctypes.
"""

from __future__ import annotations

import ctypes
import functools
import sys

import numpy as np

# Offsets in bytes within CPython's and numpy's objects
TYPE, FLOAT_VALUE = 8, 16
DATA, NDIM, DIMENSIONS, DESCR, FLAGS = 16, 24, 32, 56, 64
IN_ORDER = 0x0001 | 0x0100  # C-contiguous and aligned

_NEW_ARRAY = 93  # index of PyArray_New in numpy's table
DOUBLE = 12  # numpy's number of float64


@functools.cache
def layouts_are_known() -> bool:
    """Whether floats and arrays have the expected layout."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.implementation.name != "cpython" or hasattr(sys, "gettotalrefcount"):
        return False
    read = ctypes.c_int64.from_address
    number, array = 1234.5678, np.arange(6.0).reshape(2, 3)
    if read(id(number) + TYPE).value != id(float):
        return False
    if ctypes.c_double.from_address(id(number) + FLOAT_VALUE).value != number:
        return False
    single = np.float64(number)
    if ctypes.c_double.from_address(id(single) + FLOAT_VALUE).value != number:
        return False
    at = id(array)
    dimensions = read(at + DIMENSIONS).value
    return (
        read(at + TYPE).value == id(np.ndarray)
        and read(at + DATA).value == array.ctypes.data
        and ctypes.c_int32.from_address(at + NDIM).value == 2
        and (read(dimensions).value, read(dimensions + 8).value) == (2, 3)
        and read(at + DESCR).value == id(np.dtype(np.float64))
        and ctypes.c_int32.from_address(at + FLAGS).value & IN_ORDER == IN_ORDER
        and ctypes.c_int32.from_address(id(array.T) + FLAGS).value & IN_ORDER != IN_ORDER
    )


@functools.cache
def new_array_address() -> int:
    """The address of numpy's PyArray_New."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]  # numpy's stubs leave it out

    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = api.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
    return int(ctypes.c_void_p.from_address(int(table) + 8 * _NEW_ARRAY).value or 0)
