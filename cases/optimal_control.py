"""Cost of swinging up a pendulum on a cart with n controls, differentiated in the controls.

    a = (u_k + m sin θ (l ω² + g cos θ)) / (M + m sin² θ),   α = -(a cos θ + g sin θ) / l
    v ← v + h a,   ω ← ω + h α,   x ← x + h v,   θ ← θ + h ω        (semi-implicit Euler, h = duration / n)

    f(u) = Σ_k h (c(state_(k+1)) + 0.05 u_k²) + 5 c(state_n),   c = ½ x² + 1 + cos θ + 0.05 (v² + ω²)

from rest with the pendulum near θ = 0, which points down. c is 0 at rest and upright. The hand-written gradient is
Pontryagin's: the costate takes the steps backwards. This is the rollout of direct single shooting.

Tedrake, "Underactuated Robotics", section 3.2; Betts (2010), "Practical Methods for Optimal Control", section 3.4.
"""

import math

import numpy as np

from adbench import Case

CART, BOB, LENGTH, GRAVITY, EFFORT, FINAL = 1.0, 0.3, 0.5, 9.8, 0.05, 5.0


def cost(xp, x, angle, v, rate):
    return 0.5 * x * x + 1 + xp.cos(angle) + 0.05 * (v * v + rate * rate)


def f(xp, controls, start, duration):
    n = controls.shape[0]
    h = duration / n

    def step(k, state):
        x, angle, v, rate, total = state
        sine, cosine, u = xp.sin(angle), xp.cos(angle), controls[k]
        a = (u + BOB * sine * (LENGTH * rate * rate + GRAVITY * cosine)) / (CART + BOB * sine * sine)
        v, rate = v + h * a, rate - h * (a * cosine + GRAVITY * sine) / LENGTH
        x, angle = x + h * v, angle + h * rate
        return x, angle, v, rate, total + h * (cost(xp, x, angle, v, rate) + EFFORT * u * u)

    *end, total = xp.loop(step, (start[0], start[1], start[2], start[3], 0 * controls[0]), n)
    return total + FINAL * cost(xp, *end)


def gradient(controls, start, duration):
    n = len(controls)
    h, states = duration / n, np.empty((n + 1, 4))
    states[0] = start
    for k in range(n):
        x, angle, v, rate = states[k]
        a = acceleration(controls[k], angle, rate)
        v, rate = v + h * a, rate - h * (a * math.cos(angle) + GRAVITY * math.sin(angle)) / LENGTH
        states[k + 1] = x + h * v, angle + h * rate, v, rate
    found, costate = np.empty(n), np.zeros(4)
    for k in range(n - 1, -1, -1):
        x, angle, v, rate = states[k + 1]
        weight = h + (FINAL if k == n - 1 else 0.0)
        by_x, by_angle, by_v, by_rate = costate + weight * np.array([x, -math.sin(angle), 0.1 * v, 0.1 * rate])
        by_v, by_rate = by_v + h * by_x, by_rate + h * by_angle
        _, angle, _, rate = states[k]
        sine, cosine, a = math.sin(angle), math.cos(angle), acceleration(controls[k], angle, rate)
        by_a = h * (by_v - by_rate * cosine / LENGTH)
        mass = CART + BOB * sine * sine
        found[k] = by_a / mass + 2 * h * EFFORT * controls[k]
        pull = LENGTH * rate * rate * cosine + GRAVITY * (cosine * cosine - sine * sine) - 2 * a * sine * cosine
        by_angle += by_a * BOB * pull / mass + by_rate * h * (a * sine - GRAVITY * cosine) / LENGTH
        costate = np.array([by_x, by_angle, by_v, by_rate + by_a * 2 * BOB * sine * LENGTH * rate / mass])
    return (found,)


def acceleration(u, angle, rate):
    """Of the cart."""
    sine = math.sin(angle)
    return (u + BOB * sine * (LENGTH * rate**2 + GRAVITY * math.cos(angle))) / (CART + BOB * sine**2)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "controls": rng.uniform(-2.0, 2.0, n),
        "start": rng.uniform(-0.3, 0.3, 4),
        "duration": 1.5,
    },
    wrt=("controls",),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(1, 10),
    gradient=gradient,
    flops=lambda n: 50 * n + 11,
    tags=("ode", "scalar-loop", "science"),
    suites=("science",),
)
