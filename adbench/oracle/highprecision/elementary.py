"""Functions of one or two real numbers, on mpmath's raw numbers: (raw, bits, rounding) -> raw.

Each name of the array API is one line of a table; NaN outside the real domain is `real.ieee`'s business.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mpmath import libmp
from mpmath.ctx_mp import MPContext

from adbench.oracle.highprecision.real import INF, NAN, NEAREST, NEGATIVE_INF, ONE, ZERO, Raw, divide, ieee

Unary = Callable[[Raw, int, str], Raw]
Binary = Callable[[Raw, Raw, int, str], Raw]

GUARD = 20
"""Extra bits for formulas of two or three roundings."""

TWO = libmp.from_int(2)


def _log1p(x: Raw, bits: int, rounding: str) -> Raw:
    # 1 + x exactly: nothing cancels.
    return libmp.mpf_log(libmp.mpf_add(ONE, x), bits, rounding) if x != NAN else NAN


def _expm1(x: Raw, bits: int, rounding: str) -> Raw:
    if x in (ZERO, NAN, INF):
        return x
    if x == NEGATIVE_INF:
        return libmp.fnone
    # exp(x) - 1 loses as many bits as x is small.
    small = max(0, -(x[2] + x[3]))
    grown = libmp.mpf_exp(x, bits + small + GUARD, rounding)
    return libmp.mpf_sub(grown, ONE, bits, rounding)


def _log_base(base: int) -> Unary:
    def log(x: Raw, bits: int, rounding: str) -> Raw:
        wide = bits + GUARD
        below = libmp.mpf_log(libmp.from_int(base), wide, rounding)
        return libmp.mpf_div(libmp.mpf_log(x, wide, rounding), below, bits, rounding)

    return log


def _reciprocal(x: Raw, bits: int, rounding: str) -> Raw:
    return divide(ONE, x, bits)


def _square(x: Raw, bits: int, rounding: str) -> Raw:
    return libmp.mpf_mul(x, x, bits, rounding)


def _atanh(x: Raw, bits: int, rounding: str) -> Raw:
    if libmp.mpf_abs(x) == ONE:
        return INF if x == ONE else NEGATIVE_INF
    return libmp.mpf_atanh(x, bits, rounding)


def _expit(x: Raw, bits: int, rounding: str) -> Raw:
    grown = libmp.mpf_exp(libmp.mpf_neg(x), bits + GUARD, rounding)
    return divide(ONE, libmp.mpf_add(ONE, grown, bits + GUARD, rounding), bits)


def _logit(x: Raw, bits: int, rounding: str) -> Raw:
    return libmp.mpf_log(divide(x, libmp.mpf_sub(ONE, x), bits + GUARD), bits, rounding)


def _log_gamma(x: Raw, bits: int, rounding: str) -> Raw:
    """log |Γ(x)|, infinite at the poles."""
    if x in (NAN, INF) or libmp.mpf_sign(x) > 0:
        return libmp.mpf_loggamma(x, bits, rounding)
    if libmp.mpf_floor(x, bits, rounding) == x:
        return INF
    return libmp.mpf_log(libmp.mpf_abs(libmp.mpf_gamma(x, bits + GUARD, rounding)), bits, rounding)


def _erfc_scaled(x: Raw, bits: int, rounding: str) -> Raw:
    grown = libmp.mpf_exp(libmp.mpf_mul(x, x), bits + GUARD, rounding)
    return libmp.mpf_mul(grown, libmp.mpf_erfc(x, bits + GUARD, rounding), bits, rounding)


def _normal_cdf(x: Raw, bits: int, rounding: str) -> Raw:
    wide = bits + GUARD
    scaled = libmp.mpf_div(libmp.mpf_neg(x), libmp.mpf_sqrt(TWO, wide, rounding), wide, rounding)
    return libmp.mpf_shift(libmp.mpf_erfc(scaled, bits, rounding), -1)


def _log_normal_cdf(x: Raw, bits: int, rounding: str) -> Raw:
    return libmp.mpf_log(_normal_cdf(x, bits + GUARD, rounding), bits, rounding)


def _log1p_exp(x: Raw, bits: int, rounding: str) -> Raw:
    grown = libmp.mpf_exp(x, bits + GUARD, rounding)
    return libmp.mpf_log(libmp.mpf_add(ONE, grown), bits, rounding)


def _sinc(x: Raw, bits: int, rounding: str) -> Raw:
    """sin(π x) / (π x) with the π of float64, as a text in float64 has it."""
    import math

    scaled = libmp.mpf_mul(x, libmp.from_float(math.pi))
    if x == ZERO:
        return ONE
    return libmp.mpf_div(libmp.mpf_sin(scaled, bits + GUARD, rounding), scaled, bits, rounding)


def _digamma(x: Raw, bits: int, rounding: str) -> Raw:
    return libmp.mpf_psi0(x, bits, rounding)


UNARY: Mapping[str, Unary] = {
    "acos": libmp.mpf_acos,
    "acosh": libmp.mpf_acosh,
    "asin": libmp.mpf_asin,
    "asinh": libmp.mpf_asinh,
    "atan": libmp.mpf_atan,
    "atanh": _atanh,
    "cos": libmp.mpf_cos,
    "cosh": libmp.mpf_cosh,
    "digamma": _digamma,
    "erf": libmp.mpf_erf,
    "erfc": libmp.mpf_erfc,
    "erfcx": _erfc_scaled,
    "exp": libmp.mpf_exp,
    "expit": _expit,
    "expm1": _expm1,
    "gamma": libmp.mpf_gamma,
    "lgamma": _log_gamma,
    "log": libmp.mpf_log,
    "log10": _log_base(10),
    "log1p": _log1p,
    "log1p_exp": _log1p_exp,
    "log2": _log_base(2),
    "log_ndtr": _log_normal_cdf,
    "logit": _logit,
    "ndtr": _normal_cdf,
    "reciprocal": _reciprocal,
    "sin": libmp.mpf_sin,
    "sinc": _sinc,
    "sinh": libmp.mpf_sinh,
    "sqrt": libmp.mpf_sqrt,
    "square": _square,
    "tan": libmp.mpf_tan,
    "tanh": libmp.mpf_tanh,
}

UNARY_ALIASES: Mapping[str, str] = {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "gammaln": "lgamma",
    "loggamma": "lgamma",
    "psi": "digamma",
    "sigmoid": "expit",
    "softplus": "log1p_exp",
}


def _atan2(y: Raw, x: Raw, bits: int, rounding: str) -> Raw:
    return libmp.mpf_atan2(y, x, bits, rounding)


def _hypot(x: Raw, y: Raw, bits: int, rounding: str) -> Raw:
    return libmp.mpf_hypot(x, y, bits, rounding)


def _logaddexp(x: Raw, y: Raw, bits: int, rounding: str) -> Raw:
    if x == NEGATIVE_INF:
        return y
    if y == NEGATIVE_INF:
        return x
    low, high = (x, y) if libmp.mpf_lt(x, y) else (y, x)
    gap = _log1p_exp(libmp.mpf_sub(low, high), bits + GUARD, rounding)
    return libmp.mpf_add(high, gap, bits, rounding)


def _xlogy(x: Raw, y: Raw, bits: int, rounding: str) -> Raw:
    if x == ZERO and y != NAN:
        return ZERO
    return libmp.mpf_mul(x, libmp.mpf_log(y, bits + GUARD, rounding), bits, rounding)


def _xlog1py(x: Raw, y: Raw, bits: int, rounding: str) -> Raw:
    if x == ZERO and y != NAN:
        return ZERO
    return libmp.mpf_mul(x, _log1p(y, bits + GUARD, rounding), bits, rounding)


BINARY: Mapping[str, Binary] = {
    "atan2": _atan2,
    "hypot": _hypot,
    "logaddexp": _logaddexp,
    "xlog1py": _xlog1py,
    "xlogy": _xlogy,
}

BINARY_ALIASES: Mapping[str, str] = {"arctan2": "atan2"}

# scipy.special name -> mpmath name, for functions outside mpmath's raw layer; all arguments real.
FROM_CONTEXT: Mapping[str, str] = {
    "betainc": "_betainc",
    "betaln": "_betaln",
    "erfinv": "erfinv",
    "exp1": "e1",
    "expi": "ei",
    "gammainc": "_gammainc",
    "gammaincc": "_gammaincc",
    "i0": "_i0",
    "i1": "_i1",
    "iv": "besseli",
    "j0": "j0",
    "j1": "j1",
    "jv": "besselj",
    "kv": "besselk",
    "lambertw": "lambertw",
    "multigammaln": "_multigammaln",
    "ndtri": "_ndtri",
    "polygamma": "polygamma",
    "yv": "bessely",
    "zeta": "zeta",
}


@functools.cache
def context(bits: int) -> Any:
    """An mpmath context of its own: the library's global one belongs to the user."""
    made = MPContext()
    made.prec = bits
    return made


