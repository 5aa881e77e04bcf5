"""Custom rules that are right, branches that hide the derivative, second derivatives, and difficult places."""

import math

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.optimize
import scipy.special
import torch
from mpmath import mp
from torch.nn import functional

from tests.functions.campaign.row import either, right, rows, wrong
from tests.functions.campaign.truth import Between, D, cholesky, det, exp, inv, lse, softmax, solve, symmetrised
from tests.functions.campaign.wrapped import autograd_rule, jax_callback, jax_jvp, jax_vjp, torch_new, torch_old

X4 = [0.75, -1.25, 3.0, 0.5]
S2 = [[2.0, 0.5], [0.5, 1.0]]
S3 = [[3.0, 0.5, -1.0], [0.5, 2.0, 0.25], [-1.0, 0.25, 4.0]]


def bisected(f, low, high):
    """The root of f(x) = y between two numbers, in Python."""

    def solved(y):
        a, b = low, high
        for _ in range(75):
            middle = (a + b) / 2
            a, b = (middle, b) if f(middle) < y else (a, middle)
        return np.float64((a + b) / 2)

    return solved


def normal_quantile(p):
    return bisected(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), -9.0, 9.0)(p)


def quintic(y):
    return mp.findroot(lambda x: x**5 + x - y, 1.0)


def jax_bisection(y):
    def step(_, ends):
        low, high = ends
        middle = (low + high) / 2
        below = middle**5 + middle < y
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    return jax.lax.fori_loop(0, 60, step, (-2.0 + 0 * y, 2.0 + 0 * y))[0]


def integral(a):
    return scipy.integrate.quad(lambda t: np.exp(-float(a) * t * t), 0.0, 1.0)[0]


def brent(a):
    return scipy.optimize.brentq(lambda x: np.cos(x) - float(a) * x, 0.0, 2.0, xtol=1e-15, rtol=1e-15)


def cosine_root(a):
    return mp.findroot(lambda x: mp.cos(x) - a * x, 0.7)


def logarithm_by_table(x):
    """A logarithm by a search in a table of 2**20 doubles."""
    nodes = np.linspace(1.0, 2.0, 2**16 + 1)
    return np.log(nodes)[np.searchsorted(nodes, np.asarray(x))]


@jax.custom_jvp
def safe_norm(x):
    return jnp.sqrt(jnp.sum(x * x))


@safe_norm.defjvp
def safe_norm_jvp(primals, tangents):
    (x,), (v,) = primals, tangents
    y = safe_norm(x)
    return y, jnp.sum(x * v) / jnp.where(y == 0, 1.0, y)


class LogDet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A):
        factor = torch.linalg.cholesky(A)
        ctx.save_for_backward(factor)
        return 2 * factor.diagonal().log().sum()

    @staticmethod
    def backward(ctx, w):
        return w * torch.cholesky_inverse(*ctx.saved_tensors)


