"""Mean of a function of n normal and n gamma draws, differentiated in their parameters.

    f(μ, σ, a, b) = 1/n Σ_i x_i² / (1 + g_i)
    x_i = μ + σ z_i,   g_i = d (1 + w_i / sqrt(9 d))³ / b,   d = a - 1/3

The random numbers are fixed inputs: z and w are standard normal, with w accepted by Marsaglia and Tsang's rule for the
shape a. Then g is a gamma draw with shape a and rate b. The derivative is that of the draws with fixed randomness.

Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR": gradients of random draws;
Marsaglia and Tsang (2000), "A simple method for generating gamma variables", ACM TOMS 26, 363-372.
"""

import numpy as np

from adbench import Case


def f(xp, z, w, mu, sigma, a, b):
    d = a - 1 / 3
    x = mu + sigma * z
    root = 1 + w / xp.sqrt(9 * d)
    g = d * root * root * root / b
    return xp.sum(x * x / (1 + g)) / z.shape[0]


def gradient(z, w, mu, sigma, a, b):
    d, x = a - 1 / 3, mu + sigma * z
    root = 1 + w / np.sqrt(9 * d)
    g = d * root**3 / b
    by_x, by_g = 2 * x / (1 + g), -((x / (1 + g)) ** 2)
    by_a = root**3 / b - 3 * d * root**2 * w / (6 * d * np.sqrt(d)) / b
    return tuple(np.mean(part) for part in (by_x, by_x * z, by_g * by_a, -by_g * g / b))


def accepted(n, shape, rng):
    """n standard normal numbers that the rule accepts for this shape."""
    d, kept = shape - 1 / 3, np.zeros(0)
    while kept.size < n:
        w, u = rng.normal(size=2 * n + 8), rng.uniform(size=2 * n + 8)
        v = np.maximum(1 + w / np.sqrt(9 * d), 1e-9) ** 3
        kept = np.append(kept, w[np.log(u) < 0.5 * w**2 + d - d * v + d * np.log(v)])
    return kept[:n]


def inputs(n, rng):
    a = rng.uniform(2.0, 3.0)
    return {
        "z": rng.normal(size=n),
        "w": accepted(n, a, rng),
        "mu": rng.uniform(0.5, 1.5),
        "sigma": rng.uniform(0.5, 1.5),
        "a": a,
        "b": rng.uniform(0.5, 1.5),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("mu", "sigma", "a", "b"),
    sizes=(1, 10, 100, 1_000, 10_000, 100_000),
    quick=(1, 10),
    gradient=gradient,
    flops=lambda n: 13 * n + 3,
    tags=("random", "vectorised"),
    suites=("pqr",),
)
