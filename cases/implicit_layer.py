"""Squared error of an implicit layer on a batch of n samples: a fixed point, found by iteration.

    f(W, U, b, V) = ½ mean over entries of (z V - y)²   with the row z of each sample solving   z = tanh(z W + x U + b)

for x of three numbers, z of six and y of two, after 40 iterations from zero. The norm of W is 0.35, so that the error
falls below rounding, and the gradient through the iteration is that of the implicit function theorem:

    λ = D (I - W D)⁻¹ (∂f/∂z)ᵀ,   D = diag(1 - z²),   ∂f/∂W = Σ z λᵀ,   ∂f/∂U = Σ x λᵀ,   ∂f/∂b = Σ λ

Bai, Kolter and Koltun (2019), "Deep equilibrium models", theorem 1.
"""

import numpy as np

from adbench import Case

INPUTS, WIDTH, OUTPUTS, STEPS = 3, 6, 2, 40


def f(xp, W, U, b, V, x, y):
    driven = x @ U + b
    z = xp.loop(lambda _, z: xp.tanh(z @ W + driven), xp.zeros_like(driven), STEPS)
    error = z @ V - y
    return 0.5 * xp.sum(error * error) / (x.shape[0] * OUTPUTS)


def gradient(W, U, b, V, x, y):
    driven = x @ U + b
    z = np.zeros_like(driven)
    for _ in range(STEPS):
        z = np.tanh(z @ W + driven)
    by_out = (z @ V - y) / (x.shape[0] * OUTPUTS)
    by_z, by_u = by_out @ V.T, np.zeros_like(z)
    for i in range(x.shape[0]):
        slope = 1 - z[i] ** 2
        by_u[i] = slope * np.linalg.solve(np.eye(WIDTH) - W * slope, by_z[i])
    return z.T @ by_u, x.T @ by_u, by_u.sum(axis=0), z.T @ by_out


def inputs(n, rng):
    W = rng.normal(size=(WIDTH, WIDTH))
    return {
        "W": 0.35 * W / np.linalg.norm(W, 2),
        "U": rng.normal(0, INPUTS**-0.5, (INPUTS, WIDTH)),
        "b": rng.normal(0, 0.5, WIDTH),
        "V": rng.normal(size=(WIDTH, OUTPUTS)),
        "x": rng.normal(size=(n, INPUTS)),
        "y": rng.normal(size=(n, OUTPUTS)),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("W", "U", "b", "V"),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(1, 5),
    gradient=gradient,
    flops=lambda n: n * (STEPS * WIDTH * (2 * WIDTH + 2) + 2 * INPUTS * WIDTH + 2 * WIDTH * OUTPUTS + 3 * OUTPUTS),
    tags=("machine-learning", "network", "loop"),
    suites=("machine-learning",),
)
