"""Van der Pol's oscillator, differentiated in its parameter, its start and both end times.

    x' = v,   v' = μ (1 - x²) v - x,   f(μ, start, t₀, t₁) = x(t₁) + v(t₁)

`van_der_pol` uses the classical fourth-order Runge-Kutta method with n steps of length (t₁ - t₀) / n.
`van_der_pol_adaptive` uses the Dormand-Prince method with time in units of n / 10, which takes about n steps. The
equations do not depend on time, so ∂f/∂t₀ = -∂f/∂t₁.

Van der Pol (1926), "On relaxation oscillations", Philosophical Magazine 2, 978-992.
"""

from adbench import Case

from . import _dormand_prince, _runge_kutta


def slope_of(xp, mu):
    return lambda _, s: xp.stack([s[1], mu * (1 - s[0] * s[0]) * s[1] - s[0]])


def f(xp, mu, start, t0, t1, steps):
    return xp.sum(_runge_kutta.integrated(xp, slope_of(xp, mu), start, t0, t1, steps))


def adaptive(xp, mu, start, t0, t1, unit, tolerance):
    return xp.sum(_dormand_prince.integrated(xp, slope_of(xp, mu), start, unit * t0, unit * t1, 0.25, tolerance))


def inputs(n, rng):
    return {
        "mu": rng.uniform(0.5, 1.5),
        "start": rng.uniform(0.5, 1.5, 2),
        "t0": rng.uniform(0.1, 0.2),
        "t1": rng.uniform(1.1, 1.2),
    }


CASES = {
    "van_der_pol": Case(
        f=f,
        inputs=lambda n, rng: inputs(n, rng) | {"steps": n},
        wrt=("mu", "start", "t0", "t1"),
        sizes=(1, 10, 100, 1_000),
        quick=(1, 10),
        flops=lambda n: 46 * n + 1,
        tags=("ode", "scalar-loop"),
        summary="Van der Pol's oscillator after n Runge-Kutta steps.",
    ),
    "van_der_pol_adaptive": Case(
        f=adaptive,
        inputs=lambda n, rng: inputs(n, rng) | {"unit": n / 10, "tolerance": 1e-6},
        wrt=("mu", "start", "t0", "t1"),
        sizes=(2, 10, 30),
        quick=(2, 10),
        flops=lambda n: 200 * n + 1,
        tags=("ode", "data-dependent", "scalar-loop"),
        summary="Van der Pol's oscillator with adaptive steps.",
    ),
}
