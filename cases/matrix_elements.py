"""The matrix cases written element by element.

    f(a_00, a_01, …) = f(A),   as in the case of the same name without `_elements`

Each has the same function, inputs and gradient, written as a program over n² scalars. It shows how a library without
matrices performs, and how much one node per matrix operation saves (Carpenter et al. (2015), arXiv:1509.07164;
Giles (2008)).

Elimination uses no pivoting, because the pivots of these matrices are far from zero. The loops are Python loops, so a
compiled program has as many operations as flops.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from adbench import Case

from . import cholesky, gaussian_process, inverse, log_determinant, matrix_product, multi_normal, quadratic_form, solve
from ._elements import back_substituted, elements, eliminated, factor, product, solution, transposed
from ._matrices import log_normal

SIZES = (2, 4, 8, 16)
QUICK = (3,)


def total(rows):
    return sum(sum(row) for row in rows)


def identity(n):
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def log_abs_det(xp, upper):
    return sum(xp.log(xp.abs(upper[k][k])) for k in range(len(upper)))


def of_matrix_product(xp, A, B):
    return total(product(elements(A), elements(B)))


def of_log_determinant(xp, A):
    upper, _ = eliminated(elements(A), [[] for _ in range(A.shape[0])])
    return log_abs_det(xp, upper)


def of_inverse(xp, A):
    return total(solution(elements(A), identity(A.shape[0])))


def of_cholesky(xp, A):
    rows = elements(A)
    pairs = zip(rows, transposed(rows), strict=True)
    half = [[0.5 * (a + b) for a, b in zip(row, column, strict=True)] for row, column in pairs]
    return total(factor(xp, half))


def of_solve(xp, A, b):
    return total(solution(elements(A), [[b[i]] for i in range(b.shape[0])]))


def of_quadratic_form(xp, x, A):
    column = [[x[i]] for i in range(x.shape[0])]
    return total(product(transposed(column), product(elements(A), column)))


def of_multi_normal(xp, y, mu, sigma):
    n = y.shape[0]
    r = [[y[i] - mu[i]] for i in range(n)]
    upper, right = eliminated(elements(sigma), r)
    z = back_substituted(upper, right)
    return log_normal(xp, total(product(transposed(r), z)), log_abs_det(xp, upper), n)


def of_gaussian_process(xp, t, y, alpha, rho, sigma):
    n = t.shape[0]

    def kernel(i, j):
        gap = (t[i] - t[j]) / rho
        smooth = alpha * alpha * xp.exp(-0.5 * gap * gap)
        return smooth + sigma * sigma if i == j else smooth

    L = factor(xp, [[kernel(i, j) if j <= i else 0.0 for j in range(n)] for i in range(n)])
    z = solution(L, [[y[i]] for i in range(n)])
    squares = sum(row[0] * row[0] for row in z)
    return log_normal(xp, squares, 2 * sum(xp.log(L[k][k]) for k in range(n)), n)


def of(module: Any, f: Callable[..., Any]) -> Case:
    """The case of a module with `f` instead of its function, at sizes that fit a program over elements."""
    first_line = (module.__doc__ or "").partition("\n")[0].rstrip(".")
    tags = tuple(tag for tag in module.CASE.tags if tag != "linear-algebra")
    case: Case = module.CASE
    return replace(
        case,
        f=f,
        sizes=SIZES,
        quick=QUICK,
        tags=(*tags, "elements"),
        suites=tuple(suite for suite in module.CASE.suites if suite != "quick"),
        summary=f"{first_line}, element by element.",
    )


CASES = {
    "matrix_product_elements": of(matrix_product, of_matrix_product),
    "log_determinant_elements": of(log_determinant, of_log_determinant),
    "inverse_elements": of(inverse, of_inverse),
    "cholesky_elements": of(cholesky, of_cholesky),
    "solve_elements": of(solve, of_solve),
    "quadratic_form_elements": of(quadratic_form, of_quadratic_form),
    "multi_normal_elements": of(multi_normal, of_multi_normal),
    "gaussian_process_elements": of(gaussian_process, of_gaussian_process),
}
