"""A seasonal epidemic, differentiated in its parameters, its start and both end times.

    S' = -β(t) S I,   I' = β(t) S I - γ I,   β(t) = b (1 + a cos 2π t),   f(θ, start, t₀, t₁) = S(t₁) + I(t₁)

with θ = (b, γ, a) and the shares S and I of susceptible and infected people. The infection rate depends on the season,
so ∂f/∂t₀ and ∂f/∂t₁ are independent.

`sir` uses the classical fourth-order Runge-Kutta method with n steps of length (t₁ - t₀) / n. `sir_adaptive` uses the
Dormand-Prince method with time in units of n / 10, which takes between n and 2 n steps.

Kermack and McKendrick (1927), "A contribution to the mathematical theory of epidemics", Proc. R. Soc. A 115, 700-721.
"""

import math

from adbench import Case

from . import _dormand_prince, _runge_kutta


def slope_of(xp, theta):
    def slope(time, s):
        new = theta[0] * (1 + theta[2] * xp.cos(2 * math.pi * time())) * s[0] * s[1]
        return xp.stack([-new, new - theta[1] * s[1]])

    return slope


def f(xp, theta, start, t0, t1, steps):
    return xp.sum(_runge_kutta.integrated(xp, slope_of(xp, theta), start, t0, t1, steps))


def adaptive(xp, theta, start, t0, t1, unit, tolerance):
    return xp.sum(_dormand_prince.integrated(xp, slope_of(xp, theta), start, unit * t0, unit * t1, 0.125, tolerance))


def inputs(n, rng):
    return {
        "theta": rng.uniform((1.5, 0.5, 0.3), (2.5, 1.5, 0.5)),
        "start": rng.uniform((0.6, 0.1), (0.8, 0.3)),
        "t0": rng.uniform(0.1, 0.2),
        "t1": rng.uniform(2.6, 2.8),
    }


CASES = {
    "sir": Case(
        f=f,
        inputs=lambda n, rng: inputs(n, rng) | {"steps": n},
        wrt=("theta", "start", "t0", "t1"),
        sizes=(1, 10, 100, 1_000),
        quick=(1, 10),
        flops=lambda n: 70 * n + 1,
        tags=("ode", "scalar-loop"),
        summary="A seasonal epidemic after n Runge-Kutta steps.",
    ),
    "sir_adaptive": Case(
        f=adaptive,
        inputs=lambda n, rng: inputs(n, rng) | {"unit": n / 10, "tolerance": 1e-6},
        wrt=("theta", "start", "t0", "t1"),
        sizes=(2, 10, 30, 100),
        quick=(2, 10),
        flops=lambda n: 300 * n + 1,
        tags=("ode", "data-dependent", "scalar-loop"),
        summary="A seasonal epidemic with adaptive steps.",
    ),
}
