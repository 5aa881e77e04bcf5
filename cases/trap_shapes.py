"""Traps of unusual shapes: a number, one element, no element, and broadcasting between them.

A gradient has the shape of its argument: () is not (1,), and the gradient in an empty array is an empty array, not an
error or None.
"""

import numpy as np

from ._traps import traps

CASES, trap = traps("shapes")


@trap({"x": 0.7}, (2 * 0.7,))
def trap_number(xp, x):
    """x² at the number 0.7 → 1.4, of shape ()."""
    return x * x


@trap({"x": [0.7]}, ([3 * 0.7**2],))
def trap_one_element(xp, x):
    """Σ x³ at [0.7] → [1.47], of shape (1,)."""
    return xp.sum(x * x * x)


@trap({"x": np.zeros(0), "b": 1.5}, (np.zeros(0), 2 * 1.5))
def trap_no_element(xp, x, b):
    """Σ x² + b² at an empty x and b = 1.5 → empty, 3."""
    return xp.sum(x * x) + b * b


@trap({"A": np.zeros((0, 3)), "b": [0.5, -0.2, 0.9]}, (np.zeros((0, 3)), [1.0, -0.4, 1.8]))
def trap_no_row(xp, A, b):
    """Σ A b + Σ b² at a matrix without rows → empty, 2 b: the empty product adds nothing."""
    return xp.sum(xp.matmul(A, b)) + xp.sum(b * b)


@trap({"x": [[0.3, -0.8]], "b": 0.5}, ([[0.5, 0.5]], 0.3 - 0.8))
def trap_number_times_row(xp, x, b):
    """Σ x b at shape (1, 2) and a number → shapes (1, 2) and (): the adjoint of the number is summed."""
    return xp.sum(x * b)


@trap({"x": [0.4], "y": [1.0, 2.0, 3.0]}, ([6.0], [0.4, 0.4, 0.4]))
def trap_one_times_many(xp, x, y):
    """Σ x y at shapes (1,) and (3,) → [6] of shape (1,): an axis of length one is summed, not dropped."""
    return xp.sum(x * y)
