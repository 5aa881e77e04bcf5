"""High-precision slopes at any argument: differences whose steps and digits follow the size of the arguments."""

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
    """Whether a float agrees with a high-precision number, inf with what no float holds; NaN agrees with nothing."""
    if abs(truth) > sys.float_info.max:
        return bool(got == (math.inf if truth > 0 else -math.inf))
    return bool(abs(mpmath.mpf(float(got)) - truth) <= relative * abs(truth) + absolute)


def gradient_in(density, arguments, active):
    """((value, derivatives in the arguments numbered in `active`), the function of these), the others constant."""

    def f(some):
        every = list(arguments)
        for i, x in zip(active, some, strict=True):
            every[i] = x
        return density(*every)

    return tape.gradient(f, tuple(arguments[i] for i in active)), f