class Sigmoid(torch.autograd.Function):
    """With both modes, and the backward pass differentiable."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, w):
        (y,) = ctx.saved_tensors
        return w * y * (1 - y)

    @staticmethod
    def jvp(ctx, v):
        (y,) = ctx.saved_tensors
        return v * y * (1 - y)


RULES = rows(
    "fresh: custom rules that are right",
    right("jax", "a root by bisection in Python", jax_callback(bisected(lambda x: x**5 + x, -2.0, 2.0), lambda y,
          x: 1 / (5 * x**4 + 1)), 1.7, truth=lambda y: 1 / (5 * quintic(y) ** 4 + 1)),
    right("jax", "a root by bisection in a loop", jax_vjp(jax_bisection, lambda y, x, w: w / (5 * x**4 + 1)), 1.7,
          truth=lambda y: 1 / (5 * quintic(y) ** 4 + 1)),
    right("jax", "a normal quantile by bisection", jax_callback(normal_quantile, lambda p,
          x: jnp.sqrt(2 * jnp.pi) * jnp.exp(x * x / 2)), 0.3,
          truth=lambda p: 1 / mp.npdf(mp.sqrt(2) * mp.erfinv(2 * p - 1))),
    right("jax", "an integral by quadrature", jax_callback(integral, lambda a, y: (jnp.exp(-a) - y) / (2 * a)), 1.3,
          truth=lambda a: (mp.exp(-a) - mp.quad(lambda t: mp.exp(-a * t * t), [0, 1])) / (2 * a)),
    right("jax", "a norm that is safe at zero", lambda x: safe_norm(x) ** 3, [0.0, 0.0], truth=lambda x: [0, 0]),
    right("jax", "a logarithm of one plus an exponential", jax_jvp(lambda x: jnp.logaddexp(x, 0.0), lambda x, y,
          v: v * jax.nn.sigmoid(x)), 45.0, truth=lambda x: 1 / (1 + mp.exp(-x))),
    right("jax", "a special function of scipy", jax_callback(scipy.special.erfcx, lambda x,
          y: 2 * x * y - 2 / jnp.sqrt(jnp.pi)), 0.8,
          truth=lambda x: 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / mp.sqrt(mp.pi)),
    right("jax", "a Lambert function of scipy", jax_callback(lambda x: scipy.special.lambertw(x).real, lambda x,
          y: y / (x * (1 + y))), 2.0, truth=lambda x: mp.lambertw(x) / (x * (1 + mp.lambertw(x)))),
    right("jax", "a clipped exponential with its rule", lambda x: jnp.sum(jax_vjp(lambda x: jnp.exp(jnp.clip(x, -1.0,
          2.0)), lambda x, y, w: w * y * (jnp.abs(x - 0.5) < 1.5))(x)), X4, truth=lambda x: [mp.exp(x[0]), 0, 0,
          mp.exp(x[3])]),
    right("torch", "a logarithm of a determinant by a factor", LogDet.apply, S3, truth=lambda A: inv(A)),
    right("torch", "a sigmoid with both modes", lambda x: Sigmoid.apply(x).sum(), X4,
          truth=lambda x: [1 / (2 + 2 * mp.cosh(v)) for v in x]),
    right("torch", "a swish with less memory", torch_old(lambda x: (x * torch.sigmoid(x)).sum(), lambda x, y,
          w: w * torch.sigmoid(x) * (1 + x * (1 - torch.sigmoid(x)))), X4, truth=D(lambda x: sum(x / (1 + exp(-x))))),
    right("torch", "a cross entropy by its own rule", torch_new(lambda x: torch.logsumexp(x, 0) - x[1], lambda x, y,
          w: w * (torch.softmax(x, 0) - torch.tensor([0.0, 1.0, 0.0, 0.0]))), X4, truth=D(lambda x: lse(x) - x[1])),
    right("torch", "a checkpoint", lambda x: torch.utils.checkpoint.checkpoint(lambda y: (y.sin() * y).sum(), x,
          use_reentrant=False), X4, truth=lambda x: [mp.sin(v) + v * mp.cos(v) for v in x]),
    right("torch", "an identity that flips twice", lambda x: torch_old(lambda x: x.clone(), lambda x, y,
          w: -w)(torch_old(lambda x: x.clone(), lambda x, y, w: -w)(x) ** 2).sum(), X4, truth=lambda x: 2 * x),
    right("autograd", "a root by Brent's method", autograd_rule(brent, lambda a, x, w: -w * x / (anp.sin(x) + a)), 0.8,
          truth=lambda a: -cosine_root(a) / (mp.sin(cosine_root(a)) + a)),
    right("autograd", "a smallest value by its place", autograd_rule(lambda x: np.min(x), lambda x, y, w: w * (x == y)),
          X4, truth=lambda x: [0, 1, 0, 0]),
    right("autograd", "a special function of scipy", autograd_rule(scipy.special.exp1, lambda x, y,
          w: -w * anp.exp(-x) / x), 0.7, truth=lambda x: -mp.exp(-x) / x),
    right("autograd", "a sum by pairs in numpy", autograd_rule(lambda x: np.add.reduce(np.sort(x)), lambda x, y,
          w: w * np.ones(4)), X4, truth=lambda x: [1] * 4),
)  # fmt: skip

HIDDEN = rows(
    "fresh: branches that hide the derivative",
    wrong("jax", "a quintic root by bisection", jax_bisection, 1.7, truth=lambda y: 1 / (5 * quintic(y) ** 4 + 1)),
    wrong("jax", "a quantised number of 45 bits", lambda x: jnp.floor(x * 2.0**45) / 2.0**45, 0.3, truth=lambda x: 1),
    wrong("jax", "a number through integers", lambda x: (x * 1e14).astype(int).astype(float) / 1e14 * x, 0.3,
          truth=lambda x: 2 * x),
    wrong("torch", "a rounded sine", lambda x: torch.round(torch.sin(x) * 1e13) / 1e13, 0.3, truth=mp.cos),
    wrong("torch", "a number by its binary digits", lambda x: binary_digits(x), 0.3, truth=lambda x: 1),
    wrong("autograd", "a rounded number of 13 decimals", lambda x: anp.round(x, 13) ** 2, 0.3, truth=lambda x: 2 * x),
    wrong("autograd", "a root by bisection in Python", lambda y: python_bisection(y), 1.7,
          truth=lambda y: 1 / (5 * quintic(y) ** 4 + 1)),
    right("jax", "a real staircase", lambda x: jnp.floor(8 * x) / 8 + x**2, 0.3, truth=lambda x: 2 * x),
    right("jax", "a sum of many small steps below a slope", lambda x: 3 * x + jnp.round(100 * x) * 1e-6, 0.3,
          truth=lambda x: 3),
    right("torch", "a real staircase of 64 steps", lambda x: torch.floor(64 * x) / 64 * x, 0.3,
          truth=lambda x: mp.floor(64 * x) / 64),
)  # fmt: skip


def binary_digits(x):
    total = torch.zeros_like(x)
    for k in range(1, 46):
        bit = (x >= total + 2.0**-k).double()
        total = total + bit * 2.0**-k
    return total


def python_bisection(y):
    low, high = -2.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**5 + middle < y else (low, middle)
    return low + 0 * y


KINKS = rows(
    "fresh: kinks, ends, symmetric and badly conditioned places",
    right("jax", "a maximum of two equal entries", jnp.max, [1.0, 2.0, 2.0], truth=lambda x: [0, Between(0, 1),
          Between(0, 1)]),
    right("jax", "a magnitude at zero", jnp.abs, 0.0, truth=lambda x: [Between(-1, 1)]),
    right("jax", "a rectifier of a square at its kink", lambda x: jax.nn.relu(x - 1) ** 2, 1.0, truth=lambda x: 0),
    right("jax", "x |x| at zero", lambda x: x * jnp.abs(x), 0.0, truth=lambda x: 0),
    right("jax", "a masked root at zero", lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0) * x, 0.0,
          truth=lambda x: 0),
    right("jax", "an exponential of minus a reciprocal at zero", lambda x: jnp.where(x > 0,
          jnp.exp(-1 / jnp.where(x > 0, x, 1.0)), 0.0), 0.0, truth=lambda x: 0),
    right("jax", "a determinant of a Pascal matrix", jnp.linalg.det, [[1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0],
          [1.0, 3.0, 6.0, 10.0], [1.0, 4.0, 10.0, 20.0]], digits=8, truth=lambda A: det(A) * inv(A).T),
    right("jax", "a system with rows of very different size", lambda A, b: jnp.linalg.solve(A, b)[0], [[1e8, 2.0],
          [3.0, 1e-8]], [1.0, 2.0], digits=6, truth=D(lambda A, b: solve(A, b)[0])),
    right("jax", "a variance of large numbers", jnp.var, [1e8, 1e8 + 1, 1e8 + 2],
          truth=lambda x: 2 * (x - sum(x) / 3) / 3),
    right("jax", "a norm of a tiny vector", jnp.linalg.norm, [3e-140, 4e-140], truth=lambda x: x / mp.sqrt(sum(x * x))),
    right("jax", "a softmax of widely spread numbers", lambda x: jnp.log(jax.nn.softmax(x)[0]), [0.0, 30.0, -40.0],
          truth=lambda x: [1 - softmax(x)[0], -softmax(x)[1], -softmax(x)[2]]),
    right("torch", "a Cholesky factor of a symmetric matrix", lambda A: torch.linalg.cholesky(A)[1, 0], S2,
          truth=lambda A: symmetrised(D(lambda A: cholesky(A)[1, 0])(A).reshape(2, 2))),
    right("torch", "an eigenvalue of a symmetric matrix", lambda A: torch.linalg.eigvalsh(A)[1] * A[0, 1], S2,
          truth=D(lambda A: (sum(np.diag(A)) / 2 + mp.sqrt((A[0, 0] - A[1, 1]) ** 2 / 4 + ((A[0, 1] + A[1,
          0]) / 2) ** 2)) * A[0, 1])),
    right("torch", "a hard rectifier at its end", lambda x: functional.relu6(x).sum(), [0.0, 6.0, 3.0],
          truth=lambda x: [Between(0, 1), Between(0, 1), 1]),
    right("torch", "a distance of equal points, squared", lambda x, y: torch.cdist(x[None], y[None]).sum() ** 2,
          [1.0, 2.0], [1.0, 2.0], truth=lambda x, y: [0] * 4),
    right("torch", "a logarithm of a sum with minus infinity", lambda x: torch.logsumexp(torch.cat([x,
          torch.tensor([-math.inf], dtype=x.dtype)]), 0), [0.5, 1.0], truth=softmax),
    right("autograd", "a product with a power of zero", lambda x, y: x**3 * y**2, 0.0, 2.0, truth=lambda x, y: [0, 0]),
    right("autograd", "a sum of differences of equal numbers", lambda x: anp.sum(anp.abs(anp.diff(x))), [1.0, 1.0, 2.0],
          truth=lambda x: [Between(-1, 1), Between(-2, 0), 1]),
    right("autograd", "a telescoping sum of large numbers", lambda x: anp.sum(anp.diff(x * 1e10)) / 1e10,
          [1.0, 1.1, 1.3], digits=8, truth=lambda x: [-1, 0, 1]),
    either("jax", "a difference of two cosines", lambda x: (1 - jnp.cos(x)) / x, 1e-6,
          truth=lambda x: mp.sin(x) / x - (1 - mp.cos(x)) / x**2),
    either("torch", "a small root of a quadratic", lambda b: b - torch.sqrt(b * b - 1), 1e6,
          truth=lambda b: 1 - b / mp.sqrt(b * b - 1)),
    wrong("jax", "a norm at zero", lambda x: jnp.sum(jnp.sqrt(x * x) ** 2), [0.0, 1.5], truth=lambda x: 2 * x),
    wrong("jax", "a root in the branch not taken", lambda x: jnp.where(x > 0, jnp.sqrt(x), x), -0.0 - 1.5,
          truth=lambda x: 1),
    wrong("jax", "a product by an exponential of logarithms at a zero", lambda x: jnp.exp(jnp.sum(jnp.log(x))),
          [0.0, 2.0], truth=lambda x: [2, 0]),
    wrong("torch", "a quotient at zero in the branch not taken", lambda x: torch.where(x == 0, 1.0,
          torch.sin(x) / x).sum(), [0.0, 1.0], truth=lambda x: [0, mp.cos(1) - mp.sin(1)]),
    wrong("autograd", "a power with a zero base", lambda x: anp.sum(anp.sqrt(x**2)) ** 2, [0.0, 0.0],
          truth=lambda x: [0, 0]),
)  # fmt: skip

SECOND = rows(
    "fresh: second derivatives",
    right("jax", "a Hessian of a quotient", lambda x: x[0] / x[1] + jnp.sin(x[0] * x[1]), [0.5, 1.5], modes="hessian",
          truth=lambda x: [[-x[1] ** 2 * mp.sin(x[0] * x[1]),
          -1 / x[1] ** 2 + mp.cos(x[0] * x[1]) - x[0] * x[1] * mp.sin(x[0] * x[1])],
                           [-1 / x[1] ** 2 + mp.cos(x[0] * x[1]) - x[0] * x[1] * mp.sin(x[0] * x[1]),
                           2 * x[0] / x[1] ** 3 - x[0] ** 2 * mp.sin(x[0] * x[1])]]),
    right("torch", "a Hessian of a logarithmic sum", lambda x: torch.logsumexp(x, 0), [0.5, -1.0, 2.0], modes="hessian",
          truth=lambda x: np.diag(softmax(x)) - np.multiply.outer(softmax(x), softmax(x))),
    right("autograd", "a Hessian of a power", lambda x: anp.sum(x**3) * x[0], [0.5, -1.0], modes="hessian",
          truth=lambda x: [[12 * x[0] ** 2, 3 * x[1] ** 2], [3 * x[1] ** 2, 6 * x[0] * x[1]]]),
    wrong("jax", "a Hessian by a rule with a constant", jax_jvp(jnp.tanh, lambda x, y,
          v: v * jax.lax.stop_gradient(1 - y * y)), 0.7, modes="hessian",
          truth=lambda x: -2 * mp.tanh(x) / mp.cosh(x) ** 2),
    wrong("torch", "a Hessian by a rule of a saved constant", torch_old(torch.exp, lambda x, y, w: w * y.detach()), 0.7,
          modes="hessian", truth=mp.exp),
    wrong("autograd", "a Hessian by a rule in plain numpy", autograd_rule(np.sin, lambda x, y,
          w: w * np.cos(float(getattr(x, "_value", x)))), 0.7, modes="hessian", truth=lambda x: -mp.sin(x)),
)  # fmt: skip

ROWS = [*RULES, *HIDDEN, *KINKS, *SECOND]
