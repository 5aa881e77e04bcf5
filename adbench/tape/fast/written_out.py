"""The operators of `Scalar` and `Array`, without a call of their rules. They make the same records.

They make scalar code three times as fast, and code on arrays of a hundred numbers twice. A scalar's operator makes one
record and calls nothing; it leaves all other cases to the rule. A template generates these operators, because every
further call costs time in the innermost loop: closures that call their value and partials take twice the time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape import identities
from adbench.tape.core.node import Array, Scalar
from adbench.tape.core.recording import ASK, AdjointCell
from adbench.tape.core.rule import Rule, Value
from adbench.tape.fast.blocks import LARGE, room, snapshot
from adbench.tape.fast.scalar_functions import recorded
from adbench.tape.rules.elementwise import absolute, add, divide, multiply, negative, power, square, subtract
from adbench.tape.values import FLOAT64, MINUS_ONE, ONE

Operator = Callable[[Any, Any], Value]

# Arrays, with an array of the same shape, a scalar, or a constant


def _recorded(tape: Any, rule: Rule, val: Value, shape: tuple[int, ...], cells: Any, saved: Any, params: Any) -> Array:
    """`core.node.push` of an array of this shape."""
    node = Array()
    node.val = val
    node.tape = tape
    node.cell = out = AdjointCell()
    out.adj = 0.0
    out.shape = shape
    tape.append((rule, out, cells, saved, params, ASK))
    return node


def _array_operator(
    rule: Rule, compute: Callable[[Any, Any], Any], partials: tuple[float, float] | None, reflected: bool = False
) -> Operator:
    """The operator array ∘ other, or other ∘ array if reflected.

    `partials` are constants, or None for a product, where each partial is the other argument.
    """

    def operate(self: Array, other: Any) -> Value:
        kind, tape, cell, mine = type(other), self.tape, self.cell, self.val
        theirs, its_cell, known = other, None, type(mine) is np.ndarray
        if kind is Array:
            if tape.remembers and partials is None and (square_of_root := identities.product(self, other)) is not None:
                return square_of_root
            theirs, its_cell = other.val, other.cell
            known = known and other.tape is tape and type(theirs) is np.ndarray and its_cell.shape == cell.shape
        elif kind is Scalar:
            theirs, its_cell = other.val, other
            known = known and other.tape is tape
        elif kind is np.ndarray:
            known = known and other.shape == cell.shape and other.dtype is FLOAT64
            if known and partials is None:
                theirs = snapshot(other)
        elif kind is np.float64:
            theirs = float(other)
        elif kind is not float and kind is not int:
            known = False
        if not known:
            return rule(other, self) if reflected else rule(self, other)
        a, b = (theirs, mine) if reflected else (mine, theirs)
        node = Array()
        node.val = compute(a, b) if mine.size < LARGE else rule.value(a, b, room(cell.shape))
        node.tape = tape
        node.cell = out = AdjointCell()
        out.adj = 0.0
        out.shape = cell.shape
        p, q = partials or (b, a)
        if its_cell is not None:
            cells = (its_cell, cell) if reflected else (cell, its_cell)
            tape.append((rule, out, cells, (p, q), None, ASK))
        elif reflected:
            tape.append((rule, out, (None, cell), (theirs, q), None, ASK))
        else:
            tape.append((rule, out, (cell, None), (p, theirs), None, ASK))
        return node

    return operate


def _with_scalar(
    rule: Rule,
    compute: Callable[[Any, Any], Any],
    partials: tuple[float, float] | None,
    of_array: Operator,
    reflected: bool = False,
) -> Operator:
    """The operator scalar ∘ array, or array ∘ scalar if reflected; `of_array` is the array's version."""

    def operate(self: Scalar, other: Any) -> Value:
        if type(other) is Array:
            return of_array(other, self)
        if type(other) is not np.ndarray or other.dtype is not FLOAT64 or not other.ndim:
            return rule(other, self) if reflected else rule(self, other)
        theirs = other if partials else snapshot(other)
        a, b = (theirs, self.val) if reflected else (self.val, theirs)
        val = compute(a, b) if other.size < LARGE else rule.value(a, b, room(other.shape))
        p, q = partials or (b, a)
        cells, saved = ((None, self), (theirs, q)) if reflected else ((self, None), (p, theirs))
        return _recorded(self.tape, rule, val, other.shape, cells, saved, None)

    return operate


OF_ARRAYS: dict[str, Callable[..., Value]] = {}
"""Name of an operator -> the fast method of `Array`."""

_WITH_SCALAR: dict[str, Operator] = {}

for _name, _rule, _compute, _partials in (
    ("add", add, operator.add, (ONE, ONE)),
    ("sub", subtract, operator.sub, (ONE, MINUS_ONE)),
    ("mul", multiply, operator.mul, None),
):
    OF_ARRAYS[_name] = _array_operator(_rule, _compute, _partials)
    OF_ARRAYS["r" + _name] = _array_operator(_rule, _compute, _partials, reflected=True)
    _WITH_SCALAR[_name] = _with_scalar(_rule, _compute, _partials, OF_ARRAYS["r" + _name])
    _WITH_SCALAR["r" + _name] = _with_scalar(_rule, _compute, _partials, OF_ARRAYS[_name], reflected=True)


def _array_truediv(self: Any, other: Any) -> Value:
    kind, a, tape = type(other), self.val, self.tape
    if type(a) is np.ndarray:
        if kind is Scalar and other.tape is tape and (b := other.val):
            return _divided(self, other, b)
        if (kind is float or kind is int or kind is np.float64) and other:
            return _divided(self, None, float(other))
    return divide(self, other)


