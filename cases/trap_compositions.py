"""Traps of second order: correct gradients whose derivative is wrong in some compositions of modes.

A check also computes H, H v, and H v by forward over forward, reverse over forward, forward over reverse and reverse
over reverse. The truth given here is the gradient; the docstring states H.
"""

import math

import numpy as np

from ._traps import traps

CASES, trap = traps("compositions")


@trap({"x": 2.0, "y": 0.0}, (0.0, math.log(2.0)), faults={"wrong": "the guard at y = 0 has the wrong derivative"})
def trap_power_mixed(xp, x, y):
    """x^y at (2, 0) → (0, log 2), and H = ((0, ½), (½, log² 2)): a mixed derivative at exponent 0.

    The rule y x^(y - 1) has a guard at y = 0, and its derivative in y becomes the guard's: 2, or 0
    (jax-ml/jax#12033).
    """
    return xp.pow(x, y)


@trap(
    {"x": [-0.5, -2.0]},
    ([-1.0, 12.0],),
    faults={"nan": "log of the base, which the tangent of a constant exponent multiplies by 0"},
)
def trap_power_negative_bases(xp, x):
    """Σ x^(2, 3) with the exponents in an array, at (-½, -2) → (-1, 12), and H = diag(2, -12).

    The tangent of x^y has a term x^y log x, times 0 for a constant y: its derivative is 0 · NaN.
    """
    return xp.sum(xp.pow(x, xp.asarray([2.0, 3.0])))


@trap({"x": [0.0, 1.0]}, ([0.0, 2.0],), faults={"0": "the derivative of sign is 0, also at 0"})
def trap_square_of_abs(xp, x):
    """Σ |x|² at (0, 1) → (0, 2), and H = 2 I.

    The derivative of 2 |x| sign x, 2 sign² x, is 0 at 0.
    """
    return xp.sum(xp.abs(x) ** 2)


@trap({"x": 800.0, "y": -5.0}, (1.0, 0.0))
def trap_log_add_exp_far(xp, x, y):
    """logaddexp(x, y) at (800, -5) → (1, e⁻⁸⁰⁵ = 0), and H = 0: each weight is 0 or 1.

    exp(x - y) overflows in the derivative of a weight, and inf / inf² is NaN.
    """
    return xp.logaddexp(x, y)


@trap({"x": 3.0}, (6.0,))
def trap_det_of_multiple_of_identity(xp, x):
    """det(x I) of size 2 at 3 → 2 x = 6, and 2 in second order.

    By the equal singular values, it is NaN (pytorch/pytorch#192521). A tangent that treats the factorisation as
    constant gives 4 (pytorch/pytorch#192540), as for slogdet and solve.
    """
    return xp.linalg.det(x * xp.asarray(np.eye(2)))


@trap({"x": 4.0}, (-(5.0**-1.5),))
def trap_eigenvector_turns(xp, x):
    """v₀ v₁ of the top eigenvector of ((x, 1), (1, 3)) at 4 → -5^-1.5, and -2 · 5^-2.5 in second order.

    f is 1 / sqrt((x - 3)² + 4). A reverse sweep over the tangent of eigh gives NaN: its diagonal is a masked 0/0.
    """
    A = x * xp.asarray([[1.0, 0.0], [0.0, 0.0]]) + xp.asarray([[0.0, 1.0], [1.0, 3.0]])
    _, V = xp.linalg.eigh(A)
    return V[0, 1] * V[1, 1]


@trap(
    {"A": [[1.0, 0.0], [0.0, 1.0]]},
    ([[2.0, 0.0], [0.0, 2.0]],),
    faults={
        "nan": "1 / (σ_i² - σ_j²) between equal singular values",
        "raises, with the reason": "singular vectors are undetermined for σ_i = σ_j",
    },
)
def trap_square_of_singular_values(xp, A):
    """Σ σ² at I → 2 I, and H = 2 I: the sum of all squared entries.

    The derivative of the singular vectors divides by σ_i² - σ_j² = 0.
    """
    return xp.sum(xp.linalg.svd(A, full_matrices=False)[1] ** 2)
