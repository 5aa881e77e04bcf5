"""Operators, functions and elements of arrays that are scalars, and the sweep over their records, in machine code.

They make the same records with the same numbers as the Python versions, in less than half of the time. LLVM compiles
them for CPython's C API. They treat the common cases: values of one open tape, floats and integers. In all other cases
they call the Python version.

`fast.switch` imports this module once that is worth the tenth of a second it takes. Without llvmlite, or where this
Python keeps the parts of objects elsewhere than `layout` expects, the Python versions stay.
"""

from __future__ import annotations

import ast
import ctypes
import operator
from collections.abc import Iterator
from functools import partial, reduce
from itertools import pairwise

import numpy as np

from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import ASK
from adbench.tape.core.rule import Rule
from adbench.tape.fast.quick_records import PARAMS
from adbench.tape.fast.quick_records import getitem as read
from adbench.tape.fast.scalar_functions import CONSTANTS, LIBRARY, ROWS, regular, row, written_out
from adbench.tape.fast.written_out import OF_SCALARS, SCALAR_OPERATORS
from adbench.tape.machine import layout
from adbench.tape.machine.llvm import TAKES_ARRAY, TAKES_ONE_OBJECT, Loaded, builtin_function, builtin_method
from adbench.tape.machine.simd import Module, Name, X
from adbench.tape.machine.sweep_code import write_sweep
from adbench.tape.machine.writer import ZERO, HeldNumber, Writer
from adbench.tape.rules import elementwise as e
from adbench.tape.rules.indexing import getitem
from adbench.tape.values import MINUS_ONE, ONE

# Functions, translated from the rows of `fast.scalar_functions`, which give value and partials as Python's source. What
# the translator knows is in `_LIBRARY` and `_Translator`; rows with anything else stay in Python. Where Python's `math`
# raises an error, C gives NaN or an infinite value or partial, so the code leaves these cases to Python.

_LIBRARY = {*LIBRARY, "pow"} - {"hypot"}
"""Functions of C that give what Python's `math` gives, where that raises no error; its `hypot` has its own code."""

_SIGNS = {ast.Lt: "olt", ast.Gt: "ogt", ast.GtE: "oge", ast.Eq: "oeq"}
_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_KNOWN: tuple[type[ast.AST], ...] = (
    *(ast.Expression, ast.Name, ast.Constant, ast.Load, ast.Store, ast.NamedExpr, ast.IfExp, ast.Compare, ast.Call),
    *(ast.UnaryOp, ast.USub, ast.BinOp, *_ARITHMETIC, *_SIGNS),
)


def translated() -> Iterator[Rule]:
    """The rules whose rows have machine code."""
    for rule in ROWS:
        nodes = [node for source in row(rule) for node in ast.walk(ast.parse(source, mode="eval"))]
        calls = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        if calls <= {*_LIBRARY, "abs", "max", "min"} and all(isinstance(node, _KNOWN) for node in nodes):
            yield rule


def write_row(module: Module, rule: Rule, name: str) -> bool:
    """Write the function of a rule's row; returns whether it takes two arguments, as an array and their number."""
    sources = row(rule)
    if len(sources) == 2:
        w = Writer(module, name, "ptr", "ptr")  # name(self, x), where self is not used
        _, x = w.arguments
        _of_one(w, x, rule, *sources)
        w.leave()
        w.python(written_out(rule), x)
        w.end()
        return False
    w = Writer(module, name, "ptr", "ptr", "i64")  # name(self, arguments, count)
    _, arguments, count = w.arguments
    w.require(w.same(count, 2, "i64"))
    _of_two(w, w.part(arguments, 0), w.part(arguments, layout.WORD), rule, *sources)
    w.leave()
    w.python_with(written_out(rule), arguments, count)
    w.end()
    return True


def _of_one(w: Writer, x: Name, rule: Rule, value: str, of_a: str) -> None:
    """Return the recorded function of an object that must be a `Scalar`."""
    w.require(w.is_a(x, Scalar))
    a, tape = w.scalar(x), w.tape(x)
    numbers = _Translator(w, a=a.number)
    val, p = numbers.value(value), numbers.partial("p", of_a, rule)
    w.record(rule, x, w.literal(None), _reference(w, of_a, p), w.own_literal(None), val, tape)


