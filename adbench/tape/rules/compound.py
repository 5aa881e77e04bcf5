"""Compound functions: accurate where the formula written out overflows or cancels.

log(1 + exp x), written out, overflows at 800 and is 0 at -40, where the true value is 4e-18. Each function here is one
node, whose value and derivatives keep their digits at any argument (Carpenter et al. 2015, section on compound
functions; formulas by Mächler 2012, "Accurately computing log(1 - exp(-|a|))"). Names are Stan's. Delicate quantities
in gradient functions are rules too (`_odds`, `_mills`), so second derivatives are as accurate.

Outside a function's domain the value is NaN with numpy's RuntimeWarning, as for numpy's log. At the ends of the domain,
value and derivative are the one-sided limits, with these choices:

    log_sum_exp      weight 0 for arguments of -inf, even if all are
    log_diff_exp     (-inf, -inf) → -inf with gradient (0, 0)
    multiply_log     0 · log 0 = 0; ∂/∂y = x/y is 0 where x = 0
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache

import numpy as np

from adbench.tape.core.rule import Rule, Value, own_gradients
from adbench.tape.lazy import special
from adbench.tape.numpy_names import function, publish
from adbench.tape.rules.elementwise import divide, exp, expit, log, log1p, logaddexp, where
from adbench.tape.rules.reductions import logsumexp, sum  # numpy's name
from adbench.tape.rules.shapes import Axes, Shape, asarray, broadcast_arrays, normal_axes, stack
from adbench.tape.values import shape_of, value_of

_SMALLEST = float(np.finfo(float).tiny)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def _quiet(value: Callable[..., Value]) -> Callable[..., Value]:
    """A value function whose intermediate overflow is harmless; it warns only of NaN."""

    def evaluate(*inputs: Value) -> Value:
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return value(*inputs)

    return evaluate


def warn_outside(name: str, value: Callable[..., Value]) -> Callable[..., Value]:
    """A function of scipy, with numpy's warning where scipy silently returns NaN."""

    def evaluate(*inputs: Value) -> Value:
        val = value(*inputs)
        if np.any(np.isnan(val)) and not any(np.any(np.isnan(x)) for x in inputs):
            warnings.warn(f"invalid value encountered in {name}", RuntimeWarning, stacklevel=4)
        return val

    return evaluate


# Logarithms of sums and differences

log1m = function(lambda x: np.log1p(np.negative(x)), lambda _v, adj, x: -divide(adj, 1.0 - x), name="log1m")
"""log(1 - x) for x ≤ 1."""

log1p_exp = function(lambda x: np.logaddexp(0.0, x), lambda _v, adj, x: adj * expit(x), name="log1p_exp")
"""log(1 + exp x), the softplus; derivative 1/(1 + exp(-x))."""

_odds = own_gradients(
    _quiet(lambda x: np.divide(1.0, np.expm1(np.negative(x)) + 0.0)),  # + 0.0 turns -0 into +0, where the limit is +inf
    (lambda val, adj, _x: adj * (val * (1.0 + val)),),
    name="odds",
)
"""e^x / (1 - e^x) for x < 0; its derivative y (1 + y) does not cancel."""


def _log1m_exp(x: Value) -> Value:
    """Mächler (2012), equation 7: the branch at log 2 loses no digit on either side."""
    near = np.greater(x, -math.log(2.0))
    return np.where(near, np.log(-np.expm1(np.where(near, x, -1.0))), np.log1p(-np.exp(np.where(near, -1.0, x))))[()]


log1m_exp = function(_quiet(_log1m_exp), lambda _v, adj, x: -(adj * _odds(x)), name="log1m_exp")
"""log(1 - exp x) for x ≤ 0; derivative -e^x / (1 - e^x), -inf at 0."""


def _below(x: Value, y: Value) -> Value:
    """y - x for log(e^x - e^y); -inf where e^y is 0, even if x is -inf too."""
    absent = np.equal(value_of(y), -np.inf)
    return where(absent, -np.inf, y - where(absent, 0.0, x)) if np.any(absent) else y - x


def _log_diff_exp_first(val: Value, adj: Value, x: Value, y: Value) -> Value:
    nothing = (value_of(x) == -np.inf) & (value_of(y) == -np.inf)
    partial = 1.0 + _odds(_below(x, y))
    return adj * (where(nothing, 0.0, partial) if np.any(nothing) else partial)


log_diff_exp = function(
    _quiet(lambda x, y: np.add(x, _log1m_exp(_below(x, y)))),
    _log_diff_exp_first,
    lambda _v, adj, x, y: -(adj * _odds(_below(x, y))),
    name="log_diff_exp",
)
"""log(e^x - e^y) for x ≥ y; ∂x = 1/(1 - e^(y-x)), ∂y = -e^(y-x)/(1 - e^(y-x))."""


