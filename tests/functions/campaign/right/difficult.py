"""Right where it is hard to judge: cancellation, bad conditioning, ends of domains, symmetric matrices."""

import math

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.special
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import either, right, rows
from tests.functions.campaign.truth import D, cholesky, det, eigvalsh, exp, inv, solve, symmetrised
from tests.functions.campaign.wrapped import autograd_rule, jax_callback, jax_jvp, jax_vjp, torch_old

S2 = [[2.0, 0.5], [0.5, 1.0]]
S3 = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 2.0]]
V3 = [0.5, 1.5, 3.0]
HILBERT = [[1 / (i + j + 1) for j in range(5)] for i in range(5)]
NEAR = [[1.0, 1.0], [1.0, 1 + 2.0**-20]]


def alternating(x):
    """exp(-x) by its alternating series."""
    term, total = 1.0, 1.0
    for k in range(1, 70):
        term = -term * x / k
        total = total + term
    return total


def quotient_of_differences(x):
    return (jnp.sin(x + 1e-5) - jnp.sin(x - 1e-5)) / 2e-5


CANCELLING = rows(
    "cancellation and bad conditioning",
    right("jax", "an alternating series of an exponential", alternating, 12.0, truth=lambda x: -mp.exp(-x), digits=4),
    right("jax", "a quotient of differences inside", quotient_of_differences, 0.7, digits=8,
          truth=lambda x: (mp.cos(x + mpf(1e-5)) - mp.cos(x - mpf(1e-5))) / mpf(2e-5)),
    right("jax", "a cosine minus one over a square", lambda x: (1 - jnp.cos(x)) / x**2, 1e-3, digits=3,
          truth=lambda x: (x * mp.sin(x) - 2 * (1 - mp.cos(x))) / x**3),
    right("jax", "a squared distance by products", lambda x, y: x @ x - 2 * x @ y + y @ y, [1.0, 2.0],
          [1 + 2.0**-20, 2.0],
          truth=lambda x, y: [*(2 * (x - y)), *(2 * (y - x))]),
    right("jax", "a system next to a singular one", lambda A, b: jnp.linalg.solve(A, b)[0], NEAR, [1.0, 2.0], digits=7,
          truth=D(lambda A, b: solve(A, b)[0])),
    right("jax", "a large number added and taken away", lambda x: jnp.sin(x) + 1e12 - 1e12, 0.7, truth=mp.cos),
    right("jax", "an inverse of a Hilbert matrix in one direction",
          lambda t: jnp.linalg.inv(jnp.array(HILBERT) + t * jnp.eye(5))[0, 0], 1e-3, digits=8,
          truth=D(lambda t: inv(np.vectorize(mpf, otypes=[object])(np.array(HILBERT)) + np.eye(5, dtype=int) * t)[0,
          0])),
    right("torch", "a discriminant next to zero", lambda b: torch.sqrt(b * b - 4).sum(), [2 + 2.0**-30], digits=5,
          truth=lambda b: b[0] / mp.sqrt(b[0] ** 2 - 4)),
    right("torch", "a softmax at a low temperature", lambda x: torch.softmax(x / 0.01, 0)[0], [1.0, 1.02, 0.9],
          truth=D(lambda x: mp.exp(x[0] / mpf(0.01)) / sum(exp(x / mpf(0.01))))),
    right("torch", "a determinant of a Hilbert matrix", torch.linalg.det, HILBERT, digits=5,
          truth=lambda A: det(A) * inv(A).T),
    right("torch", "a sum of numbers of all sizes", lambda x: (x * torch.tensor([1e15, 1.0, -1e15],
          dtype=torch.float64)).sum() ** 2, [1.0, 3.0, 1.0],
          truth=lambda x: [6e15, 6, -6e15]),
    right("autograd", "a polynomial of (x - 1)⁷ multiplied out",
          lambda x: x**7 - 7 * x**6 + 21 * x**5 - 35 * x**4 + 35 * x**3 - 21 * x**2 + 7 * x - 1, 1.1, digits=6,
          truth=lambda x: 7 * (x - 1) ** 6),
    right("autograd", "a Heron triangle with a needle's shape",
          lambda a, b, c: anp.sqrt((a + b + c) * (a + b - c) * (a - b + c) * (b + c - a)) / 4, 1.0, 1.0, 1e-4,
          truth=D(lambda a, b, c: mp.sqrt((a + b + c) * (a + b - c) * (a - b + c) * (b + c - a)) / 4), digits=7),
    right("numpy", "a tangent minus a sine over a cube", lambda x: (np.tan(x) - np.sin(x)) / x**3, 1e-2, digits=7,
          truth=D(lambda x: (mp.tan(x) - mp.sin(x)) / x**3)),
    right("numpy", "a subnormal gradient", lambda x: x**2 * 1e-300, 1e-10, digits=4,
          truth=lambda x: 2 * x * mpf(1e-300)),
    right("numpy", "a gradient of 1e300", lambda x: x**2 * 1e300, 1.0, truth=lambda x: 2 * x * mpf(1e300)),
    either("torch", "a binary cross entropy whose slope is a difference",
          lambda x: torch.nn.functional.binary_cross_entropy_with_logits(
          x, torch.tensor([1.0], dtype=torch.float64), reduction="sum"), [20.0], truth=lambda x: -1 / (1 + exp(x))),
    either("torch", "a trigamma function of ten digits", torch.digamma, [-0.5], truth=lambda x: mp.psi(1, x[0])),
    either("torch", "a hard sigmoid with a sixth in single precision", torch.nn.functional.hardsigmoid, [1.0],
          truth=lambda x: mpf(1) / 6),
    either("torch", "an expm1 whose slope is zero", torch.expm1, [-50.0], truth=lambda x: mp.exp(x[0])),
    either("jax", "a logarithm of the normal distribution far out", jax.scipy.special.log_ndtr, -30.0,
          truth=lambda x: mp.npdf(x) / mp.ncdf(x)),
)  # fmt: skip


