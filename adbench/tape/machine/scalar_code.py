"""Operators and functions of scalars, and the sweep over their records, in machine code.

They make the same records with the same numbers as the Python versions, in a third of the time. LLVM compiles them for
CPython's C API. They treat the common cases: scalars of one open tape, with floats and integers. In all other cases
they call the Python version.

`switch` loads this module once that is worth the tenth of a second it takes. Without llvmlite, or where this Python
keeps the parts of objects elsewhere than `layout` expects, the Python versions stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from adbench.tape.core.node import Scalar
from adbench.tape.core.recording import ASK, Tape
from adbench.tape.core.rule import Rule
from adbench.tape.fast.scalar_functions import written_out
from adbench.tape.fast.written_out import OF_SCALARS
from adbench.tape.machine import layout
from adbench.tape.machine.llvm import Loaded
from adbench.tape.rules import elementwise as e
from adbench.tape.values import MINUS_ONE, ONE

POINTER, INT, NUMBER, BYTE = ir.PointerType(), ir.IntType(64), ir.DoubleType(), ir.IntType(8)
ZERO = 0.0

C_API: dict[str, tuple[Any, ...]] = {
    # name: types of the result and of the arguments
    "PyType_GenericAlloc": (POINTER, POINTER, INT),
    "PyFloat_FromDouble": (POINTER, NUMBER),
    "PyTuple_New": (POINTER, INT),
    "PyList_Append": (ir.IntType(32), POINTER, POINTER),
    "PyLong_AsDouble": (NUMBER, POINTER),
    "PyErr_Clear": (ir.VoidType(),),
    "Py_DecRef": (ir.VoidType(), POINTER),
    "PyObject_Vectorcall": (POINTER, POINTER, POINTER, INT, POINTER),
    **dict.fromkeys(("sin", "cos", "exp", "log", "sqrt", "tanh", "cosh"), (NUMBER, NUMBER)),
    "pow": (NUMBER, NUMBER, NUMBER),
}


class Operand(NamedTuple):
    """An operand as a number, and as the object that holds it."""

    number: Any
    object: Any


Partial = Callable[["Writer", Operand, Operand, Any], Any]  # (writer, a, b, val) -> a new reference to ∂(a ∘ b)/∂…

OPERATORS: dict[str, tuple[Rule, str, Partial, Partial]] = {
    # name: the rule, LLVM's instruction, ∂(a ∘ b)/∂a and ∂(a ∘ b)/∂b, as in `written_out`
    "add": (e.add, "fadd", lambda w, *_: w.own_literal(ONE), lambda w, *_: w.own_literal(ONE)),
    "sub": (e.subtract, "fsub", lambda w, *_: w.own_literal(ONE), lambda w, *_: w.own_literal(MINUS_ONE)),
    "mul": (e.multiply, "fmul", lambda w, a, b, _: w.own(b.object), lambda w, a, b, _: w.own(a.object)),
    "truediv": (
        e.divide,
        "fdiv",
        lambda w, a, b, _: w.new_float(w.build.fdiv(number(1.0), b.number)),
        lambda w, a, b, val: w.new_float(w.build.fdiv(w.build.fneg(val), b.number)),
    ),
}

FUNCTIONS: dict[str, tuple[Rule, Callable[[Writer, Any, Any], Any]]] = {
    # the value's function in C: the rule, and its derivative as in `scalar_functions.ROWS`, from (writer, a, val)
    "sin": (e.sin, lambda w, a, _: w.call("cos", a)),
    "cos": (e.cos, lambda w, a, _: w.build.fneg(w.call("sin", a))),
    "exp": (e.exp, lambda w, a, val: val),
    "log": (e.log, lambda w, a, _: w.build.fdiv(number(1.0), a)),
    "sqrt": (e.sqrt, lambda w, a, val: w.build.fdiv(number(0.5), val)),
    "tanh": (e.tanh, lambda w, a, _: w.build.fdiv(number(1.0), w.call("pow", w.call("cosh", a), number(2.0)))),
}


def number(value: float) -> Any:
    """A constant of the code."""
    return ir.Constant(NUMBER, value)


def integer(value: int) -> Any:
    """A constant of the code."""
    return ir.Constant(INT, value)


class Writer:
    """Writes one function, the common cases straight on; `leave` is the block for all others."""

    build: Any

    def __init__(self, code: Code, name: str, *arguments: Any) -> None:
        self.code = code
        self.made = ir.Function(code.module, ir.FunctionType(POINTER, arguments), name)
        self.build = ir.IRBuilder(self.made.append_basic_block())
        self.leave = self.made.append_basic_block()

    # Objects

    def literal(self, thing: object) -> Any:
        """A Python object, which lives as long as the code."""
        self.code.kept.append(thing)
        return integer(id(thing)).inttoptr(POINTER)

    def part(self, thing: Any, offset: int, kind: Any = POINTER) -> Any:
        """What the object has there."""
        return self.build.load(self._place(thing, offset), typ=kind)

    def put(self, thing: Any, offset: int, new: Any) -> None:
        """Replace what the object has there."""
        self.build.store(new, self._place(thing, offset))

    def _place(self, thing: Any, offset: int) -> Any:
        return self.build.gep(thing, [integer(offset)], source_etype=BYTE)

    def slot(self, node: Any, name: str) -> Any:
        """An attribute of a `Scalar`."""
        return self.part(node, self.code.offsets[name])

    def own(self, thing: Any) -> Any:
        """A new reference to the object."""
        self.put(thing, layout.COUNT, self.build.add(self.part(thing, layout.COUNT, INT), integer(1)))
        return thing

    def own_literal(self, thing: object) -> Any:
        """A new reference to a Python object."""
        return self.own(self.literal(thing))

    def new_float(self, value: Any) -> Any:
        """A new float."""
        return self.call("PyFloat_FromDouble", value)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the module, or of C."""
        return self.build.call(self.code.module.get_global(name), arguments)

    # Cases

    def block(self) -> Any:
        """A new block, not yet written."""
        return self.made.append_basic_block()

    def write(self, block: Any) -> None:
        """Go on writing in this block."""
        self.build.position_at_end(block)

    def require(self, holds: Any) -> None:
        """Go on if this holds, otherwise to `leave`."""
        on = self.block()
        self.build.cbranch(holds, on, self.leave)
        self.write(on)

    def same(self, left: Any, right: Any) -> Any:
        """Whether two objects are one."""
        return self.build.icmp_unsigned("==", left, right)

    def is_a(self, thing: Any, kind: type) -> Any:
        """Whether the object is of exactly this type."""
        return self.same(self.part(thing, layout.TYPE), self.literal(kind))

    def scalar(self, node: Any) -> Operand:
        """The value of a `Scalar`, which must be a float."""
        val = self.slot(node, "val")
        self.require(self.is_a(val, float))
        return Operand(self.part(val, layout.FLOAT, NUMBER), val)

    def tape(self, node: Any) -> Any:
        """The tape of a `Scalar`, which must be open."""
        tape = self.slot(node, "tape")
        self.require(self.is_a(tape, Tape))
        return tape

    def constant(self, thing: Any) -> Any:
        """The number of an object that must be a float, of Python or numpy, or an integer, except -1."""
        build, others, integers, done = self.build, self.block(), self.block(), self.block()
        direct = self.part(thing, layout.FLOAT, NUMBER)
        first = build.block
        build.cbranch(self.is_a(thing, float), done, others)
        self.write(others)
        build.cbranch(self.is_a(thing, np.float64), done, integers)
        self.write(integers)
        self.require(self.is_a(thing, int))
        converted = self.call("PyLong_AsDouble", thing)
        self.require(build.fcmp_ordered("!=", converted, number(-1.0)))  # -1 says that it is too large, or just -1
        last = build.block
        build.branch(done)
        self.write(done)
        found = build.phi(NUMBER)
        for value, block in ((direct, first), (direct, others), (converted, last)):
            found.add_incoming(value, block)
        return found

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
        found = build.phi(POINTER)
        found.add_incoming(converted, of_numpy)
        found.add_incoming(thing, others)
        return found

    # Results

    def record(self, rule: Rule, a: Any, b: Any, p: Any, q: Any, val: Any, tape: Any) -> None:
        """Return a new scalar, recorded with these cells and with new references to partials."""
        self.build.ret(self.call("record", self.literal(rule), a, b, p, q, val, tape))

    def python(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Return the result of a Python function."""
        self.call("PyErr_Clear")
        space = self.build.alloca(POINTER, len(arguments))
        for k, argument in enumerate(arguments):
            self.put(space, k * layout.WORD, argument)
        rest = integer(len(arguments)), ir.Constant(POINTER, None)
        self.build.ret(self.call("PyObject_Vectorcall", self.literal(function), space, *rest))


class Code:
    """The module. Raises UnknownLayoutError."""

    def __init__(self) -> None:
        self.offsets = layout.offsets()
        self.module = ir.Module()
        self.kept: list[object] = []
        for name, (result, *arguments) in C_API.items():
            ir.Function(self.module, ir.FunctionType(result, arguments), name)
        self._record()
        self._sweep()
        for name in OPERATORS:
            self._operator(name)
        self._negative()
        self._square()
        for name in FUNCTIONS:
            self._function(name)

    def _record(self) -> None:
        """record(rule, a, b, p, q, val, tape): append (rule, node, a, b, p, q) to the tape, and return the node."""
        w = Writer(self, "record", *[POINTER] * 5, NUMBER, POINTER)
        rule, a, b, p, q, val, tape = w.made.args
        made = w.new_float(val), w.call("PyType_GenericAlloc", w.literal(Scalar), integer(0))
        val_, node = made
        record = w.call("PyTuple_New", integer(6))
        none = ir.Constant(POINTER, None)
        for thing in (*made, record, p, q):
            w.require(w.build.icmp_unsigned("!=", thing, none))
        w.put(node, self.offsets["val"], val_)
        w.put(node, self.offsets["adj"], w.own_literal(ZERO))
        w.put(node, self.offsets["tape"], w.own(tape))
        for k, part in enumerate((w.own(rule), w.own(node), w.own(a), w.own(b), p, q)):
            w.put(record, layout.ITEMS_OF_TUPLE + k * layout.WORD, part)
        failed = w.call("PyList_Append", tape, record)
        w.call("Py_DecRef", record)
        w.require(w.build.icmp_signed("==", failed, ir.Constant(ir.IntType(32), 0)))
        w.build.ret(node)
        w.write(w.leave)
        w.build.ret(none)  # no memory is left: Python has set the error, and the parts are lost
        w.made.linkage = "internal"

    def _operator(self, name: str) -> None:
        """The operator of two objects, one of which is a `Scalar`."""
        rule, instruction, partial_a, partial_b = OPERATORS[name]
        w = Writer(self, f"operator_{name}", POINTER, POINTER)
        build, (v, u) = w.build, w.made.args
        none, divides = w.literal(None), name == "truediv"
        first, second, both, with_constant = w.block(), w.block(), w.block(), w.block()

        def compute(a: Any, b: Any) -> Any:
            if divides:
                w.require(build.fcmp_unordered("!=", b, number(0.0)))
            return getattr(build, instruction)(a, b)

        is_first, is_second = w.is_a(v, Scalar), w.is_a(u, Scalar)
        build.cbranch(is_first, first, second)

        w.write(first)
        a, tape = w.scalar(v), w.tape(v)
        build.cbranch(is_second, both, with_constant)

        w.write(both)
        w.require(w.same(tape, w.slot(u, "tape")))
        b = w.scalar(u)
        val = compute(a.number, b.number)
        if name == "mul":  # a product that is 0 may be the square of a root
            w.require(build.fcmp_unordered("!=", val, number(0.0)))
        w.record(rule, v, u, partial_a(w, a, b, val), partial_b(w, a, b, val), val, tape)

        w.write(with_constant)
        c = w.constant(u)
        val = compute(a.number, c)
        other = Operand(c, w.recorded_constant(u, c))
        w.record(rule, v, none, partial_a(w, a, other, val), other.object, val, tape)

        w.write(second)
        w.require(is_second)
        b, tape = w.scalar(u), w.tape(u)
        c = w.constant(v)
        val = compute(c, b.number)
        if divides:  # if the quotient underflows, another factor may bring its partial back
            gone = build.fcmp_ordered("==", build.fdiv(val, b.number), number(0.0))
            w.require(build.not_(build.and_(gone, build.fcmp_unordered("!=", val, number(0.0)))))
        other = Operand(c, w.recorded_constant(v, c))
        w.record(rule, none, u, other.object, partial_b(w, other, b, val), val, tape)

        w.write(w.leave)
        plain, reflected = w.block(), w.block()
        build.cbranch(is_first, plain, reflected)
        w.write(plain)
        w.python(OF_SCALARS[name], v, u)
        w.write(reflected)
        w.python(OF_SCALARS[f"r{name}"], u, v)

    def _negative(self) -> None:
        w = Writer(self, "operator_neg", POINTER)
        (v,) = w.made.args
        a, tape = w.scalar(v), w.tape(v)
        w.record(
            e.negative, v, w.literal(None), w.own_literal(MINUS_ONE), w.own_literal(None), w.build.fneg(a.number), tape
        )
        w.write(w.leave)
        w.python(OF_SCALARS["neg"], v)

    def _square(self) -> None:
        """v ** u with u = 2; all other powers are Python's."""
        w = Writer(self, "operator_pow", POINTER, POINTER, POINTER)
        build, (v, u, modulus) = w.build, w.made.args
        none, plain, reflected, with_modulus = w.literal(None), w.block(), w.block(), w.block()
        is_first = w.is_a(v, Scalar)
        w.require(build.and_(is_first, w.same(modulus, none)))
        a, tape = w.scalar(v), w.tape(v)
        w.require(build.fcmp_unordered("!=", a.number, number(0.0)))
        w.require(build.not_(w.is_a(u, np.float64)))
        w.require(build.fcmp_ordered("==", w.constant(u), number(2.0)))
        val, p = build.fmul(a.number, a.number), w.new_float(build.fadd(a.number, a.number))
        w.record(e.power, v, none, p, w.own(u), val, tape)
        w.write(w.leave)
        two = w.block()
        build.cbranch(w.same(modulus, none), two, with_modulus)
        w.write(two)
        build.cbranch(is_first, plain, reflected)
        w.write(plain)
        w.python(OF_SCALARS["pow"], v, u)
        w.write(reflected)
        w.python(lambda u, v: u.__rpow__(v), u, v)
        w.write(with_modulus)
        w.python(OF_SCALARS["pow"], v, u, modulus)

    def _function(self, name: str) -> None:
        """A function as a method of CPython: its first argument is not used."""
        rule, derivative = FUNCTIONS[name]
        w = Writer(self, f"function_{name}", POINTER, POINTER)
        build, (_, x) = w.build, w.made.args
        w.require(w.is_a(x, Scalar))
        a, tape = w.scalar(x), w.tape(x)
        val = w.call(name, a.number)
        p = derivative(w, a.number, val)
        w.require(build.fcmp_ordered("==", val, val))  # NaN: `math` raises an error
        if name not in (
            "sin",
            "cos",
        ):  # as `scalar_functions`: the partial is neither infinite, nor NaN, nor close to 0
            square = build.fmul(p, p)
            w.require(build.fcmp_ordered("<", number(1e-300), square))
            w.require(build.fcmp_ordered("<", square, number(1e300)))
        w.record(rule, x, w.literal(None), w.new_float(p), w.own_literal(None), val, tape)
        w.write(w.leave)
        w.python(written_out(rule), x)

    def _sweep(self) -> None:
        """Sweep the records of a reversed tape as long as they are those of scalars; as `quick_sweep.sweep`."""
        w = Writer(self, "sweep", POINTER, POINTER)
        build, (_, records) = w.build, w.made.args
        none, tuple_type = w.literal(None), tuple
        known, done = w.block(), w.block()
        build.cbranch(w.is_a(records, type(reversed([]))), known, done)

        w.write(known)
        listed = w.part(records, layout.LISTED)
        has_list, turn, body, next_one = w.block(), w.block(), w.block(), w.block()
        build.cbranch(build.icmp_unsigned("!=", listed, ir.Constant(POINTER, None)), has_list, done)
        w.write(has_list)
        items = w.part(listed, layout.ITEMS_OF_LIST)
        start = w.part(records, layout.PLACE, INT)
        build.branch(turn)

        w.write(turn)
        place = build.phi(INT)
        place.add_incoming(start, has_list)
        w.put(records, layout.PLACE, place)
        build.cbranch(build.icmp_signed(">=", place, integer(0)), body, done)

        w.write(body)
        record = build.load(build.gep(items, [place], source_etype=POINTER), typ=POINTER)
        w.require(w.is_a(record, tuple_type))
        _, out, a, b, p, q = (w.part(record, layout.ITEMS_OF_TUPLE + k * layout.WORD) for k in range(6))
        w.require(build.icmp_unsigned("!=", q, w.literal(ASK)))
        w.require(w.is_a(out, Scalar))
        held = w.slot(out, "adj")
        w.require(w.is_a(held, float))
        adj = w.part(held, layout.FLOAT, NUMBER)
        check = w.block()
        build.cbranch(build.fcmp_ordered("==", adj, number(0.0)), next_one, check)
        w.write(check)
        slopes = [self._slope(w, cell, slope) for cell, slope in ((a, p), (b, q))]
        for cell, slope in zip((a, b), slopes, strict=True):
            add, after = w.block(), w.block()
            build.cbranch(w.same(cell, none), after, add)
            w.write(add)
            self._accumulate(w, cell, build.fmul(adj, slope), after)
            w.write(after)
        build.branch(next_one)

        w.write(next_one)
        place.add_incoming(build.sub(place, integer(1)), next_one)
        build.branch(turn)

        w.write(w.leave)
        w.call("PyErr_Clear")
        build.branch(done)
        w.write(done)
        build.ret(w.own_literal(None))

    def _slope(self, w: Writer, cell: Any, slope: Any) -> Any:
        """The number of a partial; the cell must be None, or a scalar whose adjoint is a float."""
        build, there, done = w.build, w.block(), w.block()
        before = build.block
        build.cbranch(w.same(cell, w.literal(None)), done, there)
        w.write(there)
        w.require(w.is_a(cell, Scalar))
        w.require(w.is_a(w.slot(cell, "adj"), float))
        found = w.constant(slope)
        after = build.block
        build.branch(done)
        w.write(done)
        value = build.phi(NUMBER)
        value.add_incoming(number(0.0), before)
        value.add_incoming(found, after)
        return value

    def _accumulate(self, w: Writer, cell: Any, part: Any, after: Any) -> None:
        """cell.adj += part; within the float if nothing else refers to it. Goes on to `after`."""
        build, within, anew = w.build, w.block(), w.block()
        held = w.slot(cell, "adj")
        total = build.fadd(w.part(held, layout.FLOAT, NUMBER), part)
        count = w.part(held, layout.COUNT, INT)
        build.cbranch(build.icmp_signed("==", count, integer(1)), within, anew)
        w.write(within)
        w.put(held, layout.FLOAT, total)
        build.branch(after)
        w.write(anew)
        new = w.new_float(total)
        w.require(build.icmp_unsigned("!=", new, ir.Constant(POINTER, None)))
        w.put(cell, self.offsets["adj"], new)
        w.call("Py_DecRef", held)
        build.branch(after)


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


TAKES_ONE_OBJECT = 8  # METH_O


class MachineCode:
    """The compiled code. Raises UnknownLayoutError, or LLVMRefusedError."""

    def __init__(self) -> None:
        code = Code()
        self._places = {name: layout.place_of(name) for name in (*OPERATORS, "neg", "pow")}
        self._kept = code.kept
        self._loaded = Loaded(f"{code.module}\n@environment = global [1 x ptr] zeroinitializer", [], level=2)
        self._methods: list[_Method] = []
        self.sweep = self._method("sweep")
        self._functions = [(rule, self._method(f"function_{name}")) for name, (rule, _) in FUNCTIONS.items()]

    def _method(self, name: str) -> Callable[[Any], Any]:
        method = _Method(name.encode(), self._loaded.address(name), TAKES_ONE_OBJECT, None)
        self._methods.append(method)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        made: Callable[[Any], Any] = make(ctypes.addressof(method), None, None)
        return made

    def install(self) -> None:
        """Replace the operators of `Scalar`, until someone sets its methods again, and the functions."""
        operators = layout.operators_of(Scalar)
        for name, place in self._places.items():
            operators[place] = self._loaded.address(f"operator_{name}")
        for rule, function in self._functions:
            rule.run = function

    def remove(self) -> None:
        """Put the Python versions back."""
        for name in self._places:
            setattr(Scalar, f"__{name}__", vars(Scalar)[f"__{name}__"])
        for rule, _ in self._functions:
            rule.run = written_out(rule)
