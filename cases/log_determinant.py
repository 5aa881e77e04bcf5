"""Logarithm of |det A|, for an n × n matrix.

    f(A) = log |det A|,   A of shape (n, n)

    ∂f/∂A = A⁻ᵀ

Giles (2008), "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
section 2.2.4. One of the evaluations of Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES, well_conditioned


def f(xp, A):
    _, log_abs_det = xp.linalg.slogdet(A)
    return log_abs_det


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"A": well_conditioned(n, rng)},
    wrt=("A",),
    sizes=SIZES,
    quick=QUICK,
    gradient=lambda A: (np.linalg.inv(A).T,),
    flops=lambda n: 2 / 3 * n**3,
    tags=("matrix", "linear-algebra"),
    suites=("stan-paper", "quick", "ablations"),
)
