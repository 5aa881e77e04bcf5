"""Elementwise functions: f(x)[i] = f(x[i]), with broadcasting between several arguments.

One gradient function per argument, `(val, adj, *inputs) -> adj · ∂f/∂input`, for both modes.

Conventions where a derivative does not exist (each is an element of the generalised derivative; for second derivatives
see `singular`, `identities` and the table in docs/explanation/engine.md):

    abs, sign            0 at 0
    maximum, minimum     equal arguments get one half each
    clip                 1 between its bounds; at a bound, x and the bound get one half each
    floor, ceil, round, trunc, sign, …     0 everywhere
    hypot, arctan2       0 at the origin
    x ** y               d/dx of x⁰ is 0, even at x = 0; d/dy of 0^y is 0 for y > 0
    sqrt, log, …         the true one-sided limit, inf; the chain rule takes 0 · inf as 0 (see `sweep`)
    logaddexp            0 where both arguments are -inf
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Rule, Value, own_gradients
from adbench.tape.fast.blocks import LARGE, in_pieces, room, scaled
from adbench.tape.lazy import special
from adbench.tape.numpy_names import function, publish
from adbench.tape.singular import along_direction, direction, moving, some, still, strict, undefined, unknown
from adbench.tape.values import MINUS_ONE, ONE, PLAIN, all_finite, has_nan, is_nested, value_of

_LOG2, _LOG10 = math.log(2.0), math.log(10.0)


def no_slope(_val: Value, _adj: Value, *_inputs: Value, **_params: Any) -> Value:
    """No contribution: the function is constant wherever it has a derivative."""
    return 0.0


# Arithmetic

add = function(np.add, lambda _v, adj, _x, _y: adj, lambda _v, adj, _x, _y: adj, native="fadd")
subtract = function(np.subtract, lambda _v, adj, _x, _y: adj, lambda _v, adj, _x, _y: -adj, native="fsub")
multiply = function(np.multiply, lambda _v, adj, _x, y: adj * y, lambda _v, adj, x, _y: adj * x, native="fmul")
divide = function(np.divide, lambda _v, adj, _x, y: adj / y, lambda val, adj, _x, y: adj * (val / -y), native="fdiv")
negative = function(np.negative, lambda _v, adj, _x: -adj, slope=MINUS_ONE, native="negative")
positive = function(np.positive, lambda _v, adj, _x: adj, slope=ONE, native="same")


def _square_slope(_v: Value, adj: Value, x: Value) -> Value:
    """adj · 2x, for a large array in one pass if the adjoint is one number."""
    if type(x) is not np.ndarray or x.size < LARGE:
        return adj * (x + x)
    if type(adj) is float and abs(adj) < 1e300:
        return np.multiply(x, adj + adj, room(x.shape))
    return scaled(np.add(x, x, room(x.shape)), adj)


square = function(np.square, _square_slope, native="square")
reciprocal = function(np.reciprocal, lambda val, adj, _x: -adj * val * val, native="reciprocal")


def _absolute_slope(_v: Value, adj: Value, x: Value) -> Value:
    """adj · sign x. Its own derivative is unknown where x is 0 and the adjoint changes, see `singular`.

    But along a direction in which x changes, sign x is the sign of the change. It needs no convention if adj is 0.
    """
    slope = adj * sign(x)
    if type(x) in PLAIN or not is_nested(x):
        return slope
    at = np.equal(value_of(x), 0.0)
    if not some(at):
        return slope
    if (towards := direction(x)) is not None:
        known = at & np.not_equal(towards, 0.0) & np.equal(value_of(adj), 0.0)
        along_direction(known)
        slope = slope + adj * np.where(known, np.sign(towards), 0.0)
        at = at & ~known
    return slope + unknown(np.logical_and(at, np.logical_not(still(adj, at))), x)


def _absolute_along(_v: Value, tan: Value, x: Value) -> Value:
    """The tangent of |x|. Its later use is unknown, so its derivative is NaN where x is 0 and moves."""
    along = tan * sign(x)
    if type(x) in PLAIN or not is_nested(x) or not some(at := np.equal(value_of(x), 0.0)):
        return along
    return along + moving(at, tan, x)


absolute = function(np.absolute, _absolute_slope, aliases="abs fabs", native="fabs")
absolute.forward = (_absolute_along,)
absolute.inner = strict(absolute, one_sided=lambda tan, _axes: np.abs(tan))

# Selection


def _if_taken(adj: Value, c: Value, taken: bool) -> Value:
    """The adjoint of a branch; a plain 0 for a branch not taken, which no later operation changes."""
    if isinstance(c, (int, float, np.bool_)):
        return adj if bool(c) is taken else 0.0
    return where(c, adj, 0.0) if taken else where(c, 0.0, adj)


where: Rule = function(
    np.where,
    None,
    lambda _v, adj, c, _x, _y: _if_taken(adj, c, True),
    lambda _v, adj, c, _x, _y: _if_taken(adj, c, False),
    numpy=(np.where,),
    native="where",
)


def _share(wins: Value, ties: Value) -> Value:
    """1 for the winner, ½ for each of two that tie, 0 for the loser."""
    return 0.5 * (1.0 * wins + ties)


maximum = function(
    np.maximum,
    lambda _v, adj, x, y: adj * _share(x > y, x >= y),
    lambda _v, adj, x, y: adj * _share(y > x, y >= x),
    native="maximum",
)
minimum = function(
    np.minimum,
    lambda _v, adj, x, y: adj * _share(x < y, x <= y),
    lambda _v, adj, x, y: adj * _share(y < x, y <= x),
    native="minimum",
)

_clip = function(
    np.clip,
    lambda _v, adj, x, low, high: adj * _share((x > low) & (x < high), (x >= low) & (x <= high)),
    lambda _v, adj, x, low, _high: adj * _share(x < low, x <= low),
    lambda _v, adj, x, _low, high: adj * _share(x > high, x >= high),
    native="clip",
)


def clip(x: Value, low: Value = None, high: Value = None) -> Value:
    """min(max(x, low), high), with None for no bound. The derivative in x is 1 between the bounds, and ½ at a bound."""
    return _clip(x, -np.inf if low is None else low, np.inf if high is None else high)


sign: Rule = function(np.sign, no_slope, native="sign")
copysign: Rule = function(
    np.copysign, lambda _v, adj, x, y: _absolute_slope(_v, adj, x) * copysign(1.0, y), no_slope, native="copysign"
)
copysign.forward = (lambda _v, tan, x, y: _absolute_along(_v, tan, x) * copysign(1.0, y), no_slope)
copysign.inner = strict(copysign, of=(0,))
floor = function(np.floor, no_slope, native="floor")
ceil = function(np.ceil, no_slope, native="ceil")
trunc = function(np.trunc, no_slope, native="trunc")
rint = function(np.rint, no_slope, aliases="round", native="rint")
stop_gradient = function(np.positive, no_slope, name="stop_gradient", numpy=(), native="same")
floor_divide = function(np.floor_divide, no_slope, no_slope, native="floor_divide")
remainder = function(
    np.remainder,
    lambda _v, adj, _x, _y: adj,
    lambda _v, adj, x, y: -adj * floor_divide(x, y),
    aliases="mod",
    native="remainder",
)

# Powers

sqrt = function(np.sqrt, lambda val, adj, _x: adj * (0.5 / val), native="sqrt")


def _cbrt_slope(val: Value, adj: Value, _x: Value) -> Value:
    """adj / (3 y²), computed by 1 / y, because at 0 the derivative of y² would be 0 · inf."""
    over = divide(1.0, val)
    return adj * (over * over / 3.0)


cbrt = function(np.cbrt, _cbrt_slope, native="cbrt")


def _hypot_slope(val: Value, adj: Value, part: Value, other: Value, tangent: float = 0.0) -> Value:
    """adj · part / val, and 0 at the origin. The derivative of that 0 is unknown, see `singular`."""
    slope = adj * (part / where(val == 0.0, 1.0, val))
    if type(val) in PLAIN or not is_nested(val):
        return slope
    at_origin = np.equal(value_of(val), 0.0)
    if not some(at_origin):
        return slope
    for x in (part, other):
        if is_nested(x):
            slope = slope + undefined(at_origin, adj, x, value=tangent)
    return slope


hypot = function(
    np.hypot,
    lambda val, adj, x, y: _hypot_slope(val, adj, x, y),
    lambda val, adj, x, y: _hypot_slope(val, adj, y, x),
    native="hypot",
)
hypot.forward = (
    lambda val, tan, x, y: _hypot_slope(val, tan, x, y, math.nan),
    lambda val, tan, x, y: _hypot_slope(val, tan, y, x, math.nan),
)
hypot.inner = strict(hypot)


def _power_base(_val: Value, adj: Value, x: Value, y: Value) -> Value:
    """∂(x^y)/∂x = y x^(y-1); the factor y = 0 wins over the pole of x^-1 at 0."""
    exponent = value_of(y)
    if type(y) is float:
        if y == 2.0:
            return adj * (2.0 * x)
        return 0.0 if y == 0.0 else adj * (y * power(x, y - 1.0))
    pole = (exponent == 0.0) & (value_of(x) == 0.0)
    return adj * (y * power(where(pole, 1.0, x), y - 1.0)) if np.any(pole) else adj * (y * power(x, y - 1.0))


def _power_exponent(val: Value, adj: Value, x: Value, y: Value) -> Value:
    """∂(x^y)/∂y = x^y log x; 0 where x = 0 and y > 0, the limit of x^y log x."""
    at_zero = (value_of(x) == 0.0) & (value_of(y) > 0.0)
    x = where(at_zero, 1.0, x) if np.any(at_zero) else x
    return adj * (_power_log(val, x, y) if is_nested(val) else val * log(x))


_power_log: Rule = own_gradients(
    lambda val, x, _y: np.multiply(val, np.log(x)),
    (
        no_slope,
        lambda _v, adj, _val, x, y: adj * (power(x, y - 1.0) * (y * log(x) + 1.0)),
        lambda v, adj, _val, x, _y: adj * (v * log(x)),
    ),
    name="power_log",
)
"""x^y log x from val = x^y. Its derivative in x reads x^(y-1), because val / x would be 0 where val underflows."""
power: Rule = function(np.power, _power_base, _power_exponent, aliases="pow", native="power")

# Exponentials and logarithms

exp = function(np.exp, lambda val, adj, _x: adj * val, native="exp")
exp2 = function(np.exp2, lambda val, adj, _x: adj * (val * _LOG2), native="exp2")
expm1 = function(np.expm1, lambda _v, adj, x: adj * exp(x), native="expm1")
log: Rule = function(np.log, lambda _v, adj, x: adj / x, native="log")
log2 = function(np.log2, lambda _v, adj, x: adj / (x * _LOG2), native="log2")
log10 = function(np.log10, lambda _v, adj, x: adj / (x * _LOG10), native="log10")
log1p = function(np.log1p, lambda _v, adj, x: adj / (1.0 + x), native="log1p")


def exp_difference(x: Value, val: Value) -> Value:
    """exp(x - val) for x <= val, the weight of x in val = log Σ exp; 0 for x = -inf, 1 for x = val = inf."""
    plain = value_of(val)
    if all_finite(plain):
        return exp(x - val)
    both = (plain == np.inf) & (value_of(x) == np.inf)
    return exp(where(both, 0.0, x) - where(both | (plain == -np.inf), 0.0, val))


def _expit(x: Value) -> Value:
    """1 / (1 + exp(-x)). For large arrays it runs numpy's loops in one block: five times as fast as scipy's."""
    if type(x) is not np.ndarray or x.size < LARGE:
        return special.expit(x)
    y = np.negative(x, room(x.shape))
    with np.errstate(over="ignore"):  # 1 / inf is the correct 0
        np.exp(y, y)
    y += 1.0
    return np.divide(1.0, y, y)


expit: Rule = function(
    _expit,
    lambda val, adj, x: adj * (val * expit(-x)),
    name="expit",
    numpy=("scipy.special.expit",),
    native="expit",
)


def _exp_share(x: Value, y: Value, val: Value) -> Value:
    """exp(x) / (exp(x) + exp(y)), computed from x - y: x - log(…) would lose digits where both are large."""
    if type(val) is np.ndarray and val.size >= LARGE and not isinstance(x, Active) and not isinstance(y, Active):
        return in_pieces(_fill_exp_share, x, y, val)
    rise = x - y
    if not has_nan(rise):
        return expit(rise)
    lost = np.isnan(value_of(rise))  # where both are the same infinity
    return where(lost, exp_difference(x, val), expit(where(lost, 0.0, rise)))


def _fill_exp_share(out: Value, x: Value, y: Value, val: Value) -> None:
    """`_exp_share` of plain arrays."""
    np.subtract(y, x, out)
    if has_nan(out):
        out[...] = exp_difference(x, val)
        return
    np.exp(out, out)
    out += 1.0
    np.divide(1.0, out, out)


def _logaddexp(x: Value, y: Value) -> Value:
    """max(x, y) + log(1 + exp(-|x - y|)), as in numpy; for large arrays loop by loop, several times as fast."""
    if getattr(x, "size", 1) < LARGE and getattr(y, "size", 1) < LARGE:
        return np.logaddexp(x, y)
    with np.errstate(invalid="ignore"):
        return in_pieces(_fill_logaddexp, x, y)


def _fill_logaddexp(out: Value, x: Value, y: Value) -> None:
    """`_logaddexp` of plain arrays."""
    np.subtract(x, y, out)
    if has_nan(out):  # for example, where both are the same infinity
        np.logaddexp(x, y, out)
        return
    np.negative(np.abs(out, out), out)
    np.log1p(np.exp(out, out), out)
    out += np.maximum(x, y)


logaddexp = function(
    _logaddexp,
    lambda val, adj, x, y: scaled(_exp_share(x, y, val), adj),
    lambda val, adj, x, y: scaled(_exp_share(y, x, val), adj),
    name="logaddexp",
    numpy=(np.logaddexp,),
    native="logaddexp",
)

# Trigonometric and hyperbolic functions

sin = function(np.sin, lambda _v, adj, x: adj * cos(x), native="sin")
cos: Rule = function(np.cos, lambda _v, adj, x: -adj * sin(x), native="cos")
tan = function(np.tan, lambda val, adj, _x: adj * (1.0 + val * val), native="tan")

one_minus_square: Rule = own_gradients(
    lambda x: (1.0 - x) * (1.0 + x), (lambda _v, adj, x: adj * (-2.0 * x),), name="one_minus_square"
)
"""1 - x², accurate at ±1. The derivative of the product written out would be (1 - x) - (1 + x), inaccurate at 0."""
arcsin = function(np.arcsin, lambda _v, adj, x: adj / sqrt(one_minus_square(x)), aliases="asin", native="asin")
arccos = function(np.arccos, lambda _v, adj, x: -adj / sqrt(one_minus_square(x)), aliases="acos", native="acos")
arctan = function(np.arctan, lambda _v, adj, x: adj / (1.0 + x * x), aliases="atan", native="atan")


def _arctan2_slope(adj: Value, part: Value, y: Value, x: Value) -> Value:
    """adj · part / (x² + y²) in two divisions, because the square leaves the range of doubles at 1e-200 and at 1e200.

    At the origin it is 0, and the derivative of that 0 is unknown.
    """
    radius = hypot(x, y)
    at_origin = np.equal(value_of(radius), 0.0)
    safe = where(at_origin, 1.0, radius)
    slope = adj * (part / safe / safe)
    for z in (x, y):
        if is_nested(z):
            slope = slope + undefined(at_origin, adj, z)
    return slope


arctan2 = function(
    np.arctan2,
    lambda _v, adj, y, x: _arctan2_slope(adj, x, y, x),
    lambda _v, adj, y, x: -_arctan2_slope(adj, y, y, x),
    aliases="atan2",
    native="atan2",
)
arctan2.inner = strict(
    arctan2, singular=lambda _v, y, x: np.logical_and(np.equal(value_of(y), 0.0), np.equal(value_of(x), 0.0))
)
sinh = function(np.sinh, lambda _v, adj, x: adj * cosh(x), native="sinh")
cosh: Rule = function(np.cosh, lambda _v, adj, x: adj * sinh(x), native="cosh")


def _sech_square_value(x: Value) -> Value:
    """1 / cosh², because 1 - tanh² cancels in the tails; from 373 on it is 0 in double precision."""
    return np.reciprocal(np.square(np.cosh(np.minimum(np.abs(x), 380.0))))


_sech_square: Rule = own_gradients(
    _sech_square_value, (lambda val, adj, x: adj * (-2.0 * (tanh(x) * val)),), name="sech_square"
)
_sech_square.native = "sech_square"
tanh: Rule = function(np.tanh, lambda _v, adj, x: adj * _sech_square(x), native="tanh")
arcsinh = function(np.arcsinh, lambda _v, adj, x: adj / hypot(1.0, x), aliases="asinh", native="asinh")
arccosh = function(
    np.arccosh, lambda _v, adj, x: adj / (sqrt(x - 1.0) * sqrt(x + 1.0)), aliases="acosh", native="acosh"
)
arctanh = function(np.arctanh, lambda _v, adj, x: adj / one_minus_square(x), aliases="atanh", native="atanh")
degrees = function(
    np.degrees, lambda _v, adj, _x: adj * (180.0 / math.pi), numpy=(np.degrees, np.rad2deg), native="degrees"
)
radians = function(
    np.radians, lambda _v, adj, _x: adj * (math.pi / 180.0), numpy=(np.radians, np.deg2rad), native="radians"
)

publish(globals(), helpers="exp_difference no_slope one_minus_square")
