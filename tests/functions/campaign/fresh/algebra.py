"""Linear algebra, arrays, transforms of Fourier, order statistics, steps and declared constants."""

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D, array, det, eigvalsh, exp, inv, lse, matrix, singular_values, solve

A3 = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]]
S3 = [[3.0, 0.5, -1.0], [0.5, 2.0, 0.25], [-1.0, 0.25, 4.0]]
SINGULAR = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, -1.0]]
ROTATION = [[0.5, -2.0], [1.5, 0.25]]
TALL = [[1.0, 0.5], [-1.0, 2.0], [0.25, 3.0]]
B3 = [1.0, -0.5, 2.0]
LOWER = [[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [-1.0, 0.5, 1.5]]
X6 = [0.75, -1.25, 3.0, 0.5, -2.0, 1.5]
M23 = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]


def adjugate(a):
    """The gradient of the determinant, also at singular matrices."""
    n = len(a)

    def minor(i, j):
        return det(np.delete(np.delete(a, i, 0), j, 1))

    return np.array([[(-1) ** (i + j) * minor(i, j) for j in range(n)] for i in range(n)], dtype=object)


def least_squares(a, b):
    return solve(a.T @ a, a.T @ b)


def symmetric_part(a):
    return (a + a.T) / 2


def expm(a):
    return array(mp.expm(matrix(a)))