def log_sum_exp(*xs: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """log Σ exp x. For one array, over its axes (by default all). For several arguments, elementwise with broadcasting.

    The derivative is the softmax; (-inf, -inf) gives -inf with gradient (0, 0).
    """
    if not xs:
        raise TypeError("log_sum_exp: expected at least one argument, got none; pass an array or numbers")
    if len(xs) == 1:
        return logsumexp(xs[0], axis, keepdims)
    if axis is not None or keepdims:
        raise TypeError(
            f"log_sum_exp: axis and keepdims need a single array, got {len(xs)} arguments; stack them first"
        )
    return logaddexp(*xs) if len(xs) == 2 else logsumexp(stack(broadcast_arrays(*xs)), 0)


# The logistic function

inv_logit = expit
"""1 / (1 + exp(-x))."""

logit = function(
    warn_outside("logit", lambda x: special.logit(x)),
    lambda _v, adj, p: divide(adj, p * (1.0 - p)),
    name="logit",
    native="logit",
    numpy=("scipy.special.logit",),
)
"""log(p / (1 - p)) for 0 ≤ p ≤ 1."""

log_inv_logit = function(
    lambda x: np.negative(np.logaddexp(0.0, np.negative(x))),
    lambda _v, adj, x: adj * expit(-x),
    name="log_inv_logit",
    numpy=("scipy.special.log_expit",),
)
"""log(1 / (1 + exp(-x))) = -log1p_exp(-x)."""

log1m_inv_logit = function(
    lambda x: np.negative(np.logaddexp(0.0, x)),
    lambda _v, adj, x: -(adj * expit(x)),
    name="log1m_inv_logit",
)
"""log(1 - 1 / (1 + exp(-x))) = -log1p_exp(x)."""


# Softmax


def _log_softmax(x: Value, axes: Shape) -> Value:
    """Relative to the largest element, whose own term 1 stays out of the sum, so that log1p gets the rest."""
    top = np.maximum.reduce(x, axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    shifted = np.subtract(x, top)
    leads = np.equal(shifted, 0.0)
    ties = np.maximum(np.add.reduce(leads, axes, keepdims=True), 1)
    rest = np.add.reduce(np.where(leads, 0.0, np.exp(shifted)), axes, keepdims=True)
    return shifted - (np.log1p(rest / ties) + np.log(ties))


_log_softmax_rule = own_gradients(
    _log_softmax,
    reverse=(lambda val, adj, _x, axes: adj - exp(val) * sum(adj, axes, True),),
    forward=(lambda val, tan, _x, axes: tan - sum(exp(val) * tan, axes, True),),
    name="log_softmax",
)


def log_softmax(x: Value, axis: Axes = -1) -> Value:
    """x - log Σ exp x along an axis, one node; accurate even where one element dominates and its result is near 0."""
    x = asarray(x)
    return _log_softmax_rule(x, axes=normal_axes(axis, len(shape_of(x))))


# Products with a logarithm


def ratio(x: Value, y: Value) -> Value:
    """x / y with 0 / 0 = 0."""
    nothing = (value_of(x) == 0.0) & (value_of(y) == 0.0)
    return divide(x, where(nothing, 1.0, y)) if np.any(nothing) else divide(x, y)


xlogy = function(
    "scipy.special.xlogy",
    lambda _v, adj, _x, y: adj * log(y),
    lambda _v, adj, x, y: adj * ratio(x, y),
    aliases="multiply_log",
    native="xlogy",
)
"""x log y, and 0 where x = 0."""

xlog1py = function(
    "scipy.special.xlog1py",
    lambda _v, adj, _x, y: adj * log1p(y),
    lambda _v, adj, x, y: adj * ratio(x, 1.0 + y),
    native="xlog1py",
)
"""x log(1 + y), and 0 where x = 0."""


def _log1p_square(w: Value) -> Value:
    w = np.abs(w)
    huge = np.greater(w, 1e150)
    small = np.where(huge, 1.0, w)
    return np.where(huge, 2.0 * np.log(np.where(huge, w, 1.0)), np.log1p(small * small))[()]


def over_1p_square(w: Value) -> Value:
    """w / (1 + w²) without overflow: 1/w where w² would absorb the 1."""
    huge = np.abs(value_of(w)) > 1e9
    if not np.any(huge):
        return w / (1.0 + w * w)
    tame = where(huge, 1.0, w)
    return where(huge, divide(1.0, where(huge, w, 1.0)), tame / (1.0 + tame * tame))


log1p_square = function(_log1p_square, lambda _v, adj, w: adj * (2.0 * over_1p_square(w)), name="log1p_square")
"""log(1 + w²), even where w² overflows."""


# The normal distribution function

_SQRT_PI, _SQRT_2PI = math.sqrt(math.pi), math.sqrt(2.0 * math.pi)

erfinv = function(
    warn_outside("erfinv", lambda x: special.erfinv(x)),
    lambda val, adj, _x: adj * (0.5 * _SQRT_PI * exp(val * val)),
    name="erfinv",
    numpy=("scipy.special.erfinv",),
)
"""The inverse of erf, -1 ≤ x ≤ 1; derivative √π/2 exp(y²)."""

Phi = function("scipy.special.ndtr", lambda _v, adj, x: adj * exp(-0.5 * (x * x) - _HALF_LOG_2PI), name="Phi")
"""The standard normal distribution function."""

inv_Phi = function(  # noqa: N816  # Stan's name
    warn_outside("inv_Phi", lambda x: special.ndtri(x)),
    lambda val, adj, _p: adj * (_SQRT_2PI * exp(0.5 * (val * val))),
    name="inv_Phi",
    numpy=("scipy.special.ndtri",),
)
"""The standard normal quantile, the inverse of Phi, 0 ≤ p ≤ 1; derivative √(2π) exp(y²/2)."""


def _mills_excess_value(x: Value) -> Value:
    """m(x) + x. Below -5, the continued fraction t + 1/(t + 2/(t + 3/…)) of m(-t) without its first term."""
    far = np.less(x, -5.0)
    t = np.where(far, np.negative(x), 5.0)
    tail = t
    for k in range(45, 1, -1):
        tail = t + k / tail
    near = np.where(far, 0.0, x)
    return np.where(far, 1.0 / tail, near + math.sqrt(2.0 / math.pi) / special.erfcx(near / -math.sqrt(2.0)))[()]


_mills = own_gradients(
    _quiet(lambda x: np.divide(math.sqrt(2.0 / math.pi), special.erfcx(np.divide(x, -math.sqrt(2.0))))),
    (lambda val, adj, x: -(adj * (val * _mills_excess(x))),),
    name="mills",
)
"""m(x) = φ(x)/Φ(x), the inverse Mills ratio; m' = -m (m + x)."""

_mills_excess: Rule = own_gradients(
    _quiet(_mills_excess_value), (lambda val, adj, x: adj * (1.0 - _mills(x) * val),), name="mills_excess"
)

std_normal_lcdf = function("scipy.special.log_ndtr", lambda _v, adj, x: adj * _mills(x), name="std_normal_lcdf")
"""log Phi(x), to all digits even at -40, where Phi itself underflows; derivative φ(x)/Φ(x)."""


# sin x / x


def _of_half_turns(x: Value) -> tuple[Value, Value]:
    """(sin πx, cos πx), with whole turns removed before the multiplication by π rounds."""
    r = np.subtract(x, 2.0 * np.rint(np.multiply(x, 0.5)))
    size = np.abs(r)
    rest = np.where(size > 0.5, 1.0 - size, size)
    flat = rest <= 0.25
    sine = np.where(flat, np.sin(math.pi * rest), np.cos(math.pi * (0.5 - rest)))
    cosine = np.where(flat, np.cos(math.pi * rest), np.sin(math.pi * (0.5 - rest)))
    return np.copysign(sine, r), np.where(size > 0.5, -cosine, cosine)


def _sinc_near(x: Value, order: int) -> Value:
    """πⁿ j₀⁽ⁿ⁾(πx) by (2k + 1) j_k' = k j_(k-1) - (k + 1) j_(k+1): no division by x, so it holds at 0."""
    weights = {0: math.pi**order}
    for _ in range(order):
        rates: dict[int, float] = {}
        for k, c in weights.items():
            if k:
                rates[k - 1] = rates.get(k - 1, 0.0) + c * k / (2 * k + 1)
            rates[k + 1] = rates.get(k + 1, 0.0) - c * (k + 1) / (2 * k + 1)
        weights = rates
    x = np.where(np.abs(x) < _SMALLEST, 0.0, x)  # where scipy's function is NaN
    parts = [c * special.spherical_jn(k, np.multiply(x, math.pi)) for k, c in weights.items()]
    return np.add.reduce(parts)


def _sinc_far(x: Value, order: int) -> Value:
    """The derivatives of sin πx · 1/(πx), by Leibniz."""
    sine, cosine = _of_half_turns(x)
    waves = (sine, cosine, -sine, -cosine)
    total = 0.0 * sine
    for k in range(order + 1):
        rest = order - k
        factor = math.comb(order, k) * math.factorial(rest) * (-1.0) ** rest * math.pi ** (k - 1)
        total = total + factor * waves[k % 4] / np.power(x, rest + 1.0)
    return total


def _sinc_value(x: Value, n: int) -> Value:
    far = np.abs(x) >= 1.0 + 0.5 * n
    with np.errstate(all="ignore"):
        distant = np.where(np.isinf(x), 0.0, _sinc_far(np.where(far & np.isfinite(x), x, 1.0), n))
        return np.where(far, distant, _sinc_near(np.where(far, 0.0, x), n))[()]


@cache
def _sinc(order: int) -> Rule:
    """The n-th derivative of sinc as a function, whose derivative is the next."""
    name = f"sinc_{order}" if order else "sinc"
    rule: Rule = own_gradients(
        lambda x: _sinc_value(x, order), (lambda _v, adj, x: adj * _sinc(order + 1)(x),), name=name
    )
    rule.native = name if order < 3 else None
    return rule


def sinc(x: Value) -> Value:
    """sin(πx) / (πx), as in numpy, with derivatives of every order, even at 0 and at 1e8."""
    return _sinc(0)(x)


publish(globals(), helpers="warn_outside ratio over_1p_square")
