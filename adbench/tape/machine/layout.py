"""Where CPython keeps the parts of objects, for `scalar_code`: found by looking at objects, never assumed unseen."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from adbench.tape.core.node import Scalar

WORD = 8
COUNT, TYPE, FLOAT = 0, 8, 16
ITEMS_OF_TUPLE, ITEMS_OF_LIST = 24, 24  # the items themselves, and a pointer to them
PLACE, LISTED = 16, 24  # in a reversed list: the index of the next item, and the list
_NUMBERS, _OPERATORS = 12, 36  # in a type: the word that points to its operators on numbers; how many there are


class UnknownLayoutError(Exception):
    """This Python keeps the parts of objects elsewhere."""


def offsets() -> dict[str, int]:
    """Where a `Scalar` keeps its attributes, in bytes.

    Raises UnknownLayoutError if that, or the parts of numbers, tuples and lists, are not where this file says.
    """
    known = sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11)
    if not known or hasattr(sys, "gettotalrefcount") or ctypes.sizeof(ctypes.c_void_p) != WORD:
        raise UnknownLayoutError("machine code for scalars knows CPython 3.11 on 64 bits only")
    node, marks = Scalar(), {name: object() for name in ("adj", "tape", "val")}
    for name, mark in marks.items():
        setattr(node, name, mark)
    words = _words(node, Scalar.__basicsize__ // WORD)
    listed = [node, marks]
    backwards = reversed(listed)
    next(backwards)
    seen = {
        "type": words[TYPE // WORD] == id(Scalar),
        "attributes": set(map(id, marks.values())) <= set(words),
        "numbers": all(ctypes.c_double.from_address(id(x) + FLOAT).value == x for x in (1.5, np.float64(2.5))),
        "tuple": _words((node, marks), 5)[ITEMS_OF_TUPLE // WORD :] == [id(node), id(marks)],
        "list": _pointed(id(listed) + ITEMS_OF_LIST, 2) == [id(node), id(marks)],
        "reversed list": (_words(backwards, 4)[PLACE // WORD], _words(backwards, 4)[LISTED // WORD]) == (0, id(listed)),
    }
    if wrong := [name for name, holds in seen.items() if not holds]:
        raise UnknownLayoutError(f"unknown layout of {', '.join(wrong)}")
    return {name: WORD * words.index(id(mark)) for name, mark in marks.items()}


def _words(thing: object, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(id(thing)))


def _pointed(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(ctypes.c_uint64.from_address(address).value))


def operators_of(owner: type) -> Any:
    """The addresses of a class's operators on numbers, as a writable array. Raises UnknownLayoutError."""
    address = _words(owner, _NUMBERS + 1)[_NUMBERS]
    if not id(owner) < address < id(owner) + 2_000:  # it lies within a class that Python code has made
        raise UnknownLayoutError("unknown layout of classes")
    return (ctypes.c_uint64 * _OPERATORS).from_address(address)


def place_of(name: str) -> int:
    """The place of an operator, such as "mul", in `operators_of`. Raises UnknownLayoutError."""
    filled = [k for k, word in enumerate(operators_of(type("Probe", (), {f"__{name}__": lambda *_: None}))) if word]
    if len(filled) != 1:
        raise UnknownLayoutError(f"unknown place of the operator {name}")
    return filled[0]
