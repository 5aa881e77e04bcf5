"""Logarithm of a sum of n exponentials.

    f(x) = log Σ_i exp x_i = m + log Σ_i exp(x_i - m),   m = max_i x_i

    ∂f/∂x_i = exp(x_i - f)

`log_sum_exp` works on the whole array, `log_sum_exp_loop` number by number: l ← log(eˡ + exp x_i).

From the evaluations in Carpenter et al. (2015), arXiv:1509.07164, and Yang (2021), arXiv:2102.03681, and the suite
gradbench (`lse`).
"""

import numpy as np

from adbench import Case

from ._special import log_sum_exp


def vectorised(xp, x):
    return log_sum_exp(xp, x)


def scalar_loop(xp, x):
    return xp.loop(lambda i, total: xp.logaddexp(total, x[i + 1]), x[0], x.shape[0] - 1)


def gradient(x):
    shifted = np.exp(x - x.max())
    return (shifted / shifted.sum(),)


CASES = {
    "log_sum_exp": Case(
        f=vectorised,
        inputs=lambda n, rng: {"x": rng.normal(size=n)},
        wrt=("x",),
        sizes=(1, 10, 100, 1_000, 10_000, 100_000),
        quick=(1, 10, 100),
        gradient=gradient,
        flops=lambda n: 4 * n,
        tags=("vectorised",),
        suites=("stan-paper", "fastad", "gradbench", "quick", "ablations"),
        summary="Logarithm of a sum of n exponentials, on the whole array.",
    ),
    "log_sum_exp_loop": Case(
        f=scalar_loop,
        inputs=lambda n, rng: {"x": rng.normal(size=n)},
        wrt=("x",),
        sizes=(1, 10, 100, 1_000, 10_000),
        quick=(1, 10, 100),
        gradient=gradient,
        flops=lambda n: 4 * n,
        tags=("scalar-loop",),
        suites=("stan-paper",),
        summary="Logarithm of a sum of n exponentials, as a loop.",
    ),
}
