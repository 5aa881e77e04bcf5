"""The error function; the gamma function and its relatives, without cancellation at large arguments.

log Γ(a) - log Γ(a + b) at a = 10¹⁰ subtracts numbers of size 10¹¹ and keeps six digits, and so does ψ(a) - ψ(a + b).
Densities consist of such differences, so each is one function here. Sources: the Stirling series (DLMF 5.11.1, 5.11.2),
as in Stan's `lbeta`; the saddle-point form of the binomial and Poisson probabilities by C. Loader (2000), "Fast and
accurate computation of binomial probabilities".
"""

from __future__ import annotations

import math

import numpy as np

from adbench.tape.core.rule import Rule, Value, own_gradients
from adbench.tape.lazy import special
from adbench.tape.numpy_names import function, publish
from adbench.tape.rules.compound import warn_outside

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)

_gauss: Rule = own_gradients(
    lambda x: _TWO_OVER_SQRT_PI * np.exp(-np.square(x)), (lambda val, adj, x: adj * (-2.0 * (x * val)),), name="gauss"
)
"""2/√π exp(-x²), the derivative of erf."""
_gauss.native = "gauss"

erf = function("scipy.special.erf", lambda _v, adj, x: adj * _gauss(x), native="erf")
erfc = function("scipy.special.erfc", lambda _v, adj, x: -adj * _gauss(x), native="erfc")
gammaln = function("scipy.special.gammaln", lambda _v, adj, x: adj * digamma(x), aliases="lgamma", native="lgamma")


def polygamma(x: Value, order: int) -> Value:
    """ψ⁽ⁿ⁾(x), the n-th derivative of the digamma function; its own derivative is the next."""
    n = float(order)  # a value that is being differentiated refuses
    if n == 0.0:
        return digamma(x)
    return trigamma(x) if n == 1.0 else _polygamma(x, n)


_polygamma: Rule = own_gradients(
    lambda x, order: special.polygamma(int(order), x),
    (lambda _v, adj, x, order: adj * _polygamma(x, order + 1.0), None),
    name="polygamma",
)
digamma: Rule = function("scipy.special.digamma", lambda _v, adj, x: adj * trigamma(x), native="digamma")
trigamma: Rule = own_gradients(
    lambda x: special.polygamma(1, x), (lambda _v, adj, x: adj * _polygamma(x, 2.0),), name="trigamma"
)
trigamma.native = "trigamma"

# Values: for plain numbers only, used by value functions of rules

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def stirling_rest(x: Value) -> Value:
    """log Γ(x) - ((x - ½) log x - x + ½ log 2π) for x > 0; DLMF 5.11.1 from 10 on."""
    large = np.greater_equal(x, 10.0)
    t = 1.0 / np.where(large, x, 10.0)
    series = 0.0 * t
    for c in reversed(_STIRLING):
        series = series * (t * t) + c
    if np.all(large):
        return series * t
    s = np.where(large, 1.0, x)
    return np.where(large, series * t, special.gammaln(s) - ((s - 0.5) * np.log(s) - s + HALF_LOG_2PI))


def log1p_minus(u: Value) -> Value:
    """log(1 + u) - u for u > -1, to all digits at u = 0: with r = u/(2 + u) it is 2 (r³/3 + r⁵/5 + …) - u r."""
    near = np.less(np.abs(u), 0.25)
    v = np.where(near, u, 0.0)
    r = v / (2.0 + v)
    series = np.zeros(np.shape(v))
    for k in range(19, 1, -2):
        series = series * (r * r) + 1.0 / k
    far = np.where(near, 1.0, u)
    return np.where(near, 2.0 * r**3 * series - v * r, np.log1p(far) - far)


def deviance(x: Value, m: Value) -> Value:
    """x log(x/m) + m - x, half the Poisson deviance, for x, m > 0 (Loader's bd0); accurate near its zero x = m."""
    u = (m - x) / x
    near = np.less(np.abs(u), 0.25)
    far = np.where(near, 1.0, m)
    direct = np.multiply(x, np.log(x) - np.log(far)) + (far - x)  # x/m itself may overflow
    return np.where(near, np.multiply(x, -log1p_minus(np.where(near, u, 0.0))), direct)


# The beta function


def _lbeta(a: Value, b: Value) -> Value:
    x, y = np.asarray(np.minimum(a, b), float), np.asarray(np.maximum(a, b), float)
    with np.errstate(all="ignore"):
        total = x + y
        small = special.gammaln(x) + special.gammaln(y) - special.gammaln(total)
        share = np.log1p(-x / total)  # log(y / (x + y))
        rest = stirling_rest(y) - stirling_rest(total)
        mixed = special.gammaln(x) + rest + (y - 0.5) * share + x * (1.0 - np.log(total))
        log_share = (x - 0.5) * np.log(x / total)
        large = stirling_rest(x) + rest + log_share + y * share + HALF_LOG_2PI - 0.5 * np.log(y)
    val = np.where(y < 10.0, small, np.where(x < 10.0, mixed, large))
    return np.where(x >= 0.0, val, np.nan)[()]


