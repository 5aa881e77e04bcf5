"""Wrong where it is hard to see: bad conditioning, one entry of many, black boxes, other points, second order."""

import math

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special
import torch
from mpmath import mp, mpf

from tests.functions.campaign.right.difficult import (
    HILBERT,
    NEAR,
    brentq,
    by_math,
    omega,
    quadrature,
    shared,
    torch_numpy,
)
from tests.functions.campaign.row import elsewhere, right, rows, wrong
from tests.functions.campaign.truth import Between, D, det, eigvalsh, exp, inv, solve
from tests.functions.campaign.wrapped import autograd_rule, jax_callback, jax_jvp, jax_vjp, torch_new, torch_old

V3 = [0.5, -1.5, 2.5]
P3 = [0.5, 1.5, 2.5]
S2 = [[2.0, 0.5], [0.5, 1.0]]
MANY = [round(0.3 + 0.001 * k, 3) for k in range(400)]
FEW = MANY[:120]


def summed(f):
    return lambda x: jnp.sum(f(x))


def hilbert(factor):
    """A system with a Hilbert matrix, in its right side, whose rule has a factor."""

    def back(b, x, w):
        return factor * jnp.linalg.solve(jnp.array(HILBERT).T, w)

    return lambda b: jnp.sum(jax_vjp(lambda b: jnp.linalg.solve(jnp.array(HILBERT), b), back)(b))


def sums_of_inverse(b):
    return inv(np.vectorize(mpf, otypes=[object])(np.array(HILBERT))).sum(axis=0)


CONDITIONED = rows(
    "planted where rounding is large or numbers are small",
    wrong("jax", "a Hilbert matrix with 1e-3 too much", hilbert(1.001), [1.0] * 5, truth=sums_of_inverse),
    wrong("jax", "a Hilbert matrix with 1e-6 too much", hilbert(1 + 1e-6), [1.0] * 5, truth=sums_of_inverse),
    wrong("jax", "a Hilbert matrix with 1e-8 too much", hilbert(1 + 1e-8), [1.0] * 5, truth=sums_of_inverse),
    wrong("jax", "a system next to a singular one with 1e-7 too much",
          lambda b: jax_vjp(lambda b: jnp.linalg.solve(jnp.array(NEAR), b),
          lambda b, x, w: (1 + 1e-7) * jnp.linalg.solve(jnp.array(NEAR).T, w))(b)[0], [1.0, 2.0],
          truth=D(lambda b: solve(np.vectorize(mpf, otypes=[object])(np.array(NEAR)), b)[0])),
    wrong("jax", "a log_sigmoid far out with 1e-6 too much", jax_vjp(jax.nn.log_sigmoid,
          lambda x, y, w: w * jnp.exp(-x) * (1 + 1e-6)), 35.0, truth=lambda x: 1 / (1 + mp.exp(x))),
    wrong("jax", "a cube of 1e-100 with a factor", jax_vjp(lambda x: x**3, lambda x, y, w: 3.03 * w * x * x), 1e-100,
          truth=lambda x: 3 * x * x),
    wrong("jax", "a Gaussian far out with a factor of 1 + 1e-7",
          jax_vjp(lambda x: jnp.exp(-x * x), lambda x, y, w: -2 * w * x * y * (1 + 1e-7)), 20.0,
          truth=lambda x: -2 * x * mp.exp(-x * x)),
    wrong("torch", "a cosine minus one over a square by half its slope",
          lambda x: torch_old(lambda x: (1 - torch.cos(x)) / x**2, lambda x, y, w: -w * x / 24)(x).sum(), [1e-3],
          truth=lambda x: (x[0] * mp.sin(x[0]) - 2 * (1 - mp.cos(x[0]))) / x[0] ** 3),
    wrong("torch", "a determinant of a Hilbert matrix with 1e-6 too much",
          torch_new(torch.linalg.det, lambda A, y, w: w * y * torch.linalg.inv(A).T * (1 + 1e-6)), HILBERT,
          truth=lambda A: det(A) * inv(A).T),
    wrong("torch", "a tanh far out with a factor of two", lambda x: torch_old(torch.tanh,
          lambda x, y, w: 2 * w / torch.cosh(x) ** 2)(x).sum(), [12.0], truth=lambda x: 1 / mp.cosh(x[0]) ** 2),
    wrong("torch", "a small gradient beside a large one", lambda x: torch_old(lambda x: x * torch.tensor([1e8, 1e-8]),
          lambda x, y, w: w * torch.tensor([1e8, 1.1e-8]))(x).sum(), [1.0, 1.0],
          truth=lambda x: [mpf(1e8), mpf(1e-8)]),
    wrong("torch", "zeros that are not quite", lambda x: torch_old(lambda x: x[0] ** 2,
          lambda x, y, w: w * torch.stack([2 * x[0], 1e-9 * x[1]]))(x), [1.0, 3.0], truth=lambda x: [2, 0]),
    wrong("autograd", "a logarithm of a large number with 1e-6 too much",
          autograd_rule(np.log, lambda x, y, w: w / x * (1 + 1e-6)), 1e200, truth=lambda x: 1 / x),
    wrong("autograd", "an offset of 1e8 with 1e-6 too much", autograd_rule(lambda x: np.sin(x) + 1e8,
          lambda x, y, w: w * anp.cos(x) * (1 + 1e-6)), 0.7, truth=mp.cos),
    wrong("autograd", "a power of (x - 1) multiplied out with a hundredth too much",
          autograd_rule(lambda x: x**5 - 5 * x**4 + 10 * x**3 - 10 * x**2 + 5 * x - 1,
          lambda x, y, w: 5.05 * w * (x - 1) ** 4), 1.1,
          truth=lambda x: 5 * (x - 1) ** 4),
)  # fmt: skip

