"""A chain of n linear differential equations after 20 Runge-Kutta steps, in its rates and its start.

    y_0' = x_0,   y_i' = x_i y_{i-1},   f(x, start) = Σ_i y_i(2) / n

by the classical fourth-order method with 20 steps of length 0.1.

The equations of the suite gradbench (`ode`), from Bell's cmpad (`an_ode`). There y starts at zero and the last entry is
the value: its gradient is exactly zero for more entries than the steps can pass on, which holds for every size of that
suite. Here y starts at `start`, of order one, and all entries count.
"""

from adbench import Case

from ._runge_kutta import integrated

STEPS, END = 20, 2.0


def solved(xp, x, start, steps):
    """y(2) from y(0) = start."""

    def slope(_, y):
        return x * xp.concat([xp.ones_like(y[:1]), y[:-1]])

    return integrated(xp, slope, start, 0.0, END, steps)


def f(xp, x, start):
    return xp.sum(solved(xp, x, start, STEPS)) / x.shape[0]


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.uniform(0.5, 1.5, n), "start": rng.uniform(0.5, 1.5, n)},
    wrt=("x", "start"),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(1, 10),
    flops=lambda n: STEPS * 17 * n + n,
    tags=("ode", "loop"),
    suites=("gradbench",),
)
