"""Traps of broadcasting: shapes (3, 1) and (1, 4) in every operator of two arguments.

    f(x, y) = Σ w ∘ op(x, y),   w of shape (3, 4) with entries 1 … 12

    ∂f/∂x_i = Σ_j w_ij ∂₁op(x_i, y_j),   ∂f/∂y_j = Σ_i w_ij ∂₂op(x_i, y_j)

An adjoint not summed over the broadcast axes has the shape (3, 4), or holds only its first row (pytorch/pytorch#1787,
tracel-ai/burn#181).
"""

import numpy as np

from adbench import Case

X = np.array([[0.7], [1.3], [2.1]])
Y = np.array([[0.4, 0.9, 1.6, 2.5]])
W = np.arange(1.0, 13.0).reshape(3, 4)

# name: operation, its two partial derivatives
OPERATIONS = {
    "add": (lambda xp, x, y: x + y, lambda x, y: (1 + 0 * y, 1 + 0 * x)),
    "subtract": (lambda xp, x, y: x - y, lambda x, y: (1 + 0 * y, -1 + 0 * x)),
    "multiply": (lambda xp, x, y: x * y, lambda x, y: (y, x)),
    "divide": (lambda xp, x, y: x / y, lambda x, y: (1 / y, -x / y**2)),
    "power": (lambda xp, x, y: x**y, lambda x, y: (y * x ** (y - 1), x**y * np.log(x))),
    "maximum": (lambda xp, x, y: xp.maximum(x, y), lambda x, y: (1.0 * (x > y), 1.0 * (y > x))),
    "minimum": (lambda xp, x, y: xp.minimum(x, y), lambda x, y: (1.0 * (x < y), 1.0 * (y < x))),
    "where": (lambda xp, x, y: xp.where(x > y, x, 2 * y), lambda x, y: (1.0 * (x > y), 2.0 * (y > x))),
    "remainder": (lambda xp, x, y: xp.remainder(x, y), lambda x, y: (1 + 0 * y, -np.floor(x / y))),
    "atan2": (lambda xp, x, y: xp.atan2(x, y), lambda x, y: (y / (x**2 + y**2), -x / (x**2 + y**2))),
    "hypot": (lambda xp, x, y: xp.hypot(x, y), lambda x, y: (x / np.hypot(x, y), y / np.hypot(x, y))),
    "logaddexp": (
        lambda xp, x, y: xp.logaddexp(x, y),
        lambda x, y: (1 / (1 + np.exp(y - x)), 1 / (1 + np.exp(x - y))),
    ),
}


def broadcast(name):
    operation, partials = OPERATIONS[name]

    def gradient(x, y):
        by_x, by_y = partials(x, y)
        return np.sum(W * by_x, axis=1, keepdims=True), np.sum(W * by_y, axis=0, keepdims=True)

    return Case(
        f=lambda xp, x, y: xp.sum(xp.asarray(W) * operation(xp, x, y)),
        inputs=lambda _n, _rng: {"x": X.copy(), "y": Y.copy()},
        wrt=("x", "y"),
        sizes=(1,),
        gradient=gradient,
        tags=("trap", "broadcasting"),
        summary=f"{name} of shapes (3, 1) and (1, 4): adjoints are summed back to these shapes.",
    )


def batched(xp, A, b):
    return xp.sum(xp.matmul(A, b) ** 2)


def batched_gradient(A, b):
    by_product = 2 * (A @ b)
    return np.sum(by_product @ np.swapaxes(b, -1, -2), axis=1, keepdims=True), np.sum(
        np.swapaxes(A, -1, -2) @ by_product, axis=0
    )


CASES = {f"trap_broadcast_{name}": broadcast(name) for name in OPERATIONS} | {
    "trap_broadcast_matmul": Case(
        f=batched,
        inputs=lambda _n, _rng: {
            "A": np.linspace(-1, 1, 12).reshape(3, 1, 2, 2),
            "b": np.linspace(0.5, 2, 16).reshape(4, 2, 2),
        },
        wrt=("A", "b"),
        sizes=(1,),
        gradient=batched_gradient,
        tags=("trap", "broadcasting"),
        summary="Σ (A b)² for batches (3, 1) and (4): adjoints of repeated matrices are summed (HIPS/autograd#112).",
    ),
}
