"""Custom rules that are right: around code in numpy, iterative solvers, and formulas of implicit functions."""

import math

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from autograd.extend import defjvp, defvjp, primitive
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D, inv, solve
from tests.functions.campaign.wrapped import autograd_rule, jax_callback, jax_jvp, jax_vjp, torch_new, torch_old


def lambert(y):
    """w with w exp(w) = y, by Newton's iteration in Python."""
    w = math.log1p(y)
    for _ in range(40):
        w -= (w - y * math.exp(-w)) / (1 + w)
    return w


def lambert_array(y):
    return np.vectorize(lambert, otypes=[np.float64])(y)


def root_of_cubic(a):
    """x³ + x = a by bisection in numpy."""
    a = np.asarray(a, dtype=np.float64)
    low, high = -2 - np.abs(a), 2 + np.abs(a)
    for _ in range(80):
        middle = (low + high) / 2
        above = middle**3 + middle > a
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def cubic(a):
    return mp.findroot(lambda x: x**3 + x - a, mp.cbrt(a))


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def integral(x):
    """∫₀ˣ exp(-t²) dt by Gauss's 24 nodes, which is exact to rounding for small x."""
    x = np.asarray(x)
    return sum(w * np.exp(-((x * (node + 1) / 2) ** 2)) for node, w in zip(NODES, WEIGHTS, strict=True)) * x / 2


def jacobi_solve(A, b):
    x = np.zeros_like(b)
    for _ in range(200):
        x = (b - A @ x) / np.diag(A) + x
    return x


@jax.custom_vjp
def solved(A, b):
    return jax.pure_callback(jacobi_solve, jax.ShapeDtypeStruct(b.shape, b.dtype), A, b)


def solved_forward(A, b):
    x = solved(A, b)
    return x, (A, x)


def solved_backward(kept, w):
    A, x = kept
    adjoint = jnp.linalg.solve(A.T, w)
    return -jnp.outer(adjoint, x), adjoint


solved.defvjp(solved_forward, solved_backward)


@jax.custom_vjp
def fixed_point(a):
    """x = cos(a x) by a while loop."""
    return jax.lax.while_loop(
        lambda s: jnp.abs(s[0] - s[1]) > 1e-15, lambda s: (jnp.cos(a * s[0]), s[0]), (jnp.cos(a), 2.0 + 0 * a)
    )[0]


def fixed_point_forward(a):
    x = fixed_point(a)
    return x, (a, x)


def fixed_point_backward(kept, w):
    a, x = kept
    return (-w * x * jnp.sin(a * x) / (1 + a * jnp.sin(a * x)),)


fixed_point.defvjp(fixed_point_forward, fixed_point_backward)


def entropy(p):
    return jnp.sum(jnp.where(p > 0, -p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0))


class Inverse(torch.autograd.Function):
    """An inverse computed by numpy."""

    @staticmethod
    def forward(ctx, A):
        inverse = torch.from_numpy(np.linalg.inv(A.detach().numpy()))
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, W):
        (inverse,) = ctx.saved_tensors
        return -inverse.T @ W @ inverse.T


class Clamped(torch.autograd.Function):
    """Clamps forwards; its rule is the derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, w):
        return w * (ctx.saved_tensors[0].abs() < 1)


class SharedScale(torch.autograd.Function):
    """x times a scalar: the scalar's derivative is a sum."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, w):
        x, scale = ctx.saved_tensors
        return w * scale, (w * x).sum().reshape(scale.shape) if ctx.needs_input_grad[1] else None


@primitive
def log_determinant(A):
    return np.linalg.slogdet(A)[1]


defvjp(log_determinant, lambda value, A: lambda w: w * anp.linalg.inv(A).T)


@primitive
def cumulated(x):
    return np.add.accumulate(x)


defvjp(cumulated, lambda value, x: lambda w: w[::-1].cumsum()[::-1])
defjvp(cumulated, lambda v, value, x: np.cumsum(v))

V3 = [0.5, 1.5, 3.0]
D2 = [[4.0, 1.0], [-0.5, 3.0]]

