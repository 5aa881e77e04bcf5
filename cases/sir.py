"""A seasonal epidemic after n Runge-Kutta steps, in its parameters, its start and both ends of time.

    S' = -β(t) S I,   I' = β(t) S I - γ I,   β(t) = b (1 + a cos 2π t),   f(θ, start, t₀, t₁) = S(t₁) + I(t₁)

with θ = (b, γ, a) and shares S, I of the susceptible and the infected, by the classical fourth-order method with n
steps of length (t₁ - t₀) / n. What is infectious depends on the season, so ∂f/∂t₀ and ∂f/∂t₁ have nothing to do with
each other.

Kermack and McKendrick (1927), "A contribution to the mathematical theory of epidemics", Proc. R. Soc. A 115, 700-721.
"""

import math

from adbench import Case

from ._runge_kutta import integrated


def f(xp, theta, start, t0, t1, steps):
    def slope(time, s):
        new = theta[0] * (1 + theta[2] * xp.cos(2 * math.pi * time())) * s[0] * s[1]
        return xp.stack([-new, new - theta[1] * s[1]])

    return xp.sum(integrated(xp, slope, start, t0, t1, steps))


def inputs(n, rng):
    return {
        "theta": rng.uniform((1.5, 0.5, 0.3), (2.5, 1.5, 0.5)),
        "start": rng.uniform((0.6, 0.1), (0.8, 0.3)),
        "t0": rng.uniform(0.1, 0.2),
        "t1": rng.uniform(2.6, 2.8),
        "steps": n,
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("theta", "start", "t0", "t1"),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 10),
    flops=lambda n: 70 * n + 1,
    tags=("ode", "scalar-loop"),
)
