"""A chain of n linear differential equations, differentiated in the rates and the start.

    y_0' = x_0,   y_i' = x_i y_{i-1},   f(x, start) = Σ_i y_i(2) / n

`linear_chain` uses the classical fourth-order Runge-Kutta method with 20 steps of length 0.1; `linear_chain_adaptive`
the Dormand-Prince method with adaptive steps and one error for the whole system.

The equations of the suite gradbench (`ode`), from Bell's cmpad (`an_ode`). There y starts at zero and the value is the
last entry: at every size of that suite the steps do not reach it, so its gradient is exactly zero. Here y starts at
`start`, of order one, and all entries count.
"""

from adbench import Case

from . import _dormand_prince, _runge_kutta

STEPS, END = 20, 2.0


def slope_of(xp, x):
    return lambda _, y: x * xp.concat([xp.ones_like(y[:1]), y[:-1]])


def solved(xp, x, start, steps):
    """y(2) from y(0) = start."""
    return _runge_kutta.integrated(xp, slope_of(xp, x), start, 0.0, END, steps)


def f(xp, x, start):
    return xp.sum(solved(xp, x, start, STEPS)) / x.shape[0]


def adaptive(xp, x, start, tolerance):
    found = _dormand_prince.integrated(xp, slope_of(xp, x), start, 0.0, END, 0.125, tolerance)
    return xp.sum(found) / x.shape[0]


def inputs(n, rng):
    return {"x": rng.uniform(0.5, 1.5, n), "start": rng.uniform(0.5, 1.5, n)}


CASES = {
    "linear_chain": Case(
        f=f,
        inputs=inputs,
        wrt=("x", "start"),
        sizes=(1, 10, 100, 1_000, 10_000),
        quick=(1, 10),
        flops=lambda n: STEPS * 17 * n + n,
        tags=("ode", "loop"),
        suites=("gradbench",),
        summary="A chain of n linear differential equations after 20 Runge-Kutta steps.",
    ),
    "linear_chain_adaptive": Case(
        f=adaptive,
        inputs=lambda n, rng: inputs(n, rng) | {"tolerance": 1e-5},
        wrt=("x", "start"),
        sizes=(1, 10, 100),
        quick=(1, 10),
        flops=lambda n: 16 * 75 * n + n,
        tags=("ode", "data-dependent", "loop"),
        summary="A chain of n linear differential equations with adaptive steps.",
    ),
}
