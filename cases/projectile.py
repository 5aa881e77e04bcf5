"""Range of a projectile after about n steps: a loop that ends depending on the data.

    x ← x + vx dt,   y ← y + vy dt,   vy ← vy - g dt   while y ≥ 0
    from x = y = 0, (vx, vy) = speed (cos angle, sin angle)

    f(angle, speed) = (x y' - x' y) / (y' - y)   where (x', y') is the point before last: the interpolated impact

With K steps and v the last vy used: f = vx ((K - 1) dt - y' / v). K depends on the data.

Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR": `distance_travelled`.
"""

import math

from adbench import Case

G = 9.8


def f(xp, angle, speed, dt):
    vx, vy = speed * xp.cos(angle), speed * xp.sin(angle)
    x = y = 0.0
    while y >= 0:
        last_x, last_y = x, y
        x, y, vy = x + vx * dt, y + vy * dt, vy - G * dt
    return (x * last_y - last_x * y) / (last_y - y)


def inputs(n, rng):
    # n + 1 steps; the impact is half-way between two steps, far from a change of K.
    angle, speed = rng.uniform(0.4, 0.7), rng.uniform(0.5, 1.5)
    return {"angle": angle, "speed": speed, "dt": 2 * speed * math.sin(angle) / (G * (n - 0.5))}


def gradient(angle, speed, dt):
    vx, vy = speed * math.cos(angle), speed * math.sin(angle)
    before = math.floor(2 * vy / (G * dt)) + 1  # K - 1: up to here y_k = k dt (vy - G dt (k - 1) / 2) ≥ 0
    t, y = before * dt, before * dt * (vy - G * dt * (before - 1) / 2)
    v = vy - G * t
    by_vx, by_vy = t - y / v, -vx * (t / v - y / v**2)
    return -vy * by_vx + vx * by_vy, (vx * by_vx + vy * by_vy) / speed


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("angle", "speed"),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 10, 100),
    gradient=gradient,
    flops=lambda n: 6 * (n + 1) + 9,
    tags=("data-dependent", "scalar-loop"),
    suites=("pqr", "ablations"),
)