def through_context(name: str, arguments: tuple[Raw, ...], bits: int) -> Raw:
    """A special function by its scipy name; NaN where it is complex or has a pole."""
    ctx = context(bits + GUARD)
    numbers = [ctx.make_mpf(raw) for raw in arguments]
    mpmath_name = FROM_CONTEXT[name]
    function = _COMPOSED[name] if mpmath_name.startswith("_") else getattr(ctx, mpmath_name)
    try:
        result = function(ctx, *numbers) if mpmath_name.startswith("_") else function(*numbers)
    except (ValueError, ZeroDivisionError, libmp.ComplexResult):
        return NAN
    raw = getattr(result, "_mpf_", None)
    if raw is None:
        return NAN if getattr(result, "imag", 0) != 0 else ctx.mpf(result.real)._mpf_
    return ieee(libmp.mpf_pos, raw, bits=bits)


_COMPOSED: Mapping[str, Callable[..., Any]] = {
    "betainc": lambda ctx, a, b, x: ctx.betainc(a, b, 0, x, regularized=True),
    "betaln": lambda ctx, a, b: ctx.log(ctx.beta(a, b)),
    "gammainc": lambda ctx, a, x: ctx.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda ctx, a, x: ctx.gammainc(a, x, regularized=True),
    "i0": lambda ctx, x: ctx.besseli(0, x),
    "i1": lambda ctx, x: ctx.besseli(1, x),
    "multigammaln": lambda ctx, a, d: (
        d * (d - 1) / 4 * ctx.log(ctx.pi) + sum(ctx.loggamma(a - j / ctx.mpf(2)) for j in range(int(d)))
    ),
    "ndtri": lambda ctx, p: ctx.sqrt(2) * ctx.erfinv(2 * p - 1),
}

# How wrong the usual double-precision formula for the derivative is, in units of 2^-53: (x, y = f(x)) -> |error|.
# Only those that cancel are listed: 1 - tanh^2 has no digits left at x = 19, whatever is known about tanh. Library
# functions are allowed a few units in the last place.
SLOPE_NOISE: Mapping[str, Callable[[float, float], float]] = {
    "acos": lambda x, y: _steep(1 - x * x, 1.5),
    "acosh": lambda x, y: x * x * _steep(x * x - 1, 1.5),
    "asin": lambda x, y: _steep(1 - x * x, 1.5),
    "atanh": lambda x, y: _steep(1 - x * x, 2),
    "digamma": lambda x, y: 8.0,
    "expit": lambda x, y: y,
    "expm1": lambda x, y: 1 + abs(y),
    "lgamma": lambda x, y: 8.0,
    "tanh": lambda x, y: 5 * y * y,
}


def _steep(gap: float, exponent: float) -> float:
    """gap^-exponent, 0 where the function ends: nothing finite is to be expected there."""
    return float(gap**-exponent) if gap > 0 else 0.0


__all__ = ["BINARY", "NEAREST", "SLOPE_NOISE", "UNARY", "through_context"]
