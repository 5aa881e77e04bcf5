"""Van der Pol's oscillator after n Runge-Kutta steps, in its parameter, its start and both ends of time.

    x' = v,   v' = μ (1 - x²) v - x,   f(μ, start, t₀, t₁) = x(t₁) + v(t₁)

by the classical fourth-order method with n steps of length (t₁ - t₀) / n. Nothing depends on the time itself, so
∂f/∂t₀ = -∂f/∂t₁.

Van der Pol (1926), "On relaxation oscillations", Philosophical Magazine 2, 978-992.
"""

from adbench import Case

from ._runge_kutta import integrated


def f(xp, mu, start, t0, t1, steps):
    def slope(_, s):
        return xp.stack([s[1], mu * (1 - s[0] * s[0]) * s[1] - s[0]])

    return xp.sum(integrated(xp, slope, start, t0, t1, steps))


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "mu": rng.uniform(0.5, 1.5),
        "start": rng.uniform(0.5, 1.5, 2),
        "t0": rng.uniform(0.1, 0.2),
        "t1": rng.uniform(1.1, 1.2),
        "steps": n,
    },
    wrt=("mu", "start", "t0", "t1"),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 10),
    flops=lambda n: 46 * n + 1,
    tags=("ode", "scalar-loop"),
)
