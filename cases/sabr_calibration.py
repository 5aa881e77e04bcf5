"""Calibration error of the SABR model: five expiries with n quotes each, in α, ρ and ν of every expiry.

    f(α, ρ, ν) = Σ_(e,k) (100 σ(F_e, K_ek, T_e; α_e, β, ρ_e, ν_e) - 100 quote_ek)²
    σ = α / A (z / χ(z)) (1 + T ((1-β)² α² / (24 m²) + ρ β ν α / (4 m) + (2 - 3 ρ²) ν² / 24))
    m = (F K)^((1-β)/2),   L = log(F / K),   A = m (1 + (1-β)² L² / 24 + (1-β)⁴ L⁴ / 1920)
    z = ν / α m L,   χ(z) = log((sqrt(1 - 2 ρ z + z²) + z - ρ) / (1 - ρ))

    ∂χ/∂z = 1 / s,   ∂χ/∂ρ = 1 / (1-ρ) - (1 + z / s) / (s + z - ρ),   s = sqrt(1 - 2 ρ z + z²)

These are fifteen derivatives, as in the published comparison. At the money z / χ(z) is 0 / 0, where practice switches
to the limit 1. No strike lies there: all are 5 to 50 % away from the forward.

Hagan, Kumar, Lesniewski and Woodward (2002), "Managing smile risk", Wilmott magazine, September, 84-108: formula
(2.17a). One of the four workloads of auto-differentiation.github.io/benchmarks.
"""

import numpy as np

from adbench import Case

EXPIRIES = np.array([0.5, 1.0, 2.0, 5.0, 10.0])


def volatility(xp, alpha, rho, nu, beta, forward, strikes, expiry):
    """Hagan's implied volatility; all arguments broadcast."""
    power = 1 - beta
    log_moneyness = xp.log(forward / strikes)
    m = xp.exp(0.5 * power * xp.log(forward * strikes))
    square = (power * log_moneyness) ** 2
    scale = m * (1 + square / 24 + square * square / 1920)
    z = nu / alpha * m * log_moneyness
    chi = xp.log((xp.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
    ratio = alpha / m
    correction = power**2 / 24 * ratio * ratio + beta / 4 * rho * nu * ratio + (2 - 3 * rho * rho) / 24 * nu * nu
    return alpha / scale * z / chi * (1 + expiry * correction)


def f(xp, alpha, rho, nu, beta, forwards, strikes, expiries, quotes):
    a, r, v = (xp.reshape(part, (-1, 1)) for part in (alpha, rho, nu))
    model = volatility(xp, a, r, v, beta, forwards[:, None], strikes, expiries[:, None])
    return xp.sum((100 * (model - quotes)) ** 2)


def gradient(alpha, rho, nu, beta, forwards, strikes, expiries, quotes):
    a, r, v, forward, t = (part[:, None] for part in (alpha, rho, nu, forwards, expiries))
    power, log_moneyness = 1 - beta, np.log(forward / strikes)
    m = (forward * strikes) ** (power / 2)
    scale = m * (1 + (power * log_moneyness) ** 2 / 24 + (power * log_moneyness) ** 4 / 1920)
    z = v / a * m * log_moneyness
    s = np.sqrt(1 - 2 * r * z + z * z)
    chi = np.log((s + z - r) / (1 - r))
    u, q = z / chi, a / m
    u_z, u_r = (1 - u / s) / chi, u / chi * ((1 + z / s) / (s + z - r) - 1 / (1 - r))
    b = 1 + t * ((power * q) ** 2 / 24 + r * beta * v * q / 4 + (2 - 3 * r * r) * v * v / 24)
    b_a = t * (power**2 * q / 12 + r * beta * v / 4) / m
    b_r = t * (beta * v * q - r * v * v) / 4
    b_v = t * (r * beta * q / 4 + (2 - 3 * r * r) * v / 12)
    weight = 2e4 * (a / scale * u * b - quotes) * a / scale
    parts = (u * b / a - u_z * z / a * b + u * b_a, u_r * b + u * b_r, u_z * z / v * b + u * b_v)
    return tuple(np.sum(weight * part, axis=1) for part in parts)


def inputs(n, rng):
    def parameters():
        return rng.uniform(0.2, 0.3, 5), rng.uniform(-0.6, -0.2, 5), rng.uniform(0.3, 0.6, 5)

    forwards, sides = rng.uniform(0.8, 1.2, 5), rng.choice([-1.0, 1.0], (5, n))
    strikes = forwards[:, None] * np.exp(sides * rng.uniform(0.05, 0.5, (5, n)))
    alpha, rho, nu = parameters()
    a, r, v = (part[:, None] for part in parameters())  # other parameters, so that the errors are no noise around 0
    quotes = volatility(np, a, r, v, 0.5, forwards[:, None], strikes, EXPIRIES[:, None])
    quotes = quotes + rng.normal(0, 0.002, (5, n))
    return {
        "alpha": alpha,
        "rho": rho,
        "nu": nu,
        "beta": 0.5,
        "forwards": forwards,
        "strikes": strikes,
        "expiries": EXPIRIES,
        "quotes": quotes,
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("alpha", "rho", "nu"),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(1, 100),
    gradient=gradient,
    flops=lambda n: 5 * n * 42,
    tags=("finance", "vectorised"),
    suites=("finance",),
)
