"""Burgers' equation on a circle of n points after 32 steps, compared with an observation.

    u_t + (½ u²)_x = ν u_xx,   f(start, ν) = ½ Σ (u(T) - observed)²

    u_i ← u_i - Δt / (4 Δx) (u_(i+1)² - u_(i-1)²) + ν Δt / Δx² (u_(i+1) - 2 u_i + u_(i-1))

By hand, with the adjoint λ of u, one step back is

    λ_i ← λ_i + Δt / (2 Δx) u_i (λ_(i+1) - λ_(i-1)) + ν Δt / Δx² (λ_(i+1) - 2 λ_i + λ_(i-1))

Burgers (1948), "A mathematical model illustrating the theory of turbulence", Advances in Applied Mechanics 1, 171-199;
the scheme with central differences of LeVeque (2007), "Finite Difference Methods for Ordinary and Partial Differential
Equations", chapter 10.
"""

import numpy as np

from adbench import Case

STEPS = 32


def shifted(xp, u):
    """u_(i-1) and u_(i+1)."""
    return xp.concat([u[-1:], u[:-1]]), xp.concat([u[1:], u[:1]])


def f(xp, start, viscosity, observed, dx, dt, steps):
    drift, spread = dt / (4 * dx), viscosity * (dt / (dx * dx))

    def step(_, u):
        before, after = shifted(xp, u)
        return u - drift * (after * after - before * before) + spread * (after - 2 * u + before)

    gap = xp.loop(step, start, steps) - observed
    return 0.5 * xp.sum(gap * gap)


def gradient(start, viscosity, observed, dx, dt, steps):
    drift, rate = dt / (4 * dx), dt / dx**2
    u, states, curvatures = start, [], []
    for _ in range(steps):
        before, after = np.roll(u, 1), np.roll(u, -1)
        states.append(u)
        curvatures.append(rate * (after - 2 * u + before))
        u = u - drift * (after**2 - before**2) + viscosity * curvatures[-1]
    adjoint, by_viscosity = u - observed, 0.0
    for k in range(steps - 1, -1, -1):
        by_viscosity += np.sum(adjoint * curvatures[k])
        before, after = np.roll(adjoint, 1), np.roll(adjoint, -1)
        spread = viscosity * rate * (after - 2 * adjoint + before)
        adjoint = adjoint + 2 * drift * states[k] * (after - before) + spread
    return adjoint, by_viscosity


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "start": rng.uniform(0.5, 1.5, n),
        "viscosity": rng.uniform(0.4, 0.8),
        "observed": rng.uniform(-0.5, 0.5, n),
        "dx": 1.0,
        "dt": 0.1,
        "steps": STEPS,
    },
    wrt=("start", "viscosity"),
    sizes=(10, 100, 1_000, 10_000, 100_000),
    quick=(10, 30),
    least=3,
    gradient=gradient,
    flops=lambda n: (STEPS * 10 + 3) * n,
    tags=("pde", "loop", "science"),
    suites=("science",),
)
