"""Functions of one or two numbers on truncated series over balls, by their names in the array API and scipy.special.

python-flint has most of them for series. The rest come from their value at t = 0 and a formula for the derivative
(`_from_slope`), or from their Taylor coefficients there (`_composed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
from flint import arb, arb_series, ctx

from adbench.optional import library
from adbench.oracle.series import ball
from adbench.oracle.series.ball import INF, NAN, NEGATIVE_INF, ONE, ZERO, Ball, Special, add, div, mul, neg, sign, sub
from adbench.vocabulary import FUNCTIONS

Unary = Callable[[Ball], Ball]
Binary = Callable[[Ball, Ball], Ball]


def _special_value(name: str, *operands: Ball) -> Ball:
    """The function at infinities and NaN, as in numpy and scipy."""
    row = FUNCTIONS[name]
    numbers = list(map(ball.nearest, operands))
    if row.limits is not None:
        below, above = row.limits
        value = {-math.inf: below, math.inf: above}.get(numbers[0], math.nan)
    else:
        scipys = row.scipy or name
        function = getattr(np, row.numpy or name, None) or getattr(library("scipy.special", f"{name}'s value"), scipys)
        try:
            with np.errstate(all="ignore"):
                value = float(function(*numbers))
        except (TypeError, ValueError):
            return NAN
    still = all(a.moves == ball.CONSTANT for a in operands if isinstance(a, Special))
    if name in ("atan", "atan2") and math.isfinite(value) and still:  # π/4 k, with all digits
        return arb.pi() * round(value / (math.pi / 4)) / 4
    flat = row.exponential and all(isinstance(a, Special) and a.moves <= ball.POLE for a in operands)
    if flat and math.isfinite(value) and not still:  # exp(-1/t) is zero to any power of t; yet not constant
        ball.state.flat = True
        return arb_series([value], ball.state.how.terms)
    if math.isfinite(value) or still or row.exponential:
        return ball.special(value, *operands)
    wild = name in ("lgamma", "digamma") and operands[0].value < 0  # through pole after pole
    return ball.NOT_KNOWN if wild else Special(value, ball.LOST)


def _moved(value: Ball, *operands: Ball) -> Ball:
    """An infinite value of a number that depends on t in an unknown way."""
    if isinstance(value, Special) and math.isinf(value.value) and any(map(ball.is_series, operands)):
        return Special(value.value, ball.LOST)
    return value


def _finite(name: str) -> Callable[[Unary], Unary]:
    """Extend a function of finite numbers without fractions to all numbers."""

    def extended(function: Unary) -> Unary:
        def apply(a: Ball) -> Ball:
            return _special_value(name, a) if isinstance(a, Special) else _moved(function(ball.ball(a)), a)

        return apply

    return extended


def _several(name: str, function: Callable[..., Ball]) -> Callable[..., Ball]:
    """Extend a function of finite numbers to all numbers."""

    def apply(*numbers: Ball) -> Ball:
        if any(isinstance(a, Special) for a in numbers):
            return _special_value(name, *numbers)
        return _moved(function(*numbers), *numbers)

    return apply


def with_start(a: Ball, first: Any) -> Ball:
    """A series with a more accurate coefficient of t^0."""
    if not ball.is_series(a):
        return first
    return arb_series([first, *ball.coefficients(a)[1:]], a.prec)


def _from_slope(at_start: Callable[[Any], Any], slope: Callable[[Ball, Ball], Ball]) -> Unary:
    """y = f(a) with y' = slope(a, y) a': one more coefficient in each round. ``at_start`` is f of a constant.

    The slope may be wrong in terms that depend on unknown terms of y.
    """

    def apply(a: Ball) -> Ball:
        first = at_start(ball.start(a))
        if not ball.is_series(a) or isinstance(first, Special):
            return first
        inner = a.derivative()
        integral = arb_series([first], 1)
        for known in range(1, a.prec):
            product = arb_series(slope(a, integral), ctx.cap) * inner
            integral = arb_series([first, *(product[k] / (k + 1) for k in range(known))], known + 1)
        return integral

    return apply


def _from_steepness(at_start: Callable[[Any], Any], steepness: Unary) -> Unary:
    """y = f(a) with y' = a' / steepness(a), which may be zero at the start: acos² is smooth at 1."""

    def apply(a: Ball) -> Ball:
        first = at_start(ball.start(a))
        if not ball.is_series(a) or isinstance(first, Special):
            return first
        change = div(a.derivative(), steepness(a))
        if isinstance(change, Special):  # infinitely steep (only the value is known), or undefined
            return NAN if math.isnan(change.value) and not ball.is_lost(change) else arb_series([first], 1)
        if not ball.is_series(change):  # a' is zero
            return arb_series([first], a.prec)
        return arb_series([first, *ball.coefficients(change.integral())[1:]], change.prec + 1)

    return apply


def _composed(taylor: Callable[[Any, int], Sequence[Any]]) -> Unary:
    """f(a) from f's Taylor coefficients at the start of a, taylor(start, number)."""

    def apply(a: Ball) -> Ball:
        if not ball.is_series(a):
            return taylor(a, 1)[0]
        outer = taylor(a[0], a.prec)
        step, total = a - a[0], arb_series([outer[-1]], a.prec)
        for coefficient in reversed(outer[:-1]):
            total = total * step + coefficient
        return total

    return apply


