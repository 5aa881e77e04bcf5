"""Traps of linear algebra: negative determinants, unread halves, equal eigenvalues."""

import math

import numpy as np

from ._traps import traps

CASES, trap = traps("linalg")

IDENTITY = np.eye(2)


def symmetric(xp, A):
    return 0.5 * (A + xp.matrix_transpose(A))


@trap({"A": [[-2.0, 0.0], [0.0, 1.0]]}, ([[-0.5, 0.0], [0.0, 1.0]],))
def trap_log_abs_det_negative(xp, A):
    """log |det diag(-2, 1)| → diag(-½, 1) = A⁻ᵀ, also for a negative determinant.

    A rule that ignores the sign or uses log det gives diag(½, 1) or NaN.
    """
    return xp.linalg.slogdet(A)[1]


@trap(
    {"A": [[1.0, 2.0], [2.0, 4.0]]},
    ([[4.0, -2.0], [-2.0, 1.0]],),
    faults={"raises": "det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)"},
)
def trap_det_singular(xp, A):
    """det ((1, 2), (2, 4)) = 0 → its cofactors ((4, -2), (-2, 1)).

    det · A⁻ᵀ is 0 · inf, or an error (jax-ml/jax#2380, HIPS/autograd#549, pytorch/pytorch#104675).
    """
    return xp.linalg.det(A)


@trap({"A": [[0.0]]}, ([[1.0]],), faults={"raises": "det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)"})
def trap_det_of_zero(xp, A):
    """det ((0)) → 1: the determinant is the entry.

    pytorch/pytorch#80761 had 0.
    """
    return xp.linalg.det(A)


@trap(
    {"A": [[0.0, 0.0, 0.0]] * 3},
    ([[0.0, 0.0, 0.0]] * 3,),
    faults={"raises": "det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)"},
)
def trap_det_rank_zero(xp, A):
    """det 0 of size 3 → 0: all cofactors vanish.

    An example that gave NaN (jax-ml/jax#2380, HIPS/autograd#549).
    """
    return xp.linalg.det(A)


@trap(
    {"A": [[0.0, 1.0], [0.0, 1.0]]},
    ([[1.0, 0.0], [-1.0, 0.0]],),
    faults={
        "0": "its rule allows a zero pivot in the last place only",
        "raises": "det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)",
    },
)
def trap_det_zero_column(xp, A):
    """det ((0, 1), (0, 1)) = 0 → its cofactors ((1, 0), (-1, 0)): the zero pivot is the first one.

    A rule by an LU decomposition that allows a zero in the last place alone gives 0, without a word.
    """
    return xp.linalg.det(A)


