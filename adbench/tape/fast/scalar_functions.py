"""Functions of scalars, without a call of their rules: as quick as the operators in `written_out`.

A row holds a function's value as source, and its partial derivatives where the rule's own would take longer. All other
partials come from the rule: its gradient functions, called with `SourceNumber`, write them. From value and partials, a
template writes the rule's `run` at its first call. The partials go into the record, so the sweep only multiplies.

The rows hold where nothing special happens. All other cases take the way through the rule: arguments outside the
domain, poles, kinks, overflow, NaN, and partials that are 0 or nearly so, because another factor may bring them back.
The results and warnings there are those of the rule. Elsewhere the value is that of Python's `math`, also for a plain
float, so that a function and its recording give the same number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from adbench.tape.core.node import Scalar
from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.explain.notation import ATOM, INFIX, Name, expression
from adbench.tape.lazy import special
from adbench.tape.numpy_names import ROWS as EVERY
from adbench.tape.rules import compound as c
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import special as s
from adbench.tape.values import value_of

_FIRST = "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1 hypot log log10 log1p log2"
LIBRARY = f"{_FIRST} sin sinh sqrt tan tanh".split()
"""Functions of Python's `math` that are the values of rules, which name them in `native`."""

_EXPIT = "(1.0 if {0} >= 0.0 else t) / (1.0 + t)"  # where t = exp(-|x|)

ROWS: dict[Rule, tuple[str, ...]] = {
    **{f: (f"{f.native}({'a, b' if len(f.reverse) == 2 else 'a'})",) for f in EVERY if f.native in LIBRARY},
    # f(a): value, ∂value/∂a
    e.tanh: ("tanh(a)", "1.0 / ((t := cosh(a)) * t)"),
    e.cbrt: ("cbrt(a)", "1.0 / (3.0 * val * val)"),
    e.square: ("a * a",),
    e.reciprocal: ("1.0 / a",),
    e.absolute: ("abs(a)", "a / val"),
    e.sign: ("1.0 if a > 0.0 else -1.0 if a < 0.0 else nan",),
    e.floor: ("copysign(floor(a), a)",),
    e.ceil: ("copysign(ceil(a), a)",),
    e.trunc: ("copysign(trunc(a), a)",),
    e.rint: ("copysign(round(a), a)",),
    e.degrees: ("a * DEGREES",),
    e.radians: ("a / DEGREES",),
    e.expit: ("1.0 / (1.0 + (t := exp(-a)))", "val * (t * val)"),
    s.gammaln: ("float(special.gammaln(a))", "float(special.digamma(a))"),
    c.Phi: ("0.5 * erfc(-a * ROOT_HALF)",),
    c.inv_Phi: ("float(special.ndtri(a))",),
    c.erfinv: ("float(special.erfinv(a))",),
    c.logit: ("float(special.logit(a))",),
    c.std_normal_lcdf: (
        "float(special.log_ndtr(a))",
        "ROOT_TWO_OVER_PI / float(special.erfcx(a / -ROOT_TWO))",
    ),
    c.log1p_square: ("log1p(a * a)",),
    c.log1m_exp: ("log(-expm1(a)) if a > -LOG2 else log1p(-exp(a))", "-1.0 / expm1(-a)"),
    c.log1m: ("log1p(-a)",),
    c.log1p_exp: ("max(a, 0.0) + log1p(t := exp(-abs(a)))", _EXPIT.format("a")),
    c.log_inv_logit: ("min(a, 0.0) - log1p(t := exp(-abs(a)))", _EXPIT.format("-a")),
    c.log1m_inv_logit: ("-(max(a, 0.0) + log1p(t := exp(-abs(a))))", "-" + _EXPIT.format("a")),
    # f(a, b): value, ∂value/∂a, ∂value/∂b
    e.power: ("pow(a, b)",),
    e.arctan2: ("atan2(a, b)", "b / (r := hypot(a, b)) / r", "-a / (r := hypot(a, b)) / r"),
    e.maximum: ("a if a > b else b if b > a else nan", "1.0 if a > b else 0.0", "0.0 if a > b else 1.0"),
    e.minimum: ("a if a < b else b if b < a else nan", "1.0 if a < b else 0.0", "0.0 if a < b else 1.0"),
    e.remainder: ("a % b",),
    c.xlogy: ("a * log(b)",),
    c.xlog1py: ("a * log1p(b)",),
    c.log_diff_exp: (
        "a + (log(-expm1(b - a)) if b - a > -LOG2 else log1p(-exp(b - a)))",
        "-1.0 / expm1(b - a)",
        "-1.0 / expm1(a - b)",
    ),
    e.logaddexp: ("max(a, b) + log1p(t := exp(-abs(a - b)))", _EXPIT.format("a - b"), _EXPIT.format("b - a")),
}
"""The value of each function, and its partials unless the rule writes them."""


class SourceNumber(Name):
    """A number as Python's source. Its value represents any ordinary number, so that x = 0 does not hold."""

    __slots__ = ()

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """The source of the rule's value."""
        if rule is e.where:
            return args[1 if value_of(args[0]) else 2]
        if rule is e.multiply and args[0] in (1.0, -1.0):
            return args[1] if args[0] == 1.0 else e.negative(args[1])
        parts = [self.part(arg) for arg in args]
        if rule in ROWS:
            source_of = {name: text for name, (text, _) in zip("ab", parts, strict=False)}
            part = re.sub(r"\b[ab]\b", lambda name: f"({source_of[name[0]]})", f"({ROWS[rule][0]})"), ATOM
        elif rule in INFIX or rule is e.negative:
            part = expression(rule, parts, params)
        else:
            return rule.value(*args, **params)
        return SourceNumber(self.level, self.val, *part)

    @staticmethod
    def number(value: Value) -> str:
        """A constant, with all digits."""
        return repr(float(value))


