"""Linear algebra: systems, determinants, factorisations, eigenvalues, functions of matrices."""

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import (
    D,
    array,
    cholesky,
    det,
    eigvalsh,
    inv,
    matrix,
    singular_values,
    solve,
    symmetrised,
)

A2 = [[3.0, 1.0], [-0.5, 2.0]]
A3 = [[2.0, -1.0, 0.5], [0.25, 3.0, 1.0], [-1.0, 0.75, 4.0]]
S2 = [[2.0, 0.5], [0.5, 1.0]]
S3 = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 2.0]]
HILBERT = [[1 / (i + j + 1) for j in range(4)] for i in range(4)]
B2, B3 = [1.0, -2.0], [1.0, -2.0, 0.5]
R32 = [[1.0, 2.0], [-0.5, 1.5], [3.0, 0.25]]


def quadratic(A, b):
    return b @ solve(A, b)


def expm(a):
    return array(mp.expm(matrix(a)))


def of_symmetric(f):
    """The gradient of a function of a symmetric matrix given by its full definition, shared by both triangles."""
    return lambda a: symmetrised(D(lambda m: f((m + m.T) / 2))(a).reshape(a.shape))


def polar_factor(x):
    for _ in range(12):
        x = (x + jnp.linalg.inv(x).T) / 2
    return x


def power_iteration(A):
    v = torch.ones(3, dtype=A.dtype)
    for _ in range(60):
        v = A @ v
        v = v / torch.linalg.vector_norm(v)
    return v @ A @ v


def conjugate_gradients(A, b):
    x, r = 0 * b, b
    p = r
    for _ in range(2):
        step = (r @ r) / (p @ A @ p)
        x, new = x + step * p, r - step * (A @ p)
        p, r = new + (new @ new) / (r @ r) * p, new
    return anp.sum(x * x)


def gram_schmidt(X):
    q = X[:, 0] / np.sqrt(np.sum(X[:, 0] ** 2))
    rest = X[:, 1] - np.sum(q * X[:, 1]) * q
    return np.sum(rest * rest)


def thomas(a, b, c, d):
    """A tridiagonal system of three unknowns."""
    c0 = c[0] / b[0]
    d0 = d[0] / b[0]
    m = b[1] - a[0] * c0
    c1, d1 = c[1] / m, (d[1] - a[0] * d0) / m
    x2 = (d[2] - a[1] * d1) / (b[2] - a[1] * c1)
    x1 = d1 - c1 * x2
    return x2 + x1 * (d0 - c0 * x1)


def tridiagonal(a, b, c, d):
    m = np.array([[b[0], c[0], mpf(0)], [a[0], b[1], c[1]], [mpf(0), a[1], b[2]]], dtype=object)
    x = solve(m, d)
    return x[2] + x[1] * x[0]