def _of_two(w: Writer, x: Name, y: Name, rule: Rule, value: str, *sources: str) -> None:
    """Return the recorded function of two objects, one of which must be a `Scalar`; see `Writer.of_two`."""

    def write(a: HeldNumber, b: HeldNumber, tape: Name, active: tuple[bool, bool]) -> None:
        numbers = _Translator(w, a=a.number, b=b.number)
        val = numbers.value(value)
        if rule is e.multiply and all(active):  # a product that is 0 may be the square of a root
            w.require(val.is_("une", 0.0))
        places = zip("pq", sources, active, strict=True)
        partials = [numbers.partial(name, of, rule) if on else None for name, of, on in places]
        constant = (lambda it: w.new_float(it.number)) if rule in ROWS else w.recorded_constant
        # Operators record a constant as it is, functions as a float.
        constant = (lambda it: w.new_float(it.number)) if rule in ROWS else w.recorded_constant
        held = [it.object if on else constant(it) for it, on in zip((a, b), active, strict=True)]
        slots = [
            it if p is None else _reference(w, of, p, *held) for it, p, of in zip(held, partials, sources, strict=True)
        ]
        cells = [it if on else w.literal(None) for it, on in zip((x, y), active, strict=True)]
        w.record(rule, cells[0], cells[1], slots[0], slots[1], val, tape)

    w.of_two(x, y, write)


KNOWN_PARTIALS = {"1.0": ONE, "-1.0": MINUS_ONE}


def _reference(w: Writer, source: str, partial: X, *held: Name) -> Name:
    """A new reference to a partial: to a known number, to the object of an operand, or to a new float."""
    if source in KNOWN_PARTIALS:
        return w.own_literal(KNOWN_PARTIALS[source])
    return w.own(held["ab".index(source)]) if source in ("a", "b") else w.new_float(partial)


class _Translator:
    """Translates the expressions of a row to numbers of LLVM."""

    def __init__(self, w: Writer, **names: X) -> None:
        self.w, self.k = w, w.numbers
        self.names = {**{name: self.k.x(value) for name, value in CONSTANTS.items()}, **names}

    def value(self, source: str) -> X:
        """The value, which must be finite."""
        val = self.names["val"] = self.number(source)
        self.w.require_finite(val)
        return val

    def partial(self, name: str, source: str, rule: Rule) -> X:
        """A partial, which must be regular, as in Python, unless it is a known number or an operand."""
        self.names[name] = self.number(source)
        condition = ast.parse(regular(rule, name), mode="eval").body
        if not isinstance(condition, ast.Constant) and source not in (*KNOWN_PARTIALS, "a", "b"):
            self.w.require(self._holds(condition))
        return self.names[name]

    def number(self, source: str) -> X:
        """The number that an expression gives."""
        return self._of(ast.parse(source, mode="eval").body)

    def _of(self, node: ast.expr) -> X:
        match node:
            case ast.Constant(value=value):
                return self.k.x(float(value))  # type: ignore[arg-type]  # rows have numbers only
            case ast.Name(id=name):
                return self.names[name]
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.names[name] = self._of(value)
                return self.names[name]
            case ast.UnaryOp(operand=operand):
                return -self._of(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _ARITHMETIC[type(op)](self._of(left), self._of(right))  # type: ignore[no-any-return]
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._of(body).where(self._holds(test), self._of(other))
            case ast.Call(func=ast.Name(id="abs"), args=[x]):
                return abs(self._of(x))
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[x, y]):
                a, b = self._of(x), self._of(y)
                return b.where(b.is_("ogt" if name == "max" else "olt", a), a)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.k.x(self.k.called(name, *(self._of(arg).name for arg in args)))
        raise AssertionError(ast.unparse(node))  # `translated` knows better

    def _holds(self, node: ast.expr) -> Name:
        """Whether a comparison holds, such as a < b < c."""
        assert isinstance(node, ast.Compare)
        sides = [self._of(side) for side in (node.left, *node.comparators)]
        each = [a.is_(_SIGNS[type(op)], b) for op, (a, b) in zip(node.ops, pairwise(sides), strict=True)]
        return reduce(partial(self.k.logic, "and"), each)


# Operators, elements and the whole

FUNCTIONS = {rule: f"function_{rule.name}" for rule in translated()}


def _written() -> Module:
    """The module of the operators, of elements and of the sweep. Raises UnknownLayoutError."""
    layout.check()
    module = Module()
    _record(module)
    for row_of_operator in SCALAR_OPERATORS:
        _operator(module, *row_of_operator)
    _negative(module)
    _power(module)
    _element(module)
    write_sweep(module)
    return module


def _record(module: Module) -> None:
    """record(rule, a, b, p, q, val, tape): append (rule, node, a, b, p, q) to the tape, and return the node."""
    w = Writer(module, "record", *["ptr"] * 5, "double", "ptr")
    rule, a, b, p, q, val, tape = w.arguments
    number, node = w.new_float(w.numbers.x(val)), w.call("PyType_GenericAlloc", w.literal(Scalar), 0)
    record = w.call("PyTuple_New", 6)
    for thing in (number, node, record, p, q):
        w.require(w.exists(thing))
    w.put_slot(node, "val", number)
    w.put_slot(node, "adj", w.own_literal(ZERO))
    w.put_slot(node, "tape", w.own(tape))
    for k, part in enumerate((w.own(rule), w.own(node), w.own(a), w.own(b), p, q)):
        w.put(record, layout.ITEMS_OF_TUPLE + k * layout.WORD, part)
    failed = w.call("PyList_Append", tape, record)
    w.call("Py_DecRef", record)
    w.require(w.same(failed, 0, "i32"))
    w.ret(node)
    w.leave()
    w.ret("null")  # no memory is left: Python has set the error, and the parts are lost
    w.end("internal ")


