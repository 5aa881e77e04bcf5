"""The error function, cube roots and lengths, within two units in the last place.

For x ≥ 0.47, erfc(x) = exp(-x²) G(t) / (1 + 2x) with a polynomial G in t = (x - 4) / (x + 4), and double-double numbers
until the last step; below, erf is a polynomial.

Source: N. Juffa's form of the scaled complementary error function, after M. M. Shepherd and J. G. Laframboise (1981),
"Chebyshev approximation of (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞". Precision is tested against fifty digits.
"""

from __future__ import annotations

import math

from adbench.tape.compiled.kernels.mathematics.double_double import (
    COEFFICIENTS,
    fast_two_sum,
    polynomial,
    quotient,
    two_product,
    two_sum,
)
from adbench.tape.compiled.kernels.mathematics.exponentials import SHIFT, bounded, scaled, scaled_anywhere, unscaled
from adbench.tape.compiled.kernels.mathematics.logarithms import is_abnormal, split
from adbench.tape.compiled.kernels.mathematics.shared_functions import kernel, rarely
from adbench.tape.machine.simd import Simd, X

ERF_FIRST = (1.1283791670955126, 1.533545961316588e-17)
"""2/√π in two parts, the first coefficient of erf(x) / x."""
ERF_TERMS = COEFFICIENTS["erf"]
"""Its other coefficients, in x² ≤ 1."""
SCALED_FIRST = (1.2329951186255526, -4.550062637435415e-17)
SCALED_TERMS = COEFFICIENTS["scaled erfc"]
"""G: its first coefficient in two parts, and the others, for 0.45 ≤ x ≤ 28."""
CBRT_TERMS = COEFFICIENTS["inverse cbrt"]
"""m^(-⅓) for ⅓ ≤ m ≤ 8/3, with an error of 0.003."""


# The error function


def _gauss_parts(size: X) -> tuple[X, X, X]:
    """(high, low, n): exp(-x²) = (high + low) 2ⁿ."""
    square, square_low = two_product(size, size)
    high, low, n = unscaled(-square, -square_low)
    return *fast_two_sum(high, low), n


def _tail_quotient(size: X, e: X, e_low: X) -> X:
    """e G(t) / (1 + 2x)."""
    t = (size - 4.0) / (size + 4.0)
    g, g_low = fast_two_sum(SCALED_FIRST[0], t.times(polynomial(t, SCALED_TERMS), SCALED_FIRST[1]))
    d, d_low = two_sum(size.k.x(1.0), size + size)
    up, up_low = two_product(e, g)
    return quotient(up, e.times(g_low, e_low.times(g, up_low)), d, d_low, 1.0 / d)


def _times_two_over_root_pi(e: X, e_low: X) -> X:
    high, low = two_product(e, e.k.x(ERF_FIRST[0]))
    return high + e_low.times(ERF_FIRST[0], e.times(ERF_FIRST[1], low))


@kernel("erf_far", results=3)
def _erf_far(k: Simd, x: X) -> tuple[X, X, X]:
    size = bounded(abs(x), 0.0, 28.0)
    e, e_low, n = _gauss_parts(size)
    right = scaled_anywhere(k, _tail_quotient(size, e, e_low), n)
    one = k.x(k.intrinsic("copysign", k.constant(1.0), x.name))
    slope = scaled_anywhere(k, _times_two_over_root_pi(e, e_low), n)
    return one, k.x(2.0).where(x.is_("olt", 0.0), right), slope


