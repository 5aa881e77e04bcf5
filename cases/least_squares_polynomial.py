"""Squared errors of a polynomial with ten coefficients fitted to a step function at n points.

    f(x) = ½ Σ_i (s_i - Σ_j x_j t_i^j)²,   t_i = -1 + 2 i / (n - 1),   s_i = sign t_i

    ∂f/∂x_j = -Σ_i (s_i - Σ_k x_k t_i^k) t_i^j

The suite gradbench (`llsq`), from Bell's cmpad (`llsq_obj`).
"""

import numpy as np

from adbench import Case

COEFFICIENTS = 10


def f(xp, x, t, s):
    last = x.shape[0] - 1
    value = xp.loop(lambda j, p: p * t + x[last - 1 - j], x[last] + xp.zeros_like(t), last)
    return 0.5 * xp.sum((s - value) ** 2)


def gradient(x, t, s):
    powers = t[:, None] ** np.arange(x.size)
    return (-powers.T @ (s - powers @ x),)


def inputs(n, rng):
    t = np.linspace(-1, 1, n)
    return {"x": rng.normal(size=COEFFICIENTS), "t": t, "s": np.sign(t)}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("x",),
    sizes=(2, 10, 100, 1_000, 10_000, 100_000),
    quick=(2, 10),
    least=2,
    gradient=gradient,
    flops=lambda n: (2 * COEFFICIENTS + 1) * n,
    tags=("vectorised", "loop"),
    suites=("gradbench",),
)
