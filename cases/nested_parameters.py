"""Log likelihood of a small network with parameters in nested lists.

    f(θ) = Σ_i y_i z_i - log(1 + exp z_i),   z = tanh(tanh(x W₁ + b₁) W₂ + b₂) w₃ + b₃

for n observations of three numbers and a binary label, θ = [[W₁, b₁], [W₂, b₂], [w₃, b₃]], with layers of width four
and three. The gradient has the structure of the parameters.

Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR": gradients in lists.
"""

from itertools import pairwise

import numpy as np

from adbench import Case

WIDTHS = (3, 4, 3)


def f(xp, theta, x, y):
    *hidden, (w, b) = theta
    for weights, offset in hidden:
        x = xp.tanh(x @ weights + offset)
    z = x @ w + b
    return xp.sum(y * z - xp.logaddexp(xp.zeros_like(z), z))


def gradient(theta, x, y):
    (W1, b1), (W2, b2), (w3, b3) = theta
    h1 = np.tanh(x @ W1 + b1)
    h2 = np.tanh(h1 @ W2 + b2)
    by_z = y - 1 / (1 + np.exp(-(h2 @ w3 + b3)))
    by_2 = np.outer(by_z, w3) * (1 - h2**2)
    by_1 = by_2 @ W2.T * (1 - h1**2)
    return (
        [
            [x.T @ by_1, by_1.sum(axis=0)],
            [h1.T @ by_2, by_2.sum(axis=0)],
            [h2.T @ by_z, by_z.sum()],
        ],
    )


def inputs(n, rng):
    layers = [[rng.normal(size=shape), rng.normal(size=shape[1])] for shape in pairwise(WIDTHS)]
    last = [rng.normal(size=WIDTHS[-1]), float(rng.normal())]
    return {
        "theta": [*layers, last],
        "x": rng.normal(size=(n, WIDTHS[0])),
        "y": (rng.uniform(size=n) < 0.5).astype(np.float64),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("theta",),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(1, 10),
    gradient=gradient,
    flops=lambda n: 80 * n,
    tags=("nested", "density", "network"),
    suites=("pqr",),
)