ENTRIES = rows(
    "planted in one entry of many",
    wrong("jax", "one of 400 by a half", summed(jax_vjp(jnp.sin,
          lambda x, y, w: (w * jnp.cos(x)).at[137].multiply(0.5))), MANY, truth=lambda x: [mp.cos(v) for v in x]),
    wrong("jax", "one of 400 by 1e-3", summed(jax_vjp(jnp.exp, lambda x, y, w: (w * y).at[251].multiply(1.001))), MANY,
          truth=exp),
    wrong("jax", "one of 400 by 1e-6", summed(jax_vjp(jnp.exp, lambda x, y, w: (w * y).at[398].multiply(1 + 1e-6))),
          MANY, truth=exp),
    wrong("jax", "two of 400 exchanged", summed(jax_vjp(jnp.exp,
          lambda x, y, w: (w * y).at[jnp.array([100, 300])].set((w * y)[jnp.array([300, 100])]))), MANY, truth=exp),
    wrong("torch", "one of 120 by 1e-5", lambda x: torch_old(torch.exp,
          lambda x, y, w: w * y * (1 + 1e-5 * (torch.arange(120) == 77)))(x).sum(), FEW, truth=exp),
    wrong("torch", "every second of 120 by 1e-7", lambda x: torch_old(torch.exp,
          lambda x, y, w: w * y * (1 + 1e-7 * (torch.arange(120) % 2)))(x).sum(), FEW, truth=exp),
    wrong("autograd", "one of 120 set to zero", lambda x: anp.sum(autograd_rule(np.exp,
          lambda x, y, w: w * y * (np.arange(120) != 63))(x)), FEW, truth=exp),
    wrong("autograd", "one of 120 by 1e-5 with the opposite error beside it",
          lambda x: anp.sum(autograd_rule(np.exp, lambda x, y,
          w: w * (y + 1e-5 * (np.arange(120) == 63) - 1e-5 * (np.arange(120) == 64)))(x)), FEW, truth=exp),
    wrong("jax", "an entry of a callback of thirty by 1e-3", summed(jax_callback(lambda x: np.exp(np.sin(x)),
          lambda x, y: (y * jnp.cos(x)).at[17].multiply(1.001))), MANY[:30],
          truth=lambda x: [mp.exp(mp.sin(v)) * mp.cos(v) for v in x]),
)  # fmt: skip