def brentq(y):
    """x + exp(x) = y by scipy."""
    return np.vectorize(
        lambda v: scipy.optimize.brentq(lambda x: x + math.exp(x) - v, -50, 50, xtol=1e-15), otypes=[float]
    )(y)


def omega(y):
    return y - mp.lambertw(mp.exp(y)).real


def quadrature(x):
    """∫₀ˣ exp(-t³) dt by scipy."""
    return np.vectorize(
        lambda v: scipy.integrate.quad(lambda t: math.exp(-(t**3)), 0, v, epsabs=1e-14, epsrel=1e-14)[0], otypes=[float]
    )(x)


def by_math(f):
    """A function of Python's math, which raises outside of its domain, for arrays."""
    return lambda x: np.vectorize(f, otypes=[float])(x)


def torch_numpy(f, slope):
    return torch_old(lambda x: torch.from_numpy(np.asarray(f(x.detach().numpy()))), lambda x, y, w: w * slope(x, y))


EDGES = rows(
    "ends of domains, and black boxes",
    right("jax", "a root in a callback next to zero", jax_callback(np.sqrt, lambda x, y: 1 / (2 * y)), 1e-14,
          truth=lambda x: 1 / (2 * mp.sqrt(x))),
    right("jax", "an arccosine in a callback next to one", jax_callback(np.arccos,
          lambda x, y: -1 / jnp.sqrt((1 - x) * (1 + x))), 1 - 2.0**-40,
          truth=lambda x: -1 / mp.sqrt(1 - x * x)),
    right("jax", "an arctanh in a callback next to minus one",
          jax_callback(np.arctanh, lambda x, y: 1 / ((1 - x) * (1 + x))), -1 + 2.0**-30,
          truth=lambda x: 1 / (1 - x * x)),
    right("jax", "a logarithm by math next to zero", jax_callback(by_math(math.log), lambda x, y: 1 / x), 1e-15,
          truth=lambda x: 1 / x),
    right("jax", "a gamma function by scipy next to its pole",
          jax_callback(scipy.special.gammaln, lambda x, y: jax.scipy.special.digamma(x)), 1e-9, truth=mp.digamma),
    right("jax", "a root by brentq", jax_callback(brentq, lambda y, x: 1 / (1 + jnp.exp(x))), 3.0, truth=D(omega)),
    right("jax", "an integral by quad", jax_callback(quadrature, lambda x, y: jnp.exp(-(x**3))), 1.2,
          truth=lambda x: mp.exp(-(x**3))),
    right("jax", "a step of a callback far from one", jax_callback(lambda x: np.cosh(x * 1e-8),
          lambda x, y: 1e-8 * jnp.sinh(x * 1e-8)), 3e8,
          truth=lambda x: mpf(1e-8) * mp.sinh(x * mpf(1e-8))),
    right("torch", "an arcsine by math next to one", lambda x: torch_numpy(by_math(math.asin),
          lambda x, y: 1 / torch.sqrt((1 - x) * (1 + x)))(x).sum(), [1 - 2.0**-45],
          truth=lambda x: 1 / mp.sqrt(1 - x[0] ** 2)),
    right("torch", "a banded system by scipy", lambda b: torch_numpy(lambda b:
          scipy.linalg.solveh_banded(np.array([[0.0, 1, 1], [4, 4, 4]]), b), lambda b, x: 1)(b)[0] * 0 + b.sum(), V3,
          truth=lambda b: [1, 1, 1]),
    right("autograd", "a root by brentq", autograd_rule(brentq, lambda y, x, w: w / (1 + anp.exp(x))), 3.0,
          truth=D(omega)),
    right("autograd", "a Bessel function of a broken order by scipy",
          autograd_rule(lambda x: scipy.special.jv(2.5, x), lambda x, y, w: w * (scipy.special.jv(1.5,
          x) - scipy.special.jv(3.5, x)) / 2), 3.0,
          truth=lambda x: (mp.besselj(1.5, x) - mp.besselj(3.5, x)) / 2),
    right("autograd", "a square root by math next to zero", autograd_rule(by_math(math.sqrt),
          lambda x, y, w: w / (2 * y)), 1e-12, truth=lambda x: 1 / (2 * mp.sqrt(x))),
    right("autograd", "a logarithm of 1 - x next to one", autograd_rule(by_math(lambda x: math.log(1 - x)),
          lambda x, y, w: -w / (1 - x)), 1 - 2.0**-33, truth=lambda x: -1 / (1 - x)),
    right("jax", "a root at zero, whose slope is infinite", jnp.sqrt, 0.0, truth=lambda x: mp.inf),
    right("jax", "x log x at zero, whose slope is infinite", jax_vjp(lambda x: jax.scipy.special.xlogy(x, x),
          lambda x, y, w: w * (jnp.log(x) + 1)), 0.0,
          truth=lambda x: -mp.inf),
    right("jax", "a distance's square at zero", lambda x: jnp.sum(x * x) ** 1.5, [0.0, 0.0], truth=lambda x: [0, 0]),
    right("jax", "an exponential that underflows", jnp.exp, -800.0, truth=lambda x: 0),
    right("numpy", "a floor at a whole number", lambda x: np.floor(x) * x, 2.5, truth=lambda x: 2),
    right("jax", "erfinv next to one", lambda x: jax.scipy.special.erfinv(x), 1 - 2.0**-30, digits=7,
          truth=lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2)),
)  # fmt: skip


