"""The heat equation on a square of n × n points after 16 steps, compared with an observation.

    u_t = κ Δu with u = 0 outside,   u_(k+1) = u_k + 0.2 κ Δu_k,   f(start, κ) = ½ Σ (u_16 - observed)²

with the sum of the four neighbours minus 4 u as Δu, at points one apart, and a κ for every point. The function of an
inverse problem: which start and which material explain the observation? By hand, with the adjoint λ of u,

    λ_16 = u_16 - observed,   λ_k = λ_(k+1) + 0.2 Δ(κ λ_(k+1)),   ∂f/∂start = λ_0,   ∂f/∂κ = 0.2 Σ_k λ_(k+1) Δu_k

LeVeque (2007), "Finite Difference Methods for Ordinary and Partial Differential Equations", sections 3.2 and 9.1.
"""

import numpy as np

from adbench import Case

STEPS, STEP = 16, 0.2  # stable up to κ = 1.25


def laplacian(xp, u):
    row, column = xp.zeros_like(u[:1, :]), xp.zeros_like(u[:, :1])
    tall, wide = xp.concat([row, u, row]), xp.concat([column, u, column], axis=1)
    return tall[:-2, :] + tall[2:, :] + wide[:, :-2] + wide[:, 2:] - 4 * u


def f(xp, start, kappa, observed, steps):
    u = xp.loop(lambda _, u: u + STEP * kappa * laplacian(xp, u), start, steps)
    return 0.5 * xp.sum((u - observed) ** 2)


def gradient(start, kappa, observed, steps):
    u, slopes = start, []
    for _ in range(steps):
        slopes.append(STEP * laplacian(np, u))
        u = u + kappa * slopes[-1]
    adjoint, by_kappa = u - observed, np.zeros_like(kappa)
    for slope in reversed(slopes):
        by_kappa += adjoint * slope
        adjoint = adjoint + STEP * laplacian(np, kappa * adjoint)
    return adjoint, by_kappa


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "start": rng.uniform(0.5, 1.5, (n, n)),
        "kappa": rng.uniform(0.5, 1.0, (n, n)),
        "observed": rng.uniform(-0.5, 0.5, (n, n)),
        "steps": STEPS,
    },
    wrt=("start", "kappa"),
    sizes=(1, 3, 10, 30, 100, 300),
    quick=(3, 10),
    gradient=gradient,
    flops=lambda n: (STEPS * 8 + 3) * n * n,
    tags=("pde", "grid", "loop", "science"),
    suites=("science",),
)