ROWS = rows(
    "custom rules that are right",
    right("jax", "Lambert's function in a callback", lambda x: jnp.sum(jax_callback(lambert_array,
          lambda y, w: 1 / (y + jnp.exp(w)))(x)), V3,
          truth=lambda x: [1 / (v + mp.exp(mp.lambertw(v).real)) for v in x]),
    right("jax", "a root of a cubic by bisection in a callback",
          jax_callback(root_of_cubic, lambda a, x: 1 / (3 * x * x + 1)), 5.0,
          truth=lambda a: 1 / (3 * cubic(a) ** 2 + 1)),
    right("jax", "an integral by Gauss's rule in a callback", jax_callback(integral, lambda x, y: jnp.exp(-x * x)),
          0.8, truth=lambda x: mp.exp(-x * x)),
    right("jax", "a system by Jacobi's iteration in a callback", lambda A, b: jnp.sum(solved(A, b) ** 2), D2,
          [1.0, 2.0],
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    right("jax", "a fixed point by its implicit derivative", fixed_point, 0.7,
          truth=D(lambda a: mp.findroot(lambda x: x - mp.cos(a * x), 0.8))),
    right("jax", "an entropy by custom_jvp", jax_jvp(entropy, lambda p, y, v: jnp.sum(v * (-jnp.log(p) - 1))),
          [0.2, 0.3, 0.5],
          truth=lambda p: [-mp.log(v) - 1 for v in p]),
    right("jax", "a clipped gradient that does not clip here",
          jax_vjp(jnp.sin, lambda x, y, w: jnp.clip(w * jnp.cos(x), -1.0, 1.0)), 0.4, truth=mp.cos),
    right("jax", "log1p(exp(x)) by custom_jvp", jax_jvp(lambda x: jnp.log1p(jnp.exp(x)),
          lambda x, y, v: v * jax.nn.sigmoid(x)), 2.5,
          truth=lambda x: 1 / (1 + mp.exp(-x))),
    right("jax", "a rule inside a scan", lambda x: jax.lax.scan(lambda s, _: (jax_vjp(jnp.tanh,
          lambda y, t, w: w * (1 - t * t))(s * 1.5), None), x, None, length=3)[0], 0.4,
          truth=D(lambda x: mp.tanh(mpf(1.5) * mp.tanh(mpf(1.5) * mp.tanh(mpf(1.5) * x))))),
    right("torch", "an inverse by numpy", lambda A: Inverse.apply(A)[0].sum(), D2, truth=D(lambda A: sum(inv(A)[0]))),
    right("torch", "a clamp", lambda x: Clamped.apply(x).pow(2).sum(), [0.5, 2.0, -3.0], truth=lambda x: [1, 0, 0]),
    right("torch", "a shared scale", lambda x, s: SharedScale.apply(x, s).pow(2).sum(), V3, [2.0],
          truth=lambda x, s: [*(2 * s[0] ** 2 * x), 2 * s[0] * sum(x * x)]),
    right("torch", "an old-style rule of a cube root", lambda x: torch_old(lambda x: x.sign() * x.abs().pow(1 / 3),
          lambda x, y, w: w / (3 * y * y))(x).sum(), [8.0, -0.001],
          truth=lambda x: [1 / (3 * mp.cbrt(abs(v)) ** 2) for v in x]),
    right("torch", "a new-style rule of x log x", lambda x: torch_new(lambda x: x * torch.log(x),
          lambda x, y, w: w * (torch.log(x) + 1))(x).sum(), V3,
          truth=lambda x: [mp.log(v) + 1 for v in x]),
    right("torch", "a root of a cubic by bisection in numpy",
          lambda a: torch_old(lambda a: torch.from_numpy(root_of_cubic(a.detach().numpy())),
          lambda a, x, w: w / (3 * x * x + 1))(a).sum(), [5.0, -0.25],
          truth=lambda a: [1 / (3 * cubic(a[0]) ** 2 + 1), 1 / (3 * cubic(-a[1]) ** 2 + 1)]),
    right("autograd", "a logarithm of a determinant", log_determinant, D2, truth=lambda A: inv(A).T),
    right("autograd", "a cumulative sum", lambda x: anp.sum(cumulated(x) ** 2), V3,
          truth=D(lambda x: x[0] ** 2 + (x[0] + x[1]) ** 2 + sum(x) ** 2)),
    right("autograd", "Lambert's function by Newton", lambda y: anp.sum(autograd_rule(lambert_array,
          lambda y, w, g: g / (y + anp.exp(w)))(y)), V3,
          truth=lambda x: [1 / (v + mp.exp(mp.lambertw(v).real)) for v in x]),
    right("autograd", "an integral by Gauss's rule", autograd_rule(integral, lambda x, y, w: w * anp.exp(-x * x)), 0.8,
          truth=lambda x: mp.exp(-x * x)),
)  # fmt: skip