def shared(f):
    """The gradient of f of a symmetric matrix, shared by both triangles."""

    def truth(a):
        return symmetrised(D(lambda m: f((m + m.T) / 2))(a).reshape(a.shape))

    truth.is_convention = True
    return truth


def lower(f):
    """The gradient of f of the symmetric matrix of which the lower triangle is read."""
    return D(lambda m: f(m * np.tril(np.ones(m.shape, dtype=int)) + (m * np.tril(np.ones(m.shape, dtype=int), -1)).T))


def gaussian(S):
    x = np.array([mpf(1), mpf(-2)], dtype=object)
    return -x @ solve(S, x) / 2 - mp.log(det(S)) / 2


SYMMETRIC = rows(
    "symmetric matrices",
    right("torch", "the largest eigenvalue", lambda A: torch.linalg.eigvalsh(A)[-1], S3,
          truth=shared(lambda A: eigvalsh(A)[-1])),
    right("torch", "a sum of cubes of eigenvalues", lambda A: torch.linalg.eigvalsh(A).pow(3).sum(), S3,
          truth=shared(lambda A: np.trace(A @ A @ A))),
    right("torch", "a logarithm of a determinant by Cholesky",
          lambda A: 2 * torch.linalg.cholesky(A).diagonal().log().sum(), S3, truth=shared(lambda A: mp.log(det(A)))),
    right("torch", "an entry of a Cholesky factor", lambda A: torch.linalg.cholesky(A)[1, 0], S2,
          truth=shared(lambda A: cholesky(A)[1, 0])),
    right("torch", "a normal density in its covariance", lambda S:
          torch.distributions.MultivariateNormal(torch.zeros(2, dtype=S.dtype),
          S).log_prob(torch.tensor([1.0, -2.0], dtype=S.dtype)), S2,
          truth=shared(gaussian)),
    right("torch", "a square root of a matrix by eigenvectors", lambda A: square_root(A)[0, 1], S2,
          truth=shared(lambda A: root_entry(A))),
    right("autograd", "the smallest eigenvalue", lambda A: anp.linalg.eigh(A)[0][0], S3,
          truth=lower(lambda A: eigvalsh(A)[0])),
    right("autograd", "a Cholesky factor's diagonal", lambda A: anp.sum(anp.log(anp.diag(anp.linalg.cholesky(A)))), S3,
          truth=shared(lambda A: mp.log(det(A)) / 2)),
    right("jax", "the largest eigenvalue less the trace", lambda A: jnp.linalg.eigvalsh(A)[-1] - jnp.trace(A), S2,
          truth=lambda A: shared(lambda m: eigvalsh(m)[-1])(A) - np.eye(2, dtype=int)),
    right("jax", "an entry of a Cholesky factor squared", lambda A: jnp.linalg.cholesky(A)[1, 0] ** 2, S2,
          truth=shared(lambda A: cholesky(A)[1, 0] ** 2)),
)  # fmt: skip


