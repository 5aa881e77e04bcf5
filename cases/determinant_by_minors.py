"""Determinant of an n × n matrix, by expansion along its rows.

    f(A) = Σ_j (-1)^j A_0j det(A without row 0 and column j),   det of an empty matrix = 1

    ∂f/∂A = f A⁻ᵀ

n! products of n elements: a program of many scalars without structure, not an efficient algorithm.

The suite gradbench (`det`), from Bell's cmpad (`det_by_minor`).
"""

import math

import numpy as np

from adbench import Case


def minor(A, row, columns):
    """The determinant of the rows from `row` on and these columns."""
    if len(columns) == 1:
        return A[row, columns[0]]
    total = 0.0
    for k, column in enumerate(columns):
        term = A[row, column] * minor(A, row + 1, columns[:k] + columns[k + 1 :])
        total = total - term if k % 2 else total + term
    return total


def inputs(n, rng):
    return {"A": np.eye(n) + rng.normal(size=(n, n)) / math.sqrt(n)}


def flops(n):
    return 1 if n == 1 else n * (flops(n - 1) + 2)


CASE = Case(
    f=lambda xp, A: minor(A, 0, tuple(range(A.shape[0]))),
    inputs=inputs,
    wrt=("A",),
    sizes=(1, 2, 3, 4, 5, 6),
    quick=(3,),
    most=9,
    gradient=lambda A: (np.linalg.det(A) * np.linalg.inv(A).T,),
    flops=flops,
    tags=("elements", "recursion"),
    suites=("gradbench",),
)