ROWS = rows(
    "linear algebra",
    right("jax", "the energy of a system", lambda A, b: b @ jnp.linalg.solve(A, b), A3, B3, truth=D(quadratic)),
    right("jax", "a system with a Hilbert matrix", lambda b: jnp.sum(jnp.linalg.solve(jnp.array(HILBERT), b)),
          [1.0, 2.0, 3.0, 4.0],
          truth=lambda b: inv(np.vectorize(mpf, otypes=[object])(np.array(HILBERT))).sum(axis=0)),
    right("jax", "an entry of an inverse", lambda A: jnp.linalg.inv(A)[0, 1], A3,
          truth=lambda A: -np.outer(inv(A)[0], inv(A)[:, 1])),
    right("jax", "a determinant", jnp.linalg.det, A3, truth=lambda A: det(A) * inv(A).T),
    right("jax", "a determinant of rank two", jnp.linalg.det, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
          truth=D(lambda A: det3(A))),
    right("jax", "a logarithm of a negative determinant", lambda A: jnp.linalg.slogdet(A)[1], [[0.5, 2.0], [3.0, 1.0]],
          truth=lambda A: inv(A).T),
    right("jax", "a Cholesky factor's diagonal", lambda A: jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(A)))), S3,
          truth=lambda A: inv(A) / 2),
    right("jax", "the largest eigenvalue of a symmetric matrix", lambda A: jnp.linalg.eigvalsh(A)[-1], S3,
          truth=of_symmetric(lambda A: eigvalsh(A)[-1])),
    right("jax", "a gap of eigenvalues off symmetric points, symmetrised inside",
          lambda A: jnp.linalg.eigvalsh((A + A.T) / 2)[1], A3,
          truth=D(lambda A: eigvalsh((A + A.T) / 2)[1])),
    right("jax", "an eigenvector's entry squared", lambda A: jnp.linalg.eigh((A + A.T) / 2)[1][0, 0] ** 2, S2,
          truth=D(lambda A: first_of_eigenvector((A + A.T) / 2))),
    right("jax", "singular values", lambda A: jnp.sum(jnp.linalg.svd(A, compute_uv=False) ** 3), R32,
          truth=D(lambda A: sum(singular_values(A) ** 3))),
    right("jax", "a matrix exponential", lambda A: jnp.sum(jax.scipy.linalg.expm(A)[0]), A2,
          truth=D(lambda A: sum(expm(A)[0]))),
    right("jax", "a triangular system", lambda L, b: jnp.sum(jax.scipy.linalg.solve_triangular(L, b, lower=True)), S2,
          B2,
          truth=D(lambda L, b: b[0] / L[0, 0] + (b[1] - L[1, 0] * b[0] / L[0, 0]) / L[1, 1])),
    right("jax", "a polar factor by Newton", lambda A: polar_factor(A)[0, 1], A2, truth=D(lambda A: polar(A)[0, 1])),
    right("jax", "least squares by normal equations", lambda X, y: jnp.linalg.solve(X.T @ X, X.T @ y), R32, B3,
          truth=D(lambda X, y: solve(X.T @ X, X.T @ y))),
    right("jax", "a matrix power", lambda A: jnp.trace(jnp.linalg.matrix_power(A, 5)), A2,
          truth=lambda A: 5 * (A @ A @ A @ A).T),
    right("torch", "a system with two right sides", lambda A, B: torch.linalg.solve(A, B).pow(2).sum(), A2, S2,
          truth=D(lambda A, B: np.sum(solve(A, B) ** 2))),
    right("torch", "an inverse", lambda A: torch.linalg.inv(A).sum(), A3,
          truth=lambda A: -np.outer(inv(A).sum(axis=0), inv(A).sum(axis=1))),
    right("torch", "a logarithm of a determinant", lambda A: torch.logdet(A), A3, truth=lambda A: inv(A).T),
    right("torch", "a permanent-like sum", lambda A: (A[0, 0] * A[1, 1] + A[0, 1] * A[1, 0]) / torch.linalg.det(A), A2,
          truth=D(lambda A: (A[0, 0] * A[1, 1] + A[0, 1] * A[1, 0]) / det(A))),
    right("torch", "eigenvalues of a symmetrised matrix", lambda A: torch.linalg.eigvalsh(A @ A.T)[0], A3,
          truth=D(lambda A: eigvalsh(A @ A.T)[0]), digits=8),
    right("torch", "a Cholesky factor of a product", lambda A: torch.linalg.cholesky(A @ A.T + torch.eye(3))[2, 1], A3,
          truth=D(lambda A: cholesky(A @ A.T + np.eye(3, dtype=int))[2, 1])),
    right("torch", "a nuclear norm", lambda A: torch.linalg.matrix_norm(A, "nuc"), R32,
          truth=D(lambda A: sum(singular_values(A)))),
    right("torch", "a spectral norm", lambda A: torch.linalg.matrix_norm(A, 2), A2,
          truth=D(lambda A: singular_values(A)[0])),
    right("torch", "an R factor", lambda A: torch.linalg.qr(A)[1][0, 1].abs(), R32,
          truth=D(lambda A: abs(sum(A[:, 0] * A[:, 1])) / mp.sqrt(sum(A[:, 0] ** 2)))),
    right("torch", "a power iteration", power_iteration, S3, truth=lambda A: power_gradient(A)),
    right("torch", "a pseudoinverse", lambda A: torch.linalg.pinv(A)[0].sum(), R32,
          truth=D(lambda A: sum((inv(A.T @ A) @ A.T)[0]))),
    right("torch", "a matrix exponential of a rotation", lambda t: torch.linalg.matrix_exp(t * torch.tensor([[0.0,
          -1.0], [1.0, 0.0]]))[1, 0],
          [0.7], truth=lambda t: mp.cos(t[0])),
    right("torch", "a Kronecker product", lambda A: torch.kron(A, A).norm(), A2, truth=lambda A: 2 * A),
    right("autograd", "a system", lambda A, b: anp.sum(anp.linalg.solve(A, b)), A3, B3,
          truth=D(lambda A, b: sum(solve(A, b)))),
    right("autograd", "a determinant", anp.linalg.det, A3, truth=lambda A: det(A) * inv(A).T),
    right("autograd", "an inverse's trace", lambda A: anp.trace(anp.linalg.inv(A)), A3,
          truth=lambda A: -(inv(A) @ inv(A)).T),
    right("autograd", "eigenvalues of a symmetrised matrix", lambda A: anp.linalg.eigh((A + A.T) / 2)[0][0], A3,
          truth=D(lambda A: eigvalsh((A + A.T) / 2)[0])),
    right("autograd", "singular values", lambda A: anp.linalg.svd(A, compute_uv=False)[1], A2,
          truth=D(lambda A: singular_values(A)[1])),
    right("autograd", "two steps of conjugate gradients", conjugate_gradients, S2, B2,
          truth=D(lambda A, b: sum(solve_cg(A, b) ** 2))),
    right("numpy", "a system", lambda A, b: np.linalg.solve(A, b) @ b, A3, B3, truth=D(quadratic)),
    right("numpy", "a volume by Gram and Schmidt", gram_schmidt, R32,
          truth=D(lambda X: det(X.T @ X) / sum(X[:, 0] ** 2))),
    right("numpy", "Thomas's algorithm", thomas, [0.5, -1.0], [3.0, 4.0, 5.0], [1.0, 0.75], B3, truth=D(tridiagonal)),
    right("numpy", "a logarithm of a determinant", lambda A: np.linalg.slogdet(A)[1], A3, truth=lambda A: inv(A).T),
    right("numpy", "a Rayleigh quotient", lambda A, x: x @ A @ x / (x @ x), A3, B3,
          truth=D(lambda A, x: x @ A @ x / (x @ x))),
)  # fmt: skip


