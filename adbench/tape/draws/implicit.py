"""Implicit reparameterisation: the derivative of a draw in its distribution's parameter, with the seed fixed.

The seed fixes u = F(x; α) of a draw x, so dx/dα = -(∂F/∂α) / p(x) (Figurnov, Mohamed and Mnih 2018, "Implicit
reparameterization gradients", equation 5). For the gamma distribution ∂F/∂α is not elementary.

With p(t) ∝ t^(α-1) e^(-t), ∂F/∂α = ∫₀ˣ p(t) (log t - E log t) dt. The integrand changes sign once, at the geometric
mean G = exp(E log t), and the whole integral is 0. So below G we integrate from 0 to x, and above G from x upwards with
the other sign; neither integral cancels. After t = x e^(∓v) the integrals run over v from 0 to ∞. The
double-exponential rule for decaying integrands (Takahasi and Mori 1974), v = s exp(τ - e^(-τ)), computes them and also
resolves v close to 0. Only for α ≲ 1 and small x above G the integrand has a plateau too long for this rule; there we
differentiate the power series of the incomplete function.

Measured against 50 digits: relative error below 1e-12 for α from 1e-2 to 1e3 and x from the 1e-8 to the 1 - 1e-8
quantile; see the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.lazy import special

_STEP = 0.04
_TAU = np.arange(-3.6, 4.0, _STEP)
_NODES = np.exp(_TAU - np.exp(-_TAU))
_WEIGHTS = _STEP * _NODES * (1.0 + np.exp(-_TAU))
_BLOCK = 2048
"""Draws per block: some megabytes for all nodes."""

Plain = Any


def _by_integral(a: Plain, x: Plain, gap: Plain, sign: float) -> Plain:
    """dx/dα from the integral over t = x eᵘ, below x (sign -1) or above (+1); the weight decays within 40 scales."""
    scale = 1.0 / (np.maximum(sign * (x - a), 0.0) + np.sqrt(x))
    u = sign * scale[:, None] * _NODES
    weight = np.exp((a - x)[:, None] * u - x[:, None] * (np.expm1(u) - u))
    return sign * x * (scale * ((weight * (u + gap[:, None])) @ _WEIGHTS))


def _by_series(a: Plain, x: Plain) -> Plain:
    """dx/dα from F's series Σ (-x)ⁿ/(n! (a + n)) and its derivative in a; all terms leave out 1/a, which cancels."""
    log_ratio = np.log(x) - special.digamma(1.0 + a)  # log x - E log t - 1/a
    c = np.ones_like(x)
    first, second = np.zeros_like(x), np.zeros_like(x)
    for n in range(1, 28):
        c = c * (-x / n)
        first = first + c / (a + n)
        second = second + c / (a + n) ** 2
    return x * np.exp(x) * -(log_ratio / a + log_ratio * first + first / a - second)


def gamma_slope(shape: Plain, x: Plain) -> Plain:
    """dx/dα of a standard gamma draw x with shape α; 0 for x = 0. The arguments broadcast."""
    shape, x = np.broadcast_arrays(shape, x)
    a, draws = np.ravel(shape).astype(float), np.ravel(x).astype(float)
    out = np.empty(x.size)
    with np.errstate(all="ignore"):
        for i in range(0, x.size, _BLOCK):
            out[i : i + _BLOCK] = _gamma_slope(a[i : i + _BLOCK], draws[i : i + _BLOCK])
    return out.reshape(x.shape)[()]


def _gamma_slope(a: Plain, x: Plain) -> Plain:
    gap = np.log(x) - special.digamma(a)  # log x - E log t
    out = np.zeros_like(x)
    series = (gap > 0.0) & (x <= 1.0)
    for at, sign in (((gap <= 0.0) & (x > 0.0), -1.0), ((gap > 0.0) & (x > 1.0), 1.0)):
        if at.any():
            out[at] = _by_integral(a[at], x[at], gap[at], sign)
    if series.any():
        out[series] = _by_series(a[series], x[series])
    return out
