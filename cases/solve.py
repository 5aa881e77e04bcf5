"""Sum of the solution of n linear equations.

    f(A, b) = Σ_i x_i,   A x = b

    ∂f/∂b = λ,   ∂f/∂A = -λ xᵀ,   Aᵀ λ = 1

Giles (2008), "Collected matrix derivative results for forward and reverse mode algorithmic differentiation", section
2.3.1.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES, well_conditioned


def f(xp, A, b):
    return xp.sum(xp.linalg.solve(A, b[:, None]))


def gradient(A, b):
    x, adjoint = np.linalg.solve(A, b), np.linalg.solve(A.T, np.ones_like(b))
    return -np.outer(adjoint, x), adjoint


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"A": well_conditioned(n, rng), "b": rng.uniform(0.5, 1.5, n)},
    wrt=("A", "b"),
    sizes=SIZES,
    quick=QUICK,
    gradient=gradient,
    flops=lambda n: 2 / 3 * n**3 + 2 * n**2,
    tags=("matrix", "linear-algebra"),
    suites=("ablations",),
)
