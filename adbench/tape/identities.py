"""Compositions that are smoother than their parts, such as |x|², recognised by the calls that made them.

At 0, √u has no slope, and |u| and the norm have no second derivative. But their squares are u, u² and Σu². The chain
rule misses this, because it multiplies 0 by ∞ or by a convention. So a few functions store the call that made their
result (`origin`), and others check whether an argument is such a result:

    square, x ** 2, x * x      of sqrt, abs, norm, hypot, arccos, arccosh, svdvals, x ** 0.5, …
                               (and so of functions built on them: std, matrix_norm, |rfft|, …)
    x ** p for p > 2           of abs
    sqrt                       of x ** 4, x ** 6, …
    cbrt                       of x ** 3
    log1p                      of exp, where exp overflows
    1 / (1 + exp x)            where its square overflows
    y / exp x, exp(x) ** -2    where exp overflows

Where exp u overflows, the chain rule multiplies an underflowed 0 by ∞, while these have derivatives as functions of u.

The value is computed by the parts, unless it has overflowed. All other compositions keep a convention in first order
and NaN in second order (`singular`); so do roots of values of 0 that change to second order, as √(x² + y²).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.node import Array, Recorded, Scalar, push
from adbench.tape.core.recording import ASK
from adbench.tape.core.rule import Active, AllInputs, Rule, Value, function_gradients, own_gradients
from adbench.tape.lazy import special
from adbench.tape.levels import leaves_of
from adbench.tape.linalg.recorded_norms import smooth_root
from adbench.tape.linalg.singular.singular_values import _svdvals
from adbench.tape.linalg.solving import t
from adbench.tape.linalg.symmetric_eigenvalues import eigenvalue_rates, eigh
from adbench.tape.rules import elementwise as e
from adbench.tape.rules.compound import log1p_exp
from adbench.tape.rules.predicates import of_both_sides
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import norm2, sum  # numpy's name
from adbench.tape.rules.shapes import flip, keep_axes
from adbench.tape.singular import UNDEFINED, UNKNOWN_SLOPE, bends, flat, some
from adbench.tape.values import is_nested, settle, shape_of, value_of

Made = tuple[Rule, tuple[Value, ...], dict[str, Any]]


def call_of(x: Value) -> Made | None:
    """The call that made x, which a few functions store on their results: (rule, args, params), or None."""
    if not isinstance(x, Active):
        return None
    if x.symbolic:
        return x.tape.producer(x)  # type: ignore[attr-defined,no-any-return]
    origin = getattr(x, "origin", None)  # some values have none
    return origin[1:] if origin is not None and origin[0] is x.val else None


def _remembering(rule: Rule, top: Active, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """The result of a call, with the call stored on it."""
    result = top.interpret(rule, args, params)
    kind = type(result)
    if kind is Scalar and result.val:
        return result  # roots are singular only at 0
    if kind is Array or kind is Scalar or kind is Dual:
        result.origin = (result.val, rule, args, params)
        if kind is not Dual:
            result.tape.remembers = True
    return result


# Compositions of exp u where it overflows


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


def _log1p(x: Value) -> Value:
    """log(1 + exp u) where exp u overflows."""
    u = _exponent(x)
    return None if u is None else log1p_exp(u)


def _divide(rule: Rule, top: Active, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
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


# Squares: rules of the root's arguments, and of the root r for the value


def _square_last(*inputs: Value, **_params: Any) -> Value:
    return np.square(inputs[-1])


def _elementwise(name: str, *gradients: Callable[..., Value]) -> Rule:
    rule = own_gradients(_square_last, (*gradients, e.no_slope), name=name)
    rule.native = lambda k, *inputs: k.binary("fmul", inputs[-1], inputs[-1])
    return rule


_OF_SQRT = _elementwise("square of sqrt", lambda _v, adj, _x, r: e.where(value_of(r) >= 0.0, adj, math.nan))
_OF_HYPOT = _elementwise(
    "square of hypot", lambda _v, adj, x, _y, _r: adj * (x + x), lambda _v, adj, _x, y, _r: adj * (y + y)
)
_OF_POWER = _elementwise(
    "square of power",
    lambda _v, adj, x, y, _r: e._power_base(None, adj, x, y),
    lambda val, adj, x, y, _r: e._power_exponent(val, adj, x, y),
)


def _angle_ratio_at(x: Value, order: float) -> Value:
    """Derivatives of h = arccos x / √(1 - x²) = arccosh x / √(x² - 1) = ₂F₁(1, 1; 3/2; (1 - x)/2), which is 1 at 1.

    Near 1 by the hypergeometric function; elsewhere by (1 - x²) h⁽ⁿ⁺¹⁾ = (2n + 1) x h⁽ⁿ⁾ + n² h⁽ⁿ⁻¹⁾, from h' on.
    """
    k = int(order)
    near = np.abs(np.subtract(x, 1.0)) < 0.5
    z = np.where(near, np.subtract(0.5, np.multiply(0.5, x)), 0.0)
    factor = (-0.5) ** k * math.factorial(k) ** 2 / math.prod(1.5 + j for j in range(k))
    close = factor * special.hyp2f1(1.0 + k, 1.0 + k, 1.5 + k, z)
    with np.errstate(all="ignore"):
        far = np.where(near, 0.0, x)
        below = np.arccos(far) / np.sqrt((1.0 - far) * (1.0 + far))
        h = np.where(far < 1.0, below, np.arccosh(far) / (np.sqrt(far - 1.0) * np.sqrt(far + 1.0)))
        before, size = 0.0 * h, (1.0 - far) * (1.0 + far)
        for n in range(k):
            before, h = h, (far * h - 1.0 if n == 0 else (2.0 * n + 1.0) * far * h + n * n * before) / size
    return np.where(near, close, h)[()]


_angle_ratio: Rule = function_gradients(
    _angle_ratio_at, (lambda _v, adj, x, order: adj * _angle_ratio(x, order + 1.0), None), name="angle_ratio"
)

_OF_ARCCOS = _elementwise("square of arccos", lambda _v, adj, x, _r: adj * (-2.0 * _angle_ratio(x, 0.0)))
_OF_ARCCOSH = _elementwise("square of arccosh", lambda _v, adj, x, _r: adj * (2.0 * _angle_ratio(x, 0.0)))

_OF_NORM = own_gradients(
    _square_last,
    reverse=(lambda _v, adj, x, _r, axes: keep_axes(adj, x, axes) * (x + x), e.no_slope),
    forward=(lambda _v, tan, x, _r, axes: sum((x + x) * tan, axes), e.no_slope),
    name="square of norm",
)


def _vectors(a: Value) -> Value:
    """The right singular vectors of a tall matrix, in the order of its singular values."""
    return flip(eigh(matmul(t(a), a)).eigenvectors, -1)


def _of_svdvals_back(_v: Value, adj: Value, a: Value, _s: Value) -> Value:
    if type(adj) is np.ndarray and not np.any(np.ptp(adj, -1)):  # of Σ s², which is that of Σ a²
        return a * (2.0 * adj[..., :1, None])
    v = _vectors(a)
    return matmul(a, matmul(v * (adj + adj)[..., None, :], t(v)))


def _of_svdvals_along(_v: Value, tan: Value, a: Value, s: Value) -> Value:
    v = _vectors(a)
    p = matmul(t(v), matmul(t(tan), matmul(a, v)))
    return eigenvalue_rates(e.square(s), p + t(p))


_OF_SVDVALS = own_gradients(
    _square_last,
    reverse=(_of_svdvals_back, e.no_slope),
    forward=(_of_svdvals_along, e.no_slope),
    name="square of svdvals",
)


_SQUARES: dict[Rule, Callable[..., Value]] = {
    e.absolute: lambda r, x: e.square(x),
    e.power: lambda r, x, y: _OF_POWER(x, 2.0 * y, r),
    e.copysign: lambda r, x, y: e.square(x),
    e.sqrt: lambda r, x: _OF_SQRT(x, r),
    e.hypot: lambda r, x, y: _OF_HYPOT(x, y, r),
    e.arccos: lambda r, x: _OF_ARCCOS(x, r),
    e.arccosh: lambda r, x: _OF_ARCCOSH(x, r),
    norm2: lambda r, x, axes: _OF_NORM(x, r, axes=axes),
    _svdvals: lambda r, a: _OF_SVDVALS(a if a.shape[-2] >= a.shape[-1] else t(a), r),
}
"""Root -> its square, of the root's value and its arguments."""


