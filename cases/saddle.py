"""A saddle point by n steps of descent, each with ten inner steps of ascent.

    φ(x, y) = ½ ‖x - a‖² - ½ ‖y - b‖² + c x·y,   x, y in two dimensions
    y(x) by 10 steps y ← y + η ∂φ/∂y,   x by n steps x ← x - η d/dx φ(x, y(x)),   all from `start`, η = 0.3

    f(a, b, c) = Σ x + Σ y(x)

At the saddle point x = (a - c b) / (1 + c²), y = b + c x. The derivative d/dx goes through the inner steps.

`saddle` has hand-written inner derivatives, so every library can run it. In `saddle_nested` the library computes nested
derivatives. The values are the same.

Pearlmutter and Siskind (2008), "Using programming language theory to make automatic differentiation sound and
efficient"; the suite gradbench (`saddle`). There φ is x₁² + y₁² - x₂² - y₂², whose saddle point is always 0, so
the result depends on no input.
"""

from dataclasses import replace

from adbench import Case

from ._traps import by_hand as inner_by_hand
from ._traps import derivative

INNER, RATE = 10, 0.3


def phi(xp, x, y, a, b, c):
    return 0.5 * xp.sum((x - a) ** 2) - 0.5 * xp.sum((y - b) ** 2) + c * xp.sum(x * y)


def ascent(xp, slope, x, start):
    """y(x); slope(x, y) is ∂φ/∂y."""
    return xp.loop(lambda _, y: y + RATE * slope(x, y), start + 0 * x, INNER)


def solved(xp, slope, total_slope, a, start, steps):
    """x after the steps and y there; total_slope(x) is dφ(x, y(x)) / dx."""
    x = xp.loop(lambda _, x: x - RATE * total_slope(x), start + 0 * a, steps)
    return xp.sum(x) + xp.sum(ascent(xp, slope, x, start))


def by_hand(xp, a, b, c, start, steps):
    def slope(x, y):
        return c * x - (y - b)

    def total_slope(x):
        # The inner steps are linear: dy/dx is a multiple of the identity and follows the same recurrence.
        y = ascent(xp, slope, x, start)
        dy_dx = xp.loop(lambda _, s: s + RATE * (c - s), 0 * c, INNER)
        return (x - a) + c * y + dy_dx * slope(x, y)

    return solved(xp, slope, total_slope, a, start, steps)


def by_library(xp, a, b, c, start, steps):
    if inner_by_hand(xp, c):
        return by_hand(xp, a, b, c, start, steps)  # the same function for numpy and the oracle

    def slope(x, y):
        return derivative(xp, lambda other: phi(xp, x, other, a, b, c), y)

    def total(x):
        return phi(xp, x, ascent(xp, slope, x, start), a, b, c)

    return solved(xp, slope, lambda x: derivative(xp, total, x), a, start, steps)


def inputs(n, rng):
    return {
        "a": rng.uniform(0.5, 1.5, 2),
        "b": rng.uniform(0.5, 1.5, 2),
        "c": rng.uniform(0.5, 1.0),
        "start": rng.uniform(0.5, 1.5, 2),
        "steps": n,
    }


CASE = Case(
    f=by_hand,
    inputs=inputs,
    wrt=("a", "b", "c"),
    sizes=(1, 10, 100),
    quick=(3,),
    flops=lambda n: (n * 2 + 1) * INNER * 8 + 14 * n,
    tags=("nested-loops",),
    suites=("gradbench",),
    summary="A saddle point by descent with an ascent in each step; the inner derivatives are hand-written.",
)

CASES = {
    "saddle": CASE,
    "saddle_nested": replace(
        CASE,
        f=by_library,
        tags=("nested-loops", "nested"),
        summary="A saddle point by descent with an ascent in each step; the library computes the inner derivatives.",
    ),
}
