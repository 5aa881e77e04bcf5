"""Sums and products with their rounding errors, and polynomials.

A double-double number is a sum high + low of about 106 bits. Kernels use it where a double has too few digits.

Sources: T. J. Dekker (1971), "A floating-point technique for extending the available precision"; D. E. Knuth, "The art
of computer programming", volume 2, section 4.2.2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adbench.tape.machine.simd import X


def numbers(file: str) -> Any:
    """The numbers in a file next to this one."""
    return json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


COEFFICIENTS: dict[str, list[float]] = numbers("polynomials.json")
"""Those of each polynomial, from the constant up."""


def fast_two_sum(a: X | float, b: X) -> tuple[X, X]:
    """a + b = high + low, for |a| ≥ |b| or a = 0."""
    high = a + b
    return high, b - (high - a)


def two_sum(a: X, b: X) -> tuple[X, X]:
    """a + b = high + low."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def two_product(a: X, b: X) -> tuple[X, X]:
    """a · b = high + low."""
    high = a * b
    return high, a.fma(b, -high)


def quotient(high: X, low: X, by: X, by_low: X, inverse: X) -> X:
    """(high + low) / (by + by_low), almost correctly rounded; `inverse` is 1 / by."""
    y = high * inverse
    return ((-y).fma(by, high) + (low - y * by_low)).times(inverse, y)


def polynomial(x: X, coefficients: Sequence[X | float]) -> X:
    """c₀ + c₁ x + c₂ x² + …, by Estrin's scheme: half as many dependent steps as Horner's or fewer."""
    terms: list[X | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs: list[X | float] = [power.times(b, a) for a, b in zip(terms[::2], terms[1::2])]  # noqa: B905  # odd one out
        terms = pairs + (terms[-1:] if len(terms) % 2 else [])
        power = power * power if len(terms) > 1 else power
    return terms[0]  # type: ignore[return-value]