def _squared(x: Value) -> Value:
    """The square of a root; None for any other value."""
    call = call_of(x)
    if call is None or call[0] not in _SQUARES:
        return None
    rule, args, params = call
    value = e.stop_gradient(x) if x.symbolic else x.val
    return _SQUARES[rule](value, *args, **params)


def product(x: Value, y: Value) -> Value:
    """The product of a root with itself, or with another result of the same call; None for any other product."""
    if x is y:
        return _squared(x)
    a, b = call_of(x), call_of(y)
    if a is None or b is None or a[0] not in _SQUARES or a[0] is not b[0] or a[2] != b[2]:
        return None
    return _squared(x) if all(p is q for p, q in zip(a[1], b[1], strict=True)) else None


def _even(y: Value) -> float:
    """The exponent if it is even and at least 2, else 0."""
    return float(y) if type(y) in (int, float) and y >= 2.0 and y % 2.0 == 0.0 else 0.0


def _abs_power(x: Value, p: float) -> Value:
    """|x|ᵖ, whose derivative is p sign(x) |x|ᵖ⁻¹, and 0 at 0 for p > 1."""
    return e.absolute(x) if p == 1.0 else POWER_OF_ABS(x, p)


POWER_OF_ABS: Rule = function_gradients(
    lambda x, p: np.power(np.abs(x), p),
    (lambda _v, adj, x, p: adj * (p * SIGNED_POWER(x, p - 1.0)), None),
    name="power of abs",
)
"""|x|ᵖ"""

