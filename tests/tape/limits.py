"""High-precision slopes at any argument, by differences whose steps and digits follow the arguments' size."""

from __future__ import annotations

import math
import sys

import mpmath

from adbench import tape


def _steps(arguments, digits):
    return [(abs(x) or mpmath.mpf(1)) * mpmath.mpf(10) ** (-(digits // 3)) for x in arguments]


def _difference(function, arguments, i, step):
    above, below = list(arguments), list(arguments)
    above[i] += step
    below[i] -= step
    return (function(*above) - function(*below)) / (2 * step)


def value(function, arguments, digits=60):
    with mpmath.workdps(digits):
        return function(*[mpmath.mpf(float(x)) for x in arguments])


def slope(function, arguments, i, digits=60):
    """∂function/∂argument i by a central difference, in arithmetic of this many digits."""
    with mpmath.workdps(digits):
        exact = [mpmath.mpf(float(x)) for x in arguments]
        return _difference(function, exact, i, _steps(exact, digits)[i])


def curvature(function, arguments, i, j, digits=90):
    """∂²function/∂argument i ∂argument j by a central difference of central differences."""
    with mpmath.workdps(digits):
        exact = [mpmath.mpf(float(x)) for x in arguments]
        steps = _steps(exact, digits)
        return _difference(lambda *at: _difference(function, at, j, steps[j]), exact, i, steps[i])


def close(got, truth, relative=2e-13, absolute=1e-300):
    """Whether a float equals a high-precision number; inf equals any number beyond floats, NaN equals nothing."""
    if abs(truth) > sys.float_info.max:
        return bool(got == (math.inf if truth > 0 else -math.inf))
    return bool(abs(mpmath.mpf(float(got)) - truth) <= relative * abs(truth) + absolute)


def gradient_in(density, arguments, active):
    """((value, derivatives in the arguments `active`), the function of these); the other arguments are constant."""

    def f(some):
        every = list(arguments)
        for i, x in zip(active, some, strict=True):
            every[i] = x
        return density(*every)

    return tape.gradient(f, tuple(arguments[i] for i in active)), f


NOTHING = None
"""Marks a side on which the function has no values."""


def _real(number):
    """A real, finite number of high precision. Raises ArithmeticError for any other value."""
    number = mpmath.mpmathify(number)
    if isinstance(number, mpmath.mpc):
        if number.imag != 0:
            raise ArithmeticError("a complex value")
        number = number.real
    if not mpmath.isfinite(number):
        raise ArithmeticError("an infinite value")
    return number


def _quotients(g, side, h):
    """One-sided difference quotients of g at 0 of first and second order, with an error of order h²."""
    g0, g1, g2, g3 = (_real(g(side * k * h)) for k in range(4))
    return side * (-3 * g0 + 4 * g1 - g2) / (2 * h), (2 * g0 - 5 * g1 + 4 * g2 - g3) / h**2


def _limit(far, near, size):
    """The limit of a quotient that was `far` at one step and `near` at a thousandth of it; ±inf if it grows.

    Less than `size` is rounding.
    """
    if abs(far) <= size and abs(near) <= size:
        return mpmath.mpf(0)
    if abs(far - near) <= mpmath.mpf(10) ** -6 * max(abs(far), abs(near)):
        return near
    return mpmath.inf * mpmath.sign(near) if abs(near) > abs(far) else mpmath.mpf(0)


def one_sided(g, side, scale, largest=1.0):
    """(g', g'') at 0 from the right (side 1) or left (-1), each a number or ±inf; None if g has no values there.

    `scale` is the length on which g changes, and `largest` the size of its numbers. None for both if g has no finite
    value at 0.
    """
    h = mpmath.mpf(scale) * mpmath.mpf(10) ** -18
    try:
        far, near = _quotients(g, side, h), _quotients(g, side, h / 1000)
        size = abs(_real(g(0))) + abs(_real(g(side * h))) + mpmath.mpf(largest) ** 2
    except (ArithmeticError, ValueError, TypeError):
        return NOTHING
    tiny = [1000 * mpmath.eps * size / (h / 1000) ** k for k in (1, 2)]
    return tuple(_limit(a, b, t) for a, b, t in zip(far, near, tiny, strict=True))
