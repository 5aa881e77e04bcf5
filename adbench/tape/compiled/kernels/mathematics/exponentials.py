"""Exponentials and hyperbolic functions, within two units in the last place.

The C library's functions take one number; calling them lane by lane costs ten times the arithmetic. These are classical
kernels: reduction of the argument in two parts (Cody and Waite), a polynomial, and the exponent put back. Arguments
that need more care (overflow, subnormal results, NaN) take a branch, see `rarely`.

Sources: W. J. Cody and W. Waite (1980), "Software manual for the elementary functions". Coefficients of polynomials are
fits with a relative error of the function below 2⁻⁵⁷. Precision is tested against fifty digits.
"""

from __future__ import annotations

import decimal
import math
import struct

from adbench.tape.compiled.kernels.mathematics.double_double import COEFFICIENTS, fast_two_sum, polynomial, quotient
from adbench.tape.compiled.kernels.mathematics.shared_functions import Part, kernel, rarely
from adbench.tape.machine.simd import Simd, X

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
LN2, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
"""log 2, the sum of two doubles: the first of 32 bits, or of 53."""
SHIFT = 1.5 * 2.0**52
"""Added to a number of moderate size, it leaves the nearest integer in the last bits."""

EXP_TERMS = COEFFICIENTS["exp"]
"""(exp(r) - 1 - r) / r² for |r| ≤ ½ log 2."""
SIXTEENTH_TERMS = COEFFICIENTS["exp near 0"]
"""(exp(r) - 1 - r) / r² for |r| ≤ log 2 / 32."""


