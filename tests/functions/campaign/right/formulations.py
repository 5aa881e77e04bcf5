"""Stable and unstable ways to write a function, removable singularities, reductions and norms."""

import autograd.numpy as anp
import autograd.scipy.special as asp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D, exp, lse, softmax

Z = [0.3, -1.2, 2.1, 0.9]
OFFSET = [1e4 + 0.25, 1e4 - 0.5, 1e4 + 1.0]


def variance(x):
    mean = sum(x) / len(x)
    return sum((one - mean) ** 2 for one in x) / len(x)


def welford(x):
    mean, total = 0.0, 0.0
    for k in range(3):
        step = x[k] - mean
        mean = mean + step / (k + 1)
        total = total + step * (x[k] - mean)
    return total / 3


def kahan(x):
    total, lost = x[0], 0.0
    for k in range(1, 4):
        term = x[k] * x[k] - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return total


STABILITY = rows(
    "stable and unstable formulations",
    right("jax", "log(1 + exp(x)) written out", lambda x: jnp.log(1 + jnp.exp(x)), 30.0,
          truth=lambda x: 1 / (1 + mp.exp(-x))),
    right("jax", "log1p(exp(-x)) far out", lambda x: jnp.log1p(jnp.exp(-x)), 60.0,
          truth=lambda x: -1 / (1 + mp.exp(x))),
    right("jax", "1 - exp(-x) written out", lambda x: 1 - jnp.exp(-x), 1e-9, truth=lambda x: mp.exp(-x)),
    right("jax", "a logsumexp of large numbers", lambda x: jax.scipy.special.logsumexp(x), [800.0, 801.0, 790.0],
          truth=softmax),
    right("jax", "a logsumexp written out", lambda x: jnp.log(jnp.sum(jnp.exp(x))), Z, truth=softmax),
    right("jax", "a variance by moments", lambda x: jnp.mean(x * x) - jnp.mean(x) ** 2, OFFSET,
          truth=lambda x: 2 * (x - sum(x) / 3) / 3),
    right("jax", "a variance of numbers far from zero", jnp.var, OFFSET, truth=lambda x: 2 * (x - sum(x) / 3) / 3),
    right("jax", "a difference of square roots", lambda x: jnp.sqrt(x + 1) - jnp.sqrt(x), 1e4, digits=7,
          truth=lambda x: 1 / (2 * mp.sqrt(x + 1)) - 1 / (2 * mp.sqrt(x))),
    right("jax", "the smaller root by Vieta", lambda b: -2 / (b + jnp.sqrt(b * b - 4)), 1e5,
          truth=lambda b: 2 / (b + mp.sqrt(b * b - 4)) ** 2 * (1 + b / mp.sqrt(b * b - 4))),
    right("jax", "the smaller root written out", lambda b: (-b + jnp.sqrt(b * b - 4)) / 2, 100.0, digits=8,
          truth=lambda b: (-1 + b / mp.sqrt(b * b - 4)) / 2),
    right("torch", "a variance by Welford", welford, OFFSET, truth=lambda x: 2 * (x - sum(x) / 3) / 3),
    right("torch", "cross entropy by log_softmax", lambda x: -torch.log_softmax(x, 0)[1], [50.0, -40.0, 3.0],
          truth=lambda x: softmax(x) - [0, 1, 0]),
    right("torch", "log of softmax written out", lambda x: torch.log(torch.softmax(x, 0))[0], Z,
          truth=lambda x: [1, 0, 0, 0] - softmax(x)),
    right("torch", "a compensated sum", kahan, Z, truth=lambda x: [1, 2 * x[1], 2 * x[2], 2 * x[3]]),
    right("torch", "binary cross entropy with logits", lambda x: torch.nn.functional.binary_cross_entropy_with_logits(
          x, torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64), reduction="sum"), [2.0, -3.0, -2.0, 0.1],
          truth=lambda x: 1 / (1 + exp(-x)) - [1, 0, 1, 0], digits=7),
    right("autograd", "a logsumexp along an axis", lambda A: anp.sum(asp.logsumexp(A, axis=1) ** 2),
          [[1.0, 2.0], [-3.0, 400.0]],
          truth=lambda A: [2 * lse(row) * softmax(row) for row in A]),
    right("autograd", "a quotient that tends to one", lambda x: anp.sinh(x) / x, 0.01,
          truth=lambda x: (x * mp.cosh(x) - mp.sinh(x)) / x**2),
    right("autograd", "log(cosh(x)) without overflow",
          lambda x: anp.sum(anp.abs(x) + anp.log1p(anp.exp(-2 * anp.abs(x)))), [300.0, -2.0],
          truth=lambda x: [mp.tanh(v) for v in x]),
    right("numpy", "a relative difference", lambda x, y: (x - y) / (x + y), 1.0, 1 + 2.0**-30,
          truth=lambda x, y: [2 * y / (x + y) ** 2, -2 * x / (x + y) ** 2]),
    right("numpy", "log1p against log", lambda x: np.log1p(x) - np.log(1 + 2 * x), 1e-3,
          truth=lambda x: 1 / (1 + x) - 2 / (1 + 2 * x)),
    right("numpy", "a tangent by half angles", lambda x: 2 * np.tan(x / 2) / (1 - np.tan(x / 2) ** 2), 1.2,
          truth=lambda x: 1 / mp.cos(x) ** 2),
    right("numpy", "cosine minus one by half angles", lambda x: -2 * np.sin(x / 2) ** 2, 1e-7,
          truth=lambda x: -mp.sin(x)),
)  # fmt: skip

