"""Rosenbrock's curved valley in n dimensions.

    f(x) = Σ_i 100 (x_(i+1) - x_i²)² + (1 - x_i)²,   i = 0 … n-2

    ∂f/∂x_i = -400 x_i (x_(i+1) - x_i²) - 2 (1 - x_i) + 200 (x_i - x_(i-1)²), where these exist

H has three diagonals.

Rosenbrock (1960), "An automatic method for finding the greatest or least value of a function", The Computer Journal 3.
"""

import numpy as np

from adbench import Case


def f(xp, x):
    here, there = x[:-1], x[1:]
    return xp.sum(100 * (there - here * here) ** 2 + (1 - here) ** 2)


def gradient(x):
    gap, slope = x[1:] - x[:-1] ** 2, np.zeros_like(x)
    slope[:-1] += -400 * x[:-1] * gap - 2 * (1 - x[:-1])
    slope[1:] += 200 * gap
    return (slope,)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.uniform(0.2, 1.5, n)},
    wrt=("x",),
    sizes=(2, 10, 100, 1_000, 10_000, 100_000),
    quick=(2, 10),
    least=2,
    operators=("value", "gradient", "hvp"),
    gradient=gradient,
    flops=lambda n: 8 * (n - 1),
    tags=("vectorised", "second-order"),
    suites=("quick", "ablations"),
)
