"""Log posterior of coaching effects in eight schools.

    y_j ~ N(θ_j, σ_j),   θ_j = μ + τ η_j,   η_j ~ N(0, 1),   μ ~ N(0, 5),   τ ~ half-Cauchy(0, 5)

    f(μ, log τ, η) = Σ_j log N(y_j; θ_j, σ_j) + log N(η_j; 0, 1) + log N(μ; 0, 5) + log C(τ; 0, 5) + log 2 + log τ

with the study's effects y and standard errors σ, in the non-centred parametrisation. The last log τ is the log
Jacobian.

Rubin (1981), "Estimation in parallel randomized experiments"; Gelman et al. (2013), "Bayesian Data Analysis", section
5.5.
"""

import math

import numpy as np

from adbench import Case

EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)
SCALE = 5.0
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def f(xp, y, sigma, mu, log_tau, eta):
    tau = xp.exp(log_tau)
    z = (y - mu - tau * eta) / sigma
    likelihood = -xp.sum(0.5 * z * z + xp.log(sigma) + HALF_LOG_TWO_PI)
    of_eta = -xp.sum(0.5 * eta * eta + HALF_LOG_TWO_PI)
    of_mu = -0.5 * (mu / SCALE) ** 2 - math.log(SCALE) - HALF_LOG_TWO_PI
    of_tau = math.log(2 / (math.pi * SCALE)) - xp.log1p((tau / SCALE) ** 2) + log_tau
    return likelihood + of_eta + of_mu + of_tau


def gradient(y, sigma, mu, log_tau, eta):
    tau = math.exp(log_tau)
    by_theta = (y - mu - tau * eta) / sigma**2
    square = (tau / SCALE) ** 2
    by_log_tau = tau * np.sum(by_theta * eta) - 2 * square / (1 + square) + 1
    return np.sum(by_theta) - mu / SCALE**2, by_log_tau, tau * by_theta - eta


def inputs(n, rng):
    return {
        "y": np.array(EFFECTS),
        "sigma": np.array(ERRORS),
        "mu": rng.uniform(1.0, 4.0),
        "log_tau": rng.uniform(0.5, 1.5),
        "eta": rng.normal(size=8),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("mu", "log_tau", "eta"),
    sizes=(8,),
    gradient=gradient,
    flops=lambda n: 12 * n + 20,
    tags=("density", "vectorised"),
    suites=("quick",),
)
