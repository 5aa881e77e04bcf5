"""Operations, formulas and expression graphs as text, for `explain`.

`Name` is an active value that computes with text. Called with names instead of numbers, a rule's gradient function
returns its own formula, such as `v1 / v3` for hypot. Rules need no change for this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import AllInputs, Rule, TapeError, Value
from adbench.tape.levels import next_level
from adbench.tape.operand import Operand
from adbench.tape.rules.elementwise import (
    add,
    divide,
    floor_divide,
    multiply,
    negative,
    one_minus_square,
    power,
    remainder,
    square,
    subtract,
    where,
)
from adbench.tape.rules.indexing import getitem
from adbench.tape.rules.products import matmul
from adbench.tape.values import settle, value_of

SUM, PRODUCT, SIGN, POWER, ATOM = range(1, 6)
"""Precedence of expressions; an operand of lower precedence than required gets brackets."""

INFIX: dict[Rule, tuple[str, int, int, int]] = {
    add: ("+", SUM, SUM, SUM),
    subtract: ("-", SUM, SUM, PRODUCT),
    multiply: ("*", PRODUCT, PRODUCT, SIGN),
    divide: ("/", PRODUCT, PRODUCT, SIGN),
    floor_divide: ("//", PRODUCT, PRODUCT, SIGN),
    remainder: ("%", PRODUCT, PRODUCT, SIGN),
    matmul: ("@", PRODUCT, PRODUCT, SIGN),
    power: ("**", POWER, ATOM, SIGN),
}
"""Operator, precedence of its result, and the precedence required of the left and right operand."""

LONGEST_FORMULA = 40
LARGEST_ARRAY = 4
"""Vectors of at most this many elements are written out."""


def text_of(value: Value) -> str:
    """A plain value as text: six digits of a number, a short vector, the shape of any larger array."""
    if isinstance(value, np.ndarray) and value.ndim:
        if value.ndim == 1 and value.size <= LARGEST_ARRAY:
            return f"[{' '.join(text_of(x) for x in value)}]"
        return f"array {value.shape}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def symbol_of(rule: Rule) -> str:
    """The operator of a rule, as + for add; otherwise the function's name."""
    return _SYMBOLS.get(rule, INFIX[rule][0] if rule in INFIX else rule.name)


_SYMBOLS = {negative: "-", square: "**", getitem: "[]"}


def written(rule: Rule, operands: Sequence[str], params: dict[str, Any]) -> str:
    """rule(*operands, **params) in Python notation; the operands are names and constants."""
    parts = [(text, SIGN if text.startswith("-") else ATOM) for text in operands]
    return expression(rule, parts, params)[0]


def expression(rule: Rule, parts: Sequence[tuple[str, int]], params: dict[str, Any]) -> tuple[str, int]:
    """rule(*parts, **params) in Python notation, and its precedence; each part is a text with its precedence."""
    if rule in INFIX and len(parts) == 2:
        sign, binds, left, right = INFIX[rule]
        return f"{_within(parts[0], left)} {sign} {_within(parts[1], right)}", binds
    if rule is negative:
        return f"-{_within(parts[0], SIGN)}", SIGN
    if rule is square:
        return f"{_within(parts[0], ATOM)} ** 2", POWER
    if rule is one_minus_square:
        return f"(1 - {_within(parts[0], ATOM)}) * (1 + {_within(parts[0], ATOM)})", INFIX[multiply][1]
    if rule is getitem:
        return f"{_within(parts[0], ATOM)}[{_index_text(params['index'])}]", ATOM
    arguments = [text for text, _ in parts] + [
        f"{key}={_short(value)}" for key, value in params.items() if value is not None and value is not False
    ]
    return f"{rule.name}({', '.join(arguments)})", ATOM


def _within(part: tuple[str, int], least: int) -> str:
    text, binds = part
    return text if binds >= least else f"({text})"


def _short(value: Any) -> str:
    return text_of(value) if isinstance(value, (np.ndarray, float)) else f"{value!r:.20}"