BOXES = rows(
    "planted around black boxes",
    wrong("jax", "a root by brentq without its exponential", jax_callback(brentq, lambda y, x: 1 / (1 + x)), 3.0,
          truth=D(omega)),
    wrong("jax", "an integral by quad with 1e-5 too much", jax_callback(quadrature,
          lambda x, y: jnp.exp(-(x**3)) * (1 + 1e-5)), 1.2, truth=lambda x: mp.exp(-(x**3))),
    wrong("jax", "a root in a callback next to zero with a factor", jax_callback(np.sqrt, lambda x, y: 1 / y), 1e-14,
          truth=lambda x: 1 / (2 * mp.sqrt(x))),
    wrong("jax", "a logarithm by math next to zero with a sign", jax_callback(by_math(math.log), lambda x, y: -1 / x),
          1e-15, truth=lambda x: 1 / x),
    wrong("jax", "a callback whose rule is zero", jax_callback(np.cosh, lambda x, y: 0 * x), 0.4, truth=mp.sinh),
    wrong("torch", "an arctangent by numpy with a sign", lambda x: torch_numpy(np.arctan,
          lambda x, y: -1 / (1 + x * x))(x).sum(), V3, truth=lambda x: 1 / (1 + x * x)),
    wrong("torch", "a root by brentq with the value's slope",
          lambda y: torch_numpy(brentq, lambda y, x: 1 / (1 + torch.exp(y)))(y).sum(), [3.0],
          truth=lambda y: D(omega)(y[0])),
    wrong("torch", "a Bessel function by scipy with a factor",
          lambda x: torch_numpy(lambda x: scipy.special.jv(0, x),
          lambda x, y: -1.01 * torch.special.bessel_j1(x))(x).sum(), P3,
          truth=lambda x: [-mp.besselj(1, v) for v in x]),
    wrong("autograd", "a root by brentq with 1e-4 too much", autograd_rule(brentq,
          lambda y, x, w: 1.0001 * w / (1 + anp.exp(x))), 3.0, truth=D(omega)),
    wrong("autograd", "a Bessel function of a broken order by scipy",
          autograd_rule(lambda x: scipy.special.jv(2.5, x), lambda x, y, w: w * scipy.special.jv(1.5, x)), 3.0,
          truth=lambda x: (mp.besselj(1.5, x) - mp.besselj(3.5, x)) / 2),
    wrong("autograd", "a minimum by scipy with the wrong sign of its mixed derivative",
          autograd_rule(lambda a: smallest(a), lambda a, x, w: -w / (12 * x * x + 2)), 1.3,
          truth=lambda a: 1 / (12 * mp.findroot(lambda x: 4 * x**3 + 2 * x - a, 0.3) ** 2 + 2)),
    right("autograd", "a minimum by scipy", autograd_rule(lambda a: smallest(a), lambda a, x, w: w / (12 * x * x + 2)),
          1.3,
          truth=lambda a: 1 / (12 * mp.findroot(lambda x: 4 * x**3 + 2 * x - a, 0.3) ** 2 + 2)),
)  # fmt: skip


def smallest(a):
    """The minimum of x⁴ + x² - a x by a root of its slope."""
    return scipy.optimize.brentq(lambda x: 4 * x**3 + 2 * x - float(a), -5, 5, xtol=1e-15)


def guarded_in_jax(x):
    """(exp(x) - 1) / x, with its limit at zero: a constant there."""
    safe = jnp.where(x == 0, 1.0, x)
    return jnp.where(x == 0, 1.0, jnp.expm1(safe) / safe)


def guarded_in_torch(x):
    """log(1 + x) / x."""
    safe = torch.where(x == 0, torch.ones_like(x), x)
    return torch.where(x == 0, torch.ones_like(x), torch.log1p(safe) / safe)


def guarded_in_numpy(x):
    """(sin(x) - x) / x² - 2 x with a branch of Python."""
    return 0.0 if x == 0 else (np.sin(x) - x) / x**2 - 2 * x


