"""Helmholtz energy of a mixture of n gases.

    f(x) = Σ_i x_i log(x_i / (1 - b·x)) - x·A x / (√8 b·x) log((1 + (1 + √2) b·x) / (1 + (1 - √2) b·x))

in units of R T, with amounts x, volumes b and a symmetric matrix A of attractions.

Griewank and Walther (2008), "Evaluating Derivatives", with the equation of state of Peng and Robinson (1976).
"""

import math

import numpy as np

from adbench import Case

ROOT = math.sqrt(2)


def f(xp, x, b, A):
    volume = xp.sum(b * x)
    mixing = xp.sum(x * xp.log(x / (1 - volume)))
    attraction = xp.sum(x * (A @ x)) / (math.sqrt(8) * volume)
    return mixing - attraction * xp.log((1 + (1 + ROOT) * volume) / (1 + (1 - ROOT) * volume))


def gradient(x, b, A):
    volume = b @ x
    by_mixing = np.log(x / (1 - volume)) + 1 + b * x.sum() / (1 - volume)
    attraction = x @ A @ x / (math.sqrt(8) * volume)
    by_attraction = (A + A.T) @ x / (math.sqrt(8) * volume) - attraction * b / volume
    above, below = 1 + (1 + ROOT) * volume, 1 + (1 - ROOT) * volume
    by_log = b * ((1 + ROOT) / above - (1 - ROOT) / below)
    return (by_mixing - by_attraction * np.log(above / below) - attraction * by_log,)


def inputs(n, rng):
    # b·x is about 0.4 for every n, and attraction and mixing have similar size.
    x, A = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, (n, n))
    return {"x": x, "b": rng.uniform(0.3, 0.5, n) / n, "A": (A + A.T) / n}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("x",),
    sizes=(1, 3, 10, 30, 100, 300),
    quick=(3, 10),
    operators=("value", "gradient", "hvp", "hessian"),
    gradient=gradient,
    flops=lambda n: 2 * n**2 + 8 * n + 12,
    tags=("vectorised", "second-order"),
    suites=("quick",),
)
