"""log Γ and its derivative ψ, within two units in the last place for x > 0.

In [½, 8) both are smooth functions times their zeros: log Γ(x) = (x - 1) (x - 2) L(x), ψ(x) = (x - r) D(x). Each of
sixteen slices has polynomials for L and D. Below ½, Γ(x + 1) = x Γ(x) leads there. From 8 on, the Stirling series
applies (DLMF 5.11.1, 5.11.2). For x < 0, log Γ calls the C library, and ψ is reflected: near its zeros there it has
fewer digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adbench.tape.compiled.kernels.mathematics.double_double import (
    COEFFICIENTS,
    fast_two_sum,
    numbers,
    polynomial,
    two_product,
    two_sum,
)
from adbench.tape.compiled.kernels.mathematics.logarithms import log, log_double
from adbench.tape.compiled.kernels.mathematics.shared_functions import kernel, rarely
from adbench.tape.compiled.kernels.mathematics.trigonometry import cos, sin, tan
from adbench.tape.machine.simd import Simd, X

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


lgamma, digamma, trigamma = _lgamma.part(0), _digamma.part(0), _trigamma.part(0)