KINKS = rows(
    "planted at kinks, jumps, ends and removable singularities",
    wrong("jax", "relu at its kink with a slope of two", jax_vjp(jax.nn.relu, lambda x, y, w: 2.0 * w), 0.0,
          truth=lambda x: Between(0, 1)),
    wrong("jax", "an absolute value at its kink with a slope of 1.5", jax_vjp(jnp.abs, lambda x, y, w: 1.5 * w), 0.0,
          truth=lambda x: Between(-1, 1)),
    wrong("torch", "a maximum at a tie with negative shares",
          lambda x: torch_old(torch.max, lambda x, y, w: w * torch.tensor([1.5, -0.5], dtype=x.dtype))(x), [2.0, 2.0],
          truth=lambda x: [Between(0, 1), Between(0, 1)]),
    wrong("autograd", "a clip at its edge with its slope beyond",
          autograd_rule(lambda x: np.clip(x, -1, 1), lambda x, y, w: -w), 1.0, truth=lambda x: Between(0, 1)),
    wrong("jax", "a jump's slope of 12345", jax_vjp(jnp.floor, lambda x, y, w: 12345.0 * w), 2.0, truth=lambda x: 0),
    wrong("autograd", "a jump between pieces with any slope",
          autograd_rule(lambda x: np.where(x < 2, x * x, 3 * x), lambda x, y, w: -777.0 * w), 2.0,
          truth=lambda x: Between(3, 4)),
    wrong("jax", "a root at zero with a finite slope", jax_vjp(jnp.sqrt, lambda x, y, w: w * 1e6), 0.0,
          truth=lambda x: mp.inf),
    wrong("jax", "a limit at zero as a constant", guarded_in_jax, 0.0, truth=lambda x: mpf(1) / 2),
    right("jax", "a limit at zero with its rule", jax_vjp(guarded_in_jax,
          lambda x, y, w: w * jnp.where(x == 0, 0.5, (jnp.exp(x) - y) / jnp.where(x == 0, 1.0, x))), 0.0,
          truth=lambda x: mpf(1) / 2),
    wrong("torch", "a limit at zero as a constant in one entry", lambda x: guarded_in_torch(x).sum(), [0.0, 0.5],
          truth=lambda x: [-mpf(1) / 2, (x[1] / (1 + x[1]) - mp.log1p(x[1])) / x[1] ** 2]),
    wrong("numpy", "a limit at zero by a branch of Python", guarded_in_numpy, 0.0, truth=lambda x: -2 - mpf(1) / 6),
    wrong("jax", "a value written down for one point", lambda x: jnp.where(x == 3.0, 9.0, x**2), 3.0,
          truth=lambda x: 6),
    wrong("torch", "an eigenvalue of a symmetric matrix with a factor off its diagonal",
          lambda A: torch_old(lambda A: torch.linalg.eigvalsh(A)[1], lambda A, y, w: w * doubled(A))(A), S2,
          truth=shared(lambda A: eigvalsh(A)[1])),
    wrong("torch", "a logarithm of a determinant by Cholesky with the triangle of another sign",
          lambda A: torch_old(lambda A: 2 * torch.linalg.cholesky(A).diagonal().log().sum(),
          lambda A, y, w: w * torch.linalg.inv(A) * torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))(A), S2,
          truth=shared(lambda A: mp.log(det(A)))),
)  # fmt: skip


def doubled(A):
    vector = torch.linalg.eigh(A)[1][:, 1]
    return torch.outer(vector, vector) * torch.tensor([[1.0, 2.0], [2.0, 1.0]])


KEPT = {}


def kept_by(key, slope):
    return lambda x, y, w: w * KEPT.setdefault((slope, key(x)), slope(x))


