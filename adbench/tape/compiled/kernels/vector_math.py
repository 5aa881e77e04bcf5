"""Branch-free exponentials, logarithms, powers and hyperbolic functions, within two units in the last place.

The C library's functions take one number; calling them lane by lane costs ten times the arithmetic. These are classical
kernels: reduction of the argument in two parts (Cody and Waite), a polynomial, and the exponent put back. They give the
limits at the ends of the range, subnormal numbers, and NaN for NaN.

Arguments that need more care (overflow, subnormal numbers, NaN) take a branch, see `rarely`.

Sources: W. J. Cody and W. Waite (1980), "Software manual for the elementary functions"; Sun's fdlibm for the form of
the logarithm; J.-M. Muller (2016), "Elementary functions", for double-double logarithms. Coefficients of polynomials
are fits with a relative error of the function below 2⁻⁵⁷. Precision is tested against fifty digits.
"""

from __future__ import annotations

import math

from adbench.tape.compiled.kernels.double_double import fast_two_sum, polynomial, quotient, two_product, two_sum
from adbench.tape.compiled.kernels.shared_functions import kernel, rarely
from adbench.tape.compiled.kernels.simd import Name, Simd, X

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
SHIFT = 1.5 * 2.0**52
"""Added to a number of moderate size, it leaves the nearest integer in the last bits."""

EXP_TERMS = (
    0.5,
    0.16666666666666433,
    0.04166666666660313,
    0.008333333333500375,
    0.00138888889270965,
    0.00019841269465716667,
    2.480150833605865e-05,
    2.7557641149476808e-06,
    2.762531523676707e-07,
    2.49783343053661e-08,
)
"""(exp(r) - 1 - r) / r² for |r| ≤ ½ log 2."""
SINH_TERMS = tuple(1.0 / math.factorial(n) for n in (3, 5, 7, 9, 11, 13))
COSH_TERMS = tuple(1.0 / math.factorial(n) for n in (2, 4, 6, 8, 10, 12, 14))
"""The Taylor series of (sinh r - r) / r³ and (cosh r - 1) / r² in r²."""
LOG_TERMS = (
    0.6666666666666735,
    0.39999999999409874,
    0.2857142874348542,
    0.22222198456656495,
    0.18183570606036348,
    0.15313883851665655,
    0.14797679568325825,
)
"""(2 artanh(s) - 2 s) / s³ in s², for |s| ≤ 0.1716; log(1 + f) = 2 artanh(f / (2 + f))."""
POWER_TERMS = (
    0.3999999999999998,
    0.2857142857144383,
    0.222222222177924,
    0.18181818843798644,
    0.1538455842964128,
    0.13336264953562627,
    0.11675761592373377,
    0.11981990653313279,
)
"""The rest of that series after its first term, ⅔."""


# Exponentials


def reduced(k: Simd, x: X) -> tuple[X, X, X]:
    """(r, r_low, n): x = r + r_low + n log 2, |r| ≤ ½ log 2, and `SHIFT` + n."""
    shifted = x.times(1.0 / math.log(2.0), SHIFT)
    n = shifted - SHIFT
    near = n.times(-LN2_HIGH, x)
    r = n.times(-LN2_LOW, near)
    return r, n.times(-LN2_LOW, near - r), shifted


def tail(r: X) -> X:
    """exp(r) - 1 - r."""
    return (r * r) * polynomial(r, EXP_TERMS)


def _one_plus(r: X, rest: X) -> X:
    """1 + r + rest, for |rest| much below 1."""
    high, low = fast_two_sum(1.0, r)
    return high + (low + rest)


def scaled(k: Simd, y: X | float, shifted: X) -> X:
    """y · 2ⁿ for `SHIFT` + n, if y and the result are normal numbers: n is added to the bits of the exponent."""
    y = k.x(y) if isinstance(y, float) else y
    up = k.integers("shl", k.bits(shifted.name), k.whole(52))
    return k.x(k.from_bits(k.integers("add", k.bits(y.name), up)))


