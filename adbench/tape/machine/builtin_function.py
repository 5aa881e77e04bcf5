"""Built-in functions of CPython that run machine code."""

from __future__ import annotations

import ctypes
from typing import Any

TAKES_ONE_OBJECT, TAKES_ARRAY = 0x8, 0x80  # METH_O, METH_FASTCALL


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _definition(name: str, address: int, takes: int) -> int:
    """The address of a new PyMethodDef. It is never freed, because Python reads it up to the end of the process."""
    method = _MethodDef(name.encode(), address, takes, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    return ctypes.addressof(method)


def builtin_function(name: str, address: int, takes: int, owner: Any = None) -> Any:
    """A function; the code gets its owner, which it keeps alive, as first argument."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return new(_definition(name, address, takes), None if owner is None else id(owner), None)


def builtin_method(owner: type, name: str, address: int) -> Any:
    """A method of a class with one argument."""
    new = ctypes.pythonapi.PyDescr_NewMethod
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return new(owner, _definition(name, address, TAKES_ONE_OBJECT))