def _sixteenths() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For j = 0, …, 15: 2^(j/16) rounded, less j/16 in the bits of the exponent, and the rest as a share of it."""
    with decimal.localcontext(decimal.Context(prec=40)):
        exact = [decimal.Decimal(2) ** (decimal.Decimal(j) / 16) for j in range(16)]
        rests = tuple(float(x / decimal.Decimal(float(x)) - 1) for x in exact)
    bits = [struct.unpack("<q", struct.pack("<d", float(x)))[0] - (j << 48) for j, x in enumerate(exact)]
    return tuple(struct.unpack("<d", struct.pack("<q", n))[0] for n in bits), rests


SIXTEENTHS, SIXTEENTHS_REST = _sixteenths()
COTH_TERMS = COEFFICIENTS["coth"]
"""(z coth z - 1) / z² in z² for |z| ≤ ¼ log 2, with an error below 2⁻⁵⁹ of z coth z."""
SINH_TERMS = tuple(1.0 / math.factorial(n) for n in (3, 5, 7, 9, 11, 13))
COSH_TERMS = tuple(1.0 / math.factorial(n) for n in (2, 4, 6, 8, 10, 12, 14))
"""The Taylor series of (sinh r - r) / r³ and (cosh r - 1) / r² in r²."""
# Exponentials


def reduced(x: X) -> tuple[X, X, X]:
    """(r, r_low, n): x = r + r_low + n log 2, |r| ≤ ½ log 2, and `SHIFT` + n."""
    shifted = x.times(1.0 / math.log(2.0), SHIFT)
    n = shifted - SHIFT
    near = n.times(-LN2_HIGH, x)
    r = n.times(-LN2_LOW, near)
    return r, n.times(-LN2_LOW, near - r), shifted


def tail(r: X) -> X:
    """exp(r) - 1 - r."""
    return (r * r) * polynomial(r, EXP_TERMS)


def unscaled(x: X, low: X | None = None) -> tuple[X, X, X]:
    """(high, rest, n): exp(x + low) = (high + rest) 2ⁿ with few dependent steps, and `SHIFT` + n.

    For |low| < 10⁻¹². With r = x - n log 2 by the first 53 bits of log 2, which is exact, the rest of log 2 multiplies
    the result.
    """
    shifted = x.times(1.0 / math.log(2.0), SHIFT)
    n = shifted - SHIFT
    r = n.fma(-LN2, x)
    less = n * -LN2_REST if low is None else n.times(-LN2_REST, low)
    square = r * r
    high, high_low = fast_two_sum(1.0, r)
    about = square.times(square.times(EXP_TERMS[2], r.times(EXP_TERMS[1], EXP_TERMS[0])), high)
    return high, square.times(polynomial(r, EXP_TERMS), less.times(about, high_low)), shifted


def exponential(k: Simd, x: X, low: X | None = None) -> tuple[X, X]:
    """(s, t): exp(x + low) = s + s t if that is a normal number, and |low| < 10⁻¹².

    s = 2^(n/16) for n / 16 next to x / log 2, from a table. So the polynomial is short: this is the function with the
    fewest dependent steps.
    """
    shifted = x.times(16.0 / math.log(2.0), SHIFT)
    n = shifted - SHIFT
    r = n.fma(-LN2 / 16.0, x)  # exact
    bits = k.bits(shifted.name)
    first, rest = k.bits(k.lookup(SIXTEENTHS, bits)), k.x(k.lookup(SIXTEENTHS_REST, bits))
    scale = k.x(k.from_bits(k.integers("add", first, k.integers("shl", bits, k.whole(48)))))
    less = n * (-LN2_REST / 16.0) if low is None else n.times(-LN2_REST / 16.0, low)
    c = SIXTEENTH_TERMS
    square = r * r
    start = square.times(r.times(c[1], c[0]), r.times(less + 1.0, less))
    end = square.times(c[4], r.times(c[3], c[2]))
    return scale, start + (square * square).times(end, rest)


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
    high, rest, n = unscaled(bounded(x, -746.0, 710.0))
    return (scaled_anywhere(k, high + rest, n),)


@kernel("exp")
def _exp(k: Simd, x: X) -> tuple[X, ...]:
    scale, rest = exponential(k, x)
    return rarely(k, abs(x).is_("ugt", 708.0), (scale.times(rest, scale),), _exp_far, x)


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
    r, low, n = reduced(x)
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
    high, rest, n = unscaled(bounded(-(size + size), -760.0, 0.0))
    slope = scaled_anywhere(k, 4.0 * (high + rest), n)
    return k.x(k.intrinsic("copysign", k.constant(1.0), x.name)), slope


def half_exponential(size: X) -> tuple[X, X, X, X, X]:
    """(z, z_low, scale, b, w): exp(-2 size) = scale · exp(-2 y) with y = z + z_low, b = y coth y - 1 and w = y².

    For 0 ≤ size ≤ 64, so that |z_low| < 2⁻⁴⁸ and its products with b and w do not matter.

    scale = 2⁻ⁿ and |z| ≤ ¼ log 2. As tanh y = y / (1 + b), the exponential of -2 y is (1 + b - y) / (1 + b + y).
    """
    k = size.k
    shifted = size.times(2.0 / math.log(2.0), SHIFT)
    n = shifted - SHIFT
    z, z_low = n.fma(-0.5 * LN2, size), n * (-0.5 * LN2_REST)  # the first is exact
    down = k.integers("shl", k.bits(shifted.name), k.whole(52))
    scale = k.x(k.from_bits(k.integers("sub", k.bits(k.constant(1.0)), down)))
    w = z + z_low
    w = w * w
    square = w * w
    c0, c1, c2, c3, c4 = COTH_TERMS
    return z, z_low, scale, square.times(square.times(w.times(c4, c3), w.times(c2, c1)), w * c0), w


@kernel("tanh", results=2)
def _tanh(k: Simd, x: X) -> tuple[X, ...]:
    """(tanh x, 1 / cosh² x), by the addition theorem with one division and no exponential.

    Let e = 2⁻ⁿ, p = 1 + e and q = 1 - e. Then tanh |x| = (q (1 + b) + z p) / (p (1 + b) + z q), and 1 / cosh² x is
    4 e ((1 + b)² - z²) over the square of the denominator. Both are double-double numbers, and `rest` is the error of
    the inverse, so only the last step rounds.
    """
    size = abs(x)
    z, z_low, e, b, w = half_exponential(size)
    p, q = 1.0 + e, 1.0 - e
    above = z.fma(p, q)
    above_low = b.times(q, z_low.times(p, z.fma(p, q - above)))
    below = z.fma(q, p)
    below_low = b.times(p, z_low.times(q, z.fma(q, (1.0 - below) + e)))
    inverse = 1.0 / b.times(p, below)
    rest = (-inverse).times(below_low, (-inverse).fma(below, 1.0))
    y = above.times(inverse, above.times(rest, above_low) * inverse)
    fourfold = k.x(k.from_bits(k.integers("add", k.bits(e.name), k.whole(2 << 52)))) * inverse
    square = fourfold * inverse
    slope = square.times(rest.times(2.0, b.times(b + 2.0, -w)), square)
    y = k.x(k.intrinsic("copysign", y.name, x.name))
    return rarely(k, size.is_("ogt", 64.0), (y, slope), _tanh_far, x)


def _addition(k: Simd, size: X) -> tuple[X, X]:
    """Half of sinh and cosh, by the addition theorems for r + n log 2."""
    r, low, shifted = reduced(size)
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


exp_minus_size = Part(_exp_minus_size, 0)
exp, expm1, expit = Part(_exp, 0), Part(_expm1, 0), Part(_expit, 0)
tanh, sech_square = Part(_tanh, 0), Part(_tanh, 1)
sinh, cosh = Part(_sinh_cosh, 0), Part(_sinh_cosh, 1)
