"""Log posterior of a stochastic volatility model of n returns.

    h_0 = μ + σ z_0 / sqrt(1 - φ²),   h_t = μ + σ z_t + φ (h_(t-1) - μ),   y_t ~ N(0, exp(h_t / 2))

    f(φ, σ, μ, z) = Σ_t log N(y_t; 0, exp(h_t / 2)) + log N(z_t; 0, 1) + log C(σ; 0, 5) + log C(μ; 0, 10)

with Cauchy densities C, up to constants for the uniform φ in (-1, 1) and the positive σ.

Kim, Shephard and Chib (1998), Review of Economic Studies 65, in the form of Stan's manual and of Yang
(2021), "FastAD", arXiv:2102.03681.
"""

import math

from adbench import Case

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def cauchy(xp, x, scale):
    return -xp.log1p((x / scale) ** 2) - math.log(math.pi * scale)


def f(xp, y, phi, sigma, mu, z):
    def step(t, state):
        gap, total = state
        gap = sigma * z[t + 1] + phi * gap
        return gap, total + of_return(y[t + 1], gap)

    def of_return(r, gap):
        h = mu + gap
        return -0.5 * (r * r * xp.exp(-h) + h)

    first = sigma * z[0] / xp.sqrt(1 - phi * phi)
    _, likelihood = xp.loop(step, (first, of_return(y[0], first)), y.shape[0] - 1)
    of_draws = -0.5 * xp.sum(z * z) - 2 * y.shape[0] * HALF_LOG_TWO_PI
    return likelihood + of_draws + cauchy(xp, sigma, 5.0) + cauchy(xp, mu, 10.0)


def inputs(n, rng):
    phi, sigma, mu, z = rng.uniform(0.6, 0.9), rng.uniform(0.3, 0.6), rng.uniform(-1.0, -0.5), rng.normal(size=n)
    return {"y": rng.normal(size=n) * math.exp(mu / 2), "phi": phi, "sigma": sigma, "mu": mu, "z": z}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("phi", "sigma", "mu", "z"),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(3, 10),
    flops=lambda n: 13 * n + 20,
    tags=("density", "scalar-loop"),
    suites=("fastad",),
)