# Logarithms and exponentials --------------------------------------------------------------------------------------


@_finite("log")
def log(a: Ball) -> Ball:
    """log a; -inf at 0, also for t, because its derivative is not a power of t."""
    first = sign(ball.start(a))
    if first == 0:
        return NAN if sign(a) < 0 else Special(-math.inf, ball.LOST if ball.is_series(a) else ball.CONSTANT)
    return a.log() if first == 1 else NAN


def _cube_root(a: Ball) -> Ball:
    root = ball.power(ball.absolute(a), arb(1) / 3)
    return neg(root) if sign(a) < 0 else root


def _tanh(a: Ball) -> Ball:
    first = ball.start(a)
    if not ball.is_series(a):
        return first.tanh()
    gap = 2 / (1 + (-2 * a if first < 0 else 2 * a).exp())  # to ±1, without cancellation
    return with_start(gap if first < 0 else -gap, first.tanh())


# Angles and areas -------------------------------------------------------------------------------------------------


def _within(lower: float, upper: float, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of constants with NaN outside of [lower, upper]."""

    def inside(c: Any) -> Any:
        if ball.compared(c, arb(lower)) < 0 or ball.compared(c, arb(upper)) == 1:
            return NAN
        return function(c)

    return inside


def _steep_at_ends(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of constants in [-1, 1], infinite at the ends."""

    def apply(c: Any) -> Any:
        at_end = (c - 1).is_zero() or (c + 1).is_zero()
        return (INF if c > 0 else NEGATIVE_INF) if at_end else function(c)

    return _within(-1, 1, apply)


def _root_of(function: Unary) -> Unary:
    return lambda a: ball.sqrt(function(a))


def _gap_to_one(a: Ball) -> Ball:
    return mul(sub(ONE, a), add(ONE, a))


asin = _finite("asin")(_from_steepness(_within(-1, 1, lambda c: c.asin()), _root_of(_gap_to_one)))


@_finite("log1p")
def log1p(a: Ball) -> Ball:
    """log(1 + a), as accurate as a is near 0."""
    logarithm = log(1 + a)
    return logarithm if isinstance(logarithm, Special) else with_start(logarithm, ball.start(a).log1p())


def _acos(a: Ball) -> Ball:
    angle = neg(asin(a))
    first = ball.start(a)
    return angle if isinstance(angle, Special) else with_start(angle, first.acos())


# Gamma and its relatives ------------------------------------------------------------------------------------------


def _log_gamma_series(c: Any, terms: int) -> list[Any]:
    """Taylor coefficients of log |Γ| at a constant that is no pole."""
    variable = arb_series([c, 1], terms)
    if c > 0:
        return ball.coefficients(variable.lgamma())
    reciprocal = variable.rgamma()  # without poles
    return ball.coefficients((-reciprocal if reciprocal[0] < 0 else reciprocal).log().__neg__())


def _log_gamma(a: Ball) -> Ball:
    if not ball.is_series(a) or ball.start(a) > 0:
        return a.lgamma() if ball.start(a) > 0 else _log_gamma_series(a, 1)[0]
    return _composed(_log_gamma_series)(a)


def _digamma(order: int, c: Any, terms: int) -> Sequence[Any]:
    """Taylor coefficients of the polygamma function of this order."""
    log_gamma = _terms_of(terms + order + 1, lambda n: _log_gamma_series(c, n))
    return [log_gamma[k + order + 1] * math.perm(k + order + 1, order + 1) for k in range(terms)]


def _terms_of(terms: int, compute: Callable[[int], Sequence[Any]]) -> Sequence[Any]:
    """Coefficients beyond python-flint's cap."""
    before, ctx.cap = ctx.cap, max(ctx.cap, terms)
    try:
        return compute(terms)
    finally:
        ctx.cap = before


def _unless_pole(name: str, function: Unary, at_pole: Ball) -> Unary:
    def apply(a: Ball) -> Ball:
        first = ball.start(a)
        if not (sign(first) <= 0 and first.is_exact() and first.is_integer()):
            return function(a)
        return Special(at_pole.value, ball.LOST) if ball.is_series(a) else at_pole

    return _finite(name)(apply)


def polygamma(order: Ball, a: Ball) -> Ball:
    """The derivative of this order of digamma."""
    n = ball.whole_number(order)
    return _unless_pole("digamma", _composed(partial(_digamma, n)), NAN)(a)


# Error functions --------------------------------------------------------------------------------------------------


def _exponential_integral(a: Ball) -> Ball:
    first = sign(ball.start(a))
    return -((-a).ei()) if first > 0 else NAN if first else INF


def _lambert(a: Ball) -> Ball:
    """The principal branch, from -1/e, where its slope is infinite."""
    if sign(add(mul(ball.start(a), arb(1).exp()), ONE)) < 0:
        return NAN
    return a.lambertw()


def _normal_cdf(a: Ball) -> Ball:
    return (-a / arb(2).sqrt()).erfc() / 2


def _normal_quantile(c: Any) -> Any:
    if c.is_zero() or (c - 1).is_zero():
        return NEGATIVE_INF if c.is_zero() else INF
    return -arb(2).sqrt() * (2 * c).erfcinv()


# Bessel functions: derivatives by recurrence (DLMF 10.6.7, 10.29.5) -----------------------------------------------


MOST_GROWTH = 1024
"""Radius of a ball in which I grows by exp(2 · 1024): no bound is of use, and it would take up to 30 s."""


def _bessel(kind: str, order: Any, alternating: bool, c: Any, terms: int) -> Sequence[Any]:
    """Taylor coefficients: 2^-k Σ_i ±C(k, i) F_{ν-k+2i} / k!; K has a sign (-1)^k in front instead."""
    if kind == "bessel_i" and c.rad() > MOST_GROWTH:
        raise ball.NeedsBits
    coefficients = []
    for k in range(terms):
        total = ZERO
        for i in range(k + 1):
            term = math.comb(k, i) * getattr(c, kind)(order - k + 2 * i)
            total += -term if alternating and i % 2 else term
        total = total / (2**k * math.factorial(k))
        coefficients.append(-total if kind == "bessel_k" and k % 2 else total)
    return coefficients


def bessel(name: str, kind: str, alternating: bool) -> Binary:
    """A Bessel function of a fixed order."""

    def apply(order: Ball, a: Ball) -> Ball:
        if name in ("kv", "yv") and sign(ball.start(a)) <= 0:
            return NAN if sign(ball.start(a)) else INF if name == "kv" else NEGATIVE_INF
        fixed = ball.ball(ball.fixed(order, name))
        return _finite(name)(_composed(partial(_bessel, kind, fixed, alternating)))(a)

    return apply


# Functions of two numbers -----------------------------------------------------------------------------------------


def atan2(y: Ball, x: Ball) -> Ball:
    """The angle of (x, y)."""
    y, x = ball.ball(y), ball.ball(x)
    first_y, first_x = ball.start(y), ball.start(x)
    if sign(first_x) < 0 and sign(first_y) == 0:  # the cut: the angle just after t = 0 is π or -π
        first = arb.pi() if sign(y) >= 0 else -arb.pi()
    elif sign(first_x) == 0 == sign(first_y):
        return _small_angle(y, x)
    else:
        first = arb.atan2(first_y, first_x)
    if not (ball.is_series(x) or ball.is_series(y)):
        return first
    terms = ctx.cap
    moving_x, moving_y = (a if ball.is_series(a) else arb_series(a, terms) for a in (x, y))
    size = moving_x * moving_x + moving_y * moving_y
    slope = (moving_x * moving_y.derivative() - moving_y * moving_x.derivative()) / size
    return with_start(slope.integral(), first)


def _small_angle(y: Ball, x: Ball) -> Ball:
    """The angle of numbers that start at zero, by the quotient that is not infinite."""
    if sign(x) == 0:
        return ZERO if sign(y) == 0 else arb.pi() / 2 * sign(y)
    steepness = div(y, ball.absolute(x))
    if isinstance(steepness, Special):
        return atan2(ONE if sign(y) > 0 else -ONE, div(x, ball.absolute(y)))
    return atan2(steepness, ONE if sign(x) > 0 else -ONE)


def logaddexp(x: Ball, y: Ball) -> Ball:
    """log(exp x + exp y); exponents have no limit here."""
    for a, other in ((x, y), (y, x)):
        if isinstance(a, Special) and a.value == -math.inf and a.moves == ball.CONSTANT:
            return other
    return log(add(exp(x), exp(y)))


def _times(logarithm: Unary) -> Binary:
    """x logarithm(y), 0 for x = 0 and any y but NaN."""

    def apply(x: Ball, y: Ball) -> Ball:
        is_nan = isinstance(y, Special) and math.isnan(y.value)
        return ZERO if _is_nothing(x) and not is_nan else mul(x, logarithm(y))

    return apply


def _is_nothing(x: Ball) -> bool:
    return not ball.is_series(x) and sign(x) == 0


def copysign(size: Ball, direction: Ball) -> Ball:
    """|size| with the sign of the other; 0 counts as positive."""
    magnitude = ball.absolute(size)
    return neg(magnitude) if ball.compared(direction, ZERO) == -1 else magnitude


def _regularised(kind: str, x: Ball, *parameters: Any) -> Ball:
    """An incomplete function, a series in x only."""
    x = ball.ball(x)
    if sign(x) == -1:
        return NAN
    return getattr(arb_series, kind)(*parameters, x, 1) if ball.is_series(x) else getattr(x, kind)(*parameters, 1)


def betainc(a: Ball, b: Ball, x: Ball) -> Ball:
    """The regularised incomplete beta function, a series in x only."""
    if ball.compared(x, ONE) == 1:
        return NAN
    return _regularised("beta_lower", x, ball.fixed(a, "betainc"), ball.fixed(b, "betainc"))


def multigammaln(a: Ball, d: Ball) -> Ball:
    """log of the multivariate gamma function of this dimension."""
    dimension = ball.whole_number(d)
    total: Ball = arb.pi().log() * (dimension * (dimension - 1)) / 4
    for j in range(dimension):
        total = add(total, UNARY["lgamma"](sub(a, arb(j) / 2)))
    return total


def zeta(s: Ball, q: Ball | None = None) -> Ball:
    """Riemann's ζ(s), or Hurwitz's ζ(s, q) with one of them a series."""
    if q is None or not ball.is_series(q):
        shift = ONE if q is None else ball.fixed(q, "zeta")
        if sign(sub(ball.start(s), ONE)) == 0:
            return INF
        return ball.ball(s).zeta(shift)
    fixed = ball.fixed(s, "zeta")

    def taylor(c: Any, terms: int) -> Sequence[Any]:
        coefficients, factor = [], ONE
        for k in range(terms):
            coefficients.append(factor * (fixed + k).zeta(c))
            factor = -factor * (fixed + k) / (k + 1)
        return coefficients

    return _composed(taylor)(ball.ball(q))


# Tables -----------------------------------------------------------------------------------------------------------

_FINITE: Mapping[str, Unary] = {
    **{name: methodcaller(name) for name in ("atan", "cos", "erf", "erfc", "exp", "sin", "tan")},
    "acos": _acos,
    "acosh": _from_steepness(_within(1, math.inf, lambda c: c.acosh()), _root_of(lambda a: neg(_gap_to_one(a)))),
    "asinh": _from_steepness(lambda c: c.asinh(), _root_of(lambda a: add(ONE, mul(a, a)))),
    "atanh": _from_steepness(_steep_at_ends(lambda c: c.atanh()), _gap_to_one),
    "cbrt": _cube_root,
    "cosh": lambda a: (a.exp() + (-a).exp()) / 2,
    "degrees": lambda a: a * 180 / arb.pi(),
    "erfcx": lambda a: (a * a).exp() * a.erfc(),
    "erfinv": _from_slope(_steep_at_ends(lambda c: c.erfinv()), lambda _, y: (y * y).exp() * arb.pi().sqrt() / 2),
    "exp1": _exponential_integral,
    "exp2": lambda a: (a * arb(2).log()).exp() if ball.is_series(a) else arb(2) ** a,
    "expi": lambda a: a.ei() if sign(ball.start(a)) else NEGATIVE_INF,
    "expit": lambda a: 1 / (1 + (-a).exp()),
    "expm1": lambda a: with_start(a.exp() - 1, ball.start(a).expm1()),
    "i0": _composed(partial(_bessel, "bessel_i", arb(0), False)),
    "i1": _composed(partial(_bessel, "bessel_i", arb(1), False)),
    "j0": _composed(partial(_bessel, "bessel_j", arb(0), True)),
    "j1": _composed(partial(_bessel, "bessel_j", arb(1), True)),
    "lambertw": _lambert,
    "log10": lambda a: div(log(a), arb(10).log()),
    "log1p_exp": lambda a: log1p(a.exp()),
    "log2": lambda a: div(log(a), arb(2).log()),
    "log_ndtr": lambda a: log1p(-_normal_cdf(-a)) if sign(ball.start(a)) > 0 else log(_normal_cdf(a)),
    "logit": lambda a: log(div(a, 1 - a)),
    "ndtr": _normal_cdf,
    "ndtri": _from_slope(_within(0, 1, _normal_quantile), lambda _, y: (y * y / 2).exp() * (2 * arb.pi()).sqrt()),
    "radians": lambda a: a * arb.pi() / 180,
    "sinh": lambda a: with_start((a.exp() - (-a).exp()) / 2, ball.start(a).sinh()),
    "tanh": _tanh,
}


@_finite("sinc")
def sinc(a: Ball) -> Ball:
    """sin(π x) / (π x) with the π of float64, as a float64 source uses it."""
    scaled = mul(a, arb(math.pi))
    return ONE if _is_nothing(scaled) else div(scaled.sin(), scaled)


UNARY: Mapping[str, Unary] = {
    **{name: _finite(name)(function) for name, function in _FINITE.items()},
    "asin": asin,
    "digamma": _unless_pole("digamma", _composed(partial(_digamma, 0)), NAN),
    "gamma": _unless_pole("gamma", methodcaller("gamma"), NAN),
    "lgamma": _unless_pole("lgamma", _log_gamma, INF),
    "log": log,
    "log1p": log1p,
    "reciprocal": partial(div, ONE),
    "sinc": sinc,
    "sqrt": ball.sqrt,
    "square": lambda a: mul(a, a),
}
exp = UNARY["exp"]

_FINITE_SEVERAL: Mapping[str, Callable[..., Ball]] = {
    "atan2": atan2,
    "betainc": betainc,
    "betaln": lambda a, b: sub(add(UNARY["lgamma"](a), UNARY["lgamma"](b)), UNARY["lgamma"](add(a, b))),
    "gammainc": lambda a, x: _regularised("gamma_lower", x, ball.fixed(a, "gammainc")),
    "gammaincc": lambda a, x: _regularised("gamma_upper", x, ball.fixed(a, "gammaincc")),
    "hypot": lambda x, y: ball.sqrt(add(mul(x, x), mul(y, y))),
    "iv": bessel("iv", "bessel_i", False),
    "jv": bessel("jv", "bessel_j", True),
    "kv": bessel("kv", "bessel_k", False),
    "multigammaln": multigammaln,
    "polygamma": polygamma,
    "yv": bessel("yv", "bessel_y", True),
    "zeta": zeta,
}
SEVERAL: Mapping[str, Callable[..., Ball]] = {
    **{name: _several(name, function) for name, function in _FINITE_SEVERAL.items()},
    "logaddexp": logaddexp,
    "xlog1py": _times(log1p),
    "xlogy": _times(log),
}
