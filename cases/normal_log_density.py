"""Normal log density of n observations, differentiated in the mean and the scale.

    f(y, μ, σ) = Σ_n  -½ ((y_n - μ) / σ)² - log σ - ½ log 2π

    ∂f/∂y_n = -z_n / σ,   ∂f/∂μ = Σ_n z_n / σ,   ∂f/∂σ = Σ_n (z_n² - 1) / σ,   z_n = (y_n - μ) / σ

`normal_log_density` works on the whole array, `normal_log_density_loop` observation by observation; both are
differentiated in μ and σ. Every other choice of active arguments is a case too (`normal_log_density_in_y`, …), because
constants should cost nothing. Some backends replace the source with a built-in density that is one node.

Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164, the example of sections 1 and 2.
"""

import math
from itertools import combinations

import numpy as np

from adbench import Case

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
ARGUMENTS = ("y", "mu", "sigma")
WORDS = {"y": "the observations", "mu": "the mean", "sigma": "the scale"}


def vectorised(xp, y, mu, sigma):
    z = (y - mu) / sigma
    return -0.5 * xp.sum(z * z) - y.shape[0] * (xp.log(sigma) + HALF_LOG_TWO_PI)


def scalar_loop(xp, y, mu, sigma):
    def add(n, total):
        z = (y[n] - mu) / sigma
        return total - 0.5 * z * z - xp.log(sigma) - HALF_LOG_TWO_PI

    return xp.loop(add, 0.0, y.shape[0])


def inputs(n, rng):
    # The scale exceeds the spread of y around mu, so ∂f/∂σ is far from zero at every n.
    return {"y": rng.normal(1.0, 1.0, n), "mu": rng.uniform(0.2, 0.8), "sigma": rng.uniform(1.5, 2.5)}


def gradient_in(wrt):
    def gradient(y, mu, sigma):
        z = (y - mu) / sigma
        every = {"y": lambda: -z / sigma, "mu": lambda: np.sum(z) / sigma, "sigma": lambda: np.sum(z * z - 1) / sigma}
        return tuple(every[name]() for name in wrt)

    return gradient


def case(wrt, *, loop, sizes, quick, suites=()):
    form = "as a loop" if loop else "on the whole array"
    return Case(
        f=scalar_loop if loop else vectorised,
        inputs=inputs,
        wrt=wrt,
        sizes=sizes,
        quick=quick,
        gradient=gradient_in(wrt),
        flops=lambda n: 8 * n if loop else 4 * n + 5,
        tags=("density", "scalar-loop" if loop else "vectorised"),
        suites=suites,
        same_twin="normal_log_density_loop" if loop else "normal_log_density",
        summary=f"Normal log density of n observations {form}, in {' and '.join(WORDS[name] for name in wrt)}.",
    )


PARAMETERS = ("mu", "sigma")
SUBSETS = [chosen for k in (1, 2, 3) for chosen in combinations(ARGUMENTS, k) if chosen != PARAMETERS]

CASES = {
    "normal_log_density": case(
        PARAMETERS,
        loop=False,
        sizes=(1, 10, 100, 1_000, 10_000, 100_000, 1_000_000),
        quick=(1, 1_000, 100_000),
        suites=("stan-paper", "fastad", "quick", "ablations"),
    ),
    "normal_log_density_loop": case(
        PARAMETERS,
        loop=True,
        sizes=(1, 10, 100, 1_000, 10_000),
        quick=(1, 10, 100),
        suites=("stan-paper", "quick", "ablations"),
    ),
    **{
        f"normal_log_density{'_loop' if loop else ''}_in_{'_'.join(chosen)}": case(
            chosen, loop=loop, sizes=(1, 100, 10_000), quick=(10,), suites=("stan-paper",)
        )
        for loop in (False, True)
        for chosen in SUBSETS
    },
}
