"""High-precision derivatives by central differences in 50-digit arithmetic, right to the last bit of a double.

The tested function runs on numpy object arrays of mpmath numbers. Numpy's own reshaping, summing, indexing and
multiplying work on them; `mp` has the elementwise functions that do not.
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
        for name in ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "erf", "erfc", "expm1"]
    },
    cbrt=_lifted(lambda x: _m.cbrt(x) if x >= 0 else -_m.cbrt(-x)),
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
    stop_gradient=_lifted(lambda x: x),
    log1m=_lifted(lambda x: _m.log1p(-x)),
    log1p_exp=_lifted(lambda x: _m.log1p(_m.exp(x))),
    log1m_exp=_lifted(lambda x: _m.log(-_m.expm1(x))),
    logit=_lifted(lambda p: _m.log(p / (1 - p))),
    log_inv_logit=_lifted(lambda x: -_m.log1p(_m.exp(-x))),
    log1m_inv_logit=_lifted(lambda x: -_m.log1p(_m.exp(x))),
    log1p_square=_lifted(lambda w: _m.log1p(w * w)),
    erfinv=_lifted(_m.erfinv),
    Phi=_lifted(lambda x: _m.erfc(-x / _m.sqrt(2)) / 2),
    inv_Phi=_lifted(lambda p: _m.sqrt(2) * _m.erfinv(2 * p - 1)),
    std_normal_lcdf=_lifted(lambda x: _m.log(_m.erfc(-x / _m.sqrt(2)) / 2)),
    sinc=_lifted(lambda x: _m.sinpi(x) / (_m.pi * x) if x else _m.mpf(1)),
    trigamma=_lifted(lambda x: _m.psi(1, x)),
    lgamma=_lifted(lambda x: _m.log(abs(_m.gamma(x)))),
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
    copysign=_binary(lambda x, y: abs(x) if y >= 0 else -abs(x)),
    log_diff_exp=_binary(lambda x, y: _m.log(_m.exp(x) - _m.exp(y))),
    log_sum_exp=_binary(lambda x, y: _m.log(_m.exp(x) + _m.exp(y))),
    xlogy=_binary(lambda x, y: x * _m.log(y) if x or y else _m.mpf(0)),
    xlog1py=_binary(lambda x, y: x * _m.log1p(y)),
    lbeta=_binary(lambda a, b: _m.loggamma(a) + _m.loggamma(b) - _m.loggamma(a + b)),
    digamma_rise=_binary(lambda a, h: _m.psi(0, a + h) - _m.psi(0, a)),
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
