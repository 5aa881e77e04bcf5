"""Helpers for tests of the arithmetic over balls: series arguments, coefficients, and retries with more effort."""

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb, fmpz

from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, NeedsBits, NeedsRoot, NeedsTerms, arithmetic
from adbench.oracle.series.namespace import namespace_of
from adbench.oracle.series.number import Real
from tests.oracle.second_opinion import reals

xp = namespace_of(Real)
STEP = 2.0**-90
"""The step of difference quotients: truncation is about 2^-180, rounding 2^-420."""


def moving(x: Any, v: Any, root: int = 1) -> Any:
    """x + t v, with t = u^root."""

    def number(start: float, slope: float) -> Real:
        return Real(ball.moving(float(start), {root: float(slope)}))

    made = np.frompyfunc(number, 2, 1)(x, v)
    return xp.reals(made)


def coefficients(number: Any, count: int = 3) -> list[Any]:
    """The coefficients of t^0, t^1, … of a result."""
    value = ball.ball(xp.reals(number).ball)
    if not ball.is_series(value):
        return [value, *[arb(0)] * (count - 1)]
    assert value.prec >= count
    return [value[k] for k in range(count)]


def directed(function: Callable[[Any], Any], x: Any, v: Any) -> list[Any]:
    """Value, slope and half the second derivative of a scalar function of one array, by balls of any effort."""
    bits, terms, exact, root = 192, 3, False, 1
    for _ in range(12):
        with arithmetic(Arithmetic(bits, terms, exact, last=terms > 12)):
            try:
                number = xp.reals(function(moving(x, v, root))).ball
                if isinstance(number, ball.Special):
                    return [number]
                if not ball.is_series(number) or number.prec > 2 * root:
                    found = coefficients(Real(number), 2 * root + 1)
                    assert all(c.is_zero() for k, c in enumerate(found) if k % root), "a root of t is left"
                    return found[::root]
                terms *= 2
            except NeedsBits:
                exact, bits = root == 1 and bits == 192 and not exact, bits if bits == 192 and not exact else 2 * bits
            except NeedsTerms:
                terms *= 2
            except NeedsRoot as needed:
                root, exact, terms = root * needed.root, False, terms * needed.root
    raise AssertionError("no effort is enough")


def exactly(number: Any) -> Any:
    """A number of mpmath as a ball of radius zero."""
    sign, mantissa, exponent, _ = number._mpf_
    return arb(fmpz(-int(mantissa) if sign else int(mantissa))) * arb(2) ** exponent


def quotients(function: Callable[..., Any], x: Any, v: Any, step: float = STEP) -> list[Any]:
    """The same for each entry of the value by central differences in mpmath: three lists. Needs a wide arithmetic."""
    values = []
    for side in (-1, 0, 1):
        place = reals(x) + reals(v) * reals(side * step)
        values.append([exactly(number) for number in np.ravel(np.asarray(reals(function(place)), dtype=object))])
    h = arb(step)
    slopes = [(b - a) / (2 * h) for a, b in zip(values[0], values[2], strict=True)]
    bends = [(c - 2 * b + a) / (2 * h * h) for a, b, c in zip(*values, strict=True)]
    return [values[1], slopes, bends]