def square_root(A):
    values, vectors = torch.linalg.eigh(A)
    return vectors @ torch.diag(values.sqrt()) @ vectors.T


def root_entry(A):
    """Of the square root of a 2 × 2 matrix: (A + √det) / √(trace + 2 √det)."""
    root = mp.sqrt(det(A))
    return A[0, 1] / mp.sqrt(A[0, 0] + A[1, 1] + 2 * root)


SECOND_ORDER = rows(
    "second derivatives",
    right("jax", "a Hessian of a product", lambda x: jnp.prod(x) * jnp.sin(x[0]), V3,
          truth=D(D(lambda x: x[0] * x[1] * x[2] * mp.sin(x[0]))), modes="hessian"),
    right("jax", "a Hessian of a norm", lambda x: jnp.linalg.norm(x), V3, truth=D(D(lambda x: mp.sqrt(sum(x * x)))),
          modes="hessian"),
    right("jax", "a Hessian through a right rule", lambda x: jnp.sum(jax_jvp(lambda x: jnp.log1p(jnp.exp(x)),
          lambda x, y, v: v * jax.nn.sigmoid(x))(x) ** 2), V3[:2],
          truth=D(D(lambda x: sum(mp.log1p(mp.exp(v)) ** 2 for v in x))), modes="hessian"),
    right("torch", "a Hessian of a logsumexp", lambda x: torch.logsumexp(x, 0), V3,
          truth=D(D(lambda x: mp.log(sum(exp(x))))), modes="hessian"),
    right("torch", "a Hessian of a logarithm of a determinant", lambda A: torch.logdet(A), S2,
          truth=D(D(lambda A: mp.log(det(A)))), modes="hessian"),
    right("autograd", "a Hessian of a Rosenbrock function", lambda x:
          anp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), V3,
          truth=D(D(lambda x: sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))), modes="hessian"),
    right("numpy", "a Hessian of a quotient", lambda x: x[0] ** 2 / x[1] * np.exp(x[2]), V3,
          truth=D(D(lambda x: x[0] ** 2 / x[1] * mp.exp(x[2]))), modes="hessian"),
)  # fmt: skip


