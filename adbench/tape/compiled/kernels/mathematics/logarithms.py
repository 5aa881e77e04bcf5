"""Logarithms and powers, within two units in the last place.

The logarithm takes the number c of a table that makes m c - 1 small; a power needs it as a double-double number.

Sources: Sun's fdlibm for the form of log1p; P.-T. P. Tang (1990), "Table-driven implementation of the logarithm
function in IEEE floating-point arithmetic"; J.-M. Muller (2016), "Elementary functions". Precision is tested against
fifty digits.
"""

from __future__ import annotations

import decimal
import math

from adbench.tape.compiled.kernels.mathematics.double_double import COEFFICIENTS, fast_two_sum, polynomial, two_product
from adbench.tape.compiled.kernels.mathematics.exponentials import (
    LN2,
    LN2_HIGH,
    LN2_LOW,
    bounded,
    exp_minus_size,
    exponential,
    scaled_anywhere,
    unscaled,
)
from adbench.tape.compiled.kernels.mathematics.shared_functions import Part, kernel, rarely
from adbench.tape.machine.simd import Name, Simd, X

LOG1P_TERMS = COEFFICIENTS["log1p"]
"""(2 artanh(s) - 2 s) / s³ in s², for |s| ≤ 0.1716; log(1 + f) = 2 artanh(f / (2 + f))."""
LOG_TERMS = COEFFICIENTS["log"]
POWER_TERMS = COEFFICIENTS["log for powers"]
"""(log(1 + f) - f + f²/2) / f³ for |f| ≤ 0.0311, with errors of 2⁻⁶¹ and 2⁻⁷³."""

FIRST_BITS = 0x3FE5555555555556
"""The bits of ⅔. Sixteen slices of the bits from there to those of 4/3 are the intervals of the logarithm's table."""
INVERSES = tuple(
    1.0 if i == 10 else round(256.0 / (2 / 3 + (i + 0.5) / 32 if i < 10 else 1 + (i - 61 / 6) / 16)) / 256.0
    for i in range(16)
)
"""c ≈ 1/m in the middle of each slice."""


def _logs() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """-log c in two parts. The first has so few bits that its sum with a multiple of `LN2_HIGH` is exact."""
    with decimal.localcontext(decimal.Context(prec=40)):
        exact = [-decimal.Decimal(c).ln() for c in INVERSES]
        first = [round(float(x) * 2.0**42) * 2.0**-42 for x in exact]
        return tuple(first), tuple(float(x - decimal.Decimal(y)) for x, y in zip(exact, first, strict=True))


LOGS, LOGS_REST = _logs()


# Logarithms


def split(k: Simd, x: X) -> tuple[X, X, Name]:
    """(e, m, i): x = 2ᵉ m for normal x > 0, ⅔ ≤ m < 4/3, and in its lowest four bits the slice i of m."""
    offset = k.integers("sub", k.bits(x.name), k.whole(FIRST_BITS))
    e = k.x(k.to_real(k.integers("ashr", offset, k.whole(52))))
    m = k.integers("sub", k.bits(x.name), k.integers("and", offset, k.whole(-(1 << 52))))
    return e, k.x(k.from_bits(m)), k.integers("lshr", offset, k.whole(48))


def is_abnormal(k: Simd, x: X) -> Name:
    """Whether x is not a positive normal number."""
    above = k.integers("sub", k.bits(x.name), k.whole(1 << 52))
    return k.code.emit(f"icmp uge {k.integer} {above}, {k.whole(0x7FE << 52)}")


def _log_of(f: X, e: X) -> X:
    """log(1 + f) + e log 2, for √½ - 1 ≤ f ≤ √2 - 1."""
    s = f / (2.0 + f)
    z = s * s
    half_square = 0.5 * f * f
    r = half_square + z * polynomial(z, LOG1P_TERMS)
    return e * LN2_HIGH - ((half_square - s.times(r, e * LN2_LOW)) - f)


def _log_normal(k: Simd, x: X) -> X:
    """For normal x > 0: e log 2 - log c + log(1 + f), where f = c m - 1 is small for the c of the slice of m."""
    e, m, i = split(k, x)
    c, log_c, rest = (k.x(k.lookup(table, i)) for table in (INVERSES, LOGS, LOGS_REST))
    f = m.fma(c, -1.0)
    square = f * f
    start, start_low = fast_two_sum(e.fma(LN2_HIGH, log_c), f)
    rest = square.times(-0.5, e.times(LN2_LOW, rest + start_low))
    return start + (square * f).times(polynomial(f, LOG_TERMS), rest)


@kernel("log_far")
def _log_far(k: Simd, x: X) -> tuple[X]:
    y = _log_normal(k, x * 2.0**54) - 54.0 * LN2  # subnormal
    y = k.x(-math.inf).where(x.is_("oeq", 0.0), y)
    y = k.x(math.nan).where(x.is_("olt", 0.0), y)
    return (x.where(x.is_("ueq", math.inf), y),)


@kernel("log")
def _log(k: Simd, x: X) -> tuple[X, ...]:
    return rarely(k, is_abnormal(k, x), (_log_normal(k, x),), _log_far, x)


@kernel("log1p_far")
def _log1p_far(k: Simd, x: X) -> tuple[X]:
    y = k.x(log(k, x.name))
    y = k.x(math.nan).where(x.is_("olt", -1.0), y)
    return (k.x(-math.inf).where(x.is_("oeq", -1.0), y),)


