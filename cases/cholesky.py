"""Sum of the entries of the Cholesky factor of a symmetric n × n matrix.

    f(A) = Σ_ij L_ij,   L Lᵀ = ½ (A + Aᵀ)

    ∂f/∂A = ½ (S + Sᵀ),   S = L⁻ᵀ Φ(Lᵀ T) L⁻¹

with T the lower triangle of ones and Φ the lower triangle with half of the diagonal. Symmetrising A makes the gradient
the same for libraries that read one half or both.

Murray (2016), "Differentiation of the Cholesky decomposition", arXiv:1602.07527, equation 10.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES, positive_definite, symmetric


def f(xp, A):
    return xp.sum(xp.linalg.cholesky(0.5 * (A + xp.matrix_transpose(A))))


def gradient(A):
    L = np.linalg.cholesky(symmetric(A))
    product = np.tril(L.T @ np.tril(np.ones_like(A)))
    product -= 0.5 * np.diag(np.diag(product))
    inverse = np.linalg.inv(L)
    return (symmetric(inverse.T @ product @ inverse),)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"A": positive_definite(n, rng)},
    wrt=("A",),
    sizes=SIZES,
    quick=QUICK,
    gradient=gradient,
    flops=lambda n: n**3 / 3,
    tags=("matrix", "linear-algebra"),
    suites=("ablations",),
)
