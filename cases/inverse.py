"""Sum of the entries of the inverse of an n × n matrix.

    f(A) = Σ_ij (A⁻¹)_ij

    ∂f/∂A = -A⁻ᵀ 1 1ᵀ A⁻ᵀ,   1 = (1, …, 1)ᵀ

Giles (2008), "Collected matrix derivative results for forward and reverse mode algorithmic differentiation", section
2.2.3.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES, well_conditioned


def gradient(A):
    inverse = np.linalg.inv(A)
    return (-np.outer(inverse.sum(axis=0), inverse.sum(axis=1)),)


CASE = Case(
    f=lambda xp, A: xp.sum(xp.linalg.inv(A)),
    inputs=lambda n, rng: {"A": well_conditioned(n, rng)},
    wrt=("A",),
    sizes=SIZES,
    quick=QUICK,
    gradient=gradient,
    flops=lambda n: 2 * n**3,
    tags=("matrix", "linear-algebra"),
)