ELSEWHERE = rows(
    "planted at other points (points=5)",
    elsewhere("jax", "wrong for negative numbers", summed(jax_vjp(lambda x: x**5,
          lambda x, y, w: 5 * w * x * jnp.abs(x) ** 3)), [1.1, 2.3], truth=lambda x: 5 * x**4),
    elsewhere("jax", "wrong where the signs differ", lambda x: jax_vjp(lambda x: x[0] ** 2 * x[1] ** 2,
          lambda x, y, w: 2 * w * x[0] * x[1] * jnp.abs(x[::-1] * 1.0) * jnp.sign(x[0]))(x), [1.1, 2.3],
              truth=lambda x: [2 * x[0] * x[1] ** 2, 2 * x[1] * x[0] ** 2]),
    elsewhere("jax", "wrong at a zero", summed(jax_jvp(lambda x: x * jnp.cos(x),
          lambda x, y, v: jnp.where(x == 0, 0.0, v * (jnp.cos(x) - x * jnp.sin(x))))), [1.1, -2.3],
          truth=lambda x: [mp.cos(v) - v * mp.sin(v) for v in x]),
    elsewhere("torch", "wrong for positive numbers", lambda x: torch_old(torch.sin,
          lambda x, y, w: w * torch.cos(x) * torch.where(x > 0, 1.001, 1.0))(x).sum(), [-1.1, -2.3],
          truth=lambda x: [mp.cos(v) for v in x]),
    elsewhere("torch", "wrong for the first entry's negatives",
          lambda x: torch_new(lambda x: x**2, lambda x, y, w: w * 2 * torch.cat([x[:1].abs(), x[1:]]))(x).sum(),
          [1.1, -2.3], truth=lambda x: 2 * x),
    elsewhere("autograd", "wrong where the first is larger", lambda x: anp.sum(autograd_rule(np.square,
          lambda x, y, w: w * 2 * (x if x[0] < x[1] else x[::-1]))(x)), [1.1, 2.3], truth=lambda x: 2 * x),
    elsewhere("torch", "a slope kept by its shape", lambda x: torch_old(torch.sin,
          kept_by(lambda x: tuple(x.shape), torch.cos))(x).sum(), [1.1, 2.3], truth=lambda x: [mp.cos(v) for v in x],
          points=3),
    elsewhere("autograd", "a slope kept by its size", lambda x: anp.sum(autograd_rule(np.sin,
          kept_by(lambda x: x.size, np.cos))(x)), [1.1, 2.3], truth=lambda x: [mp.cos(v) for v in x], points=3),
)  # fmt: skip

SECOND_ORDER = rows(
    "planted in second derivatives",
    wrong("jax", "a slope held constant", summed(jax_vjp(jnp.sin,
          lambda x, y, w: w * jnp.cos(jax.lax.stop_gradient(x)))), P3[:2],
          truth=lambda x: [[-mp.sin(x[0]), 0], [0, -mp.sin(x[1])]], modes="hessian"),
    wrong("jax", "a slope's value taken for its input", summed(jax_jvp(jnp.exp,
          lambda x, y, v: v * jax.lax.stop_gradient(y))), P3[:2],
          truth=lambda x: [[mp.exp(x[0]), 0], [0, mp.exp(x[1])]], modes="hessian"),
    wrong("torch", "a rule of second order with a sign", lambda x: torch_old(torch.sin,
          lambda x, y, w: w * torch_old(torch.cos, lambda x, y, w: w * torch.sin(x))(x))(x).sum(), P3[:2],
          truth=lambda x: [[-mp.sin(x[0]), 0], [0, -mp.sin(x[1])]], modes="hessian"),
    wrong("autograd", "a rule of second order with 1e-4 too much",
          lambda x: anp.sum(autograd_rule(np.sin, lambda x, y, w: w * autograd_rule(np.cos,
          lambda x, y, w: -w * anp.sin(x) * 1.0001)(x))(x)), P3[:2],
          truth=lambda x: [[-mp.sin(x[0]), 0], [0, -mp.sin(x[1])]], modes="hessian"),
)  # fmt: skip

CAST = rows(
    "planted beside casts",
    wrong("torch", "a pass through float32 with 1e-3 too much",
          lambda x: torch_old(lambda x: (x.float() ** 2).double(), lambda x, y, w: 2.002 * w * x)(x).sum(), [0.7, 0.1],
          truth=lambda x: 2 * x),
    wrong("jax", "a pass through float32 with a sign", summed(jax_vjp(lambda x:
          jnp.cos(x.astype(jnp.float32)).astype(jnp.float64), lambda x, y, w: w * jnp.sin(x))), [0.7, 0.1],
          truth=lambda x: [-mp.sin(v) for v in x]),
    wrong("jax", "a cast to whole numbers inside a rule", summed(jax_vjp(lambda x: x**2,
          lambda x, y, w: w * 2 * x.astype(int).astype(float))), [1.7, 2.0], truth=lambda x: 2 * x),
)  # fmt: skip

ROWS = [*CONDITIONED, *ENTRIES, *BOXES, *KINKS, *ELSEWHERE, *SECOND_ORDER, *CAST]
