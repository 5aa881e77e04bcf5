"""Lotka-Volterra predators and prey after n Runge-Kutta steps.

    prey' = prey (α - β predators),   predators' = predators (δ prey - γ),   f(θ, start) = prey(T) + predators(T)

with θ = (α, β, γ, δ), by the classical fourth-order Runge-Kutta method (Kutta 1901) with n steps of length T / n.

Lotka (1925), "Elements of Physical Biology"; Volterra (1926), Nature 118, 558-560.
"""

from adbench import Case

from ._runge_kutta import integrated


def f(xp, theta, start, duration, steps):
    def slope(_, s):
        prey, predators = s[0], s[1]
        return xp.stack(
            [prey * (theta[0] - theta[1] * predators), predators * (theta[3] * prey - theta[2])],
        )

    return xp.sum(integrated(xp, slope, start, 0.0, duration, steps))


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "theta": rng.uniform(0.5, 1.5, 4),
        "start": rng.uniform(0.5, 1.5, 2),
        "duration": 2.0,
        "steps": n,
    },
    wrt=("theta", "start"),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 10),
    flops=lambda n: 50 * n + 1,
    tags=("ode", "scalar-loop"),
    suites=("stan-paper", "quick", "ablations"),
)
