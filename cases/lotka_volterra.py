"""Lotka-Volterra's predators and prey after n Runge-Kutta steps.

    prey' = prey (α - β predators),   predators' = predators (δ prey - γ),   f(θ, start) = prey(T) + predators(T)

with θ = (α, β, γ, δ), by the classical fourth-order method (Kutta 1901) with n steps of length T / n.

Lotka (1925), "Elements of Physical Biology"; Volterra (1926), Nature 118, 558-560.
"""

from adbench import Case


def f(xp, theta, start, duration, steps):
    h = duration / steps

    def slope(s):
        prey, predators = s[0], s[1]
        return xp.stack(
            [prey * (theta[0] - theta[1] * predators), predators * (theta[3] * prey - theta[2])],
        )

    def step(_, s):
        k1 = slope(s)
        k2 = slope(s + h / 2 * k1)
        k3 = slope(s + h / 2 * k2)
        k4 = slope(s + h * k3)
        return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return xp.sum(xp.loop(step, start, steps))


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
    quick=(1, 10, 50),
    flops=lambda n: 50 * n + 1,
    tags=("ode", "scalar-loop"),
)
