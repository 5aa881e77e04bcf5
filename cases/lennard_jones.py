"""Lennard-Jones energy of n bodies, differentiated in their positions, the depth ε and the length σ.

    f(x, ε, σ) = Σ_(i<j) 4 ε ((σ / r_ij)¹² - (σ / r_ij)⁶),   r_ij = ‖x_i - x_j‖

    ∂f/∂x_i = Σ_j 24 ε ((σ / r_ij)⁶ - 2 (σ / r_ij)¹²) (x_i - x_j) / r_ij²

The forces are -∂f/∂x. The bodies lie near the points of a cubic lattice. A pair has its smallest energy -ε at
r = 2^(1/6) σ. Every pair counts: there is no cutoff.

Jones (1924), "On the determination of molecular fields II", Proceedings of the Royal Society A 106, 463-477.
"""

import numpy as np

from adbench import Case


def f(xp, x, epsilon, sigma):
    itself = xp.eye(x.shape[0])
    gap = x[:, None, :] - x[None, :, :]
    squares = xp.sum(gap * gap, axis=2) + itself  # no body is at distance 0 from itself
    sixth = (sigma * sigma / squares) ** 3
    return 2 * epsilon * xp.sum((1 - itself) * (sixth * sixth - sixth))


def gradient(x, epsilon, sigma):
    gap = x[:, None, :] - x[None, :, :]
    squares = np.sum(gap**2, axis=2)
    np.fill_diagonal(squares, np.inf)
    sixth = (sigma**2 / squares) ** 3
    slope = 24 * epsilon * (sixth - 2 * sixth**2) / squares
    by_epsilon = 2 * np.sum(sixth**2 - sixth)
    by_sigma = 12 * epsilon / sigma * np.sum(2 * sixth**2 - sixth)
    return np.sum(slope[:, :, None] * gap, axis=1), by_epsilon, by_sigma


def inputs(n, rng):
    # The first n points of a cubic lattice, near the distance of smallest energy, each moved a little.
    side = 1 + int(np.cbrt(n - 0.5))
    lattice = np.stack(np.unravel_index(np.arange(n), (side, side, side)), axis=1)
    return {
        "x": 1.2 * (lattice + 1) + rng.uniform(-0.1, 0.1, (n, 3)),
        "epsilon": rng.uniform(0.8, 1.2),
        "sigma": rng.uniform(0.9, 1.1),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("x", "epsilon", "sigma"),
    sizes=(2, 10, 100, 1_000),
    quick=(2, 10),
    least=2,
    operators=("value", "gradient", "hvp"),
    gradient=gradient,
    flops=lambda n: 15 * n * (n - 1) / 2,
    tags=("pairs", "vectorised", "second-order", "science"),
    suites=("science",),
)
