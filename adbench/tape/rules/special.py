"""Special functions of scipy, with derivatives."""

from __future__ import annotations

import math

from adbench.tape.core.rule import Rule, Value, function_gradients
from adbench.tape.lazy import special
from adbench.tape.numpy_names import publish, stand_for
from adbench.tape.rules.elementwise import exp, square
from adbench.tape.rules.function import function

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


def _gauss(x: Value) -> Value:
    """2/√π exp(-x²), the derivative of erf."""
    return _TWO_OVER_SQRT_PI * exp(-square(x))


erf = function("scipy.special.erf", lambda _v, adj, x: adj * _gauss(x), native="erf")
erfc = function("scipy.special.erfc", lambda _v, adj, x: -adj * _gauss(x), native="erfc")
gammaln = function("scipy.special.gammaln", lambda _v, adj, x: adj * polygamma(x, 0), aliases="lgamma")


def polygamma(x: Value, order: int) -> Value:
    """ψ⁽ⁿ⁾(x), the n-th derivative of the digamma function; its own derivative is the next."""
    return _polygamma(x, float(order))


_polygamma: Rule = function_gradients(
    lambda x, order: special.digamma(x) if order == 0 else special.polygamma(int(order), x),
    (lambda _v, adj, x, order: adj * _polygamma(x, order + 1.0), None),
    name="polygamma",
    fresh=True,
)


def digamma(x: Value) -> Value:
    """ψ(x) = d/dx log Γ(x)."""
    return polygamma(x, 0)


stand_for(digamma, "scipy.special.digamma")
publish(globals())