@cache
def row(rule: Rule) -> tuple[str, ...]:
    """The source of a function's value and of its partials."""
    value, *partials = ROWS[rule]
    if not partials:
        val, *names = (SourceNumber(0, 0.5, text) for text in ("val", *"ab"[: len(rule.reverse)]))
        partials = [val.part(gradient(val, 1.0, *names))[0] for gradient in rule.reverse]
    return value, *partials


_REGULAR = "1e-300 < {0} * {0} < 1e300"
"""Whether a partial is neither infinite, nor NaN, nor close to 0."""

_REGULAR_OF = dict.fromkeys((e.maximum, e.minimum, e.sign, e.floor, e.ceil, e.trunc, e.rint), "val == val")
"""The condition for functions whose partials are 0 or 1: neither a tie nor a NaN."""

_REGULAR_OF |= dict.fromkeys((e.degrees, e.radians, e.remainder, c.logit), "val - val == 0.0")
"""Functions whose partials are ordinary numbers where the value is not."""

_REGULAR_OF |= dict.fromkeys((e.sin, e.cos), "True")
"""Functions whose partials need no check: as factors they do what the rule does, at any number."""


def recorded(parts: str) -> str:
    """Source that records the number `val` with these cells and partials, and returns its scalar."""
    node = "node = Scalar(); node.adj = 0.0; node.tape = tape; node.val = val"
    return f"{node}; tape.append((rule, node, {parts})); return node"


_OF_ONE = f"""
def run(x):
    try:
        if type(x) is Scalar:
            a = x.val
            val = {{value}}
            p = {{p}}
            if {{p_is_regular}}:
                tape = x.tape; {recorded("x, None, p, None")}
        elif type(x) is float:
            a = x
            val = {{value}}
            if val - val == 0.0:
                return float64(val)
    except (ValueError, ArithmeticError):
        pass  # the rule gives numpy's result: inf or nan with a warning
    if not isinstance(x, Active):
        return rule.value(x)
    return x.interpret(rule, (x,), dict()) if rule.special is None else rule.special(rule, x, (x,), dict())
"""

_OF_TWO = f"""
def run(x, y):
    kind, other = type(x), type(y)
    try:
        if kind is Scalar:
            a = x.val
            tape = x.tape
            if other is Scalar:
                if y.tape is tape:
                    b = y.val
                    val = {{value}}
                    p = {{p}}
                    q = {{q}}
                    if {{p_is_regular}} and {{q_is_regular}}:
                        {recorded("x, y, p, q")}
            elif other is float or other is int or other is float64:
                b = float(y)
                val = {{value}}
                p = {{p}}
                if {{p_is_regular}}:
                    {recorded("x, None, p, b")}
        elif other is Scalar:
            if kind is float or kind is int or kind is float64:
                a = float(x)
                b = y.val
                val = {{value}}
                q = {{q}}
                if {{q_is_regular}}:
                    tape = y.tape; {recorded("None, y, a, q")}
        elif kind is float and other is float:
            a = x
            b = y
            val = {{value}}
            if val - val == 0.0:
                return float64(val)
    except (ValueError, ArithmeticError):
        pass
    return by_rule(rule, x, y)
"""


def _by_rule(rule: Rule, x: Value, y: Value) -> Value:
    """`Rule.evaluate` of two arguments."""
    if isinstance(x, Active):
        top = x if y is x or not isinstance(y, Active) or y.level <= x.level else y
    elif isinstance(y, Active):
        top = y
    else:
        return rule.value(x, y)
    return top.interpret(rule, (x, y), {}) if rule.special is None else rule.special(rule, top, (x, y), {})


CONSTANTS = {
    "LOG2": math.log(2.0),
    "ROOT_HALF": math.sqrt(0.5),
    "ROOT_TWO": math.sqrt(2.0),
    "ROOT_TWO_OVER_PI": math.sqrt(2.0 / math.pi),
    "DEGREES": 180.0 / math.pi,
    "nan": math.nan,
}
_SCOPE: dict[str, Any] = {
    **{name: getattr(math, name) for name in (*LIBRARY, "ceil", "copysign", "floor", "pow", "trunc")},
    **CONSTANTS,
    "special": special,
    "Active": Active,
    "Scalar": Scalar,
    "float64": np.float64,
    "by_rule": _by_rule,
}


def regular(rule: Rule, partial: str) -> str:
    """Whether a partial, "p" or "q", may go into the record, as source."""
    return _REGULAR_OF.get(rule, _REGULAR.format(partial))


@cache
def written_out(rule: Rule) -> Callable[..., Value]:
    """The function of a rule's row."""
    value, *partials = row(rule)
    sure = [regular(rule, name) for name in "pq"]
    source = (_OF_ONE if len(partials) == 1 else _OF_TWO).format(
        value=value, p=partials[0], q=partials[-1], p_is_regular=sure[0], q_is_regular=sure[1]
    )
    scope: dict[str, Any] = {**_SCOPE, "rule": rule}
    exec(compile(source, f"<{rule.name} of scalars>", "exec"), scope)
    run: Callable[..., Value] = scope["run"]
    return run


def late(rule: Rule) -> Callable[..., Value]:
    """A function that writes the row out at its first call, because that takes longer than a call."""

    def run(*args: Value) -> Value:
        if any(isinstance(x, SourceNumber) for x in args):  # a row is being written
            return rule.evaluate(*args)
        rule.run = written_out(rule)
        return rule.run(*args)

    return run