SIGNED_POWER: Rule = function_gradients(
    lambda x, p: np.copysign(np.power(np.abs(x), p), x),
    (lambda _v, adj, x, p: adj * (p * _abs_power(x, p - 1.0)), None),
    name="signed power",
)
"""sign(x) |x|ᵖ"""


def _power(x: Value, y: Value) -> Value:
    """x ** 2 of a root, |u| ** 3, |u| ** 4, …, and (exp u) ** -2 where exp overflows."""
    if type(y) in (int, float) and y < 0.0:
        return behind_overflow(x, lambda u: e.exp(y * u), lambda x: e.power(x, y))
    even = _even(y)
    if even == 2.0:
        return _squared(x)
    call = call_of(x) if type(y) in (int, float) and y > 2.0 else None
    if call is None or call[0] is not e.absolute:
        return None
    return e.power(call[1][0], even) if even else _abs_power(call[1][0], float(y))


def _sqrt(x: Value) -> Value:
    """√u⁴ = u², √u⁶ = |u³|, …"""
    call = call_of(x)
    half = 0.5 * _even(call[1][1]) if call is not None and call[0] is e.power else 0.0
    if half < 2.0 or call is None:
        return None
    root = e.power(call[1][0], half)
    return root if _even(half) else e.absolute(root)


def _cbrt(x: Value) -> Value:
    """∛u³ = u."""
    call = call_of(x)
    return call[1][0] if call is not None and call[0] is e.power and call[1][1] == 3.0 else None


