"""Sum of the lengths of n hypotenuses.

    f(x, y) = Σ_i sqrt(x_i² + y_i²)

    ∂f/∂x_i = x_i / sqrt(x_i² + y_i²),   ∂f/∂y_i = y_i / sqrt(x_i² + y_i²)

The example of the request for comments on function gradients for R. There the definition includes the gradient; here
every library differentiates it.
"""

import numpy as np

from adbench import Case


def f(xp, x, y):
    return xp.sum(xp.sqrt(x * x + y * y))


def gradient(x, y):
    length = np.sqrt(x * x + y * y)
    return x / length, y / length


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.uniform(0.5, 2.0, n), "y": rng.uniform(0.5, 2.0, n)},
    wrt=("x", "y"),
    sizes=(1, 10, 100, 1_000, 10_000, 100_000),
    quick=(1, 100),
    gradient=gradient,
    flops=lambda n: 5 * n,
    tags=("elementwise",),
    suites=("pqr",),
)
