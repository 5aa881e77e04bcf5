"""Log posterior of a linear regression of n observations on ten features.

    y_i ~ N(x_i·w + b, σ),   w_j ~ N(0, 1),   b ~ N(0, 1),   σ ~ half-Cauchy(0, 1)

    f(w, b, σ) = Σ_i log N(y_i; x_i·w + b, σ) + Σ_j log N(w_j; 0, 1) - ½ b² - log(1 + σ²)

    ∂f/∂w = Xᵀ r / σ² - w,   ∂f/∂b = Σ r / σ² - b,   ∂f/∂σ = Σ (r² / σ² - 1) / σ - 2 σ / (1 + σ²),   r = y - X w - b

The "Bayesian linear regression" of the evaluation in Yang (2021), "FastAD", arXiv:2102.03681.
"""

import numpy as np

from adbench import Case

from .normal_log_density import vectorised as normal_log_density

COEFFICIENTS = 10


def f(xp, X, y, w, b, sigma):
    likelihood = normal_log_density(xp, y, X @ w + b, sigma)
    prior_of_w = normal_log_density(xp, w, 0.0, xp.asarray(1.0))
    return likelihood + prior_of_w - 0.5 * b * b - xp.log1p(sigma * sigma)


def gradient(X, y, w, b, sigma):
    r = y - X @ w - b
    by_sigma = np.sum(r**2 / sigma**2 - 1) / sigma - 2 * sigma / (1 + sigma**2)
    return X.T @ r / sigma**2 - w, np.sum(r) / sigma**2 - b, by_sigma


def inputs(n, rng):
    X, w, b = rng.normal(size=(n, COEFFICIENTS)), rng.normal(size=COEFFICIENTS), float(rng.normal())
    y = X @ (w + rng.normal(0, 0.3, COEFFICIENTS)) + b + rng.normal(0, 0.5, n) + 0.3
    return {"X": X, "y": y, "w": w, "b": b, "sigma": rng.uniform(1.5, 2.5)}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("w", "b", "sigma"),
    sizes=(1, 10, 100, 1_000, 10_000, 100_000),
    quick=(3, 10),
    gradient=gradient,
    flops=lambda n: n * (2 * COEFFICIENTS + 5) + 60,
    tags=("density", "vectorised"),
    suites=("fastad",),
)