def _divided(self: Any, cell: Any, b: float) -> Value:
    """array / b, where b is the value of a scalar with this cell, or a constant if there is no cell."""
    a = self.val
    val = a / b if a.size < LARGE else np.divide(a, b, room(a.shape))
    saved = (1.0 / b, b if cell is None else (val, -1.0 / b))
    return _recorded(self.tape, divide, val, a.shape, (self.cell, cell), saved, None)


def _array_pow(self: Any, other: Any) -> Value:
    if type(other) in (int, float) and other == 2:
        a, tape = self.val, self.tape
        if type(a) is not np.ndarray or tape.remembers:
            return square(self)
        val = a * a if a.size < LARGE else np.square(a, room(a.shape))
        return _recorded(tape, square, val, a.shape, (self.cell,), (None, (a,)), {})
    return power(self, other)


def _array_neg(self: Any) -> Value:
    a = self.val
    if type(a) is not np.ndarray:
        return negative(self)
    val = -a if a.size < LARGE else np.negative(a, room(a.shape))
    return _recorded(self.tape, negative, val, a.shape, (self.cell,), (MINUS_ONE,), None)


OF_ARRAYS |= {"truediv": _array_truediv, "pow": _array_pow, "neg": _array_neg}

# Scalars, with a scalar or a constant

_TEMPLATE = f"""
def {{name}}(self, other):
    try:
        if type(other) is Scalar:
            tape = self.tape
            if other.tape is tape:
                {{both}}{{repeated}}
                {recorded("self, other, {p}, {q}")}
        elif (kind := type(other)) is float or kind is int:
            {{constant}}
            tape = self.tape; {recorded("self, None, {p_of_constant}, other")}
        elif kind is float64:
            return {{name}}(self, float(other))
    except ArithmeticError:
        pass  # the rule gives numpy's result: inf or nan with a warning
    return otherwise(self, other)


def r{{name}}(self, other):
    try:
        if (kind := type(other)) is float or kind is int:
            {{reflected}}{{underflow}}
            tape = self.tape; {recorded("None, self, other, {q_of_constant}")}
        elif kind is float64:
            return r{{name}}(self, float(other))
    except ArithmeticError:
        pass
    return otherwise_reflected(self, other)
"""

SCALAR_OPERATORS = (
    # name, sign, rule, ∂(a ∘ b)/∂a, ∂(a ∘ b)/∂b for val = a ∘ b
    ("add", "+", add, "1.0", "1.0"),
    ("sub", "-", subtract, "1.0", "-1.0"),
    ("mul", "*", multiply, "b", "a"),
    ("truediv", "/", divide, "1.0 / b", "-val / b"),
)


_REPEATED = """
                if not val and tape.remembers and (square_of_root := known_product(self, other)) is not None:
                    return square_of_root"""
"""A product that is 0 may be the square of a root."""


_UNDERFLOW = """
            if val and not val / b:
                return otherwise_reflected(self, other)"""
"""If the quotient underflows, use the rule: another factor may bring its partial back."""


def _compiled(name: str, sign: str, rule: Rule, p: str, q: str) -> dict[str, Operator]:
    """Compile self ∘ other and other ∘ self; partials of a quotient are cheaper now than in the sweep."""
    named = {letter for letter in "ab" if letter in p + q}

    def value(a: str, b: str) -> str:
        """The source of val = a ∘ b, with names for operands that a partial reads."""
        left, right = (f"({x} := {of})" if x in named and of != "other" else of for x, of in (("a", a), ("b", b)))
        return f"val = {left} {sign} {right}"

    source = _TEMPLATE.format(
        name=name,
        both=value("self.val", "other.val"),
        repeated=_REPEATED if rule is multiply else "",
        underflow=_UNDERFLOW if rule is divide else "",
        constant=value("self.val", "other"),
        reflected=value("other", "self.val"),
        p=p,
        q=q,
        p_of_constant=p.replace("b", "other"),
        q_of_constant={"a": "other"}.get(q, q),
    )
    scope: dict[str, Any] = {
        "Scalar": Scalar,
        "float64": np.float64,
        "rule": rule,
        "known_product": identities.product,
        "otherwise": _WITH_SCALAR.get(name, rule),
        "otherwise_reflected": _WITH_SCALAR.get("r" + name, lambda self, other: rule(other, self)),
    }
    exec(compile(source, f"<{name} of scalars>", "exec"), scope)
    return {name: scope[name], "r" + name: scope["r" + name]}


def _scalar_neg(self: Any) -> Value:
    node = Scalar()
    node.adj = 0.0
    node.tape = tape = self.tape
    node.val = -self.val
    tape.append((negative, node, self, None, -1.0, None))
    return node


def _scalar_pow(self: Any, other: Any) -> Value:
    if type(other) in (int, float) and other == 2:
        a, tape = self.val, self.tape
        if not a and tape.remembers:
            return square(self)
        node = Scalar()
        node.adj = 0.0
        node.tape = tape
        node.val = a * a
        tape.append((power, node, self, None, a + a, other))
        return node
    return power(self, other)


def _scalar_abs(self: Any) -> Value:
    return absolute(self)


OF_SCALARS: dict[str, Callable[..., Value]] = {"neg": _scalar_neg, "pow": _scalar_pow, "abs": _scalar_abs}
"""Name of an operator -> the fast method of `Scalar`."""

for _row in SCALAR_OPERATORS:
    OF_SCALARS |= _compiled(*_row)