@kernel("log1p")
def _log1p(k: Simd, x: X) -> tuple[X, ...]:
    """With 1 + x = 2ᵉ (1 + f) the fraction f = 2⁻ᵉ x + (2⁻ᵉ - 1) is rounded once."""
    bits = k.bits((1.0 + x).name)
    exponent = k.integers("ashr", k.integers("sub", bits, k.whole(0x3FE6A09E667F3BCD)), k.whole(52))
    down = k.integers("shl", exponent, k.whole(52))
    scale = k.x(k.from_bits(k.integers("sub", k.bits(k.constant(1.0)), down)))
    y = _log_of(x.fma(scale, scale - 1.0), k.x(k.to_real(exponent)))
    y = k.x(k.intrinsic("copysign", y.name, x.name))
    far = k.logic("or", x.is_("ole", -1.0), x.is_("ogt", 2.0**1000))
    return rarely(k, far, (y,), _log1p_far, x)


@kernel("softplus")
def _softplus(k: Simd, x: X) -> tuple[X]:
    """log(1 + exp x) = max(x, 0) + log1p(exp(-|x|))."""
    e = k.x(exp_minus_size(k, x.name))
    is_large = e.is_("ogt", 0.41421356237309503)
    y = _log_of((0.5 * (e - 1.0)).where(is_large, e), k.x(1.0).where(is_large, 0.0))
    return (x.where(x.is_("ugt", 0.0), 0.0) + y,)


log, log1p, softplus = Part(_log, 0), Part(_log1p, 0), Part(_softplus, 0)


# Powers


def log_double(k: Simd, x: X, e_offset: X | float = 0.0) -> tuple[X, X]:
    """log |x| - e_offset log 2 = high + low with a relative error below 2⁻⁶³, for normal x."""
    e, m, i = split(k, abs(x))
    e = e - e_offset
    c, log_c, rest = (k.x(k.lookup(table, i)) for table in (INVERSES, LOGS, LOGS_REST))
    product, f_low = two_product(m, c)
    f = product - 1.0
    square, square_low = two_product(f, f)
    high, low = fast_two_sum(e.times(LN2_HIGH, log_c), f)
    high, more = fast_two_sum(high, -0.5 * square)
    rest = square_low.times(-0.5, f_low.times(1.0 - f, e.times(LN2_LOW, rest)))
    return fast_two_sum(high, (square * f).times(polynomial(f, POWER_TERMS), rest) + (low + more))


@kernel("log_double", results=2)
def _log_size(k: Simd, x: X) -> tuple[X, X]:
    """log |x|, which all powers of x share."""
    return log_double(k, x)


def _sign_of_power(k: Simd, x: X, y: X) -> X:
    """1, -1 for odd powers of negative numbers, or NaN for powers of negative numbers that are not whole."""
    whole = y.is_("oeq", k.x(k.intrinsic("floor", y.name)))
    half = 0.5 * y
    odd = k.logic("and", whole, half.is_("une", k.x(k.intrinsic("floor", half.name))))
    negative = k.code.emit(f"icmp slt {k.integer} {k.bits(x.name)}, {k.whole(0)}")
    sign = k.x(-1.0).where(k.logic("and", negative, odd), 1.0)
    finite = k.logic("and", x.is_("olt", 0.0), x.is_("ogt", -math.inf))
    return k.x(math.nan).where(k.logic("and", finite, k.logic("xor", whole, k.truth)), sign)


@kernel("pow_far", arguments=2)
def _pow_far(k: Simd, x: X, y: X) -> tuple[X]:
    """Results and bases out of the range of normal numbers, and C's special cases."""
    sign, x = _sign_of_power(k, x, y), abs(x)
    small = x.is_("olt", 2.0**-1022)
    high, low = log_double(k, (x * 2.0**54).where(small, x), k.x(54.0).where(small, 0.0))
    # Beyond ±2^64 the result is 0, 1 or infinite anyway.
    exponent = bounded(y, -(2.0**64), 2.0**64)
    p, p_low = two_product(exponent, high)
    p_low = exponent.times(low, p_low).where(abs(p).is_("olt", 800.0), 0.0)
    value, rest, n = unscaled(bounded(p, -746.0, 710.0), p_low)
    value = scaled_anywhere(k, value + rest, n)
    infinite, zero = x.is_("oeq", math.inf), x.is_("oeq", 0.0)
    edge = k.x(math.inf).where(k.logic("xor", y.is_("olt", 0.0), infinite), 0.0)
    value = edge.where(k.logic("or", zero, infinite), value)
    value = (x + y).where(k.logic("or", x.is_("uno", x), y.is_("uno", y)), value)
    value = k.x(1.0).where(k.logic("or", x.is_("oeq", 1.0), y.is_("oeq", 0.0)), value)
    return (value * sign,)


@kernel("pow_by_log", arguments=4)
def _pow_by_log(k: Simd, x: X, y: X, high: X, low: X) -> tuple[X, ...]:
    """exp(y log |x|) with the logarithm and the product as double-double numbers, times 1, -1 or NaN."""
    p, p_low = two_product(y, high)
    scale, rest = exponential(k, p, y.times(low, p_low))
    scale = scale * _sign_of_power(k, x, y)
    far = k.logic("or", is_abnormal(k, abs(x)), abs(p).is_("uge", 708.0))
    return rarely(k, far, (scale.times(rest, scale),), _pow_far, x, y)


def power(k: Simd, x: Name, y: Name) -> Name:
    """x to the power of y."""
    return _pow_by_log(k, x, y, *_log_size(k, x))[0]