def _operator(module: Module, name: str, sign: str, rule: Rule, of_a: str, of_b: str) -> None:
    """The operator of two objects, one of which is a `Scalar`, from its row in `written_out`."""
    w = Writer(module, f"operator_{name}", "ptr", "ptr")
    v, u = w.arguments
    _of_two(w, v, u, rule, f"a {sign} b", of_a, of_b)
    w.leave()
    w.python_in_order(OF_SCALARS[name], OF_SCALARS[f"r{name}"], v, u)
    w.end()


def _negative(module: Module) -> None:
    w = Writer(module, "operator_neg", "ptr")
    (v,) = w.arguments
    _of_one(w, v, e.negative, "-a", "-1.0")
    w.leave()
    w.python(OF_SCALARS["neg"], v)
    w.end()


def _power(module: Module) -> None:
    """v ** u with a constant u, as `written_out` for u = 2 and `scalar_functions` for all others."""
    w = Writer(module, "operator_pow", "ptr", "ptr", "ptr")
    code, k, (v, u, modulus), none = w.code, w.numbers, w.arguments, w.literal(None)
    square, general, two, with_modulus = w.blocks(4)
    w.require(w.same(modulus, none))
    w.require(w.is_a(v, Scalar))
    (a, _), tape, c = w.scalar(v), w.tape(v), w.constant(u)
    w.require(a.is_("une", 0.0))
    of_numpy = k.logic("xor", w.is_a(u, np.float64), k.truth)
    w.branch(k.logic("and", c.is_("oeq", 2.0), of_numpy), square, general)

    code.begin(square)
    w.record(e.power, v, none, w.new_float(a + a), w.own(u), a * a, tape)

    code.begin(general)
    value, of_a, _ = row(e.power)
    numbers = _Translator(w, a=a, b=c)
    val, p = numbers.value(value), numbers.partial("p", of_a, e.power)
    w.record(e.power, v, none, w.new_float(p), w.new_float(c), val, tape)

    w.leave()
    w.branch(w.same(modulus, none), two, with_modulus)
    code.begin(two)
    w.python_in_order(OF_SCALARS["pow"], lambda u, v: u.__rpow__(v), v, u)
    code.begin(with_modulus)
    w.python(OF_SCALARS["pow"], v, u, modulus)
    w.end()


def _element(module: Module) -> None:
    """x[index] for an element of a vector or matrix on a tape, by one or two integers that are not negative."""
    w = Writer(module, "element", "ptr", "ptr")
    code, (x, index) = w.code, w.arguments
    val, tape, reads = w.slot(x, "val", Array), w.tape(x, Array), w.slot(x, "reads", Array)
    w.require(w.exists(reads))
    cells, saved = w.item(reads, 0), w.item(reads, 1)
    w.require(w.same(w.part(w.part(cells, layout.ITEMS_OF_LIST), 0), w.slot(x, "cell", Array)))
    shared, anew = w.blocks(2)
    place, offset = w.offset(val, index)
    element = w.numbers.x(code.load(w.element(val, offset)))
    w.branch(code.emit(f"icmp ult i64 {place}, {len(PARAMS)}"), shared, anew)

    code.begin(shared)
    first = w.at(w.literal(PARAMS), layout.ITEMS_OF_TUPLE)
    params = w.own(w.part(w.at(first, place, "ptr")))
    w.record(getitem, cells, saved, params, w.own_literal(ASK), element, tape)

    code.begin(anew)
    params = w.call("PyDict_New")
    w.require(w.exists(params))
    failed = w.call("PyDict_SetItem", params, w.literal("index"), index)
    w.require(w.same(failed, 0, "i32"))
    w.record(getitem, cells, saved, params, w.own_literal(ASK), element, tape)

    w.leave()
    w.python(read, x, index)
    w.end()


class MachineCode:
    """The compiled code. Raises UnknownLayoutError, or LLVMRefusedError.

    sweep   sweeps the next records of a reversed tape as far as it can
    """

    def __init__(self) -> None:
        code, functions = _written(), Module()
        _record(functions)
        of_two = {rule: write_row(functions, rule, name) for rule, name in FUNCTIONS.items()}
        self._places = {name: layout.place_of(name) for name in ("add", "sub", "mul", "truediv", "neg", "pow")}
        self._loaded = [
            Loaded(module.text(), module.environment, level=level)
            for module, level in ((code, 2), (functions, 0))  # level 2 would take twice as long to load for functions
        ]
        self.sweep = builtin_function("sweep", self.address("sweep"), TAKES_ONE_OBJECT)
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