lbeta = function(
    warn_outside("lbeta", _lbeta),
    lambda _v, adj, a, b: -(adj * digamma_rise(a, b)),
    lambda _v, adj, a, b: -(adj * digamma_rise(b, a)),
    name="lbeta",
    numpy=("scipy.special.betaln",),
)
"""log B(a, b) = log Γ(a) + log Γ(b) - log Γ(a + b) for a, b > 0; ∂a = ψ(a) - ψ(a + b)."""


def _rising(a: Value, h: Value) -> tuple[Value, Value, Value]:
    """(a, h, 1), or (a + h, -h, -1) for negative h: the series below need the smaller end to be large, not only a."""
    a, h = np.asarray(a, float), np.asarray(h, float)
    falls = np.less(h, 0.0)
    return np.where(falls, a + h, a), np.abs(h), np.where(falls, -1.0, 1.0)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _polygamma_rise_value(a: Value, h: Value, order: int) -> Value:
    """ψ⁽ⁿ⁾(a + h) - ψ⁽ⁿ⁾(a). From 10 + 2n on DLMF 5.15.8, or 5.11.2 for n = 0; below, the recurrence by 1/xⁿ⁺¹."""
    n, steps = order, 10 + 2 * order

    def power_rise(x: Value, m: int, rise: Value) -> Value:
        """(x + h)⁻ᵐ - x⁻ᵐ without cancellation, for the rise log(1 + h/x)."""
        return -(h / x) / (x + h) if m == 1 else x ** float(-m) * np.expm1(-m * rise)

    with np.errstate(all="ignore"):
        a, h, sign = _rising(a, h)
        below = np.less(a, steps)
        total = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(h)))
        if np.any(below):
            for k in range(steps):
                total = total + power_rise(a + k, n + 1, None if n == 0 else np.log1p(h / (a + k)))
            total = np.where(below, math.factorial(n) * total, 0.0)
            a = np.where(below, a + steps, a)
        rise = np.log1p(h / a)
        total = total + (-rise if n == 0 else math.factorial(n - 1) * power_rise(a, n, rise))
        total = total + 0.5 * math.factorial(n) * power_rise(a, n + 1, rise)
        for k, b in enumerate(_BERNOULLI, 1):
            total = total + b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) * power_rise(a, 2 * k + n, rise)
    return ((-1.0) ** (n + 1) * sign * total)[()]


digamma_rise: Rule = function(
    lambda a, h: _polygamma_rise_value(a, h, 0),
    lambda _v, adj, a, h: adj * _polygamma_rise(a, h, order=1),
    lambda _v, adj, a, h: adj * polygamma(a + h, 1),
    name="digamma_rise",
)
"""ψ(a + h) - ψ(a) for a > 0, a + h > 0, to all digits even if h is tiny compared with a."""

_polygamma_rise: Rule = own_gradients(
    _polygamma_rise_value,
    (
        lambda _v, adj, a, h, order: adj * _polygamma_rise(a, h, order=order + 1),
        lambda _v, adj, a, h, order: adj * polygamma(a + h, order + 1),
    ),
    name="polygamma_rise",
)


# ψ(a + ½) - ψ(a) without its leading term, for student_t in its degrees of freedom


_HALF_STEP = (1 / 8, -1 / 64, 1 / 128, -17 / 2048, 31 / 2048, -691 / 16384, 5461 / 32768, -929569 / 1048576)
"""(2 - 2^(1 - 2k)) B_2k / (2k), from DLMF 5.11.2 and its shift by ½."""


def _half_step_rest(a: Value, order: float) -> Value:
    """From 10 on the series in a⁻²; below, the full difference minus its leading term."""
    n = int(order)
    large = np.greater_equal(a, 10.0)
    b = np.asarray(np.where(large, a, 10.0))
    rest = 0.0 * b
    for k, c in enumerate(_HALF_STEP, 1):
        rest = rest + c * (-1.0) ** n * math.prod(range(2 * k, 2 * k + n)) * b ** (-2.0 * k - n)
    small = np.asarray(np.where(large, 1.0, a))
    leading = 0.5 * (-1.0) ** n * math.factorial(n) / small ** (n + 1.0)
    return np.where(large, rest, _polygamma_rise_value(small, 0.5, n) - leading)[()]


_half_step: Rule = own_gradients(
    _half_step_rest, (lambda _v, adj, a, order: adj * _half_step(a, order + 1.0), None), name="half_step_rest"
)


def half_step_rest(a: Value) -> Value:
    """ψ(a + ½) - ψ(a) - 1/(2a) ≈ 1/(8a²), for a > 0."""
    return _half_step(a, 0.0)


publish(globals(), helpers="stirling_rest log1p_minus deviance half_step_rest")