def _index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index))
    if isinstance(index, slice):
        start, stop, step = ("" if part is None else str(part) for part in (index.start, index.stop, index.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return "..." if index is Ellipsis else _short(index)


class Name(Operand):
    """A value together with its text. Computing with it computes both."""

    __slots__ = ("_level", "binds", "text", "val")

    is_differentiated = False

    def __init__(self, level: int, val: Value, text: str, binds: int = ATOM) -> None:
        self._level, self.val, self.text, self.binds = level, val, text, binds

    @property
    def level(self) -> int:
        """The level of the caller."""
        return self._level

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """The rule's value and its simplified text: 2 * x for x + x, x for 1 * x."""
        parts = [self.part(arg) for arg in args]
        val = settle(rule.value(*map(value_of, args), **params))
        if rule is where and len(set(np.ravel(value_of(args[0])))) == 1:
            text, binds = parts[1 if np.all(value_of(args[0])) else 2]  # the same choice for all elements
        else:
            text, binds = _simplified(rule, parts) or expression(rule, parts, params)
        return Name(self._level, val, text, binds)

    number = staticmethod(text_of)

    def part(self, arg: Value) -> tuple[str, int]:
        """The text of an operand, and its precedence."""
        if isinstance(arg, Name):
            return arg.text, arg.binds
        text = self.number(arg)
        return text, SIGN if text.startswith("-") else ATOM


def _simplified(rule: Rule, parts: Sequence[tuple[str, int]]) -> tuple[str, int] | None:
    texts = [text for text, _ in parts]
    if rule is multiply and "1" in texts:
        return parts[1 - texts.index("1")]
    if rule is multiply and "-1" in texts:
        return expression(negative, [parts[1 - texts.index("-1")]], {})
    if rule in (divide, power) and texts[1] == "1":
        return parts[0]
    if rule is add and texts[0] == texts[1]:
        return expression(multiply, [("2", ATOM), parts[0]], {})
    if rule is divide and parts[1][1] == SIGN:  # x / -y
        x = (texts[0][1:], ATOM) if parts[0][1] == SIGN else expression(negative, [parts[0]], {})
        return expression(divide, [x, (texts[1][1:], ATOM)], {})
    return None


def formula_of(
    rule: Rule,
    i: int,
    result: tuple[str, Value],
    names: Sequence[str | None],
    inputs: Sequence[Value],
    params: dict[str, Any],
) -> str:
    """∂result/∂inputs[i] in these names; None for a constant, "" for a matrix function or a long formula."""
    if not rule.elementwise or isinstance(rule.reverse, AllInputs):
        return ""
    level = next_level()
    named = [x if name is None else Name(level, x, name) for name, x in zip(names, inputs, strict=True)]
    try:
        with np.errstate(all="ignore"):
            formula = rule.reverse[i](Name(level, result[1], result[0]), 1.0, *named, **params)
    except (TypeError, ValueError, ArithmeticError, AttributeError, TapeError):
        return ""  # for plain numbers only, or without a value at this point
    text = formula.text if isinstance(formula, Name) else text_of(formula)
    return text if len(text) <= LONGEST_FORMULA else ""


def drawn(root: str, nodes: dict[str, tuple[str, Sequence[str]]]) -> Iterator[str]:
    """The lines of a graph, name -> (symbol, operands), from the root down. A constant is its own text."""
    seen: set[str] = set()
    waiting = [(root, "", "")]
    while waiting:
        name, lead, below = waiting.pop()
        symbol, operands = nodes.get(name, ("", ()))
        again = name in seen and operands
        yield f"{lead}{name} {symbol}{' (drawn above)' if again else ''}".rstrip()
        if again:
            continue
        seen.add(name)
        last = len(operands) - 1
        for k, operand in reversed(list(enumerate(operands))):
            fork, line = ("└── ", "    ") if k == last else ("├── ", "│   ")
            waiting.append((operand, below + fork, below + line))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as aligned columns, with a line under the first row. Rows may differ in length."""
    count = max(map(len, rows))
    filled = [[*row, *[""] * (count - len(row))] for row in rows]
    widths = [max(len(row[k]) for row in filled) for k in range(count)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in filled]
    return "\n".join([lines[0], "─" * max(map(len, lines)), *lines[1:]])
