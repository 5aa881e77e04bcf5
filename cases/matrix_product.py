"""Sum of the entries of the product of two n × n matrices.

    f(A, B) = Σ_ij (A B)_ij,   A, B of shape (n, n)

    ∂f/∂A_ij = Σ_k B_jk   (the row sums of B in every row)
    ∂f/∂B_ij = Σ_k A_ki   (the column sums of A in every column)

From the evaluations in Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164. The gradient does not need A
B: a compiler may omit the forward product in `gradient`, but not in `value_and_gradient`.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES


def f(xp, A, B):
    return xp.sum(A @ B)


def gradient(A, B):
    return np.tile(B.sum(axis=1), (len(A), 1)), np.tile(A.sum(axis=0)[:, None], (1, len(B)))


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"A": rng.normal(size=(n, n)), "B": rng.normal(size=(n, n))},
    wrt=("A", "B"),
    sizes=SIZES,
    quick=QUICK,
    gradient=gradient,
    flops=lambda n: 2 * n**3,
    tags=(
        "first look",
        "matrix",
    ),
    suites=("stan-paper", "fastad", "quick", "ablations"),
)