@kernel("erf", results=3)
def _erf(k: Simd, x: X) -> tuple[X, ...]:
    """(erf x, erfc x, 2/√π exp(-x²))."""
    size = abs(x)
    e, e_low, n = _gauss_parts(size)
    scale = scaled(k, 1.0, n)
    outer = scale * _tail_quotient(size, e, e_low)
    slope = scale * _times_two_over_root_pi(e, e_low)
    z = x * x
    inner_low = x * z.times(polynomial(z, ERF_TERMS), ERF_FIRST[1])
    inner, product_low = two_product(x, k.x(ERF_FIRST[0]))
    one_less, less_low = two_sum(k.x(1.0), -inner)
    erf_inside, erfc_inside = inner + (product_low + inner_low), one_less + (less_low - (product_low + inner_low))
    erf_outside = k.x(k.intrinsic("copysign", (1.0 - outer).name, x.name))
    erfc_outside = (2.0 - outer).where(x.is_("olt", 0.0), outer)
    y = erf_inside.where(size.is_("olt", 1.0), erf_outside)
    c = erfc_inside.where(size.is_("olt", 0.47), erfc_outside)
    y = x.where(x.is_("oeq", 0.0), y)
    return rarely(k, size.is_("ogt", 26.5), (y, c, slope), _erf_far, x)


erf, erfc, gauss = _erf.part(0), _erf.part(1), _erf.part(2)


# Roots


@kernel("cbrt_far")
def _cbrt_far(k: Simd, x: X) -> tuple[X]:
    y = _cbrt_normal(k, abs(x) * 2.0**54) * 2.0**-18
    y = k.x(k.intrinsic("copysign", y.name, x.name))
    same = k.logic("or", x.is_("oeq", 0.0), abs(x).is_("ueq", math.inf))
    return (x.where(same, y),)


def _cbrt_normal(k: Simd, size: X) -> X:
    """From m^(-1/3) by a polynomial and two steps of Householder's iteration, then one of Newton's for the root."""
    e, m, _ = split(k, size)
    shifted = e.times(1.0 / 3.0, SHIFT)
    third = shifted - SHIFT
    rest = e - 3.0 * third
    m = k.x(0.5).where(rest.is_("olt", -0.5), k.x(2.0).where(rest.is_("ogt", 0.5), 1.0)) * m
    t = polynomial(m, CBRT_TERMS)
    for _ in range(2):
        error = (-m * t).times(t * t, 1.0)
        t = t.times(error * error.times(2.0 / 9.0, 1.0 / 3.0), t)
    y = m * (t * t)
    square, low = two_product(y, y)
    residual = (-y).fma(square, m) - y * low
    return scaled(k, residual.times(t * t * (1.0 / 3.0), y), shifted)


@kernel("cbrt")
def _cbrt(k: Simd, x: X) -> tuple[X, ...]:
    size = abs(x)
    y = k.x(k.intrinsic("copysign", _cbrt_normal(k, size).name, x.name))
    return rarely(k, is_abnormal(k, size), (y,), _cbrt_far, x)


@kernel("hypot_far", arguments=2)
def _hypot_far(k: Simd, x: X, y: X) -> tuple[X]:
    infinite = k.logic("or", abs(x).is_("oeq", math.inf), abs(y).is_("oeq", math.inf))
    large = k.logic("or", abs(x).is_("ogt", 1.0), abs(y).is_("ogt", 1.0))
    scale, back = k.x(2.0**-600).where(large, 2.0**600), k.x(2.0**600).where(large, 2.0**-600)
    a, b = abs(x) * scale, abs(y) * scale
    is_first = a.is_("ogt", b)
    a, b = a.where(is_first, b), b.where(is_first, a)
    root = k.x(k.intrinsic("sqrt", a.times(a, b * b).name)) * back
    return (k.x(math.inf).where(infinite, root),)


@kernel("hypot", arguments=2)
def _hypot(k: Simd, x: X, y: X) -> tuple[X, ...]:
    """√(x² + y²), with a branch where the squares leave the range of normal numbers."""
    a, b = abs(x), abs(y)
    is_first = a.is_("ogt", b)
    a, b = a.where(is_first, b), b.where(is_first, a)
    square = a.times(a, b * b)
    root = k.x(k.intrinsic("sqrt", square.name))
    moderate = k.logic("and", square.is_("ogt", 2.0**-900), square.is_("olt", 2.0**1000))
    zero = k.logic("and", x.is_("oeq", 0.0), y.is_("oeq", 0.0))
    far = k.logic("xor", k.logic("or", moderate, zero), k.truth)
    return rarely(k, far, (root,), _hypot_far, x, y)


cbrt, hypot = _cbrt.part(0), _hypot.part(0)