def det3(A):
    return sum(
        A[0, i] * (A[1, (i + 1) % 3] * A[2, (i + 2) % 3] - A[1, (i + 2) % 3] * A[2, (i + 1) % 3]) for i in range(3)
    )


def first_of_eigenvector(A):
    """The square of the first entry of the eigenvector of the smaller eigenvalue of a symmetric 2 × 2 matrix."""
    half = (A[0, 0] - A[1, 1]) / 2
    return (1 - half / mp.sqrt(half**2 + A[0, 1] ** 2)) / 2


def polar(A):
    """The orthogonal factor of a 2 × 2 matrix with positive determinant."""
    a, b = A[0, 0] + A[1, 1], A[0, 1] - A[1, 0]
    return np.array([[a, b], [-b, a]], dtype=object) / mp.sqrt(a * a + b * b)


def power_gradient(A):
    """Entries of v vᵀ, by which a converged Rayleigh quotient of a symmetric matrix changes with each entry alone."""
    values, vectors = mp.eigsy(matrix(A))
    v = array(vectors[:, int(np.argmax([float(x) for x in values]))]).ravel()
    return np.outer(v, v)


def solve_cg(A, b):
    """Two steps of conjugate gradients, which solve a symmetric system but not its neighbours."""
    x, r = np.array([mpf(0)] * 2, dtype=object), b
    p = r
    for _ in range(2):
        Ap = A.dot(p)
        step = r.dot(r) / p.dot(A).dot(p)
        x, r, before = x + step * p, r - step * Ap, r
        p = r + r.dot(r) / before.dot(before) * p
    return x