def scaled_anywhere(k: Simd, y: X, shifted: X) -> X:
    """y · 2ⁿ, with overflow and subnormal results, for |n| ≤ 2000."""
    whole = k.integers("sub", k.bits(shifted.name), k.bits(k.constant(SHIFT)))
    half = k.integers("ashr", whole, k.whole(1))
    powers = half, k.integers("sub", whole, half)
    for power in powers:
        bits = k.integers("shl", k.integers("add", power, k.whole(1023)), k.whole(52))
        y = y * k.x(k.from_bits(bits))
    return y


def bounded(x: X, low: float, high: float) -> X:
    """Clipped; NaN stays NaN."""
    k = x.k
    x = k.x(high).where(x.is_("ogt", high), x)
    return k.x(low).where(x.is_("olt", low), x)


@kernel("exp_far")
def _exp_far(k: Simd, x: X) -> tuple[X]:
    r, low, n = reduced(k, bounded(x, -746.0, 710.0))
    return (scaled_anywhere(k, _one_plus(r, low + tail(r)), n),)


@kernel("exp")
def _exp(k: Simd, x: X) -> tuple[X, ...]:
    r, low, n = reduced(k, x)
    y = scaled(k, _one_plus(r, low + tail(r)), n)
    return rarely(k, abs(x).is_("ugt", 708.0), (y,), _exp_far, x)


@kernel("exp_minus_size")
def _exp_minus_size(k: Simd, x: X) -> tuple[X, ...]:
    """exp(-|x|), which several functions of x share."""
    return tuple(_exp.write(k, -abs(x)))


@kernel("expm1_far")
def _expm1_far(k: Simd, x: X) -> tuple[X]:
    y = k.x(exp(k, x.name)) - 1.0
    return (y,)


@kernel("expm1")
def _expm1(k: Simd, x: X) -> tuple[X, ...]:
    """2ⁿ (r + tail) + (2ⁿ - 1)."""
    r, low, n = reduced(k, x)
    scale = scaled(k, 1.0, n)
    y = scale.times(low + tail(r), scale.times(r, scale - 1.0))
    y = k.x(k.intrinsic("copysign", y.name, x.name))
    return rarely(k, abs(x).is_("ogt", 708.0), (y,), _expm1_far, x)


@kernel("expit")
def _expit(k: Simd, x: X) -> tuple[X]:
    """1 / (1 + exp(-x)), with the exponential of -|x|."""
    e = k.x(_exp_minus_size(k, x.name)[0])
    d, d_low = fast_two_sum(1.0, e)
    return (quotient(k.x(1.0).where(x.is_("ogt", 0.0), e), k.x(0.0), d, d_low, 1.0 / d),)


@kernel("tanh_far", results=2)
def _tanh_far(k: Simd, x: X) -> tuple[X, X]:
    size = abs(x)
    r, low, n = reduced(k, bounded(-(size + size), -760.0, 0.0))
    slope = scaled_anywhere(k, 4.0 * _one_plus(r, low + tail(r)), n)
    return k.x(k.intrinsic("copysign", k.constant(1.0), x.name)), slope


@kernel("tanh", results=2)
def _tanh(k: Simd, x: X) -> tuple[X, ...]:
    """(tanh x, 1 / cosh² x) from e = exp(-2|x|): y = (1 - e) / (1 + e) and e (1 + y)².

    Numerator and denominator are double-double numbers, so only the last step rounds.
    """
    size = abs(x)
    r, low, n = reduced(k, -2.0 * size)
    p, p_low = fast_two_sum(r, low + tail(r))
    scale = scaled(k, 1.0, n)
    m, m_low = fast_two_sum(scale - 1.0, scale * p)  # e - 1
    m_low = scale.times(p_low, m_low)
    d, d_low = fast_two_sum(2.0, m)
    y = quotient(-m, -m_low, d, d_low + m_low, 1.0 / d)
    e, e_low = fast_two_sum(scale, scale * p)
    u, u_low = fast_two_sum(1.0, y)
    part, part_low = two_product(e, u)
    part_low = scale.times(p_low, e_low).times(u, part_low)
    slope = part.times(u, part_low.times(u, (part + part) * u_low))
    y = k.x(k.intrinsic("copysign", y.name, x.name))
    return rarely(k, size.is_("ogt", 354.0), (y, slope), _tanh_far, x)


