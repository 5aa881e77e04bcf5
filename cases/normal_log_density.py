"""Normal log density of n observations, in the mean and the scale.

    f(μ, σ) = Σ_n  -½ ((y_n - μ) / σ)² - log σ - ½ log 2π

    ∂f/∂μ = Σ_n z_n / σ,   ∂f/∂σ = Σ_n (z_n² - 1) / σ,   z_n = (y_n - μ) / σ

Twice: `normal_log_density` on the whole array, `normal_log_density_loop` one observation after the other.

Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164, the example of sections 1 and 2.
"""

import math

import numpy as np

from adbench import Case

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def vectorised(xp, y, mu, sigma):
    z = (y - mu) / sigma
    return -0.5 * xp.sum(z * z) - y.shape[0] * (xp.log(sigma) + HALF_LOG_TWO_PI)


def scalar_loop(xp, y, mu, sigma):
    def add(n, total):
        z = (y[n] - mu) / sigma
        return total - 0.5 * z * z - xp.log(sigma) - HALF_LOG_TWO_PI

    return xp.loop(add, 0.0, y.shape[0])


def inputs(n, rng):
    # The scale is wider than the spread of y around mu, so that ∂f/∂σ is far from its zero at every n.
    return {"y": rng.normal(1.0, 1.0, n), "mu": rng.uniform(0.2, 0.8), "sigma": rng.uniform(1.5, 2.5)}


def gradient(y, mu, sigma):
    z = (y - mu) / sigma
    return np.sum(z) / sigma, np.sum(z * z - 1) / sigma


CASES = {
    "normal_log_density": Case(
        f=vectorised,
        inputs=inputs,
        wrt=("mu", "sigma"),
        sizes=(1, 10, 100, 1_000, 10_000, 100_000, 1_000_000),
        quick=(1, 1_000, 100_000),
        gradient=gradient,
        flops=lambda n: 4 * n + 5,
        tags=("density", "vectorised"),
        summary="Normal log density of many observations as one array, in the mean and the scale.",
    ),
    "normal_log_density_loop": Case(
        f=scalar_loop,
        inputs=inputs,
        wrt=("mu", "sigma"),
        sizes=(1, 10, 100, 1_000, 10_000),
        quick=(1, 10, 100),
        gradient=gradient,
        flops=lambda n: 8 * n,
        tags=("density", "scalar-loop"),
        summary="Normal log density of many observations one after the other, in the mean and the scale.",
    ),
}
