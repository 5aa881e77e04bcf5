"""Compositions of exp u where it overflows: 1 / exp u, exp(u) ** -2, 1 / (1 + exp u), log(1 + exp u).

There the chain rule multiplies an underflowed 0 by ∞, while these have derivatives as functions of u.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.node import Scalar
from adbench.tape.core.recording import ASK
from adbench.tape.core.rule import Active, Rule, Value
from adbench.tape.rules import elementwise as e
from adbench.tape.rules.compound import log1p_exp
from adbench.tape.values import shape_of, value_of

Made = tuple[Rule, tuple[Value, ...], dict[str, Any]]


def call_of(x: Value) -> Made | None:
    """The call that made x, which a few functions store on their results: (rule, args, params), or None."""
    if not isinstance(x, Active):
        return None
    if x.symbolic:
        return x.tape.producer(x)  # type: ignore[attr-defined,no-any-return]
    origin = getattr(x, "origin", None)  # some values have none
    return origin[1:] if origin is not None and origin[0] is x.val else None


def _exponent(x: Value) -> Value:
    """u if x is exp u and may have overflowed, else None."""
    call = call_of(x)
    if call is not None and call[0] is e.exp:
        return call[1][0]
    if type(x) is Scalar and x.val == math.inf and len(x.tape):
        rule, out, cells, *_, ask = x.tape[-1]
        if ask is ASK and rule is e.exp and out is x:
            return cells[0]
    return None


def behind_overflow(x: Value, far: Callable[[Value], Value], near: Callable[[Value], Value]) -> Value:
    """far(u) if x is the number exp u and has overflowed, else None. Of a symbol that is a guard.

    Arrays of symbols, and loops, need it only in a careful recording: far(u) where that is so, near(x) elsewhere.
    """
    plain: Any = value_of(x)
    if not isinstance(plain, Active):
        u = None if shape_of(x) or plain != math.inf else _exponent(x)
        return None if u is None else far(u)
    if (u := _exponent(x)) is None:
        return None
    at = np.equal(value_of(x), math.inf)
    if shape_of(x) or plain.tape.outer is not None:  # type: ignore[attr-defined]
        return e.where(at, far(u), near(e.where(at, 1.0, x))) if plain.careful else None  # type: ignore[attr-defined]
    return far(u) if bool(at) else None


def log1p(x: Value) -> Value:
    """log(1 + exp u) where exp u overflows."""
    u = _exponent(x)
    return None if u is None else log1p_exp(u)


def divide(rule: Rule, top: Active, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """x / x, x / exp u where exp overflows, and 1 / (1 + exp u), whose derivative would be 1 / (1 + exp u)², which
    underflows, times exp u."""
    numerator, x = args
    if x.val == math.inf if type(x) is Scalar else top.symbolic or getattr(x, "origin", None) is not None:
        small = behind_overflow(x, lambda u: numerator * e.exp(-u), lambda x: numerator / x)
        if small is not None:
            return small
    if numerator is x and not top.symbolic:
        args = (e.stop_gradient(x),) * 2  # x / x is constant
    result = top.interpret(rule, args, params)
    if type(x) is Scalar and type(numerator) in (int, float) and abs(x.val) > 1e150 and len(x.tape) > 2:
        return _logistic(numerator, x) or result
    if isinstance(numerator, Active) or type(result) is not Dual or type(x) is not Dual:
        return result
    if type(result.tangent) is not float:
        if _is_steep(x.val):
            result.tangent = e.where(np.equal(x.val, math.inf), 0.0, (x.tangent * result.val) / -x.val)
    elif not result.tangent and x.tangent and math.isfinite(x.val):
        result.tangent = (x.tangent * result.val) / -x.val
    return result


def _is_steep(x: Value) -> bool:
    """Whether a symbol of a number is 1 + exp u and its square overflows; adds a guard, so not in loops."""
    if not getattr(x, "symbolic", False) or x.shape or x.tape.outer is not None:
        return False
    call = call_of(x)
    terms = [] if call is None or call[0] is not e.add else [call_of(term) for term in call[1]]
    return any(term is not None and term[0] is e.exp for term in terms) and bool(x > 1e150)


def _logistic(numerator: float, x: Scalar) -> Value:
    """numerator · expit(-u) if the last record made x = 1 + exp u, else None."""
    exponential, total, _quotient = x.tape[-3:]
    rule, out, a, b, p, q = total
    if rule is not e.add or q is ASK or out is not x or exponential[0] is not e.exp:
        return None
    one = p if a is None else q if b is None else None
    if one != 1.0 or exponential[1] is not (b if a is None else a):
        return None
    u = exponential[2]
    return numerator * e.expit(e.negative(u if type(u) is Scalar else u[0]))
