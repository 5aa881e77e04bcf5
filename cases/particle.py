"""Squared impact position of a charged particle, as a function of a steering charge's position.

    p(x, y) = 1 / ‖(x, y) - (10, 10 - w)‖ + 1 / ‖(x, y) - (10, 0)‖
    (x, y) ← (x, y) + dt (u, v),   (u, v) ← (u, v) - dt ∇p(x, y)   while y > 0,   from (0, 8) with velocity (0.75, 0)

    f(w) = (x - u y / v)²

with the last x, y, u, v above the ground, extrapolated to y = 0. Euler's method takes about n steps; the number depends
on the data. The published program minimises this function.

`particle` has a hand-written force ∇p, so every library can run it. In `particle_nested` the library computes the force
by a nested derivative. The values are the same.

Pearlmutter and Siskind (2008), "Using programming language theory to make automatic differentiation sound and
efficient"; the suite gradbench (`particle`), whose program also runs the descent.
"""

from dataclasses import replace

from adbench import Case

from ._traps import by_hand as inner_by_hand
from ._traps import derivative

FLIGHT = 35.0  # approximate time of flight


def potential(xp, x, y, w):
    def of_charge(cx, cy):
        return 1 / xp.sqrt((x - cx) * (x - cx) + (y - cy) * (y - cy))

    return of_charge(10.0, 10 - w) + of_charge(10.0, 0.0)


def slopes(xp, x, y, w):
    """∇p, written by hand."""

    def of_charge(cx, cy):
        square = (x - cx) * (x - cx) + (y - cy) * (y - cy)
        cube = square * xp.sqrt(square)
        return (cx - x) / cube, (cy - y) / cube

    (ax, ay), (bx, by) = of_charge(10.0, 10 - w), of_charge(10.0, 0.0)
    return ax + bx, ay + by


def own_slopes(xp, x, y, w):
    """∇p by the library; by hand on plain numbers, which have no derivative."""
    if inner_by_hand(xp, w):
        return slopes(xp, x, y, w)
    by_x = derivative(xp, lambda a: potential(xp, a, y, w), x)
    return by_x, derivative(xp, lambda b: potential(xp, x, b, w), y)


def flight(xp, gradient, w, dt):
    zero = 0 * w
    x, y, u, v = zero, 8.0 + zero, 0.75 + zero, zero
    while y + dt * v > 0:
        by_x, by_y = gradient(xp, x, y, w)
        x, y, u, v = x + dt * u, y + dt * v, u - dt * by_x, v - dt * by_y
    return (x - u * y / v) ** 2


CASE = Case(
    f=lambda xp, w, dt: flight(xp, slopes, w, dt),
    inputs=lambda n, rng: {"w": rng.uniform(0.05, 0.15), "dt": FLIGHT / n},
    wrt=("w",),
    sizes=(10, 100, 1_000),
    quick=(10,),
    flops=lambda n: 34 * n + 5,
    tags=("data-dependent", "scalar-loop"),
    suites=("gradbench",),
    summary="Impact of a charged particle; the force is hand-written.",
)

CASES = {
    "particle": CASE,
    "particle_nested": replace(
        CASE,
        f=lambda xp, w, dt: flight(xp, own_slopes, w, dt),
        tags=("data-dependent", "scalar-loop", "nested"),
        summary="Impact of a charged particle; the force is a nested derivative by the library.",
    ),
}