ALGEBRA = rows(
    "fresh: linear algebra",
    right("jax", "a logarithm of a determinant's magnitude", lambda A: jnp.linalg.slogdet(A)[1], A3,
          truth=lambda A: inv(A).T),
    right("jax", "a pseudoinverse of a tall matrix", lambda A: jnp.linalg.pinv(A)[0, 1], TALL,
          truth=D(lambda A: (inv(A.T @ A) @ A.T)[0, 1])),
    right("jax", "a triangular factor's corner", lambda A: jnp.abs(jnp.linalg.qr(A)[1][0, 0]), TALL,
          truth=D(lambda A: mp.sqrt(sum(A[:, 0] ** 2)))),
    right("jax", "an eigenvector's projector", lambda A: jnp.outer(*[jnp.linalg.eigh((A + A.T) / 2)[1][:, 0]] * 2)[0,
          1], S3,
          truth=D(lambda A: projector(symmetric_part(A))[0, 1])),
    right("jax", "a fourth power of a matrix", lambda A: jnp.trace(jnp.linalg.matrix_power(A, 4)), A3,
          truth=lambda A: 4 * (A @ A @ A).T),
    right("jax", "an exponential of a matrix", lambda A: jax.scipy.linalg.expm(A)[0, 1], ROTATION,
          truth=D(lambda A: expm(A)[0, 1])),
    right("jax", "a triangular system", lambda L, b: jax.scipy.linalg.solve_triangular(L, b, lower=True)[2], LOWER, B3,
          truth=D(lambda L, b: solve(np.tril(np.ones((3, 3), dtype=int)) * L, b)[2])),
    right("jax", "a smallest singular value", lambda A: jnp.linalg.svd(A, compute_uv=False)[-1], A3,
          truth=D(lambda A: singular_values(A)[-1])),
    right("jax", "a Kronecker product", lambda A: jnp.sum(jnp.kron(A, A) ** 2), ROTATION,
          truth=lambda A: 4 * sum(np.ravel(A * A)) * A),
    right("jax", "a determinant of a singular matrix of rank two", jnp.linalg.det, SINGULAR, truth=adjugate),
    right("jax", "a magnitude of a complex eigenvalue", lambda A: jnp.sum(jnp.abs(jnp.linalg.eigvals(A)) ** 2),
          ROTATION,
          truth=lambda A: 2 * adjugate(A)),
    right("torch", "an exponential of a matrix", lambda A: torch.linalg.matrix_exp(A).trace(), ROTATION,
          truth=lambda A: expm(A).T),
    right("torch", "a triangular system", lambda L, b: torch.linalg.solve_triangular(L, b[:, None], upper=False).sum(),
          LOWER, B3,
          truth=D(lambda L, b: sum(solve(np.tril(np.ones((3, 3), dtype=int)) * L, b)))),
    right("torch", "a least squares solution", lambda A, b: torch.linalg.lstsq(A, b[:, None]).solution.sum(), TALL, B3,
          truth=D(lambda A, b: sum(least_squares(A, b)))),
    right("torch", "a product of three matrices", lambda A: torch.linalg.multi_dot([A, A.T, A]).sum(), A3,
          truth=D(lambda A: np.sum(A @ A.T @ A))),
    right("torch", "a cross product", lambda a, b: torch.linalg.cross(a, b)[1] ** 2, B3, [0.5, 2.0, -1.5],
          truth=D(lambda a, b: (a[2] * b[0] - a[0] * b[2]) ** 2)),
    right("torch", "an einsum of three", lambda A, b: torch.einsum("ij,j,k->ik", A, b, b).prod(), ROTATION, [0.5, 1.25],
          truth=D(lambda A, b: np.prod(np.multiply.outer(A @ b, b)))),
    right("torch", "a Vandermonde determinant", lambda x: torch.linalg.det(torch.linalg.vander(x)), B3,
          truth=D(lambda x: (x[1] - x[0]) * (x[2] - x[0]) * (x[2] - x[1]))),
    right("torch", "an inverse by a Cholesky factor",
          lambda A: torch.cholesky_inverse(torch.linalg.cholesky(A @ A.T)).trace(), A3,
          truth=D(lambda A: np.trace(inv(A @ A.T)))),
    right("torch", "a system by its LU factors", lambda A, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(A),
          b[:, None])[0, 0], A3, B3,
          truth=D(lambda A, b: solve(A, b)[0])),
    right("torch", "a spectral norm", lambda A: torch.linalg.matrix_norm(A, 2), A3,
          truth=D(lambda A: singular_values(A)[0])),
    right("torch", "a pseudoinverse of a wide matrix", lambda A: torch.linalg.pinv(A).sum(), M23,
          truth=D(lambda A: np.sum(A.T @ inv(A @ A.T)))),
    right("autograd", "an inverse of a product", lambda A: anp.linalg.inv(A @ A)[1, 2], A3,
          truth=D(lambda A: inv(A @ A)[1, 2])),
    right("autograd", "a sum of squared singular values", lambda A: anp.sum(anp.linalg.svd(A, compute_uv=False) ** 2),
          TALL, truth=lambda A: 2 * A),
    right("autograd", "a Cholesky factor of a product", lambda A: anp.linalg.cholesky(A @ A.T)[2, 2], A3,
          truth=D(lambda A: mp.sqrt(det(A @ A.T) / det((A @ A.T)[:2, :2])))),
    right("autograd", "a largest eigenvalue of a symmetrised matrix", lambda A: anp.linalg.eigh((A + A.T) / 2)[0][-1],
          A3,
          truth=D(lambda A: eigvalsh(symmetric_part(A))[-1])),
    right("autograd", "a nuclear norm by a trace", lambda A: anp.sqrt(anp.trace(A @ A.T)), M23,
          truth=lambda A: A / mp.sqrt(sum(np.ravel(A * A)))),
    right("numpy", "a quadratic form of an inverse", lambda A, b: b @ np.linalg.solve(A, b), A3, B3, truth=D(lambda A,
          b: b @ solve(A, b))),
    right("numpy", "a determinant of a shifted matrix", lambda A: np.linalg.det(A - 1.5 * np.eye(3)), A3,
          truth=lambda A: adjugate(A - mpf(1.5) * np.eye(3, dtype=int))),
    right("numpy", "a trace of an outer product", lambda x: np.trace(np.outer(x, x[::-1])), B3,
          truth=lambda x: 2 * x[::-1]),
)  # fmt: skip


