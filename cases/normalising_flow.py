"""Mean log density of n points under a normalising flow of four affine couplings (RealNVP).

    f(θ) = 1/n Σ_i log N(z_i; 0, I) + Σ_k Σ_j s_kij
    (a, b) ← (b exp(s_k) + t_k, a),   s_k = tanh(h S + c),   t_k = h T + d,   h = tanh(a W + e),   k = 1 … 4

for points of four numbers, each split into halves (a, b), which end as z. The logarithm of the Jacobian's determinant
is the sum of all s.

Dinh, Sohl-Dickstein and Bengio (2017), "Density estimation using Real NVP", equations 5 to 8.
"""

import math

import numpy as np

from adbench import Case

HALF, WIDTH, COUPLINGS = 2, 8, 4


def f(xp, theta, x):
    a, b = x[:, :HALF], x[:, HALF:]
    total = 0.0
    for coupling in theta:
        W, e = coupling["hidden"]
        S, c = coupling["scale"]
        T, d = coupling["shift"]
        h = xp.tanh(a @ W + e)
        s = xp.tanh(h @ S + c)
        a, b = b * xp.exp(s) + h @ T + d, a
        total = total + xp.sum(s)
    return (total - 0.5 * xp.sum(a * a) - 0.5 * xp.sum(b * b)) / x.shape[0] - HALF * math.log(2 * math.pi)


def gradient(theta, x):
    a, b, kept = x[:, :HALF], x[:, HALF:], []
    for coupling in theta:
        (W, e), (S, c), (T, d) = coupling["hidden"], coupling["scale"], coupling["shift"]
        h = np.tanh(a @ W + e)
        s = np.tanh(h @ S + c)
        kept.append((a, b, h, s))
        a, b = b * np.exp(s) + h @ T + d, a
    by_a, by_b, found = -a / len(x), -b / len(x), []
    for coupling, (a, b, h, s) in zip(theta[::-1], kept[::-1], strict=True):
        by_t = by_a
        by_s = (by_a * b * np.exp(s) + 1 / len(x)) * (1 - s**2)
        by_h = (by_s @ coupling["scale"][0].T + by_t @ coupling["shift"][0].T) * (1 - h**2)
        parts = {"hidden": (a, by_h), "scale": (h, by_s), "shift": (h, by_t)}
        found.append({name: [given.T @ by, by.sum(axis=0)] for name, (given, by) in parts.items()})
        by_a, by_b = by_b + by_h @ coupling["hidden"][0].T, by_a * np.exp(s)
    return (found[::-1],)


def inputs(n, rng):
    def layer(m, k):
        return [rng.normal(0, m**-0.5, (m, k)), rng.normal(0, 0.5, k)]

    couplings = [
        {"hidden": layer(HALF, WIDTH), "scale": layer(WIDTH, HALF), "shift": layer(WIDTH, HALF)}
        for _ in range(COUPLINGS)
    ]
    return {"theta": couplings, "x": rng.normal(size=(n, 2 * HALF))}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("theta",),
    sizes=(1, 10, 100, 1_000, 10_000, 30_000),
    quick=(1, 10),
    gradient=gradient,
    flops=lambda n: n * COUPLINGS * (2 * HALF * WIDTH * 3 + 2 * WIDTH + 8 * HALF),
    tags=("machine-learning", "network", "density", "nested"),
    suites=("machine-learning",),
)
