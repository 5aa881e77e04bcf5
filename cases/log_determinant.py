"""Logarithm of |det A|, for an n × n matrix.

    f(A) = log |det A|,   A of shape (n, n)

    ∂f/∂A = A⁻ᵀ

Giles (2008), "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
section 2.2.4. One of the evaluations of Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164.
"""

import numpy as np

from adbench import Case


def f(xp, A):
    _, log_abs_det = xp.linalg.slogdet(A)
    return log_abs_det


def inputs(n, rng):
    # Eigenvalues in a disc of radius 1 around 2 (the circular law): well conditioned at every n.
    return {"A": 2 * np.eye(n) + rng.normal(size=(n, n)) / np.sqrt(n)}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("A",),
    sizes=(2, 4, 8, 16, 32, 64, 128, 256),
    quick=(2, 8, 32),
    gradient=lambda A: (np.linalg.inv(A).T,),
    flops=lambda n: 2 / 3 * n**3,
    tags=("matrix", "linear-algebra"),
)
