"""Instances that CPython calls by their own machine code, without a method written in Python (PEP 590).

A type with a *vectorcall offset* has, at this offset in each instance, the address of a function

    PyObject *vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag, PyObject *names)

CPython calls it for `instance(...)`; while the address is zero, it calls `__call__`. A class written in Python cannot
have such a function, but it can inherit the memory for the address from `Native`, and `called_natively` sets its flag.
"""

from __future__ import annotations

import ctypes
from typing import Any

from adbench.tape.machine.object_layouts import layouts_are_known

ADDRESS = 16
"""The offset of the address: right after the count of references and the type."""

_HAVE_VECTORCALL, _BASETYPE = 1 << 11, 1 << 10
_TYPE_FLAGS, _TYPE_OFFSET = 168, 56  # offsets of a type's flags and of its vectorcall offset
_MEMBERS, _SSIZE, _READ_ONLY = 72, 19, 1


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


_members = (_Member * 2)(_Member(b"__vectorcalloffset__", _SSIZE, ADDRESS, _READ_ONLY, None))
_slots = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(_members)))
_spec = _Spec(b"adbench.tape.compiled.Native", ADDRESS + 8, 0, _BASETYPE, ctypes.addressof(_slots))


def _native_type() -> Any:
    """A type whose instances have memory for the address; `object` if CPython's layouts are not as expected."""
    if not layouts_are_known():
        return object
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p]
    return make(ctypes.addressof(_spec))


Native: Any = _native_type()


def called_natively(cls: type) -> bool:
    """Let CPython call instances of this subclass of `Native` by their address; returns whether it does."""
    if Native is object or ctypes.c_ssize_t.from_address(id(cls) + _TYPE_OFFSET).value != ADDRESS:
        return False
    flags = ctypes.c_ulong.from_address(id(cls) + _TYPE_FLAGS)
    if flags.value != cls.__flags__:
        return False
    flags.value |= _HAVE_VECTORCALL
    return True


def set_address(instance: Any, address: int) -> None:
    """Let calls of the instance run this function, which must live as long as the instance."""
    ctypes.c_int64.from_address(id(instance) + ADDRESS).value = address
