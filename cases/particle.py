"""Where a charged particle hits the ground, squared, in the place of a charge that steers it.

    p(x, y) = 1 / ‖(x, y) - (10, 10 - w)‖ + 1 / ‖(x, y) - (10, 0)‖
    (x, y) ← (x, y) + dt (u, v),   (u, v) ← (u, v) - dt ∇p(x, y)   while y > 0,   from (0, 8) with velocity (0.75, 0)

    f(w) = (x - u y / v)²

with the last x, y, u, v before the ground: the impact on the straight line. That is Euler's method with about n steps;
how many there are depends on the data. A published program seeks the smallest value of this function by descent.

Twice: in `particle` the force ∇p is written by hand, so that every library has it; in `particle_nested` the library
derives it inside the function that it differentiates. The values are the same.

Pearlmutter and Siskind (2008), "Using programming language theory to make automatic differentiation sound and
efficient"; the suite gradbench (`particle`), whose program also runs the descent.
"""

from dataclasses import replace

from adbench import Case

from ._traps import by_hand as inner_by_hand
from ._traps import derivative

FLIGHT = 35.0  # about how long the particle flies


def potential(xp, x, y, w):
    def of_charge(cx, cy):
        return 1 / xp.sqrt((x - cx) * (x - cx) + (y - cy) * (y - cy))

    return of_charge(10.0, 10 - w) + of_charge(10.0, 0.0)


def slopes(xp, x, y, w):
    """∇p, by hand."""

    def of_charge(cx, cy):
        square = (x - cx) * (x - cx) + (y - cy) * (y - cy)
        cube = square * xp.sqrt(square)
        return (cx - x) / cube, (cy - y) / cube

    (ax, ay), (bx, by) = of_charge(10.0, 10 - w), of_charge(10.0, 0.0)
    return ax + bx, ay + by


def own_slopes(xp, x, y, w):
    """∇p, by the library; on plain numbers, where there is none, by hand: the same function."""
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
    summary="Where a charged particle hits the ground; the force on it is derived by hand.",
)

CASES = {
    "particle": CASE,
    "particle_nested": replace(
        CASE,
        f=lambda xp, w, dt: flight(xp, own_slopes, w, dt),
        tags=("data-dependent", "scalar-loop", "nested"),
        summary="Where a charged particle hits the ground; the force on it is the library's own derivative.",
    ),
}
