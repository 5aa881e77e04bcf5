"""Special functions of scipy, with derivatives."""

from __future__ import annotations

import math

import numpy as np

from adbench.tape.core.rule import Rule, Value, own_gradients
from adbench.tape.lazy import special
from adbench.tape.numpy_names import publish, stand_for
from adbench.tape.rules.function import function

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


_gauss: Rule = own_gradients(
    lambda x: _TWO_OVER_SQRT_PI * np.exp(-np.square(x)), (lambda val, adj, x: adj * (-2.0 * (x * val)),), name="gauss"
)
"""2/√π exp(-x²), the derivative of erf."""
_gauss.native = "gauss"

erf = function("scipy.special.erf", lambda _v, adj, x: adj * _gauss(x), native="erf")
erfc = function("scipy.special.erfc", lambda _v, adj, x: -adj * _gauss(x), native="erfc")
gammaln = function("scipy.special.gammaln", lambda _v, adj, x: adj * polygamma(x, 0), aliases="lgamma", native="lgamma")


def polygamma(x: Value, order: int) -> Value:
    """ψ⁽ⁿ⁾(x), the n-th derivative of the digamma function; its own derivative is the next."""
    n = float(order)  # a value that is being differentiated refuses
    if n == 0.0:
        return _digamma(x)
    return _trigamma(x) if n == 1.0 else _polygamma(x, n)


_polygamma: Rule = own_gradients(
    lambda x, order: special.polygamma(int(order), x),
    (lambda _v, adj, x, order: adj * _polygamma(x, order + 1.0), None),
    name="polygamma",
)
_trigamma: Rule = own_gradients(
    lambda x: special.polygamma(1, x), (lambda _v, adj, x: adj * _polygamma(x, 2.0),), name="trigamma"
)
_digamma: Rule = own_gradients(lambda x: special.digamma(x), (lambda _v, adj, x: adj * _trigamma(x),), name="digamma")
_digamma.native, _trigamma.native = "digamma", "trigamma"


def digamma(x: Value) -> Value:
    """ψ(x) = d/dx log Γ(x)."""
    return polygamma(x, 0)


stand_for(digamma, "scipy.special.digamma")
publish(globals())