def _addition(k: Simd, size: X) -> tuple[X, X]:
    """Half of sinh and cosh, by the addition theorems for r + n log 2."""
    r, low, shifted = reduced(k, size)
    z = r * r
    s, c = low + (r * z) * polynomial(z, SINH_TERMS), z * polynomial(z, COSH_TERMS)
    high = scaled(k, 0.25, shifted)
    # 0.25 · 2⁻ⁿ, or a number too small to matter
    n = bounded(shifted, SHIFT, SHIFT + 100.0)
    down = k.integers("shl", k.bits(n.name), k.whole(52))
    low_power = k.x(k.from_bits(k.integers("sub", k.bits(k.constant(0.25)), down)))
    rise, fall = high + low_power, high - low_power  # half of cosh and sinh of n log 2
    first, first_low = fast_two_sum(fall, rise * r)
    sine = first + (rise.times(s, fall * c) + first_low)
    first, first_low = fast_two_sum(rise, fall * r)
    return sine, first + (fall.times(s, rise * c) + first_low)


@kernel("sinh_cosh", results=2)
def _sinh_cosh(k: Simd, x: X) -> tuple[X, X]:
    """(sinh x, cosh x), without division."""
    sine, cosine = _addition(k, bounded(abs(x), 0.0, 710.5))
    sine = x.where(abs(x).is_("olt", 2.0**-28), k.x(k.intrinsic("copysign", (sine + sine).name, x.name)))
    return sine, cosine + cosine


exp, expm1, expit = _exp.part(0), _expm1.part(0), _expit.part(0)
tanh, sech_square = _tanh.part(0), _tanh.part(1)
sinh, cosh = _sinh_cosh.part(0), _sinh_cosh.part(1)


# Logarithms


def split(k: Simd, x: X) -> tuple[X, X]:
    """(e, m): x = 2ᵉ m for normal x > 0, √½ ≤ m < √2."""
    bits = k.bits(x.name)
    exponent = k.integers("ashr", k.integers("sub", bits, k.whole(0x3FE6A09E667F3BCD)), k.whole(52))
    m = k.x(k.from_bits(k.integers("sub", bits, k.integers("shl", exponent, k.whole(52)))))
    return k.x(k.to_real(exponent)), m


def is_abnormal(k: Simd, x: X) -> Name:
    """Whether x is not a positive normal number."""
    above = k.integers("sub", k.bits(x.name), k.whole(1 << 52))
    return k.code.emit(f"icmp uge {k.integer} {above}, {k.whole(0x7FE << 52)}")


def _log_of(f: X, e: X) -> X:
    """log(1 + f) + e log 2, for √½ - 1 ≤ f ≤ √2 - 1."""
    s = f / (2.0 + f)
    z = s * s
    half_square = 0.5 * f * f
    r = half_square + z * polynomial(z, LOG_TERMS)
    high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    return e * high - ((half_square - s.times(r, e * low)) - f)


@kernel("log_far")
def _log_far(k: Simd, x: X) -> tuple[X]:
    e, m = split(k, x * 2.0**54)  # subnormal
    y = _log_of(m - 1.0, e - 54.0)
    y = k.x(-math.inf).where(x.is_("oeq", 0.0), y)
    y = k.x(math.nan).where(x.is_("olt", 0.0), y)
    return (x.where(x.is_("ueq", math.inf), y),)


@kernel("log")
def _log(k: Simd, x: X) -> tuple[X, ...]:
    e, m = split(k, x)
    return rarely(k, is_abnormal(k, x), (_log_of(m - 1.0, e),), _log_far, x)


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
    e = k.x(_exp_minus_size(k, x.name)[0])
    is_large = e.is_("ogt", 0.41421356237309503)
    y = _log_of((0.5 * (e - 1.0)).where(is_large, e), k.x(1.0).where(is_large, 0.0))
    return (x.where(x.is_("ugt", 0.0), 0.0) + y,)


log, log1p, softplus = _log.part(0), _log1p.part(0), _softplus.part(0)


# Powers


