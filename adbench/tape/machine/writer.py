"""Writes functions of LLVM that work on Python's objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import Cell, Tape
from adbench.tape.core.rule import Rule
from adbench.tape.machine import layout
from adbench.tape.machine import object_layouts as objects
from adbench.tape.values import FLOAT64

POINTER, NUMBER = ir.PointerType(), ir.DoubleType()
INT, SHORT, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)

C_API: dict[str, tuple[Any, ...]] = {
    # name: types of the result and of the arguments
    "PyType_GenericAlloc": (POINTER, POINTER, INT),
    "llvm.prefetch.p0": (ir.VoidType(), POINTER, SHORT, SHORT, SHORT),
    "PyType_IsSubtype": (SHORT, POINTER, POINTER),
    "PyFloat_FromDouble": (POINTER, NUMBER),
    "PyTuple_New": (POINTER, INT),
    "PyList_Append": (SHORT, POINTER, POINTER),
    "PyLong_AsDouble": (NUMBER, POINTER),
    "PyLong_AsSsize_t": (INT, POINTER),
    "PyDict_New": (POINTER,),
    "PyDict_SetItem": (SHORT, POINTER, POINTER, POINTER),
    "PyDict_GetItem": (POINTER, POINTER, POINTER),
    "PyErr_Clear": (ir.VoidType(),),
    "Py_DecRef": (ir.VoidType(), POINTER),
    "PyObject_Vectorcall": (POINTER, POINTER, POINTER, INT, POINTER),
}
_OF_ONE = "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 sin sinh sqrt"
LIBRARY: dict[str, tuple[Any, ...]] = {
    # functions of C that give what Python's `math` gives, where that raises no error; its `hypot` has its own code
    **dict.fromkeys((*_OF_ONE.split(), "tan", "tanh", "llvm.fabs.f64"), (NUMBER, NUMBER)),
    **dict.fromkeys(("atan2", "pow"), (NUMBER, NUMBER, NUMBER)),
}


NULL, NO = ir.Constant(POINTER, None), ir.Constant(SHORT, 0)
ZERO = 0.0  # the adjoint of new scalars


class Operand(NamedTuple):
    """An operand as a number, and as the object that holds it."""

    number: Any
    object: Any


def number(value: float) -> Any:
    """A constant of the code."""
    return ir.Constant(NUMBER, value)


def integer(value: int) -> Any:
    """A constant of the code."""
    return ir.Constant(INT, value)


class Module:
    """A module of LLVM, the objects whose addresses it has, and where attributes lie. Raises UnknownLayoutError."""

    def __init__(self) -> None:
        layout.check()
        self.offsets: dict[Any, dict[str, int]] = {
            Scalar: layout.offsets(Scalar, ("adj", "tape", "val")),
            Array: layout.offsets(Array, ("cell", "reads", "tape", "val")),
            Cell: layout.offsets(Cell, ("adj", "own")),
        }
        self.llvm = ir.Module()
        self.kept: list[object] = []
        for name, (result, *arguments) in (C_API | LIBRARY).items():
            ir.Function(self.llvm, ir.FunctionType(result, arguments), name)


class Writer:
    """Writes one function, the common cases straight on; `leave` is the block for all others."""

    build: Any

    def __init__(self, module: Module, name: str, *arguments: Any) -> None:
        self.module = module
        self.made = ir.Function(module.llvm, ir.FunctionType(POINTER, arguments), name)
        self.build = ir.IRBuilder(self.made.append_basic_block())
        self.leave = self.made.append_basic_block()

    # Objects

    def literal(self, thing: object) -> Any:
        """A Python object, which lives as long as the code."""
        self.module.kept.append(thing)
        return integer(id(thing)).inttoptr(POINTER)

    def part(self, thing: Any, offset: int, kind: Any = POINTER) -> Any:
        """What the object has there."""
        return self.build.load(self._place(thing, offset), typ=kind)

    def item(self, thing: Any, place: int) -> Any:
        """An item of a tuple."""
        return self.part(thing, layout.ITEMS_OF_TUPLE + place * layout.WORD)

    def put(self, thing: Any, offset: int, new: Any) -> None:
        """Replace what the object has there."""
        self.build.store(new, self._place(thing, offset))

    def _place(self, thing: Any, offset: int) -> Any:
        return self.build.gep(thing, [integer(offset)], source_etype=BYTE)

    def slot(self, thing: Any, name: str, owner: type = Scalar) -> Any:
        """An attribute of a `Scalar`, or of an object of another class; null if it is not set."""
        return self.part(thing, self.module.offsets[owner][name])

    def put_slot(self, thing: Any, name: str, new: Any, owner: type = Scalar) -> None:
        """Set an attribute. The caller drops the old value."""
        self.put(thing, self.module.offsets[owner][name], new)

    def own(self, thing: Any) -> Any:
        """A new reference to the object. The count of an immortal object is negative in 32 bits, and stays."""
        if layout.has_immortals():
            count = self.part(thing, layout.COUNT, SHORT)
            more = self.build.add(self.build.ashr(count, ir.Constant(SHORT, 31)), ir.Constant(SHORT, 1))
        else:
            count, more = self.part(thing, layout.COUNT, INT), integer(1)
        self.put(thing, layout.COUNT, self.build.add(count, more))
        return thing

    def own_literal(self, thing: object) -> Any:
        """A new reference to a Python object."""
        return self.own(self.literal(thing))

    def new_float(self, value: Any) -> Any:
        """A new float."""
        return self.call("PyFloat_FromDouble", value)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the module, or of C."""
        return self.build.call(self.module.llvm.get_global(name), arguments)

    def prefetch(self, place: Any) -> None:
        """Ask for the memory there."""
        self.call("llvm.prefetch.p0", place, *(ir.Constant(SHORT, k) for k in (0, 3, 1)))

    # Arrays

    def vector(self, array: Any, axes: int) -> None:
        """The object must be a numpy array of doubles with so many axes."""
        self.require(self.is_a(array, np.ndarray))
        self.require(self.build.icmp_signed("==", self.part(array, objects.NDIM, SHORT), ir.Constant(SHORT, axes)))
        self.require(self.same(self.part(array, objects.DESCR), self.literal(FLOAT64)))

    def offset(self, array: Any, index: Any) -> tuple[Any, Any]:
        """(place, offset) of an element, by one integer or a tuple of two, within the array and not negative.

        The place is that in a vector, and -1 in a matrix.
        """
        build, vector, matrix, done = self.build, self.block(), self.block(), self.block()
        build.cbranch(self.is_a(index, int), vector, matrix)
        self.write(vector)
        self.vector(array, axes=1)
        place, of_vector = self._along(array, 0, index)
        end_of_vector = build.block
        build.branch(done)
        self.write(matrix)
        self.require(self.is_a(index, tuple))
        self.require(build.icmp_signed("==", self.part(index, layout.SIZE, INT), integer(2)))
        self.vector(array, axes=2)
        of_matrix = build.add(*(self._along(array, axis, self.item(index, axis))[1] for axis in range(2)))
        end_of_matrix = build.block
        build.branch(done)
        self.write(done)
        places = self.either(INT, (place, end_of_vector), (integer(-1), end_of_matrix))
        return places, self.either(INT, (of_vector, end_of_vector), (of_matrix, end_of_matrix))

    def _along(self, array: Any, axis: int, index: Any) -> tuple[Any, Any]:
        """(place, offset) of an index along an axis."""
        self.require(self.is_a(index, int))
        place = self.call("PyLong_AsSsize_t", index)  # -1 if it is too large
        length = self.part(self.part(array, objects.DIMENSIONS), axis * layout.WORD, INT)
        self.require(self.build.icmp_unsigned("<", place, length))
        stride = self.part(self.part(array, layout.STRIDES), axis * layout.WORD, INT)
        return place, self.build.mul(place, stride)

    def element_at(self, array: Any, offset: Any) -> Any:
        """The element so many bytes from the first."""
        return self.build.load(self.build.gep(self.part(array, objects.DATA), [offset], source_etype=BYTE), typ=NUMBER)

    def put_element_at(self, array: Any, offset: Any, new: Any) -> None:
        """Replace it."""
        self.build.store(new, self.build.gep(self.part(array, objects.DATA), [offset], source_etype=BYTE))

    # Cases

    def block(self) -> Any:
        """A new block, not yet written."""
        return self.made.append_basic_block()

    def write(self, block: Any) -> None:
        """Go on writing in this block."""
        self.build.position_at_end(block)

    def either(self, kind: Any, *values: tuple[Any, Any]) -> Any:
        """The value that belongs to the block that leads here, of pairs (value, block)."""
        found = self.build.phi(kind)
        for value, block in values:
            found.add_incoming(value, block)
        return found

    def require(self, holds: Any) -> None:
        """Go on if this holds, otherwise to `leave`."""
        on = self.block()
        self.build.cbranch(holds, on, self.leave)
        self.write(on)

    def same(self, left: Any, right: Any) -> Any:
        """Whether two objects are one."""
        return self.build.icmp_unsigned("==", left, right)

    def exists(self, thing: Any) -> Any:
        """Whether the pointer is not null."""
        return self.build.icmp_unsigned("!=", thing, NULL)

    def is_a(self, thing: Any, kind: type) -> Any:
        """Whether the object is of exactly this type."""
        return self.same(self.part(thing, objects.TYPE), self.literal(kind))

    def is_any(self, thing: Any, kind: type) -> Any:
        """Whether the object is of this type, or of one derived from it."""
        found = self.call("PyType_IsSubtype", self.part(thing, objects.TYPE), self.literal(kind))
        return self.build.icmp_signed("!=", found, NO)

    def scalar(self, node: Any) -> Operand:
        """The value of a `Scalar`, which must be a float."""
        val = self.slot(node, "val")
        self.require(self.is_a(val, float))
        return Operand(self.part(val, objects.FLOAT_VALUE, NUMBER), val)

    def tape(self, thing: Any, owner: type = Scalar) -> Any:
        """The tape of a value, which must be open."""
        tape = self.slot(thing, "tape", owner)
        self.require(self.is_a(tape, Tape))
        return tape

    def constant(self, thing: Any) -> Any:
        """The number of an object that must be a float, of Python or numpy, or an integer, except -1."""
        build, floats, integers, done = self.build, self.block(), self.block(), self.block()
        build.cbranch(build.or_(self.is_a(thing, float), self.is_a(thing, np.float64)), floats, integers)
        self.write(floats)
        direct = self.part(thing, objects.FLOAT_VALUE, NUMBER)
        build.branch(done)
        self.write(integers)
        self.require(self.is_a(thing, int))
        converted = self.call("PyLong_AsDouble", thing)
        self.require(build.fcmp_ordered("!=", converted, number(-1.0)))  # -1 says that it is too large, or just -1
        last = build.block
        build.branch(done)
        self.write(done)
        return self.either(NUMBER, (direct, floats), (converted, last))

    def recorded_constant(self, thing: Any, value: Any) -> Any:
        """A new reference to the constant as the record holds it: a float in place of numpy's number."""
        build, of_numpy, others, done = self.build, self.block(), self.block(), self.block()
        build.cbranch(self.is_a(thing, np.float64), of_numpy, others)
        self.write(of_numpy)
        converted = self.new_float(value)
        build.branch(done)
        self.write(others)
        self.own(thing)
        build.branch(done)
        self.write(done)
        return self.either(POINTER, (converted, of_numpy), (thing, others))

    def require_regular(self, partial: Any) -> None:
        """The partial must be neither infinite, nor NaN, nor close to 0, as in `scalar_functions`."""
        square = self.build.fmul(partial, partial)
        self.require(self.build.fcmp_ordered("<", number(1e-300), square))
        self.require(self.build.fcmp_ordered("<", square, number(1e300)))

    # Results

    def record(self, rule: Rule, a: Any, b: Any, p: Any, q: Any, val: Any, tape: Any) -> None:
        """Return a new scalar, recorded with these cells and with new references to partials."""
        self.build.ret(self.call("record", self.literal(rule), a, b, p, q, val, tape))

    def python(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Return the result of a Python function."""
        space = self.build.alloca(POINTER, len(arguments))
        for k, argument in enumerate(arguments):
            self.put(space, k * layout.WORD, argument)
        self.python_with(function, space, integer(len(arguments)))

    def python_with(self, function: Callable[..., Any], arguments: Any, count: Any) -> None:
        """Return the result of a Python function with so many arguments in memory."""
        self.call("PyErr_Clear")
        self.build.ret(self.call("PyObject_Vectorcall", self.literal(function), arguments, count, NULL))

    def python_in_order(self, plain: Callable[..., Any], reflected: Callable[..., Any], v: Any, u: Any) -> None:
        """Return plain(v, u) if v is a scalar, otherwise reflected(u, v)."""
        first, second = self.block(), self.block()
        self.build.cbranch(self.is_any(v, Scalar), first, second)
        self.write(first)
        self.python(plain, v, u)
        self.write(second)
        self.python(reflected, u, v)
