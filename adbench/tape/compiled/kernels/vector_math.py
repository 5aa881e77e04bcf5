"""Branch-free exponentials and logarithms for arrays: eight numbers at once, within two units in the last place.

The C library's functions take one number; calling them lane by lane costs ten times the arithmetic. These are classical
kernels: reduction of the argument in two parts (Cody and Waite), a polynomial, and the exponent put back. They give the
limits at the ends of the range, subnormal numbers, and NaN for NaN.

Sources: W. J. Cody and W. Waite (1980), "Software manual for the elementary functions"; Sun's fdlibm for the polynomial
of the logarithm and the forms of expm1 and tanh. Precision is tested against fifty digits.
"""

from __future__ import annotations

import math

from adbench.tape.compiled.kernels.simd import Name, Simd, X

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
SHIFT = 1.5 * 2.0**52
"""Added to a number of moderate size, it leaves the nearest integer in the last bits."""

LOG_TERMS = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def _reduced(k: Simd, x: X) -> tuple[X, Name]:
    """(r, n): x = r + n log 2, |r| ≤ ½ log 2, and n as an integer."""
    shifted = x.times(1.0 / math.log(2.0), SHIFT)
    n = shifted - SHIFT
    whole = k.integers("sub", k.bits(shifted.name), k.bits(k.constant(SHIFT)))
    r = n.times(-LN2_LOW, n.times(-LN2_HIGH, x))
    return r, whole


def _expm1_near_zero(r: X) -> X:
    """exp(r) - 1 for |r| ≤ ½ log 2: r + r² (½ + r (1/6 + …)), to the thirteenth power."""
    p: X | float = 1.0 / math.factorial(13)
    for n in range(12, 1, -1):
        p = r.times(p, 1.0 / math.factorial(n))
    return (r * r).times(p, r)


def _power_of_two(k: Simd, n: Name) -> X:
    """2ⁿ for -1022 ≤ n ≤ 1023."""
    biased = k.integers("add", n, k.whole(1023))
    return k.x(k.from_bits(k.integers("shl", biased, k.whole(52))))


def exp(k: Simd, name: Name) -> Name:
    """The exponential function."""
    x = k.x(name)
    x = k.x(710.0).where(x.is_("ogt", 710.0), x)
    x = k.x(-746.0).where(x.is_("olt", -746.0), x)
    r, n = _reduced(k, x)
    half = k.integers("ashr", n, k.whole(1))
    rest = k.integers("sub", n, half)
    y = 1.0 + _expm1_near_zero(r)
    return (y * _power_of_two(k, half) * _power_of_two(k, rest)).name


def expm1(k: Simd, name: Name) -> Name:
    """exp(x) - 1, to all digits near 0."""
    given = k.x(name)
    x = k.x(710.0).where(given.is_("ogt", 710.0), given)
    x = k.x(-50.0).where(x.is_("olt", -50.0), x)
    r, n = _reduced(k, x)
    p = _expm1_near_zero(r)
    # 2ⁿ p + (2ⁿ - 1), in halves, because 2ⁿ overflows first.
    scale = _power_of_two(k, k.integers("sub", n, k.whole(1)))
    y = scale.times(p, scale - 0.5)
    y = y + y
    tiny = abs(given).is_("olt", 2.0**-54)
    return given.where(tiny, y).name


def log(k: Simd, name: Name) -> Name:
    """The natural logarithm."""
    given = k.x(name)
    small = given.is_("olt", 2.0**-1022)
    x = (given * 2.0**54).where(small, given)
    bits = k.bits(x.name)
    offset = k.integers("sub", bits, k.whole(0x3FE6A09E667F3BCD))
    exponent = k.integers("ashr", offset, k.whole(52))
    m = k.x(k.from_bits(k.integers("sub", bits, k.integers("shl", exponent, k.whole(52)))))
    e = k.x(k.to_real(exponent))
    e = (e - 54.0).where(small, e)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p: X | float = LOG_TERMS[-1]
    for term in LOG_TERMS[-2::-1]:
        p = z.times(p, term)
    r = z * p
    half_square = 0.5 * f * f
    high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    y = e * high - ((half_square - (s * (half_square + r) + e * low)) - f)
    y = k.x(-math.inf).where(given.is_("oeq", 0.0), y)
    y = k.x(math.nan).where(given.is_("olt", 0.0), y)
    y = given.where(given.is_("oeq", math.inf), y)
    return given.where(given.is_("uno", given), y).name


def log1p(k: Simd, name: Name) -> Name:
    """log(1 + x), to all digits near 0, with a correction for the rounding error of 1 + x."""
    x = k.x(name)
    w = 1.0 + x
    lost = x - (w - 1.0)
    lost = k.x(0.0).where(abs(x).is_("ogt", 1e18), lost)
    y = k.x(log(k, w.name)) + lost / w
    y = x.where(abs(x).is_("olt", 2.0**-54), y)
    return k.x(-math.inf).where(x.is_("oeq", -1.0), y).name


def tanh(k: Simd, name: Name) -> Name:
    """The hyperbolic tangent, by expm1 as in fdlibm."""
    x = k.x(name)
    size = abs(x)
    large = size.is_("oge", 1.0)
    t = k.x(expm1(k, (size + size).where(large, -(size + size)).name))
    y = (1.0 - 2.0 / (t + 2.0)).where(large, -t / (t + 2.0))
    y = x.where(x.is_("uno", x), y)
    return k.intrinsic("copysign", y.name, name)


def expit(k: Simd, name: Name) -> Name:
    """1 / (1 + exp(-x))."""
    return (1.0 / (1.0 + k.x(exp(k, (-k.x(name)).name)))).name