@trap(
    {"A": [[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 1.0]]},
    ([[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [-3.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]],),
    faults={
        "0": "its rule allows a zero pivot in the last place only",
        "raises": "det · A⁻ᵀ of a singular matrix (as HIPS/autograd#549)",
    },
)
def trap_det_zero_column_of_four(xp, A):
    """det A of size 4, the first column 0 → the cofactors of that column, (1, -1, -3, 2).

    As `trap_det_zero_column`, beyond the sizes that libraries write out.
    """
    return xp.linalg.det(A)


# Σ L = sqrt a + b / sqrt a + sqrt(c - b² / a) for A = ((a, b), (b, c)); at (4, 1, 3) the last one is ROOT / 2.
ROOT = math.sqrt(11)


@trap(
    {"A": [[4.0, 1.0], [1.0, 3.0]]},
    ([[3 / 16 + 1 / (16 * ROOT), 0.0], [0.5 - 1 / (2 * ROOT), 1 / ROOT]],),
    faults={"gradient in the half not read": "the derivative is symmetrised (HIPS/autograd#56)"},
)
def trap_cholesky_upper_half(xp, A):
    """Σ L of A = L Lᵀ at ((4, 1), (1, 3)) → 0 in the upper entry, which is not read.

    Libraries that read or credit both halves have a symmetric gradient, with half of the lower entry in each. It is
    correct for symmetric changes, but not the derivative of numpy's function (HIPS/autograd#56,
    pytorch/pytorch#137284).
    """
    return xp.sum(xp.linalg.cholesky(A))


@trap({"A": [[4.0, 1.0], [1.0, 3.0]]}, ([[3 / 16 + 1 / (16 * ROOT), 0.5 - 1 / (2 * ROOT)], [0.0, 1 / ROOT]],))
def trap_cholesky_lower_half(xp, A):
    """Σ U of A = Uᵀ U at ((4, 1), (1, 3)), with upper=True → 0 in the lower entry, which is not read.

    jax-ml/jax#40421 has a nonzero entry there, EnzymeAD/Enzyme.jl#1604 had one.
    """
    return xp.sum(xp.linalg.cholesky(A, upper=True))


@trap(
    {"A": [[4.0, 1.0], [1.0, 3.0]]},
    ([[3 / 16 + 1 / (16 * ROOT), 0.25 - 1 / (4 * ROOT)], [0.25 - 1 / (4 * ROOT), 1 / ROOT]],),
)
def trap_cholesky_symmetric(xp, A):
    """Σ L of ½ (A + Aᵀ) = L Lᵀ at ((4, 1), (1, 3)): the same for every convention about halves.

    pytorch/pytorch#18825 had twice the gradient off the diagonal.
    """
    return xp.sum(xp.linalg.cholesky(symmetric(xp, A)))


@trap({"x": 4.0}, (0.75,))
def trap_cholesky_of_diagonal(xp, x):
    """Σ L of x I = L Lᵀ of size 3, at 4 → 3 / (2 sqrt x) = 0.75.

    stan-dev/math#2364 lost derivatives.
    """
    return xp.sum(xp.linalg.cholesky(x * xp.asarray(np.eye(3))))


@trap(
    {"A": [[1.0, 0.0], [0.0, 1.0]]},
    ([[math.e, 0.0], [0.0, math.e]],),
    faults={
        "nan": "1 / (w_i - w_j) between equal eigenvalues (as jax-ml/jax#669)",
        "raises, with the reason": "eigenvectors are undetermined for w_i = w_j",
    },
)
def trap_equal_eigenvalues(xp, A):
    """tr(V exp(w) Vᵀ) of a symmetric matrix V w Vᵀ at I → e I: the trace of its exponential.

    1 / (w_i - w_j) is infinite, although its factor is 0 (jax-ml/jax#669, pytorch/pytorch#47599).
    """
    w, V = xp.linalg.eigh(symmetric(xp, A))
    return xp.sum((V * xp.exp(w)) * V)


@trap(
    {"A": [[4.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]},
    ([[0.0, 1 / 6, 1 / 3], [1 / 6, 0.0, 0.0], [1 / 3, 0.0, 0.0]],),
    faults={
        "nan": "other eigenvalues are equal (as jax-ml/jax#4646)",
        "raises, with the reason": "eigenvectors are undetermined for w_i = w_j",
    },
)
def trap_simple_eigenvector(xp, A):
    """v₀ v₁ + 2 v₀ v₂ of the eigenvector of 4 in diag(4, 1, 1) → ⅙ and ⅓ for the entries that rotate it.

    Its derivative is finite: only the other two eigenvectors have none. Libraries give NaN everywhere
    (jax-ml/jax#4646).
    """
    _, V = xp.linalg.eigh(symmetric(xp, A))
    v = V[:, 2]
    return v[0] * v[1] + 2 * v[0] * v[2]


@trap({"x": 0.0}, (1.0,))
def trap_large_eigenvalues(xp, x):
    """v₀ v₁ of the top eigenvector of 2⁶⁰ ((2, x), (x, 1)) at 0 → 1.

    Adding 1 to the large differences of eigenvalues, to keep them from zero, has no effect: NaN above 2⁵³
    (jax-ml/jax#40141).
    """
    off = x * xp.asarray([[0.0, 1.0], [1.0, 0.0]])
    _, V = xp.linalg.eigh(2.0**60 * (xp.asarray([[2.0, 0.0], [0.0, 1.0]]) + off))
    return V[0, 1] * V[1, 1]


@trap(
    {"A": [[1.0, 0.0], [0.0, 1.0]]},
    ([[1.0, 0.0], [0.0, 1.0]],),
    faults={"raises, with the reason": "singular vectors are undetermined for σ_i = σ_j"},
)
def trap_equal_singular_values(xp, A):
    """Σ σ of I → I: the nuclear norm, U Vᵀ.

    The rule for singular vectors divides by σ_i² - σ_j² = 0.
    """
    return xp.sum(xp.linalg.svd(A, full_matrices=False)[1])


@trap({"x": 2.0}, (3.0e200,))
def trap_large_singular_values(xp, x):
    """Σ σ of x 10²⁰⁰ diag(1, 2) at 2 → 3 · 10²⁰⁰.

    σ_i² - σ_j² is inf - inf (pytorch/pytorch#194705).
    """
    return xp.sum(xp.linalg.svd(x * xp.asarray([[1e200, 0.0], [0.0, 2e200]]), full_matrices=False)[1])


@trap({"A": [[1.0, 2.0], [3.0, 5.0]], "b": [1.0, 2.0]}, ([[-2.0, 2.0], [1.0, -1.0]], [-2.0, 1.0]))
def trap_solve_unsymmetric(xp, A, b):
    """Σ x of A x = b at A = ((1, 2), (3, 5)), b = (1, 2) → -λ xᵀ and λ = A⁻ᵀ 1 = (-2, 1), x = (-1, 1).

    A⁻¹ instead of A⁻ᵀ, or the transpose of the result, is correct for symmetric A only.
    """
    return xp.sum(xp.linalg.solve(A, b[:, None]))


@trap({"x": [1.0, 0.0, 0.0]}, ([1.0, 0.0, 0.0],))
def trap_norm_on_an_axis(xp, x):
    """‖x‖ at (1, 0, 0) → (1, 0, 0): smooth, although it squares zeros.

    coin-or/ADOL-C#107 had NaN.
    """
    return xp.linalg.vector_norm(x)


@trap({"x": [[1.0, 2.0], [4.0, 8.0]]}, ([[-22.0, 4.0], [-30.0, 48.0]],))
def trap_mean_over_all_axes(xp, x):
    """Σ (w (x - mean over both axes))², w = (1, 3): a mean over a list of all axes.

    EnzymeAD/Reactant.jl#2306 had zero.
    """
    return xp.sum((xp.asarray([[1.0, 3.0]]) @ (x - xp.mean(x, axis=(0, 1)))) ** 2)