@kernel("log_double", results=2)
def _log_double(k: Simd, x: X) -> tuple[X, X]:
    """log |x| = high + low with a relative error below 2⁻⁶⁴, for normal x."""
    e, m = split(k, abs(x))
    return _double_log(k, e, m)


def _double_log(k: Simd, e: X, m: X) -> tuple[X, X]:
    f = m - 1.0
    d, d_low = fast_two_sum(2.0, f)
    inverse = 1.0 / d
    s = f * inverse
    s_low = ((-s).fma(d, f) - s * d_low) * inverse
    z, z_low = two_product(s, s)
    z_low = (s + s).times(s_low, z_low)
    # c = z (2/3 + z R(z)), then 2 s + s c
    third = 2.0 / 3.0
    q, q_low = fast_two_sum(third, z * polynomial(z, POWER_TERMS))
    q_low = q_low + 3.700743415417188e-17  # 2/3 - third
    c, c_low = two_product(z, q)
    c_low = z.times(q_low, z_low.times(q, c_low))
    t, t_low = two_product(s, c)
    t_low = s.times(c_low, s_low.times(c, t_low))
    y, y_low = fast_two_sum(s + s, t)
    y_low = y_low + (t_low + (s_low + s_low))
    total, rest = fast_two_sum(e * LN2_HIGH, y)
    return fast_two_sum(total, rest + e.times(LN2_LOW, y_low))


@kernel("pow_far", arguments=2)
def _pow_far(k: Simd, x: X, y: X) -> tuple[X]:
    """Results and bases out of the range of normal numbers, and C's special cases, of |x| and y."""
    small = x.is_("olt", 2.0**-1022)
    e, m = split(k, (x * 2.0**54).where(small, x))
    high, low = _double_log(k, (e - 54.0).where(small, e), m)
    # Beyond ±2^64 the result is 0, 1 or infinite anyway.
    exponent = bounded(y, -(2.0**64), 2.0**64)
    p, p_low = two_product(exponent, high)
    p_low = exponent.times(low, p_low).where(abs(p).is_("olt", 800.0), 0.0)
    r, rest, n = reduced(k, bounded(p, -746.0, 710.0))
    r, rest = two_sum(r, rest + p_low)
    value = scaled_anywhere(k, _one_plus(r, rest + tail(r)), n)
    infinite, zero = x.is_("oeq", math.inf), x.is_("oeq", 0.0)
    edge = k.x(math.inf).where(k.logic("xor", y.is_("olt", 0.0), infinite), 0.0)
    value = edge.where(k.logic("or", zero, infinite), value)
    value = (x + y).where(k.logic("or", x.is_("uno", x), y.is_("uno", y)), value)
    return (k.x(1.0).where(k.logic("or", x.is_("oeq", 1.0), y.is_("oeq", 0.0)), value),)


@kernel("pow", arguments=2)
def _pow(k: Simd, x: X, y: X) -> tuple[X]:
    """exp(y log |x|) with the logarithm and the product as double-double numbers, and the sign."""
    size = abs(x)
    high, low = map(k.x, _log_double(k, x.name))
    p, p_low = two_product(y, high)
    r, rest, n = reduced(k, p)
    r, rest = two_sum(r, y.times(low, rest + p_low))
    value = scaled(k, _one_plus(r, rest + tail(r)), n)
    far = k.logic("or", is_abnormal(k, size), abs(p).is_("uge", 708.0))
    (value,) = rarely(k, far, (value,), _pow_far, size, y)
    whole = y.is_("oeq", k.x(k.intrinsic("floor", y.name)))
    half = 0.5 * y
    is_odd = k.logic("and", whole, half.is_("une", k.x(k.intrinsic("floor", half.name))))
    negative = k.code.emit(f"icmp slt {k.integer} {k.bits(x.name)}, {k.whole(0)}")
    value = (-value).where(k.logic("and", negative, is_odd), value)
    # A negative finite base has no real power to a fraction; (±1)^±∞ = 1 and x^0 = 1 even for NaN.
    finite = k.logic("and", x.is_("olt", 0.0), x.is_("ogt", -math.inf))
    return (k.x(math.nan).where(k.logic("and", finite, k.logic("xor", whole, k.truth)), value),)


power = _pow.part(0)
