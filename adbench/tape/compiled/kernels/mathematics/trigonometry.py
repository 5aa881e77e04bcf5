"""Branch-free trigonometric functions and their inverses, within two units in the last place.

Sine, cosine and tangent take x to r = x - n π/2 by a value of π/2 of 160 bits, exactly enough up to 2⁴⁰. For larger
numbers, which are rare, they call the C library. Sine and cosine share all of this and both polynomials.

Sources: W. J. Cody and W. Waite (1980), "Software manual for the elementary functions"; Sun's fdlibm for the
corrections by the low part of r and for the forms of the inverse functions. Precision is tested against fifty digits.
"""

from __future__ import annotations

import math
from functools import partial

from adbench.tape.compiled.kernels.mathematics.double_double import (
    COEFFICIENTS,
    fast_two_sum,
    polynomial,
    quotient,
    two_product,
)
from adbench.tape.compiled.kernels.mathematics.exponentials import SHIFT
from adbench.tape.compiled.kernels.mathematics.shared_functions import Part, kernel, rarely
from adbench.tape.machine.simd import Name, Simd, X

HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""π/2, the sum of three doubles."""
FARTHEST = 2.0**40
"""The largest argument of the reduction by `HALF_PI`."""

SIN_TERMS = COEFFICIENTS["sin"]
"""(sin r - r) / r³ in r², for |r| ≤ π/4."""
COS_TERMS = COEFFICIENTS["cos"]
"""(cos r - 1 + r²/2) / r⁴ in r²."""
ARCSIN_TERMS = COEFFICIENTS["arcsin"]
"""(arcsin s - s) / s³ in s², for |s| ≤ ½."""
ARCTAN_TERMS = COEFFICIENTS["arctan"]
"""(arctan u - u) / u³ in u², for |u| ≤ √2 - 1."""


# Sine, cosine, tangent


def _reduced(k: Simd, x: X) -> tuple[X, X, Name]:
    """(r, r_low, n): x = r + r_low + n π/2, and n as an integer."""
    shifted = x.times(2.0 / math.pi, SHIFT)
    n = shifted - SHIFT
    near = n.fma(-HALF_PI[0], x)  # exact
    p, p_low = two_product(n, k.x(-HALF_PI[1]))
    r, low = fast_two_sum(near, p)  # also exact if |near| < |p|, because `near` is a multiple of p's last bit
    return r, low + n.times(-HALF_PI[2], p_low), k.bits(shifted.name)


def _both(r: X, low: X) -> tuple[X, X, X, X]:
    """sin and cos of r + low: high parts and small corrections."""
    z = r * r
    w, w_low = fast_two_sum(1.0, -0.5 * z)
    sine = (r * z).times(polynomial(z, SIN_TERMS), low * w)
    cosine = (z * z).times(polynomial(z, COS_TERMS), r.times(-low, w_low))
    return r, sine, w, cosine


@kernel("sin_cos_far", results=2)
def _sin_cos_far(k: Simd, x: X) -> tuple[X, X]:
    return k.x(k.called("sin", x.name)), k.x(k.called("cos", x.name))


@kernel("tan_far")
def _tan_far(k: Simd, x: X) -> tuple[X]:
    return (k.x(k.called("tan", x.name)),)


def _bit(k: Simd, n: Name, bit: int) -> Name:
    return k.code.emit(f"icmp ne {k.integer} {k.integers('and', n, k.whole(bit))}, {k.whole(0)}")


def _sign(k: Simd, n: Name) -> Name:
    """The bit of the sign if the second bit of n is set, else 0."""
    return k.integers("shl", k.integers("lshr", n, k.whole(1)), k.whole(63))


def _signed(k: Simd, x: X, sign: Name) -> X:
    """x, or -x if the bit of the sign is set."""
    return k.x(k.from_bits(k.integers("xor", k.bits(x.name), sign)))


@kernel("sin_cos", results=2)
def _sin_cos(k: Simd, x: X) -> tuple[X, ...]:
    r, low, n = _reduced(k, x)
    s, s_rest, c, c_rest = _both(r, low)
    s, c = s + s_rest, c + c_rest
    odd = _bit(k, n, 1)
    of_zero = k.select(x.is_("oeq", 0.0), k.bits(x.name), k.whole(0), k.integer)  # the reduction makes 0 of -0
    sine = _signed(k, c.where(odd, s), k.integers("xor", _sign(k, n), of_zero))
    cosine = _signed(k, s.where(odd, c), _sign(k, k.integers("add", n, k.whole(1))))
    return rarely(k, abs(x).is_("ogt", FARTHEST), (sine, cosine), _sin_cos_far, x)


@kernel("tan")
def _tan(k: Simd, x: X) -> tuple[X, ...]:
    r, low, n = _reduced(k, x)
    s, s_low, c, c_low = _both(r, low)
    s, s_low = fast_two_sum(s, s_low)
    c, c_low = fast_two_sum(c, c_low)
    odd = _bit(k, n, 1)
    up, up_low = (-c).where(odd, s), (-c_low).where(odd, s_low)
    down, down_low = s.where(odd, c), s_low.where(odd, c_low)
    y = quotient(up, up_low, down, down_low, 1.0 / down)
    y = x.where(abs(x).is_("olt", 2.0**-27), y)
    return rarely(k, abs(x).is_("ogt", FARTHEST), (y,), _tan_far, x)


sin, cos, tan = Part(_sin_cos, 0), Part(_sin_cos, 1), Part(_tan, 0)


# sin πx / (πx) and its derivatives

SINC_SERIES = {1: 0.5, 2: 1.0}
"""|x| below which a derivative of this order comes from its series, as the terms of the other form cancel."""


def _of_half_turns(k: Simd, x: X) -> tuple[X, X]:
    """(sin πx, cos πx), with whole turns removed before the multiplication by π rounds."""
    turns = k.x(k.intrinsic("rint", (x * 0.5).name))
    rest = turns.fma(-2.0, x)
    size = abs(rest)
    short = (1.0 - size).where(size.is_("ogt", 0.5), size)
    sine = k.x(k.intrinsic("copysign", sin(k, (short * math.pi).name), rest.name))
    return sine, k.x(sin(k, ((0.5 - size) * math.pi).name))


def _sinc(order: int, k: Simd, x: X) -> tuple[X]:
    """sin πx · 1/(πx) differentiated `order` times by Leibniz, or near 0 Σ (-1)ᵏ π²ᵏ x²ᵏ / (2k + 1)!, term by term."""
    sine, cosine = _of_half_turns(k, x)
    waves, inverse, far = (sine, cosine, -sine), 1.0 / x, k.x(0.0)
    for n in range(order + 1):
        rest = order - n
        factor = math.comb(order, n) * math.factorial(rest) * (-1.0) ** rest * math.pi ** (n - 1)
        power = inverse
        for _ in range(rest):
            power = power * inverse
        far = far + waves[n] * factor * power
    far = k.x(0.0).where(abs(x).is_("oeq", math.inf), far)
    if order == 0:
        return (k.x(1.0).where(abs(x).is_("olt", 2.0**-28), far),)
    powers = range(order % 2 + order, 36, 2)  # of x, before it is differentiated
    terms = [(-1) ** (n // 2) * math.pi**n * math.perm(n, order) / math.factorial(n + 1) for n in powers]
    near = polynomial(x * x, terms)
    near = near * x if order % 2 else near
    return (near.where(abs(x).is_("olt", SINC_SERIES[order]), far),)


sinc, sinc_1, sinc_2 = (
    Part(kernel(name)(partial(_sinc, order)), 0) for order, name in enumerate(("sinc", "sinc_1", "sinc_2"))
)


# Inverse functions


def _half_angle(k: Simd, x: X) -> tuple[Name, X, X, X]:
    """(whether |x| ≤ ½, s, s_low, arcsin s - s) for s = |x|, or for s = √((1 - |x|) / 2) beyond ½."""
    size = abs(x)
    near = size.is_("ole", 0.5)
    z = (size * size).where(near, 0.5 - 0.5 * size)
    root = k.x(k.intrinsic("sqrt", z.name))
    positive = k.x(1.0).where(root.is_("oeq", 0.0), root)
    low = ((-root).fma(root, z)) / (positive + positive)
    s = size.where(near, root)
    return near, s, k.x(0.0).where(near, low), (s * z) * polynomial(z, ARCSIN_TERMS)


@kernel("asin")
def _asin(k: Simd, x: X) -> tuple[X]:
    near, s, low, rest = _half_angle(k, x)
    high, high_low = fast_two_sum(HALF_PI[0], -(s + s))
    far = high + (high_low - (low + rest + (low + rest) - HALF_PI[1]))
    y = (s + rest).where(near, far)
    return (k.x(k.intrinsic("copysign", y.name, x.name)),)


@kernel("acos")
def _acos(k: Simd, x: X) -> tuple[X]:
    near, s, low, rest = _half_angle(k, x)
    signed, signed_rest = (k.x(k.intrinsic("copysign", part.name, x.name)) for part in (s, rest))
    middle, middle_low = fast_two_sum(HALF_PI[0], -signed)
    middle = middle + (middle_low - (signed_rest - HALF_PI[1]))
    right = s + (low + rest)
    left, left_low = fast_two_sum(HALF_PI[0], -s)
    left = left + (left_low - (low + rest - HALF_PI[1]))
    twice = left.where(x.is_("olt", 0.0), right)
    return (middle.where(near, twice + twice),)


def _arctan_of_quotient(k: Simd, y: X, x: X) -> tuple[X, X]:
    """arctan(y / x) = high + low for y, x ≥ 0, not both 0 or infinite: its value at 0, 1 or infinity plus the rest."""
    steep = y.is_("ogt", x * 2.414213562373095)
    flat = y.is_("ole", x * 0.41421356237309503)
    up = (-x).where(steep, y.where(flat, y - x))
    down = y.where(steep, x.where(flat, y + x))
    base = k.x(HALF_PI[0]).where(steep, k.x(0.0).where(flat, 0.5 * HALF_PI[0]))
    base_low = k.x(HALF_PI[1]).where(steep, k.x(0.0).where(flat, 0.5 * HALF_PI[1]))
    u = up / down
    z = u * u
    high, low = fast_two_sum(base, u)
    return high, low + (u * z).times(polynomial(z, ARCTAN_TERMS), base_low)


@kernel("atan")
def _atan(k: Simd, x: X) -> tuple[X]:
    high, low = _arctan_of_quotient(k, abs(x), k.x(1.0))
    y = k.x(k.intrinsic("copysign", (high + low).name, x.name))
    return (x.where(abs(x).is_("olt", 2.0**-27), y),)


@kernel("atan2", arguments=2)
def _atan2(k: Simd, y: X, x: X) -> tuple[X]:
    """The angle of the first octants, then moved to the quadrant of (x, y)."""
    a, b = abs(y), abs(x)
    large = k.logic("or", a.is_("ogt", 2.0**1000), b.is_("ogt", 2.0**1000))
    small = k.logic("and", a.is_("olt", 2.0**-900), b.is_("olt", 2.0**-900))
    scale = k.x(2.0**-60).where(large, k.x(2.0**100).where(small, 1.0))
    a, b = a * scale, b * scale
    infinite = k.logic("and", a.is_("oeq", math.inf), b.is_("oeq", math.inf))
    origin = k.logic("and", a.is_("oeq", 0.0), b.is_("oeq", 0.0))
    a, b = k.x(1.0).where(infinite, a), k.x(1.0).where(k.logic("or", infinite, origin), b)
    high, low = _arctan_of_quotient(k, a, b)
    left = k.code.emit(f"icmp slt {k.integer} {k.bits(x.name)}, {k.whole(0)}")
    other, other_low = fast_two_sum(2.0 * HALF_PI[0], -high)
    other = other + ((other_low - low) + 2.0 * HALF_PI[1])
    angle = other.where(left, high + low)
    angle = k.x(k.intrinsic("copysign", angle.name, y.name))
    return ((x + y).where(k.logic("or", x.is_("uno", x), y.is_("uno", y)), angle),)


asin, acos, atan, atan2 = Part(_asin, 0), Part(_acos, 0), Part(_atan, 0), Part(_atan2, 0)
