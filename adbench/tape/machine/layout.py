"""Where CPython and numpy keep the parts of objects: found by looking at objects, never assumed unseen.

The layouts of floats and arrays come from the published C interfaces. If they differ, calls of compiled functions go
through ctypes. `check` looks at the rest, for `scalar_code`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import TapeError

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


WORD = 8
COUNT, SIZE = 0, 16
ITEMS_OF_TUPLE, ITEMS_OF_LIST = tuple.__basicsize__, 24  # the items themselves, and a pointer to them
PLACE, LISTED = 16, 24  # in a reversed list: the index of the next item, and the list
STRIDES = 40  # in an array of numpy
NUMBERS, ITEMS = 96, 112  # in a type: where it points to its operators on numbers, and on items
COUNTS = {NUMBERS: 36, ITEMS: 3}


def has_immortals() -> bool:
    """Whether objects such as None have no count (CPython 3.12 and later): the count's half is then negative."""
    return _count(None) < 0


def _count(thing: object) -> int:
    """The count of references, in 32 bits."""
    return ctypes.c_int32.from_address(id(thing) + COUNT).value


class UnknownLayoutError(TapeError):
    """This Python keeps the parts of objects elsewhere."""


def check() -> None:
    """Raise UnknownLayoutError if the parts of numbers, tuples, lists and arrays are not where this file says."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13) or not layouts_are_known():
        raise UnknownLayoutError("machine code for scalars knows CPython 3.11 to 3.13 on 64 bits only")
    marks = [object(), object()]
    pair, array, addresses = tuple(marks), np.ones((2, 3)), [*map(id, marks)]
    backwards = reversed(marks)
    next(backwards)
    counts = [_count(marks[0])]
    held = [marks[0]] * 3
    counts.append(_count(marks[0]))
    seen = {
        "counts": counts[1] - counts[0] == len(held),
        "tuple": _word(pair, SIZE) == 2 and _words(id(pair) + ITEMS_OF_TUPLE, 2) == addresses,
        "list": _word(marks, SIZE) == 2 and _words(_word(marks, ITEMS_OF_LIST), 2) == addresses,
        "reversed list": (_word(backwards, PLACE), _word(backwards, LISTED)) == (0, id(marks)),
        "array": _words(_word(array, STRIDES), 2) == [24, 8],
    }
    if wrong := [name for name, holds in seen.items() if not holds]:
        raise UnknownLayoutError(f"unknown layout of {', '.join(wrong)}")


def offsets(owner: type, names: Sequence[str]) -> dict[str, int]:
    """Where an object of the class keeps its attributes, which are slots. Raises UnknownLayoutError."""
    thing, marks = owner(), [object() for _ in names]
    for name, mark in zip(names, marks, strict=True):
        setattr(thing, name, mark)
    words = _words(id(thing), owner.__basicsize__ // WORD)
    if not set(map(id, marks)) <= set(words):
        raise UnknownLayoutError(f"unknown layout of {owner.__name__}")
    return {name: WORD * words.index(id(mark)) for name, mark in zip(names, marks, strict=True)}


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address))


def _word(thing: object, offset: int) -> int:
    return _words(id(thing) + offset, 1)[0]


def operators_of(owner: type, table: int = NUMBERS) -> Any:
    """The addresses of a class's operators, as a writable array. Raises UnknownLayoutError."""
    address = _word(owner, table)
    if not id(owner) < address < id(owner) + 2_000:  # it lies within a class that Python code has made
        raise UnknownLayoutError("unknown layout of classes")
    return (ctypes.c_uint64 * COUNTS[table]).from_address(address)


def place_of(name: str, table: int = NUMBERS) -> int:
    """The place of an operator, such as "mul", in `operators_of`. Raises UnknownLayoutError."""
    probe = type("Probe", (), {f"__{name}__": lambda *_: None})
    filled = [k for k, word in enumerate(operators_of(probe, table)) if word]
    if len(filled) != 1:
        raise UnknownLayoutError(f"unknown place of the operator {name}")
    return filled[0]
