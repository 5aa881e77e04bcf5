"""A quadratic form of n variables, differentiated in the variables and the matrix.

    f(x, A) = xᵀ A x

    ∂f/∂x = (A + Aᵀ) x,   ∂f/∂A = x xᵀ

`quad_form` of the Stan Math Library, Carpenter et al. (2015), arXiv:1509.07164.
"""

import numpy as np

from adbench import Case

from ._matrices import well_conditioned


def gradient(x, A):
    return (A + A.T) @ x, np.outer(x, x)


CASE = Case(
    f=lambda xp, x, A: xp.sum(x * (A @ x)),
    inputs=lambda n, rng: {"x": rng.uniform(0.5, 1.5, n), "A": well_conditioned(n, rng)},
    wrt=("x", "A"),
    sizes=(2, 8, 32, 128, 512, 1_024),
    quick=(2, 8),
    gradient=gradient,
    flops=lambda n: 2 * n**2 + 2 * n,
    tags=("matrix",),
)