def projector(a):
    """The projector on the eigenvector of the smallest eigenvalue."""
    values, vectors = mp.eigsy(matrix(a))
    smallest = min(range(len(values)), key=lambda k: values[k])
    v = np.array([vectors[i, smallest] for i in range(len(values))], dtype=object)
    return np.multiply.outer(v, v)


def top_two_in_torch(x):
    values, places = torch.topk(x, 2)
    return (values * x[(places + 1) % 6]).sum()


def scan_of_maxima(x):
    return jnp.sum(jax.lax.cummax(x) * jnp.arange(6.0))


def products(x):
    return [mp.fprod(x[: k + 1]) for k in range(len(x))]


def transform(x, j):
    return mp.fsum(x[k] * mp.expjpi(mpf(-2 * j * k) / len(x)) for k in range(len(x)))


def power_spectrum(x):
    return [abs(transform(x, j)) ** 2 for j in range(len(x))]


ARRAYS = rows(
    "fresh: arrays, order and transforms of Fourier",
    right("jax", "cumulative products with a zero", lambda x: jnp.sum(jnp.cumprod(x)), [2.0, 0.0, -3.0, 0.5],
          truth=D(lambda x: mp.fsum(products(x)))),
    right("jax", "a product with two zeros", jnp.prod, [0.0, 2.0, 0.0], truth=lambda x: [0, 0, 0]),
    right("jax", "a running maximum", scan_of_maxima, X6, truth=lambda x: [1, 0, 14, 0, 0, 0]),
    right("jax", "a sort by another array", lambda x, y: jnp.sum(x[jnp.argsort(y)] * jnp.arange(6.0)), X6, X6[::-1],
          truth=lambda x, y: [*np.argsort(np.argsort(y.astype(float))).tolist(), *[0] * 6]),
    right("jax", "a quantile between two entries", lambda x: jnp.quantile(x, 0.3), X6, truth=lambda x: [0, 0.5, 0, 0.5,
          0, 0]),
    right("jax", "a median of an even number of entries", jnp.median, X6, truth=lambda x: [0.5, 0, 0, 0.5, 0, 0]),
    right("jax", "a padded and shifted product", lambda x: jnp.sum(jnp.pad(x, (1, 2))[2:8] * x[::-1]), X6,
          truth=D(lambda x: mp.fsum(x[k + 1] * x[5 - k] for k in range(5)))),
    right("jax", "a take along rows", lambda A: jnp.prod(jnp.take_along_axis(A, jnp.argmax(A, axis=1)[:, None], 1)),
          M23, truth=lambda A: [[A[1, 0], 0, 0], [A[0, 0], 0, 0]]),
    right("jax", "an integral by trapezoids on moving nodes", lambda x: jnp.trapezoid(x**2, jnp.cumsum(jnp.exp(x))),
          X6[:3],
          truth=D(lambda x: mp.fsum((x[k] ** 2 + x[k + 1] ** 2) / 2 * mp.exp(x[k + 1]) for k in range(2)))),
    right("jax", "a power spectrum", lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 2 * jnp.arange(6.0)), X6,
          truth=D(lambda x: mp.fsum(k * p for k, p in enumerate(power_spectrum(x))))),
    right("jax", "a real transform and back with a filter",
          lambda x: jnp.sum(jnp.fft.irfft(jnp.fft.rfft(x) * jnp.array([1.0, 0.5, 0.25, 0.0])) ** 2), X6,
          truth=D(lambda x: mp.fsum(w * p for w, p in zip([1, 0.25, 0.0625, 0, 0.0625, 0.25], power_spectrum(x),
          strict=True)) / 6)),
    right("jax", "a modulus of a complex polynomial", lambda x, y: jnp.abs((x + 1j * y) ** 3 + 1), 0.5, -1.25,
          truth=D(lambda x, y: abs(mp.mpc(x, y) ** 3 + 1))),
    right("jax", "a convolution with itself", lambda x: jnp.convolve(x, x)[4], X6, truth=lambda x: [2 * x[4], 2 * x[3],
          2 * x[2], 2 * x[1], 2 * x[0], 0]),
    right("torch", "products of the top two with their neighbours", top_two_in_torch, X6,
          truth=lambda x: [x[5], 0, x[3], x[2], 0, x[0]]),
    right("torch", "a cumulative sum of exponentials in logarithms", lambda x: torch.logcumsumexp(x, 0)[3], X6,
          truth=lambda x: [*exp(x[:4] - lse(x[:4])), 0, 0]),
    right("torch", "a cumulative product with a zero", lambda x: torch.cumprod(x, 0).sum(), [2.0, 0.0, -3.0, 0.5],
          truth=D(lambda x: mp.fsum(products(x)))),
    right("torch", "a product along rows with a zero", lambda A: A.prod(1).sum(), [[0.0, 2.0, 3.0], [1.0, -1.0, 2.0]],
          truth=lambda A: [[6, 0, 0], [-2, 2, -1]]),
    right("torch", "a kth value", lambda x: torch.kthvalue(x, 4).values ** 2, X6, truth=lambda x: [2 * x[0], 0, 0, 0, 0,
          0]),
    right("torch", "a nanmedian and a quantile", lambda x: torch.quantile(x, 0.9), X6, truth=lambda x: [0, 0, 0.5, 0, 0,
          0.5]),
    right("torch", "a scatter with addition", lambda x: torch.zeros(3, dtype=x.dtype).scatter_add(0,
          torch.tensor([2, 2, 0, 1, 2, 0]), x).pow(3).sum(), X6,
          truth=lambda x: [3 * s**2 for s in [x[0] + x[1] + x[4]] * 2 + [x[2] + x[5], x[3], x[0] + x[1] + x[4],
          x[2] + x[5]]]),
    right("torch", "a masked fill and a cumulative maximum", lambda x: torch.cummax(x.masked_fill(x < -1.5, 0.0),
          0).values.sum(), X6, truth=lambda x: [2, 0, 4, 0, 0, 0]),
    right("torch", "a transform of Fourier in two dimensions", lambda A: torch.fft.fft2(A).abs().pow(2)[1, 1], M23,
          truth=D(lambda A: abs(mp.fsum(A[i,
          j] * mp.expjpi(-mpf(i) - mpf(2 * j) / 3) for i in range(2) for j in range(3))) ** 2)),
    right("torch", "an angle of a complex number", lambda x, y: torch.angle(torch.complex(x, y)), 0.5, -1.25,
          truth=lambda x, y: [-y / (x * x + y * y), x / (x * x + y * y)]),
    right("torch", "differences of second order", lambda x: x.diff(n=2).pow(2).sum(), X6,
          truth=D(lambda x: sum(np.diff(x, 2) ** 2))),
    right("autograd", "an order by argsort", lambda x: anp.sum(anp.sort(x)[-2:] ** 2), X6, truth=lambda x: [0, 0,
          2 * x[2], 0, 0, 2 * x[5]]),
    right("autograd", "a transform of Fourier", lambda x: anp.real(anp.fft.fft(x)[1] * anp.conj(anp.fft.fft(x)[2])), X6,
          truth=D(lambda x: mp.re(transform(x, 1) * mp.conj(transform(x, 2))))),
    right("autograd", "a tensor product", lambda x: anp.sum(anp.tensordot(x, anp.outer(x, x), 1)), B3,
          truth=lambda x: [sum(x * x) + 2 * sum(x) * v for v in x]),
    right("autograd", "a rolled and clipped product", lambda x: anp.sum(anp.roll(x, 1) * anp.clip(x, -1.0, 1.0)), X6,
          truth=D(lambda x: sum(np.roll(x, 1) * np.array([min(max(v, mpf(-1)), mpf(1)) for v in x], dtype=object)))),
    right("numpy", "a variance of cumulative sums", lambda x: np.var(np.cumsum(x)), X6,
          truth=D(lambda x: sum((np.cumsum(x) - sum(np.cumsum(x)) / 6) ** 2) / 6)),
    right("numpy", "a where of three ranges", lambda x: np.sum(np.where(x > 1, x**2, np.where(x < -1, -x, 0.0))), X6,
          truth=lambda x: [0, -1, 2 * x[2], 0, -1, 2 * x[5]]),
)  # fmt: skip


