"""Functions of scalars in machine code, translated from the rows of `fast.scalar_functions`.

A row gives value and partials as Python's source. What this translator knows is in `LIBRARY` and `_Translator`; rows
with anything else stay in Python. Where Python's `math` raises an error, C gives NaN or an infinite value or partial,
so the code leaves these cases to Python.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from adbench.tape.core.node import Scalar
from adbench.tape.core.rule import Rule
from adbench.tape.fast.scalar_functions import CONSTANTS, ROWS, regular, written_out
from adbench.tape.machine import layout
from adbench.tape.machine.writer import INT, LIBRARY, POINTER, Module, Writer, integer, number

_SIGNS = {ast.Lt: "<", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
_KNOWN: tuple[type[ast.AST], ...] = (
    *(ast.Expression, ast.Name, ast.Constant, ast.Load, ast.Store, ast.NamedExpr, ast.IfExp, ast.Compare, ast.Call),
    *(ast.UnaryOp, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, *_SIGNS),
)


def translated() -> Iterator[Rule]:
    """The rules whose rows have machine code."""
    for rule, row in ROWS.items():
        nodes = [node for source in row for node in ast.walk(ast.parse(source, mode="eval"))]
        calls = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        if calls <= {*LIBRARY, "abs", "max", "min"} and all(isinstance(node, _KNOWN) for node in nodes):
            yield rule


def write_row(module: Module, rule: Rule, name: str) -> bool:
    """Write the function of a rule's row; returns whether it takes two arguments, as an array and their number."""
    value, *partials = ROWS[rule]
    if len(partials) == 1:
        _write_of_one(module, rule, name, value, partials[0])
        return False
    _write_of_two(module, rule, name, value, *partials)
    return True


def _write_of_one(module: Module, rule: Rule, name: str, value: str, partial: str) -> None:
    """name(self, x), where self is not used."""
    w = Writer(module, name, POINTER, POINTER)
    _, x = w.made.args
    w.require(w.is_a(x, Scalar))
    a, tape = w.scalar(x), w.tape(x)
    numbers = _Translator(w, a=a.number)
    val, p = numbers.value(value), numbers.partial("p", partial, rule)
    w.record(rule, x, w.literal(None), w.new_float(p), w.own_literal(None), val, tape)
    w.write(w.leave)
    w.python(written_out(rule), x)


def _write_of_two(module: Module, rule: Rule, name: str, value: str, of_a: str, of_b: str) -> None:
    """name(self, arguments, count), where self is not used."""
    w = Writer(module, name, POINTER, POINTER, INT)
    build, (_, arguments, count) = w.build, w.made.args
    none, first, second, both, with_constant = w.literal(None), w.block(), w.block(), w.block(), w.block()
    w.require(build.icmp_signed("==", count, integer(2)))
    x, y = w.part(arguments, 0), w.part(arguments, layout.WORD)
    build.cbranch(w.is_a(x, Scalar), first, second)

    w.write(first)
    a, tape = w.scalar(x), w.tape(x)
    build.cbranch(w.is_a(y, Scalar), both, with_constant)

    w.write(both)
    w.require(w.same(tape, w.slot(y, "tape")))
    numbers = _Translator(w, a=a.number, b=w.scalar(y).number)
    val, p = numbers.value(value), numbers.partial("p", of_a, rule)
    q = numbers.partial("q", of_b, rule)
    w.record(rule, x, y, w.new_float(p), w.new_float(q), val, tape)

    w.write(with_constant)
    c = w.constant(y)
    numbers = _Translator(w, a=a.number, b=c)
    val, p = numbers.value(value), numbers.partial("p", of_a, rule)
    w.record(rule, x, none, w.new_float(p), w.new_float(c), val, tape)

    w.write(second)
    w.require(w.is_a(y, Scalar))
    b, tape = w.scalar(y), w.tape(y)
    c = w.constant(x)
    numbers = _Translator(w, a=c, b=b.number)
    val, q = numbers.value(value), numbers.partial("q", of_b, rule)
    w.record(rule, none, y, w.new_float(c), w.new_float(q), val, tape)

    w.write(w.leave)
    w.python_with(written_out(rule), arguments, count)


class _Translator:
    """Translates the expressions of a row to numbers of LLVM."""

    def __init__(self, w: Writer, **names: Any) -> None:
        self.w, self.build = w, w.build
        self.names = {**{name: number(value) for name, value in CONSTANTS.items()}, **names}

    def value(self, source: str) -> Any:
        """The value, which must be finite."""
        val = self.names["val"] = self._of(ast.parse(source, mode="eval").body)
        self.w.require(self.build.fcmp_ordered("==", self.build.fsub(val, val), number(0.0)))
        return val

    def partial(self, name: str, source: str, rule: Rule) -> Any:
        """A partial, which must be regular, as in Python."""
        self.names[name] = self._of(ast.parse(source, mode="eval").body)
        condition = ast.parse(regular(rule, name), mode="eval").body
        if not isinstance(condition, ast.Constant):
            self.w.require(self._holds(condition))
        return self.names[name]

    def _of(self, node: ast.expr) -> Any:
        build = self.build
        match node:
            case ast.Constant(value=value):
                return number(float(value))  # type: ignore[arg-type]  # rows have numbers only
            case ast.Name(id=name):
                return self.names[name]
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.names[name] = self._of(value)
                return self.names[name]
            case ast.UnaryOp(operand=operand):
                return build.fneg(self._of(operand))
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._of(left), self._of(right)
                instructions = {ast.Add: build.fadd, ast.Sub: build.fsub, ast.Mult: build.fmul, ast.Div: build.fdiv}
                return instructions[type(op)](a, b)
            case ast.IfExp(test=test, body=body, orelse=other):
                return build.select(self._holds(test), self._of(body), self._of(other))
            case ast.Call(func=ast.Name(id="abs"), args=[x]):
                return self.w.call("llvm.fabs.f64", self._of(x))
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[x, y]):
                a, b = self._of(x), self._of(y)
                return build.select(build.fcmp_ordered(">" if name == "max" else "<", b, a), b, a)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.w.call(name, *map(self._of, args))
        raise AssertionError(ast.unparse(node))  # `translated` knows better

    def _holds(self, node: ast.expr) -> Any:
        """Whether a comparison holds, such as a < b < c."""
        assert isinstance(node, ast.Compare)
        sides = [self._of(side) for side in (node.left, *node.comparators)]
        each = [
            self.build.fcmp_ordered(_SIGNS[type(op)], a, b)
            for op, (a, b) in zip(node.ops, pairwise(sides), strict=True)
        ]
        found = each[0]
        for one in each[1:]:
            found = self.build.and_(found, one)
        return found
