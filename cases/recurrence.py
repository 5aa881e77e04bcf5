"""A recurrence on n elements, repeated a hundred times, then a sum of squares.

    s ← s + (x² + 1) / s, from s = 1, 100 times;   f(x) = Σ_k 4 c_k²,   c_k = s_1 + … + s_k

    ds/dx ← ds/dx (1 - (x² + 1) / s²) + 2 x / s;   ∂f/∂x_j = 8 ds_j/dx_j Σ_{k ≥ j} c_k

Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR": the function that it times.
"""

import numpy as np

from adbench import Case

TIMES = 100


def f(xp, x):
    s = xp.loop(lambda _, s: s + (x * x + 1) / s, xp.ones_like(x), TIMES)
    return xp.sum(4 * xp.cumulative_sum(s) ** 2)


def gradient(x):
    s, slope = np.ones_like(x), np.zeros_like(x)
    for _ in range(TIMES):
        slope = slope * (1 - (x * x + 1) / s**2) + 2 * x / s
        s = s + (x * x + 1) / s
    from_here_on = np.cumsum(np.cumsum(s)[::-1])[::-1]
    return (8 * slope * from_here_on,)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.uniform(0.5, 2.0, n)},
    wrt=("x",),
    sizes=(1, 5, 100, 10_000),
    quick=(1, 5, 100),
    gradient=gradient,
    flops=lambda n: (4 * TIMES + 4) * n,
    tags=("elementwise", "loop"),
    suites=("pqr", "ablations"),
)
