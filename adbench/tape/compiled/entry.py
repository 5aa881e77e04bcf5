"""The way in: a function of CPython's own calling convention, written in machine code for one signature.

    PyObject *entry(PyObject *self, PyObject *const *arguments, Py_ssize_t count)

It checks that every argument is what it was compiled for (a float, or an array of this shape and of float64, without
gaps), makes the result's arrays, runs the recordings one after the other until the guards of one hold, and returns the
result. Nothing else is allocated. Whatever is out of the ordinary, it leaves to a function of Python's, with the same
arguments: other types or shapes, no recording whose guards hold, a NaN among the derivatives, an error.

The layouts of float and array objects are those of CPython's and numpy's published C interfaces. They are checked once,
on real objects; where they differ, there is no entry, and calls go through ctypes.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .lanes import Code, Module, Name
from .machine import Loaded, Object
from .places import Shape

TABLE = 64
"""How many recordings an entry tries."""

# Offsets in bytes within CPython's and numpy's objects
_TYPE, _FLOAT_VALUE = 8, 16
_DATA, _NDIM, _DIMENSIONS, _DESCR, _FLAGS = 16, 24, 32, 56, 64
_IN_ORDER = 0x0001 | 0x0100  # C-contiguous and aligned

_NEW_ARRAY = 93  # place of PyArray_New in numpy's table
_DOUBLE = 12  # numpy's number of float64


@functools.cache
def layouts_are_known() -> bool:
    """Whether floats and arrays look in memory as expected here."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.implementation.name != "cpython" or hasattr(sys, "gettotalrefcount"):
        return False
    read = ctypes.c_int64.from_address
    number, array = 1234.5678, np.arange(6.0).reshape(2, 3)
    if read(id(number) + _TYPE).value != id(float):
        return False
    if ctypes.c_double.from_address(id(number) + _FLOAT_VALUE).value != number:
        return False
    single = np.float64(number)
    if ctypes.c_double.from_address(id(single) + _FLOAT_VALUE).value != number:
        return False
    at = id(array)
    dimensions = read(at + _DIMENSIONS).value
    return (
        read(at + _TYPE).value == id(np.ndarray)
        and read(at + _DATA).value == array.ctypes.data
        and ctypes.c_int32.from_address(at + _NDIM).value == 2
        and (read(dimensions).value, read(dimensions + 8).value) == (2, 3)
        and read(at + _DESCR).value == id(np.dtype(np.float64))
        and ctypes.c_int32.from_address(at + _FLAGS).value & _IN_ORDER == _IN_ORDER
        and ctypes.c_int32.from_address(id(array.T) + _FLAGS).value & _IN_ORDER != _IN_ORDER
    )


@functools.cache
def _new_array_address() -> int:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]  # numpy's stubs leave it out

    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = api.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
    return int(ctypes.c_void_p.from_address(int(table) + 8 * _NEW_ARRAY).value or 0)