X23 = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]

REDUCTIONS = rows(
    "reductions and norms",
    right("jax", "a standard deviation with one degree less", lambda x: jnp.std(x, ddof=1), Z,
          truth=D(lambda x: mp.sqrt(variance(x) * 4 / 3))),
    right("jax", "a geometric mean", lambda x: jnp.exp(jnp.mean(jnp.log(x))), [0.5, 2.0, 7.0],
          truth=D(lambda x: mp.cbrt(x[0] * x[1] * x[2]))),
    right("jax", "a product with one zero", jnp.prod, [3.0, 0.0, -2.0, 0.5], truth=lambda x: [0, -3, 0, 0]),
    right("jax", "a product with two zeros", lambda x: jnp.prod(x) + x[0], [0.0, 0.0, -2.0], truth=lambda x: [1, 0, 0]),
    right("jax", "a cumulative product with a zero", lambda x: jnp.sum(jnp.cumprod(x)), [2.0, 0.0, 3.0, 4.0],
          truth=D(lambda x: x[0] + x[0] * x[1] + x[0] * x[1] * x[2] + x[0] * x[1] * x[2] * x[3])),
    right("jax", "a norm of order three", lambda x: jnp.linalg.norm(x, 3), Z,
          truth=lambda x: [mp.sign(v) * v * v / sum(abs(w) ** 3 for w in x) ** (mpf(2) / 3) for v in x]),
    right("jax", "norms of rows", lambda x: jnp.linalg.norm(x, axis=1), X23,
          truth=D(lambda x: [mp.sqrt(sum(row * row)) for row in x])),
    right("jax", "a maximum without ties", lambda x: jnp.max(x) * jnp.min(x), Z, truth=lambda x: [0, x[2], x[1], 0]),
    right("torch", "a product with a zero along an axis", lambda x: torch.prod(x, 1).sum(), [[0.0, 3.0], [4.0, 5.0]],
          truth=lambda x: [[3, 0], [5, 4]]),
    right("torch", "an unbiased variance of columns", lambda x: torch.var(x, 0).sum(), X23,
          truth=lambda x: [x[0] - x[1], x[1] - x[0]]),
    right("torch", "a cosine similarity", lambda x, y: torch.nn.functional.cosine_similarity(x, y, dim=0), Z,
          [1.0, 0.5, -0.25, 2.0],
          truth=D(lambda x, y: sum(x * y) / mp.sqrt(sum(x * x) * sum(y * y)))),
    right("torch", "a cumulative sum of squares", lambda x: torch.cumsum(x * x, 0)[-2], Z,
          truth=lambda x: [2 * x[0], 2 * x[1], 2 * x[2], 0]),
    right("torch", "a norm of order half", lambda x: torch.linalg.vector_norm(x, 0.5), [0.25, -4.0],
          truth=D(lambda x: sum(mp.sqrt(abs(v)) for v in x) ** 2)),
    right("torch", "pairwise distances", lambda x: torch.pdist(x).sum(), [[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]],
          truth=D(lambda x: sum(mp.sqrt(sum((x[i] - x[j]) ** 2)) for i, j in ((0, 1), (0, 2), (1, 2))))),
    right("torch", "an einsum with a repeated index", lambda A: torch.einsum("ii,ij->", A, A), [[1.0, 2.0], [3.0, 4.0]],
          truth=D(lambda A: A[0, 0] * sum(A[0]) + A[1, 1] * sum(A[1]))),
    right("autograd", "a mean over two axes", lambda x: anp.mean(x**3, axis=(0, 1)), X23, truth=lambda x: x * x / 2),
    right("autograd", "a product", anp.prod, [2.0, -0.5, 4.0], truth=lambda x: [x[1] * x[2], x[0] * x[2], x[0] * x[1]]),
    right("autograd", "a standard deviation of rows", lambda x: anp.sum(anp.std(x, axis=1)), X23,
          truth=D(lambda x: sum(mp.sqrt(variance(row)) for row in x))),
    right("autograd", "a Frobenius norm", lambda x: anp.linalg.norm(x), X23,
          truth=lambda x: x / mp.sqrt(np.sum(x * x))),
    right("numpy", "a weighted mean", lambda x, w: np.sum(w * x) / np.sum(w), Z, [0.1, 0.2, 0.3, 0.4],
          truth=lambda x, w: [*(w / sum(w)), *((x - sum(w * x) / sum(w)) / sum(w))]),
    right("numpy", "a maximum of rows", lambda x: np.sum(np.max(x, axis=1) ** 2), X23,
          truth=lambda x: [[0, 0, 4], [3, 0, 0]]),
    right("numpy", "an outer product", lambda x: np.sum(np.outer(x, x) ** 2), Z, truth=lambda x: 4 * x * sum(x * x)),
    right("numpy", "a log of a mean of exponentials", lambda x: np.log(np.mean(np.exp(x))), Z, truth=softmax),
    right("numpy", "a trace of a cube", lambda A: np.trace(A @ A @ A), [[1.0, 2.0], [-0.5, 3.0]],
          truth=lambda A: 3 * (A @ A).T),
)  # fmt: skip

ROWS = [*STABILITY, *REDUCTIONS]
