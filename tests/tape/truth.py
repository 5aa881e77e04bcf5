"""High-precision derivatives: central differences in 50-digit arithmetic, right to the last bit of a double.

A function under test runs on numpy object arrays of mpmath numbers: numpy's own reshaping, summing, indexing and
multiplying work on them, and `mp` holds the elementwise functions that do not.
"""

from __future__ import annotations

from types import SimpleNamespace

import mpmath
import numpy as np

DIGITS = 50
STEP = mpmath.mpf(10) ** -17


def _lifted(function):
    return np.frompyfunc(function, getattr(function, "arity", 1), 1)


def _binary(function):
    return np.frompyfunc(function, 2, 1)


_m = mpmath.mp
mp = SimpleNamespace(
    **{
        name: _lifted(getattr(_m, name))
        for name in ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "cbrt", "erf", "erfc", "expm1"]
    },
    arcsin=_lifted(_m.asin),
    arccos=_lifted(_m.acos),
    arctan=_lifted(_m.atan),
    arcsinh=_lifted(_m.asinh),
    arccosh=_lifted(_m.acosh),
    arctanh=_lifted(_m.atanh),
    log1p=_lifted(_m.log1p),
    log2=_lifted(lambda x: _m.log(x, 2)),
    log10=_lifted(_m.log10),
    exp2=_lifted(lambda x: _m.mpf(2) ** x),
    absolute=_lifted(abs),
    negative=_lifted(lambda x: -x),
    positive=_lifted(lambda x: x),
    square=_lifted(lambda x: x * x),
    reciprocal=_lifted(lambda x: 1 / x),
    sign=_lifted(_m.sign),
    floor=_lifted(_m.floor),
    ceil=_lifted(_m.ceil),
    trunc=_lifted(lambda x: _m.floor(x) if x > 0 else _m.ceil(x)),
    rint=_lifted(_m.nint),
    degrees=_lifted(_m.degrees),
    radians=_lifted(_m.radians),
    expit=_lifted(lambda x: 1 / (1 + _m.exp(-x))),
    gammaln=_lifted(lambda x: _m.log(abs(_m.gamma(x)))),
    digamma=_lifted(_m.digamma),
    add=_binary(lambda x, y: x + y),
    subtract=_binary(lambda x, y: x - y),
    multiply=_binary(lambda x, y: x * y),
    divide=_binary(lambda x, y: x / y),
    power=_binary(lambda x, y: _m.power(x, y)),
    hypot=_binary(_m.hypot),
    arctan2=_binary(_m.atan2),
    maximum=_binary(max),
    minimum=_binary(min),
    logaddexp=_binary(lambda x, y: _m.log(_m.exp(x) + _m.exp(y))),
    remainder=_binary(lambda x, y: x - y * _m.floor(x / y)),
    floor_divide=_binary(lambda x, y: _m.floor(x / y)),
)


def exact(x):
    """A float or array as 50-digit numbers."""
    return np.vectorize(mpmath.mpf, otypes=[object])(np.asarray(x, float))[()]


def jacobian(f, x):
    """J[i, j] = ∂f_i/∂x_j of shape f(x).shape + x.shape, as doubles."""
    with mpmath.workdps(DIGITS):
        x = np.asarray(exact(x), dtype=object)
        columns = []
        for place in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[place] += STEP
            down[place] -= STEP
            difference = (np.asarray(f(up[()]), object) - np.asarray(f(down[()]), object)) / (2 * STEP)
            columns.append(np.asarray(difference, float))
        shape = columns[0].shape
        return np.moveaxis(np.array(columns), 0, -1).reshape(shape + x.shape)


def second_derivative(f, x, direction):
    """d²f(x + t v)/dt² at 0 for a scalar f of a scalar or array."""
    with mpmath.workdps(DIGITS + 20):
        x, v = exact(x), exact(direction)
        h = mpmath.mpf(10) ** -20
        return float((f(x + h * v) - 2 * f(x) + f(x - h * v)) / h**2)