def straight_through(x):
    return x + jax.lax.stop_gradient(jnp.round(x) - x)


def straight_through_in_torch(x):
    return x + (torch.sign(x) - x).detach()


STEPS = rows(
    "fresh: steps, tables and declared constants",
    right("jax", "a floor plus its square", lambda x: jnp.floor(x) ** 2 + x, 2.6, truth=lambda x: 1),
    right("jax", "a sign times a number", lambda x: jnp.sum(jnp.sign(x) * x), X6,
          truth=lambda x: [1 if v > 0 else -1 for v in x]),
    right("jax", "a sum of rounded numbers", lambda x: jnp.sum(jnp.round(x * 4) / 4), [0.3, 1.45, -0.7],
          truth=lambda x: [0, 0, 0]),
    right("jax", "a table between its nodes", lambda x: jnp.interp(x, jnp.array([0.0, 1.0, 2.5, 4.0]),
          jnp.array([1.0, -1.0, 3.0, 2.0])), 1.75, truth=lambda x: mpf(4) / mpf(1.5)),
    right("jax", "a table's nodes", lambda y: jnp.interp(1.75, jnp.array([0.0, 1.0, 2.5, 4.0]), y), [1.0, -1.0, 3.0,
          2.0], truth=lambda y: [0, 0.5, 0.5, 0]),
    right("jax", "a sawtooth", lambda x: x - jnp.floor(x), 3.7, truth=lambda x: 1),
    right("jax", "a rounding passed straight through", lambda x: jnp.sum(straight_through(x) ** 2), [0.3, 1.45],
          truth=lambda x: [2 * mp.nint(v) for v in x]),
    right("torch", "a sign passed straight through", lambda x: straight_through_in_torch(x).sum() * 2, [0.3, -1.45],
          truth=lambda x: [2, 2]),
    right("torch", "a truncation and a fraction", lambda x: (torch.trunc(x) * torch.frac(x)).sum(), [2.6, -3.3],
          truth=lambda x: [2, -3]),
    right("torch", "a baseline held constant", lambda x: ((x - x.mean().detach()) ** 2).sum(), X6,
          truth=lambda x: 2 * (x - sum(x) / 6)),
    right("torch", "a step by a comparison", lambda x: ((x > 0).double() * x**2).sum(), X6, truth=lambda x: [2 * max(v,
          mpf(0)) for v in x]),
    right("torch", "an index from a bucket", lambda x: torch.tensor([1.0, 4.0, 9.0], dtype=x.dtype)[torch.bucketize(x,
          torch.tensor([0.0, 2.0], dtype=x.dtype))] * x, 1.3, truth=lambda x: 4),
    right("autograd", "a floor times a number", lambda x: anp.sum(anp.floor(x) * x), [2.6, -3.3], truth=lambda x: [2,
          -4]),
    right("numpy", "a table by comparisons", lambda x: np.where(x < 0, -x, np.where(x < 1, x**2, 2 * x - 1)), 0.6,
          truth=lambda x: 2 * x),
    right("numpy", "a ceiling plus a number", lambda x: np.ceil(x) + 3 * x, 1.2, truth=lambda x: 3),
)  # fmt: skip

ROWS = [*ALGEBRA, *ARRAYS, *STEPS]
