"""Log posterior of a logistic regression of n observations on ten features.

    f(β) = Σ_i y_i z_i - log(1 + exp z_i) - ½ ‖β‖²,   z = X β

    ∂f/∂β = Xᵀ (y - σ(z)) - β,   H = -Xᵀ diag(σ(z) (1 - σ(z))) X - I

A textbook example of Newton's method: McCullagh and Nelder (1989), "Generalized Linear Models", section 4.4.
"""

import numpy as np

from adbench import Case

COEFFICIENTS = 10


def f(xp, beta, X, y):
    z = X @ beta
    return xp.sum(y * z - xp.logaddexp(xp.zeros_like(z), z)) - 0.5 * xp.sum(beta * beta)


def gradient(beta, X, y):
    return (X.T @ (y - 1 / (1 + np.exp(-X @ beta))) - beta,)


def inputs(n, rng):
    X, beta = rng.normal(size=(n, COEFFICIENTS)), rng.normal(size=COEFFICIENTS)
    return {"beta": beta, "X": X, "y": (rng.uniform(size=n) < 0.5).astype(np.float64)}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("beta",),
    sizes=(1, 10, 100, 1_000, 10_000, 100_000),
    quick=(3, 10),
    operators=("value", "gradient", "hvp", "hessian"),
    gradient=gradient,
    flops=lambda n: n * (2 * COEFFICIENTS + 5),
    tags=("density", "vectorised", "second-order"),
    suites=("quick", "ablations"),
)
