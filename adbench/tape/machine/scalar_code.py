"""Operators, functions and elements of arrays that are scalars, and the sweep over their records, in machine code.

They make the same records with the same numbers as the Python versions, in less than half of the time. LLVM compiles
them for CPython's C API. They treat the common cases: values of one open tape, floats and integers. In all other cases
they call the Python version.

`loading` imports this module once that is worth the tenth of a second it takes. Without llvmlite, or where this Python
keeps the parts of objects elsewhere than `layout` expects, the Python versions stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import ASK
from adbench.tape.core.rule import Rule
from adbench.tape.fast.quick_records import PARAMS
from adbench.tape.fast.quick_records import getitem as read
from adbench.tape.fast.scalar_functions import written_out
from adbench.tape.fast.written_out import OF_SCALARS
from adbench.tape.machine import layout
from adbench.tape.machine.builtin_function import TAKES_ARRAY, TAKES_ONE_OBJECT, builtin_function, builtin_method
from adbench.tape.machine.llvm import Loaded
from adbench.tape.machine.row_code import translated, write_row
from adbench.tape.machine.sweep_code import write_release, write_sweep
from adbench.tape.machine.writer import (
    BYTE,
    NO,
    NULL,
    NUMBER,
    POINTER,
    ZERO,
    Module,
    Operand,
    Writer,
    integer,
    number,
)
from adbench.tape.rules import elementwise as e
from adbench.tape.rules.indexing import getitem
from adbench.tape.values import MINUS_ONE, ONE

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

FUNCTIONS = {rule: f"function_{rule.name}" for rule in translated()}


def _written() -> Module:
    """The module with all functions. Raises UnknownLayoutError."""
    module = Module()
    _record(module)
    for name in OPERATORS:
        _operator(module, name)
    _negative(module)
    _power(module)
    _element(module)
    write_sweep(module)
    write_release(module)
    return module


def _record(module: Module) -> None:
    """record(rule, a, b, p, q, val, tape): append (rule, node, a, b, p, q) to the tape, and return the node."""
    w = Writer(module, "record", *[POINTER] * 5, NUMBER, POINTER)
    rule, a, b, p, q, val, tape = w.made.args
    made = w.new_float(val), w.call("PyType_GenericAlloc", w.literal(Scalar), integer(0))
    val_, node = made
    record = w.call("PyTuple_New", integer(6))
    for thing in (*made, record, p, q):
        w.require(w.exists(thing))
    w.put_slot(node, "val", val_)
    w.put_slot(node, "adj", w.own_literal(ZERO))
    w.put_slot(node, "tape", w.own(tape))
    for k, part in enumerate((w.own(rule), w.own(node), w.own(a), w.own(b), p, q)):
        w.put(record, layout.ITEMS_OF_TUPLE + k * layout.WORD, part)
    failed = w.call("PyList_Append", tape, record)
    w.call("Py_DecRef", record)
    w.require(w.build.icmp_signed("==", failed, NO))
    w.build.ret(node)
    w.write(w.leave)
    w.build.ret(NULL)  # no memory is left: Python has set the error, and the parts are lost
    w.made.linkage = "internal"


def _operator(module: Module, name: str) -> None:
    """The operator of two objects, one of which is a `Scalar`."""
    rule, instruction, partial_a, partial_b = OPERATORS[name]
    w = Writer(module, f"operator_{name}", POINTER, POINTER)
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
    w.python_in_order(OF_SCALARS[name], OF_SCALARS[f"r{name}"], v, u)


def _negative(module: Module) -> None:
    w = Writer(module, "operator_neg", POINTER)
    (v,) = w.made.args
    a, tape = w.scalar(v), w.tape(v)
    w.record(
        e.negative, v, w.literal(None), w.own_literal(MINUS_ONE), w.own_literal(None), w.build.fneg(a.number), tape
    )
    w.write(w.leave)
    w.python(OF_SCALARS["neg"], v)


def _power(module: Module) -> None:
    """v ** u with a constant u, as `written_out` for u = 2 and `scalar_functions` for all others."""
    w = Writer(module, "operator_pow", POINTER, POINTER, POINTER)
    build, (v, u, modulus) = w.build, w.made.args
    none, square, general, two, with_modulus = w.literal(None), w.block(), w.block(), w.block(), w.block()
    w.require(w.same(modulus, none))
    w.require(w.is_a(v, Scalar))
    a, tape = w.scalar(v), w.tape(v)
    c = w.constant(u)
    w.require(build.fcmp_unordered("!=", a.number, number(0.0)))
    is_square = build.and_(build.fcmp_ordered("==", c, number(2.0)), build.not_(w.is_a(u, np.float64)))
    build.cbranch(is_square, square, general)

    w.write(square)
    val, p = build.fmul(a.number, a.number), w.new_float(build.fadd(a.number, a.number))
    w.record(e.power, v, none, p, w.own(u), val, tape)

    w.write(general)
    val = w.call("pow", a.number, c)
    p = build.fmul(c, w.call("pow", a.number, build.fsub(c, number(1.0))))
    w.require(build.fcmp_ordered("==", build.fsub(val, val), number(0.0)))  # `math` raises an error for infinity
    w.require_regular(p)
    w.record(e.power, v, none, w.new_float(p), w.new_float(c), val, tape)

    w.write(w.leave)
    build.cbranch(w.same(modulus, none), two, with_modulus)
    w.write(two)
    w.python_in_order(OF_SCALARS["pow"], lambda u, v: u.__rpow__(v), v, u)
    w.write(with_modulus)
    w.python(OF_SCALARS["pow"], v, u, modulus)


def _element(module: Module) -> None:
    """x[index] for an element of a vector or matrix on a tape, by one or two integers that are not negative."""
    w = Writer(module, "element", POINTER, POINTER)
    build, (x, index) = w.build, w.made.args
    val, tape, reads = w.slot(x, "val", Array), w.tape(x, Array), w.slot(x, "reads", Array)
    w.require(w.exists(reads))
    cells, saved = w.item(reads, 0), w.item(reads, 1)
    w.require(w.same(w.part(w.part(cells, layout.ITEMS_OF_LIST), 0), w.slot(x, "cell", Array)))
    shared, anew = w.block(), w.block()
    place, offset = w.offset(val, index)
    build.cbranch(build.icmp_unsigned("<", place, integer(len(PARAMS))), shared, anew)

    w.write(shared)
    first = build.gep(w.literal(PARAMS), [integer(layout.ITEMS_OF_TUPLE)], source_etype=BYTE)
    params = w.own(build.load(build.gep(first, [place], source_etype=POINTER), typ=POINTER))
    w.record(getitem, cells, saved, params, w.own_literal(ASK), w.element_at(val, offset), tape)

    w.write(anew)
    params = w.call("PyDict_New")
    w.require(w.exists(params))
    failed = w.call("PyDict_SetItem", params, w.literal("index"), index)
    w.require(build.icmp_signed("==", failed, NO))
    w.record(getitem, cells, saved, params, w.own_literal(ASK), w.element_at(val, offset), tape)

    w.write(w.leave)
    w.python(read, x, index)


def _loaded(module: Module, *, level: int) -> Loaded:
    return Loaded(f"{module.llvm}\n@environment = global [1 x ptr] zeroinitializer", [], level=level)


class MachineCode:
    """The compiled code. Raises UnknownLayoutError, or LLVMRefusedError.

    sweep     sweeps the next records of a reversed tape as far as it can
    release   drops the records of a tape
    """

    def __init__(self) -> None:
        code, functions = _written(), Module()
        _record(functions)
        of_two = {rule: write_row(functions, rule, name) for rule, name in FUNCTIONS.items()}
        self._places = {name: layout.place_of(name) for name in (*OPERATORS, "neg", "pow")}
        self._kept = [code.kept, functions.kept]
        self._loaded = [_loaded(code, level=2), _loaded(functions, level=0)]  # level 2 would take twice as long to load
        self.sweep, self.release = (
            builtin_function(name, self.address(name), TAKES_ONE_OBJECT) for name in ("sweep", "release")
        )
        self._functions = [
            (rule, builtin_function(rule.name, self.address(name), TAKES_ARRAY if of_two[rule] else TAKES_ONE_OBJECT))
            for rule, name in FUNCTIONS.items()
        ]
        self._getitem = builtin_method(Array, "__getitem__", self.address("element"))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # objects of Python refer to it until the process ends

    def address(self, name: str) -> int:
        """Where a function is."""
        return next(filter(None, (loaded.address(name) for loaded in self._loaded)))

    def install(self) -> None:
        """Replace the operators of `Scalar`, `Array.__getitem__` and the functions, until someone sets them again."""
        operators = layout.operators_of(Scalar)
        for name, place in self._places.items():
            operators[place] = self.address(f"operator_{name}")
        for rule, function in self._functions:
            rule.run = function
        setattr(Array, "__getitem__", self._getitem)  # noqa: B010  # CPython would call a Python function directly
        items = layout.operators_of(Array, layout.ITEMS)
        items[layout.place_of("getitem", layout.ITEMS)] = self.address("element")

    def remove(self) -> None:
        """Put the Python versions back."""
        for name in self._places:
            setattr(Scalar, f"__{name}__", vars(Scalar)[f"__{name}__"])
        for rule, _ in self._functions:
            rule.run = written_out(rule)
        setattr(Array, "__getitem__", read)  # noqa: B010  # the type checker knows no assignment to it