class Shelf:
    """What entry and Python share, in memory: recordings to try, and the workspaces that are free.

    0        how many recordings
    8        bytes that a workspace must have
    16       the first free workspace; each begins with the address of the next and its own size
    64 + 8k  the address of `run` of recording k; the one that was right last time comes first
    """

    def __init__(self) -> None:
        self.memory = np.zeros(8 + TABLE, np.int64)
        self._blocks: list[Any] = []

    def add(self, run: int, doubles: int) -> None:
        """One more recording."""
        count = int(self.memory[0])
        if count < TABLE:
            self.memory[8 + count] = run
            self.memory[0] = count + 1
        if 8 * doubles > self.memory[1] or not self.memory[2]:
            self.memory[1] = max(8 * doubles, int(self.memory[1]))
            self.grow()

    def grow(self) -> None:
        """One more workspace; smaller ones are forgotten when their turn comes."""
        needed = int(self.memory[1])
        block = np.zeros(needed // 8 + 24)
        start = -(-block.ctypes.data // 64) * 64
        ctypes.c_int64.from_address(start).value = int(self.memory[2])
        ctypes.c_int64.from_address(start + 8).value = needed
        self._blocks.append(block)
        self.memory[2] = start

    def borrow(self) -> int:
        """The address of a free workspace, without its head."""
        while True:
            start = int(self.memory[2])
            if not start:
                self.grow()
                continue
            self.memory[2] = ctypes.c_int64.from_address(start).value
            if ctypes.c_int64.from_address(start + 8).value >= self.memory[1]:
                return start + 64

    def give_back(self, work: int) -> None:
        """The workspace is free again."""
        ctypes.c_int64.from_address(work - 64).value = int(self.memory[2])
        self.memory[2] = work - 64


@dataclass(frozen=True)
class Setting:
    """An argument that is part of the program: an integer, a text, …"""

    value: Any


class _Writer:
    """The entry's code."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.code = Code(module)

    def at(self, pointer: Name, offset: Name | int) -> Name:
        """pointer + offset bytes."""
        return self.code.emit(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}")

    def load(self, kind: str, pointer: Name, offset: Name | int = 0) -> Name:
        """What lies there."""
        return self.code.emit(f"load {kind}, ptr {self.at(pointer, offset)}, align {4 if kind == 'i32' else 8}")

    def unless(self, condition: Name, label: str) -> None:
        """Goes to a label if the condition does not hold."""
        on = self.code.label()
        self.code.do(f"br i1 {condition}, label %{on}, label %{label}")
        self.code.begin(on)

    def check_setting(self, thing: Name, value: Any) -> None:
        """Leaves unless the argument is this object, or an integer of this value."""
        known = self.module.outside(self.code, ("setting", id(value)), Object(value))
        same = self.code.emit(f"icmp eq ptr {thing}, {known}")
        if type(value) is not int or not -(2**62) < value < 2**62:
            self.unless(same, "otherwise")
            return
        look, good = self.code.label(), self.code.label()
        self.code.do(f"br i1 {same}, label %{good}, label %{look}")
        self.code.begin(look)
        int_type = self.module.outside(self.code, "int", int)
        self.unless(self.code.emit(f"icmp eq ptr {self.load('ptr', thing, _TYPE)}, {int_type}"), "otherwise")
        overflow = self.code.variable("i32")
        number = self.call("PyLong_AsLongLongAndOverflow", "ptr, ptr", f"ptr {thing}, ptr {overflow}", "i64")
        self.unless(self.code.emit(f"icmp eq i64 {number}, {value}"), "otherwise")
        self.code.do(f"br label %{good}")
        self.code.begin(good)

    def call(self, name: str, kinds: str, given: str, result: str = "ptr") -> Name:
        """Calls a function of CPython's."""
        function = self.module.declare(name, f"{result} {{}}({kinds})")
        if result == "void":
            self.code.do(f"call void {function}({given})")
            return ""
        return self.code.emit(f"call {result} {function}({given})")


def write_entry(
    inputs: Sequence[Shape | Setting], results: Sequence[Shape], form: str, shelf: Shelf, otherwise: Callable[..., Any]
) -> tuple[str, list[Any]]:
    """The text of a module with `entry`, and what it needs.

    form   how the result's parts are put together: "one" is the part itself, "many" a tuple of all, "value+many" a
           part and a tuple of the rest
    """
    module = Module()
    w = _Writer(module)
    code = w.code
    arguments = code.variable(f"[{max(len(inputs), 1)} x i64]")
    parts = code.variable(f"[{max(len(results), 1)} x i64]")
    float_type = module.outside(code, "float", float)
    double_type = module.outside(code, "double", np.float64)
    array_type = module.outside(code, "array", np.ndarray)
    descr = module.outside(code, "descr", np.dtype(np.float64))
    state = module.outside(code, "shelf", shelf.memory)
    fits = code.emit(f"icmp eq i64 %count, {len(inputs)}")
    w.unless(fits, "otherwise")
    slots = iter(range(len(inputs)))
    for k, shape in enumerate(inputs):
        thing = w.load("ptr", "%given", 8 * k)
        if isinstance(shape, Setting):
            w.check_setting(thing, shape.value)
            continue
        kind = w.load("ptr", thing, _TYPE)
        slot = w.at(arguments, 8 * next(slots))
        if shape == ():
            is_float, is_double = (code.emit(f"icmp eq ptr {kind}, {t}") for t in (float_type, double_type))
            w.unless(code.emit(f"or i1 {is_float}, {is_double}"), "otherwise")
            code.do(f"store double {w.load('double', thing, _FLOAT_VALUE)}, ptr {slot}, align 8")
            continue
        w.unless(code.emit(f"icmp eq ptr {kind}, {array_type}"), "otherwise")
        flags = code.emit(f"and i32 {w.load('i32', thing, _FLAGS)}, {_IN_ORDER}")
        conditions = [
            code.emit(f"icmp eq i32 {w.load('i32', thing, _NDIM)}, {len(shape)}"),
            code.emit(f"icmp eq ptr {w.load('ptr', thing, _DESCR)}, {descr}"),
            code.emit(f"icmp eq i32 {flags}, {_IN_ORDER}"),
        ]
        w.unless(conditions[0], "otherwise")
        dimensions = w.load("ptr", thing, _DIMENSIONS)
        conditions += [
            code.emit(f"icmp eq i64 {w.load('i64', dimensions, 8 * axis)}, {n}") for axis, n in enumerate(shape)
        ]
        total = conditions[1]
        for c in conditions[2:]:
            total = code.emit(f"and i1 {total}, {c}")
        w.unless(total, "otherwise")
        code.do(f"store ptr {w.load('ptr', thing, _DATA)}, ptr {slot}, align 8")
    # A workspace
    free = w.load("ptr", state, 16)
    w.unless(code.emit(f"icmp ne ptr {free}, null"), "otherwise")
    enough = code.emit(f"icmp sge i64 {w.load('i64', free, 8)}, {w.load('i64', state, 8)}")
    w.unless(enough, "otherwise")
    code.do(f"store ptr {w.load('ptr', free)}, ptr {w.at(state, 16)}, align 8")
    work = w.at(free, 64)
    # The result's arrays
    arrays: dict[int, Name] = {}
    new_array = module.outside(code, "new_array", _new_array_address())
    for k, shape in enumerate(results):
        if shape:
            dims = module.constant(f"[{len(shape)} x i64] [{', '.join(f'i64 {n}' for n in shape)}]")
            arrays[k] = code.emit(
                f"call ptr {new_array}(ptr {array_type}, i32 {len(shape)}, ptr {dims}, i32 {_DOUBLE}, "
                f"ptr null, ptr null, i32 0, i32 0, ptr null)"
            )
    for k in arrays:
        w.unless(code.emit(f"icmp ne ptr {arrays[k]}, null"), "no_memory")
        code.do(f"store ptr {w.load('ptr', arrays[k], _DATA)}, ptr {w.at(parts, 8 * k)}, align 8")
    # The recordings
    count = w.load("i64", state, 0)
    head, found, failed, following, front, move = (code.label() for _ in range(6))
    before = code.block
    code.do(f"br label %{head}")
    code.begin(head)
    i = code.fresh()
    place = len(code.lines)
    code.lines.append("")
    w.unless(code.emit(f"icmp slt i64 {i}, {count}"), failed)
    slot = w.at(state, code.emit(f"add i64 {code.emit(f'mul i64 {i}, 8')}, 64"))
    run = code.emit(f"load ptr, ptr {slot}, align 8")
    outcome = code.emit(f"call i32 {run}(ptr {arguments}, ptr {parts}, ptr {work})")
    done = code.emit(f"icmp eq i32 {outcome}, 0")
    again = code.label()
    code.do(f"br i1 {done}, label %{found}, label %{again}")
    code.begin(again)
    code.do(f"br i1 {code.emit(f'icmp eq i32 {outcome}, 1')}, label %{following}, label %{failed}")
    code.begin(following)
    code.lines[place] = f"  {i} = phi i64 [ 0, %{before} ], [ {i}.n, %{following} ]"
    code.do(f"{i}.n = add i64 {i}, 1")
    code.do(f"br label %{head}")
    code.begin(found)
    code.do(f"br i1 {code.emit(f'icmp eq i64 {i}, 0')}, label %{front}, label %{move}")
    code.begin(move)
    code.do(f"store ptr {w.load('ptr', state, 64)}, ptr {slot}, align 8")
    code.do(f"store ptr {run}, ptr {w.at(state, 64)}, align 8")
    code.do(f"br label %{front}")
    code.begin(front)
    give_back = [f"store ptr {{}}, ptr {free}, align 8", f"store ptr {free}, ptr {{}}, align 8"]
    code.do(give_back[0].format(w.load("ptr", state, 16)))
    code.do(give_back[1].format(w.at(state, 16)))
    things = []
    for k in range(len(results)):
        if k in arrays:
            things.append(arrays[k])
        else:
            number = w.load("double", parts, 8 * k)
            things.append(w.call("PyFloat_FromDouble", "double", f"double {number}"))
    code.do(f"ret ptr {_assembled(w, things, form)}")
    code.begin(failed)
    code.do(give_back[0].format(w.load("ptr", state, 16)))
    code.do(give_back[1].format(w.at(state, 16)))
    w.call("PyErr_Clear", "", "", "void")  # what a call into Python raised, the eager engine will raise again
    for array in arrays.values():
        w.call("Py_DecRef", "ptr", f"ptr {array}", "void")
    code.do("br label %otherwise")
    if arrays:
        code.begin("no_memory")  # MemoryError is set; what was made is let go, the workspace is free again
        code.do(give_back[0].format(w.load("ptr", state, 16)))
        code.do(give_back[1].format(w.at(state, 16)))
        for array in arrays.values():
            w.call("Py_DecRef", "ptr", f"ptr {array}", "void")  # of those that are not there too: it looks
        code.do("ret ptr null")
    code.begin("otherwise")
    target = module.outside(code, "otherwise", otherwise)
    answer = w.call("PyObject_Vectorcall", "ptr, ptr, i64, ptr", f"ptr {target}, ptr %given, i64 %count, ptr null")
    code.do(f"ret ptr {answer}")
    module.function("ptr @entry(ptr %self, ptr %given, i64 %count)", code)
    return module.text(), module.environment


def _assembled(w: _Writer, things: Sequence[Name], form: str) -> Name:
    """The result from its parts. The tuple takes the references over."""
    if form == "one":
        return things[0]
    if form == "value+many":
        rest = _tuple(w, things[1:])
        return _tuple(w, [things[0], rest])
    return _tuple(w, things)


def _tuple(w: _Writer, things: Sequence[Name]) -> Name:
    made = w.call("PyTuple_New", "i64", f"i64 {len(things)}")
    for k, thing in enumerate(things):
        w.call("PyTuple_SetItem", "ptr, i64, ptr", f"ptr {made}, i64 {k}, ptr {thing}", "i32")
    return made


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x0080


_definitions: list[_MethodDef] = []
"""Never freed: a function that is freed looks at its definition."""


class Entry:
    """A built-in function for one signature; it keeps its owner alive, and with that the code that it runs."""

    def __init__(
        self,
        inputs: Sequence[Shape | Setting],
        results: Sequence[Shape],
        form: str,
        shelf: Shelf,
        otherwise: Callable[..., Any],
        owner: Any,
    ) -> None:
        text, environment = write_entry(inputs, results, form, shelf, otherwise)
        self._loaded = Loaded(text, environment, level=1)
        definition = _MethodDef(b"compiled", self._loaded.address("entry"), _FASTCALL, None)
        _definitions.append(definition)
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        self.call: Callable[..., Any] = new(ctypes.addressof(definition), owner, None)
        self._place = next(k for k, thing in enumerate(environment) if thing is otherwise)

    def pass_on(self, otherwise: Callable[..., Any]) -> None:
        """From here on what this entry does not answer goes to another function."""
        self._loaded.replace(self._place, otherwise)