def weierstrass(np_, x):
    return sum(0.5**k * np_.cos(7.0**k * x) for k in range(9))


def cancelled(x):
    """A step and its opposite: no jump is left."""
    return jnp.floor(x * 1e3) / 1e3 - jnp.floor(x * 1e3) / 1e3 + x**2


FINE = rows(
    "fine structure: smooth, but not at coarse steps",
    right("jax", "a slope and a fast wave of small amplitude", lambda x: 0.5 * x + jnp.sin(1e7 * x) / 1e7, 0.3,
          digits=7,
          truth=lambda x: 0.5 + mp.cos(1e7 * x)),
    right("torch", "a fast wave of small amplitude in one entry", lambda x: (x * x).sum() + torch.sin(1e6 * x[0]) / 1e6,
          [0.3, -0.8], digits=8,
          truth=lambda x: [2 * x[0] + mp.cos(1e6 * x[0]), 2 * x[1]]),
    right("numpy", "a fast wave behind a branch", lambda x: 2 * x + np.sin(1e5 * x) / 1e5 if x > 0 else x, 0.3,
          truth=lambda x: 2 + mp.cos(1e5 * x)),
    right("autograd", "a sum of Weierstrass", lambda x: weierstrass(anp, x), 0.4,
          truth=D(lambda x: sum(mpf(0.5) ** k * mp.cos(mpf(7) ** k * x) for k in range(9)))),
    right("jax", "a narrow bump on a slope", lambda x: x + 1e-6 * jnp.exp(-(((x - 0.5) * 1e6) ** 2)), 0.5 + 5e-7,
          digits=7,
          truth=lambda x: 1 - 2 * (x - 0.5) * 10**6 * mp.exp(-(((x - 0.5) * 10**6) ** 2))),
    right("jax", "a kink next to the point", lambda x: jnp.abs(x - 1e-9) + x, 0.0, truth=lambda x: 0),
    right("torch", "a soft step of width 1e-7", lambda x: torch.tanh((x - 1) * 1e7).sum() * 1e-7, [1 + 3e-8], digits=7,
          truth=lambda x: 1 / mp.cosh((x[0] - 1) * 10**7) ** 2),
    right("jax", "a step and its opposite", cancelled, 0.3217, truth=lambda x: 2 * x),
    right("torch", "a remainder by a twentieth", lambda x: torch.remainder(x, 0.05).sum(), [0.32, 0.77],
          truth=lambda x: [1, 1]),
    right("jax", "a fast wave in a callback", jax_callback(lambda x: np.sin(1e5 * x), lambda x,
          y: 1e5 * jnp.cos(1e5 * x)), 0.3, truth=lambda x: 10**5 * mp.cos(10**5 * x)),
    right("jax", "a kink next to the point in a callback", jax_callback(lambda x: np.abs(x - 1), lambda x,
          y: jnp.sign(x - 1)), 1 + 2.0**-34, truth=lambda x: 1),
    right("jax", "a narrow bump in a callback", jax_callback(lambda x: np.exp(-((x * 1e6) ** 2)), lambda x,
          y: -2e12 * x * y), 1e-6,
          truth=lambda x: -2 * 10**12 * x * mp.exp(-((x * 10**6) ** 2))),
    right("autograd", "a tiny number in a black box", autograd_rule(by_math(lambda x: x * x), lambda x, y,
          w: 2 * w * x), 1e-20, truth=lambda x: 2 * x),
    right("autograd", "a pole next to the point in a black box", autograd_rule(by_math(lambda x: 1 / (x - 1)), lambda x,
          y, w: -w * y * y), 1 + 2.0**-20, truth=lambda x: -1 / (x - 1) ** 2),
)  # fmt: skip

ROWS = [*CANCELLING, *EDGES, *SYMMETRIC, *SECOND_ORDER, *FINE]