KNOWN: dict[Rule, Callable[..., Value]] = {
    e.square: _squared,
    e.power: _power,
    e.sqrt: _sqrt,
    e.cbrt: _cbrt,
    e.log1p: _log1p,
    e.reciprocal: lambda x: behind_overflow(x, lambda u: e.exp(-u), e.reciprocal),
}
"""Function -> a smoother form for these arguments, or None."""


def _knowing(rule: Rule, top: Active, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """The smoother form of a call if there is one, else the call itself; a root's result stores its call."""
    x = args[0]
    if type(x) is Scalar and x.val and x.val - x.val == 0.0:
        return top.interpret(rule, args, params)  # neither 0 nor infinite, so not singular
    if not top.symbolic and (smoother := KNOWN[rule](*args)) is not None:
        return smoother
    order = _order(rule, args)
    is_differentiated = order and isinstance(x, Recorded) and is_nested(x.val)
    if is_differentiated and some(np.equal(value_of(x), 0.0)) and (smoother := smooth_root(x, order)) is not None:
        return smoother
    is_root = rule is e.sqrt or (rule is e.power and type(args[1]) in (int, float) and 0.0 < args[1] not in (1.0, 2.0))
    result = _remembering(rule, top, args, params) if is_root else top.interpret(rule, args, params)
    if is_differentiated and is_root and (not isinstance(value_of(x), Active) or _is_judged_late(x)):
        return _with_unknown_slopes(x, result)
    return result


def _order(rule: Rule, args: tuple[Value, ...]) -> float:
    """n of an n-th root, which is steep at 0; 0 for other functions."""
    if rule is e.power:
        return 1.0 / args[1] if type(args[1]) in (int, float) and 0.0 < args[1] < 1.0 else 0.0
    return {e.sqrt: 2.0, e.cbrt: 3.0}.get(rule, 0.0)


def _with_unknown_slopes(x: Any, root: Any) -> Value:
    """√x, with unknown slopes for outer levels where x is 0 and changes to second order, as |t| = √t²."""
    at = np.equal(value_of(x), 0.0)
    if not some(at) or not some(unknown := bends(x, at)):
        return root
    at = np.logical_and(at, unknown)
    root.val = settle(root.val + e.where(at, UNKNOWN_SLOPE(x.val), 0.0))
    variables = leaves_of(root.tape)
    cells, values = [root.cell, None, *(cell for cell, _ in variables)], [root.val, at, *(x for _, x in variables)]
    rough = push(root.tape, _ROUGH, root.val, cells, (root.val, values), {})
    rough.origin = (root.val, *root.origin[1:])
    return rough


def _is_judged_late(x: Any) -> bool:
    """Whether x holds symbols in a careful recording, which runs where the plain one gave NaN."""
    plain = value_of(x)
    return type(x.val) is Dual and plain.symbolic and plain.careful and plain.tape.outer is None


def _rough_back(_wanted: Any, _v: Value, adj: Value, _root: Value, at: Value, *variables: Value) -> list[Value]:
    rough = np.any(np.logical_and(at, np.logical_not(flat(adj, at))))
    if not some(rough):
        return [adj, None, *(0.0 for _ in variables)]
    return [adj, None, *(e.where(rough, UNDEFINED(x, axes=(), value=0.0), 0.0) for x in variables)]


_ROUGH = function_gradients(lambda root, _at, *_variables: root, reverse=AllInputs(_rough_back), name="rough root")
"""√x of such an x, where that is so, and the tape's variables: the slope's limit 0 · ∞ may be another number than 0."""


def _where(rule: Rule, top: Active, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
    """`where` under a condition that holds at single points; see `predicates.of_both_sides`."""
    condition, x, y = args
    return top.interpret(rule, (of_both_sides(condition, x, y), x, y), params)


e.where.special = _where
e.divide.special = _divide
for _rule in _SQUARES:
    _rule.special = _remembering
for _rule in KNOWN:
    _rule.special = _knowing
e.exp.remembered = True
