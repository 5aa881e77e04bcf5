"""The error function, cube roots, lengths, log Γ and its derivatives, within two units in the last place.

For x ≥ 0.47, erfc(x) = exp(-x²) G(t) / (1 + 2x) with a polynomial G in t = (x - 4) / (x + 4), and double-double numbers
until the last step; below, erf is a polynomial.

In [½, 8), log Γ and ψ are smooth functions times their zeros: log Γ(x) = (x - 1) (x - 2) L(x), ψ(x) = (x - r) D(x).
Each of sixteen slices has polynomials for L and D. Below ½, Γ(x + 1) = x Γ(x) leads there. From 8 on, the Stirling
series applies (DLMF 5.11.1, 5.11.2). For x < 0, log Γ calls the C library, and ψ is reflected: near its zeros there it
has fewer digits.

Source: N. Juffa's form of the scaled complementary error function, after M. M. Shepherd and J. G. Laframboise (1981),
"Chebyshev approximation of (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞". Precision is tested against fifty digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adbench.tape.compiled.kernels.mathematics.double_double import (
    COEFFICIENTS,
    fast_two_sum,
    numbers,
    polynomial,
    quotient,
    two_product,
    two_sum,
)
from adbench.tape.compiled.kernels.mathematics.exponentials import SHIFT, bounded, scaled, scaled_anywhere, unscaled
from adbench.tape.compiled.kernels.mathematics.logarithms import is_abnormal, log, log_double, split
from adbench.tape.compiled.kernels.mathematics.shared_functions import Part, kernel, rarely
from adbench.tape.compiled.kernels.mathematics.trigonometry import cos, sin, tan
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


erf, erfc, gauss = Part(_erf, 0), Part(_erf, 1), Part(_erf, 2)


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


cbrt, hypot = Part(_cbrt, 0), Part(_hypot, 0)


ROOT = (1.4616321449683622, 9.549995429965697e-17)
"""The zero of ψ, in two parts."""
HALF_LOG_TWO_PI = (0.9189385332046728, -3.8782941580672414e-17)
PI_REST = 1.2246467991473532e-16
"""π - `math.pi`."""
STIRLING_TERMS = COEFFICIENTS["stirling"]
"""x (log Γ(x) - (x - ½) log x + x - ½ log 2π) in x⁻² ≤ 1/64."""
STIRLING_SLOPE_TERMS = COEFFICIENTS["stirling slope"]
"""x² (log x - 1/(2x) - ψ(x)) in x⁻²."""
TERMS = 10.0
"""The terms 1 / (x + j)² before Stirling's series of the trigamma function."""
TRIGAMMA_TERMS = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""x³ (ψ′(x) - 1/x - 1/(2x²)) in x⁻²: Bernoulli's numbers."""
FIRST_BITS = 0x3FE0000000000000
"""The bits of ½: each slice is a quarter of the distance between two powers of two."""
CENTRES = tuple((1.0 + (k % 4 + 0.5) / 4.0) * 2.0 ** (k // 4 - 1) for k in range(16))


TABLES: dict[str, list[list[float]]] = numbers("gamma_tables.json")
"""L and D as polynomials in the distance from the centre of the slice: the coefficients of each power for the sixteen
slices. The first coefficient has two parts."""


def _of_tables(k: Simd, x: X, tables: Sequence[Sequence[float]], factor: X, factor_low: X) -> tuple[X, X]:
    """(high, low): the polynomial of x's slice times a double-double number."""
    offset = k.integers("sub", k.bits(x.name), k.whole(FIRST_BITS))
    i = k.integers("lshr", offset, k.whole(50))
    d = x - k.x(k.lookup(CENTRES, i))
    first, first_low, *others = (k.x(k.lookup(table, i)) for table in tables)
    y, y_low = fast_two_sum(first, d.times(polynomial(d, others), first_low))
    high, low = two_product(y, factor)
    return high, low + y.times(factor_low, y_low * factor)


@kernel("lgamma_far")
def _lgamma_far(k: Simd, x: X) -> tuple[X]:
    """Negative, tiny, huge, or no number."""
    other = k.x(k.called("lgamma", x.name))
    return (k.x(-math.inf).where(x.is_("oeq", -math.inf), other),)


@kernel("lgamma")
def _lgamma(k: Simd, x: X) -> tuple[X, ...]:
    small, large = x.is_("olt", 0.5), x.is_("oge", 8.0)
    y = (x + 1.0).where(small, x)
    y = k.x(4.0).where(large, y)
    # (y - 1) (y - 2) = w² - w
    w = y - 1.0
    square, square_low = two_product(w, w)
    zeros, zeros_low = two_sum(square, -w)
    inside, inside_low = _of_tables(k, y, TABLES["log_gamma"], zeros, zeros_low + square_low)
    high, low = log_double(k, x)
    below = (inside - high) + inside_low
    inside = inside + inside_low
    # (x - ½) log x - x + ½ log 2π + …
    less = x - 0.5
    p, p_low = two_product(less, high)
    p_low = less.times(low, p_low)
    q, q_low = fast_two_sum(p, -x)
    inverse = 1.0 / x
    series = inverse * polynomial(inverse * inverse, STIRLING_TERMS)
    beyond = q + (p_low + q_low + (series + HALF_LOG_TWO_PI[0]))
    value = beyond.where(large, below.where(small, inside))
    moderate = k.logic("and", x.is_("ogt", 2.0**-1000), x.is_("olt", 2.0**1000))
    return rarely(k, k.logic("xor", moderate, k.truth), (value,), _lgamma_far, x)


def _digamma_of(k: Simd, x: X) -> X:
    """For 0 < x < 2¹⁰⁰⁰."""
    small, large = x.is_("olt", 0.5), x.is_("oge", 8.0)
    y = (x + 1.0).where(small, x)
    y = k.x(4.0).where(large, y)
    zero, zero_low = two_sum(y, k.x(-ROOT[0]))
    inside, inside_low = _of_tables(k, y, TABLES["digamma"], zero, zero_low - ROOT[1])
    inverse = 1.0 / x
    inverse_low = (-x).fma(inverse, 1.0) * inverse
    z = inverse * inverse
    beyond = k.x(log(k, x.name)) - inverse.times(0.5, z * polynomial(z, STIRLING_SLOPE_TERMS))
    below = (inside - inverse) + (inside_low - inverse_low)
    return beyond.where(large, below.where(small, inside + inside_low))


@kernel("digamma_far")
def _digamma_far(k: Simd, x: X) -> tuple[X]:
    """By reflection: ψ(x) = ψ(1 - x) - π / tan πx. At poles NaN, but infinite at 0."""
    whole = k.x(k.intrinsic("rint", x.name))
    turn, turn_low = two_product(x - whole, k.x(math.pi))
    turn_low = (x - whole).times(PI_REST, turn_low)
    cotangent = 1.0 / k.x(tan(k, turn.name))
    y = _digamma_of(k, 1.0 - x) - math.pi * (cotangent - turn_low * cotangent.times(cotangent, 1.0))
    y = k.x(math.nan).where(k.logic("and", x.is_("olt", 0.0), x.is_("oeq", whole)), y)
    tiny = abs(x).is_("olt", 2.0**-60)
    y = (-1.0 / x).where(tiny, y)
    return (k.x(log(k, x.name)).where(x.is_("ogt", 2.0**900), y),)


@kernel("digamma")
def _digamma(k: Simd, x: X) -> tuple[X, ...]:
    moderate = k.logic("and", x.is_("ogt", 2.0**-60), x.is_("olt", 2.0**900))
    return rarely(k, k.logic("xor", moderate, k.truth), (_digamma_of(k, x),), _digamma_far, x)


def _trigamma_of(k: Simd, x: X) -> X:
    """For x ≥ 0: ψ′(x) = Σ 1 / (x + j)² + ψ′(x + 10), and Stirling's series from 10 on."""
    near = x.is_("olt", TERMS)
    inverse = 1.0 / (x + TERMS).where(near, x)
    z = inverse * inverse
    beyond = inverse + z * (inverse * polynomial(z, TRIGAMMA_TERMS) + 0.5)
    total, low = beyond, k.x(0.0)
    for j in reversed(range(int(TERMS))):
        place, place_low = two_sum(x, k.x(float(j)))
        part = 1.0 / place
        square, square_low = two_product(part, part)
        part_low = ((-place).fma(part, 1.0) - place_low * part) * part
        total, rounding = two_sum(total, square)
        low = low + (rounding + part.times(2.0 * part_low, square_low))
    pole = 1.0 / x
    return (pole * pole).where(x.is_("olt", 2.0**-60), (total + low).where(near, beyond))


@kernel("trigamma_far")
def _trigamma_far(k: Simd, x: X) -> tuple[X]:
    """By reflection: ψ′(x) = (π / sin πx)² - ψ′(1 - x), infinite at poles."""
    rest = x - k.x(k.intrinsic("rint", x.name))
    turn, turn_low = two_product(rest, k.x(math.pi))
    sine = k.x(sin(k, turn.name)) + rest.times(PI_REST, turn_low) * k.x(cos(k, turn.name))
    wave = math.pi / sine
    y = wave.fma(wave, -_trigamma_of(k, 1.0 - x))
    return (k.x(math.inf).where(x.is_("oeq", -math.inf), y),)


@kernel("trigamma")
def _trigamma(k: Simd, x: X) -> tuple[X, ...]:
    return rarely(k, x.is_("olt", 0.0), (_trigamma_of(k, x),), _trigamma_far, x)


lgamma, digamma, trigamma = Part(_lgamma, 0), Part(_digamma, 0), Part(_trigamma, 0)
