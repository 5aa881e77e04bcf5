"""Functions of scalars in machine code, translated from the rows of `fast.scalar_functions`.

A row gives value and partials as Python's source. What this translator knows is in `_LIBRARY` and `_Translator`; rows
with anything else stay in Python. Where Python's `math` raises an error, C gives NaN or an infinite value or partial,
so the code leaves these cases to Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from functools import partial, reduce
from itertools import pairwise

from adbench.tape.core.node import Scalar
from adbench.tape.core.rule import Rule
from adbench.tape.fast.scalar_functions import CONSTANTS, LIBRARY, ROWS, regular, row, written_out
from adbench.tape.machine import layout
from adbench.tape.machine.simd import Module, Name, X
from adbench.tape.machine.writer import HeldNumber, Writer

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
    value, *partials = row(rule)
    if len(partials) == 1:
        _write_of_one(module, rule, name, value, partials[0])
        return False
    _write_of_two(module, rule, name, value, *partials)
    return True


def _write_of_one(module: Module, rule: Rule, name: str, value: str, partial: str) -> None:
    """name(self, x), where self is not used."""
    w = Writer(module, name, "ptr", "ptr")
    _, x = w.arguments
    w.require(w.is_a(x, Scalar))
    a, tape = w.scalar(x), w.tape(x)
    numbers = _Translator(w, a=a.number)
    val, p = numbers.value(value), numbers.partial("p", partial, rule)
    w.record(rule, x, w.literal(None), w.new_float(p), w.own_literal(None), val, tape)
    w.leave()
    w.python(written_out(rule), x)
    w.end()


def _write_of_two(module: Module, rule: Rule, name: str, value: str, of_a: str, of_b: str) -> None:
    """name(self, arguments, count), where self is not used."""
    w = Writer(module, name, "ptr", "ptr", "i64")
    _, arguments, count = w.arguments
    w.require(w.same(count, 2, "i64"))
    x, y = w.part(arguments, 0), w.part(arguments, layout.WORD)

    def of_both(a: HeldNumber, b: HeldNumber, tape: Name) -> None:
        numbers = _Translator(w, a=a.number, b=b.number)
        val, p = numbers.value(value), numbers.partial("p", of_a, rule)
        q = numbers.partial("q", of_b, rule)
        w.record(rule, x, y, w.new_float(p), w.new_float(q), val, tape)

    def of_first(a: HeldNumber, c: X, tape: Name) -> None:
        numbers = _Translator(w, a=a.number, b=c)
        val, p = numbers.value(value), numbers.partial("p", of_a, rule)
        w.record(rule, x, w.literal(None), w.new_float(p), w.new_float(c), val, tape)

    def of_second(c: X, b: HeldNumber, tape: Name) -> None:
        numbers = _Translator(w, a=c, b=b.number)
        val, q = numbers.value(value), numbers.partial("q", of_b, rule)
        w.record(rule, w.literal(None), y, w.new_float(c), w.new_float(q), val, tape)

    w.of_two(x, y, of_both, of_first, of_second)
    w.leave()
    w.python_with(written_out(rule), arguments, count)
    w.end()


class _Translator:
    """Translates the expressions of a row to numbers of LLVM."""

    def __init__(self, w: Writer, **names: X) -> None:
        self.w, self.k = w, w.numbers
        self.names = {**{name: self.k.x(value) for name, value in CONSTANTS.items()}, **names}

    def value(self, source: str) -> X:
        """The value, which must be finite."""
        val = self.names["val"] = self._of(ast.parse(source, mode="eval").body)
        self.w.require_finite(val)
        return val

    def partial(self, name: str, source: str, rule: Rule) -> X:
        """A partial, which must be regular, as in Python."""
        self.names[name] = self._of(ast.parse(source, mode="eval").body)
        condition = ast.parse(regular(rule, name), mode="eval").body
        if not isinstance(condition, ast.Constant):
            self.w.require(self._holds(condition))
        return self.names[name]

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
