"""Writes functions of LLVM that work on Python's layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import AdjointCell, Tape
from adbench.tape.core.rule import Rule
from adbench.tape.machine import layout
from adbench.tape.machine.simd import Code, Module, Name, Simd, X
from adbench.tape.values import FLOAT64

C_API = {
    # name: types of the result and of the arguments
    "PyType_GenericAlloc": ("ptr", "ptr", "i64"),
    "PyType_IsSubtype": ("i32", "ptr", "ptr"),
    "PyFloat_FromDouble": ("ptr", "double"),
    "PyTuple_New": ("ptr", "i64"),
    "PyTuple_SetItem": ("i32", "ptr", "i64", "ptr"),
    "PyList_Append": ("i32", "ptr", "ptr"),
    "PyLong_AsDouble": ("double", "ptr"),
    "PyLong_AsLongLongAndOverflow": ("i64", "ptr", "ptr"),
    "PyLong_AsSsize_t": ("i64", "ptr"),
    "PyDict_New": ("ptr",),
    "PyDict_SetItem": ("i32", "ptr", "ptr", "ptr"),
    "PyDict_GetItem": ("ptr", "ptr", "ptr"),
    "PyErr_Clear": ("void",),
    "Py_DecRef": ("void", "ptr"),
    "PyObject_Vectorcall": ("ptr", "ptr", "ptr", "i64", "ptr"),
    "llvm.prefetch.p0": ("void", "ptr", "i32", "i32", "i32"),
}

ZERO = 0.0  # the adjoint of new scalars


class HeldNumber(NamedTuple):
    """An operand as a number, and as the object that holds it."""

    number: X
    object: Name


@cache
def _offsets(owner: type) -> dict[str, int]:
    """Where a value on a tape, or a cell, keeps its attributes. Raises UnknownLayoutError."""
    attributes: dict[type, str] = {Scalar: "adj tape val", Array: "cell reads tape val", AdjointCell: "adj own"}
    return layout.offsets(owner, attributes[owner].split())


class ObjectCode:
    """Writes code that reads Python's objects and calls Python's functions."""

    def __init__(self, module: Module) -> None:
        self.module, self.code = module, Code(module)

    def at(self, thing: Name, offset: Name | int, kind: str = "i8") -> Name:
        """The address so many items of this kind further on: bytes by default."""
        return self.code.emit(f"getelementptr inbounds {kind}, ptr {thing}, i64 {offset}")

    def part(self, thing: Name, offset: Name | int = 0, kind: str = "ptr") -> Name:
        """What the object has there."""
        return self.code.load(self.at(thing, offset), kind)

    def put(self, thing: Name, offset: Name | int, new: Name, kind: str = "ptr") -> None:
        """Replace what the object has there."""
        self.code.store(new, self.at(thing, offset), kind)

    def call(self, name: str, *arguments: Name | int) -> Name:
        """Call a function of C."""
        result, *kinds = C_API[name]
        function = self.module.declare(name, f"{result} {{}}({', '.join(kinds)})")
        return self.call_at(result, function, [f"{kind} {it}" for kind, it in zip(kinds, arguments, strict=True)])

    def call_at(self, result: str, function: Name, arguments: Sequence[str]) -> Name:
        """Call a function with these arguments, which have their types in front; "" if it returns nothing."""
        text = f"call {result} {function}({', '.join(arguments)})"
        if result == "void":
            self.code.do(text)
            return ""
        return self.code.emit(text)

    def same(self, left: Name, right: Name | int, kind: str = "ptr") -> Name:
        """Whether two objects are one, or two integers of this type are equal."""
        return self.code.emit(f"icmp eq {kind} {left}, {right}")

    def exists(self, thing: Name) -> Name:
        """Whether the pointer is not null."""
        return self.code.emit(f"icmp ne ptr {thing}, null")

    def go(self, label: str) -> None:
        """Go on to a block."""
        self.code.do(f"br label %{label}")

    def branch(self, condition: Name, yes: str, no: str) -> None:
        """Go on to one of two blocks."""
        self.code.do(f"br i1 {condition}, label %{yes}, label %{no}")


class Writer(ObjectCode):
    """Writes the function `ptr name(arguments)`, the common cases straight on, all others in the block "leave"."""

    def __init__(self, module: Module, name: str, *kinds: str) -> None:
        super().__init__(module)
        self.numbers = Simd(self.code, 1)
        self.arguments = [f"%a{k}" for k in range(len(kinds))]
        parameters = ", ".join(f"{kind} {it}" for kind, it in zip(kinds, self.arguments, strict=True))
        self._header = f"ptr @{name}({parameters})"

    def end(self, linkage: str = "") -> None:
        """Add the function to the module."""
        self.module.function(linkage + self._header, self.code)

    # Objects

    def literal(self, thing: object) -> Name:
        """A Python object, which lives as long as the code."""
        self.module.environment.append(thing)
        return f"inttoptr (i64 {id(thing)} to ptr)"

    def item(self, thing: Name, place: int) -> Name:
        """An item of a tuple."""
        return self.part(thing, layout.ITEMS_OF_TUPLE + place * layout.WORD)

    def slot(self, thing: Name, name: str, owner: type = Scalar) -> Name:
        """An attribute of a `Scalar`, or of an object of another class; null if it is not set."""
        return self.part(thing, _offsets(owner)[name])

    def put_slot(self, thing: Name, name: str, new: Name) -> None:
        """Set an attribute of a `Scalar`. The caller drops the old value."""
        self.put(thing, _offsets(Scalar)[name], new)

    def own(self, thing: Name) -> Name:
        """A new reference to the object. The count of an immortal object is negative in 32 bits, and stays."""
        emit, kind = self.code.emit, "i32" if layout.has_immortals() else "i64"
        count = self.part(thing, layout.COUNT, kind)
        more = emit(f"add i32 {emit(f'ashr i32 {count}, 31')}, 1") if layout.has_immortals() else 1
        self.put(thing, layout.COUNT, emit(f"add {kind} {count}, {more}"), kind)
        return thing

    def own_literal(self, thing: object) -> Name:
        """A new reference to a Python object."""
        return self.own(self.literal(thing))

    def number(self, thing: Name) -> X:
        """The number in a float."""
        return self.numbers.x(self.part(thing, layout.FLOAT_VALUE, "double"))

    def new_float(self, value: X) -> Name:
        """A new float."""
        return self.call("PyFloat_FromDouble", value.name)

    def prefetch(self, place: Name) -> None:
        """Ask for the memory there."""
        self.call("llvm.prefetch.p0", place, 0, 3, 1)

    # Arrays

    def vector(self, array: Name, axes: int) -> None:
        """The object must be a numpy array of doubles with so many axes."""
        self.require(self.is_a(array, np.ndarray))
        self.require(self.same(self.part(array, layout.NDIM, "i32"), axes, "i32"))
        self.require(self.same(self.part(array, layout.DESCR), self.literal(FLOAT64)))

    def offset(self, array: Name, index: Name) -> tuple[Name, Name]:
        """(place, offset) of an element, by one integer or a tuple of two, within the array and not negative.

        The place is that in a vector, and -1 in a matrix.
        """
        code, (vector, matrix, done) = self.code, self.blocks(3)
        self.branch(self.is_a(index, int), vector, matrix)
        code.begin(vector)
        self.vector(array, axes=1)
        place, of_vector = self._along(array, 0, index)
        end_of_vector = code.block
        self.go(done)
        code.begin(matrix)
        self.require(self.is_a(index, tuple))
        self.require(self.same(self.part(index, layout.SIZE, "i64"), 2, "i64"))
        self.vector(array, axes=2)
        rows, columns = (self._along(array, axis, self.item(index, axis))[1] for axis in range(2))
        of_matrix = code.emit(f"add i64 {rows}, {columns}")
        end_of_matrix = code.block
        self.go(done)
        code.begin(done)
        places = code.emit(f"phi i64 [ {place}, %{end_of_vector} ], [ -1, %{end_of_matrix} ]")
        return places, code.emit(f"phi i64 [ {of_vector}, %{end_of_vector} ], [ {of_matrix}, %{end_of_matrix} ]")

    def _along(self, array: Name, axis: int, index: Name) -> tuple[Name, Name]:
        """(place, offset) of an index along an axis."""
        self.require(self.is_a(index, int))
        place = self.call("PyLong_AsSsize_t", index)  # -1 if it is too large
        length = self.part(self.part(array, layout.DIMENSIONS), axis * layout.WORD, "i64")
        self.require(self.code.emit(f"icmp ult i64 {place}, {length}"))
        stride = self.part(self.part(array, layout.STRIDES), axis * layout.WORD, "i64")
        return place, self.code.emit(f"mul i64 {place}, {stride}")

    def element(self, array: Name, offset: Name) -> Name:
        """The address of the element so many bytes from the first."""
        return self.at(self.part(array, layout.DATA), offset)

    # Cases

    def blocks(self, count: int) -> list[str]:
        """New blocks, not yet written."""
        return [self.code.label() for _ in range(count)]

    def require(self, holds: Name) -> None:
        """Go on if this holds, otherwise to "leave"."""
        self.code.leave_unless(holds, "leave")

    def leave(self) -> None:
        """Begin the block of all other cases."""
        self.code.begin("leave")

    def is_a(self, thing: Name, kind: type) -> Name:
        """Whether the object is of exactly this type."""
        return self.same(self.part(thing, layout.TYPE), self.literal(kind))

    def scalar(self, node: Name) -> HeldNumber:
        """The value of a `Scalar`, which must be a float."""
        val = self.slot(node, "val")
        self.require(self.is_a(val, float))
        return HeldNumber(self.number(val), val)

    def tape(self, thing: Name, owner: type = Scalar) -> Name:
        """The tape of a value, which must be open."""
        tape = self.slot(thing, "tape", owner)
        self.require(self.is_a(tape, Tape))
        return tape

    def constant(self, thing: Name) -> X:
        """The number of an object that must be a float, of Python or numpy, or an integer, except -1."""

        def converted() -> Name:
            self.require(self.is_a(thing, int))
            number = self.numbers.x(self.call("PyLong_AsDouble", thing))
            self.require(number.is_("one", -1.0))  # -1 says that it is too large, or just -1
            return number.name

        is_float = self.numbers.logic("or", self.is_a(thing, float), self.is_a(thing, np.float64))
        return self.numbers.x(self.code.either(is_float, lambda: self.number(thing).name, converted, "double"))

    def recorded_constant(self, held: HeldNumber) -> Name:
        """A new reference to the constant as the record holds it: a float in place of numpy's number."""
        is_numpy = self.is_a(held.object, np.float64)
        return self.code.either(is_numpy, lambda: self.new_float(held.number), lambda: self.own(held.object), "ptr")

    def require_finite(self, value: X) -> None:
        """The number must be finite: for others, `math` raises errors."""
        self.require((value - value).is_("oeq", 0.0))

    def of_two(
        self, x: Name, y: Name, write: Callable[[HeldNumber, HeldNumber, Name, tuple[bool, bool]], None]
    ) -> None:
        """Write the cases of two operands: scalars on one tape, or one of them a scalar and the other a constant.

        `write` gets both operands, the tape, and which of them are scalars.
        """
        code, (first, second, both, with_constant) = self.code, self.blocks(4)
        is_second = self.is_a(y, Scalar)
        self.branch(self.is_a(x, Scalar), first, second)
        code.begin(first)
        a, tape = self.scalar(x), self.tape(x)
        self.branch(is_second, both, with_constant)
        code.begin(both)
        self.require(self.same(tape, self.slot(y, "tape")))
        write(a, self.scalar(y), tape, (True, True))
        code.begin(with_constant)
        write(a, HeldNumber(self.constant(y), y), tape, (True, False))
        code.begin(second)
        self.require(is_second)
        b, tape = self.scalar(y), self.tape(y)
        write(HeldNumber(self.constant(x), x), b, tape, (False, True))

    # Results

    def record(self, rule: Rule, a: Name, b: Name, p: Name, q: Name, val: X, tape: Name) -> None:
        """Return a new scalar, recorded with these cells and with new references to partials."""
        things = [f"ptr {it}" for it in (self.literal(rule), a, b, p, q)]
        self.ret(self.call_at("ptr", "@record", [*things, f"double {val.name}", f"ptr {tape}"]))

    def ret(self, result: Name) -> None:
        """Return an object."""
        self.code.do(f"ret ptr {result}")

    def python(self, function: Callable[..., Any], *arguments: Name) -> None:
        """Return the result of a Python function."""
        space = self.code.emit(f"alloca [{len(arguments)} x ptr]")
        for k, argument in enumerate(arguments):
            self.put(space, k * layout.WORD, argument)
        self.python_with(function, space, len(arguments))

    def python_with(self, function: Callable[..., Any], arguments: Name, count: Name | int) -> None:
        """Return the result of a Python function with so many arguments in memory."""
        self.call("PyErr_Clear")
        self.ret(self.call("PyObject_Vectorcall", self.literal(function), arguments, count, "null"))

    def python_in_order(self, plain: Callable[..., Any], reflected: Callable[..., Any], v: Name, u: Name) -> None:
        """Return plain(v, u) if v is a scalar, also one of a derived class, otherwise reflected(u, v)."""
        first, second = self.blocks(2)
        is_derived = self.call("PyType_IsSubtype", self.part(v, layout.TYPE), self.literal(Scalar))
        self.branch(self.same(is_derived, 0, "i32"), second, first)
        self.code.begin(first)
        self.python(plain, v, u)
        self.code.begin(second)
        self.python(reflected, u, v)
