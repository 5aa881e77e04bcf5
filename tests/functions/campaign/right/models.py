"""Densities and likelihoods, layers of networks, nested arguments, casts, step functions and declared constants."""

import dataclasses
from typing import Any

import autograd.numpy as anp
import autograd.scipy.special as asp
import autograd.scipy.stats as ast
import jax
import jax.numpy as jnp
import jax.scipy.stats as jst
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D, det, exp, lse, sigmoid, softmax, solve, tanh

Z = [0.3, -1.2, 2.1, 0.9]
COUNTS = [2.0, 0.0, 5.0, 1.0]
X42 = [[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.1]]
S2 = [[2.0, 0.5], [0.5, 1.0]]
F = torch.nn.functional


def numbers(values):
    return np.vectorize(mpf, otypes=[object])(np.array(values, dtype=float))


def gaussian(x, mean, S):
    """The exponent and the determinant of a normal density."""
    return -(x - mean) @ solve(S, x - mean) / 2 - mp.log(det(S)) / 2


def gp_value(length, noise):
    x, y = np.array([0.0, 1.0]), np.array([0.5, -0.3])
    K = np.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2) + noise * np.eye(2)
    return -0.5 * y @ np.linalg.solve(K, y) - 0.5 * np.linalg.slogdet(K)[1]


def gp_exact(length, noise):
    k = mp.exp(-1 / (2 * length**2))
    K = np.array([[1 + noise, k], [k, 1 + noise]], dtype=object)
    return gaussian(numbers([0.5, -0.3]), numbers([0, 0]), K)


DENSITIES = rows(
    "densities and likelihoods",
    right("jax", "a logistic regression", lambda w: jnp.sum(jax.nn.softplus(-jnp.array([1.0, -1, 1,
          -1]) * (jnp.array(X42) @ w))), [0.4, -0.7],
          truth=lambda w: -(numbers([1, -1, 1, -1]) * sigmoid(-numbers([1, -1, 1,
          -1]) * (numbers(X42) @ w))) @ numbers(X42)),
    right("jax", "a Poisson regression", lambda w: jnp.sum(jst.poisson.logpmf(jnp.array([2, 0, 5, 1]),
          jnp.exp(jnp.array(X42) @ w))), [0.4, 0.3],
          truth=lambda w: (numbers(COUNTS) - exp(numbers(X42) @ w)) @ numbers(X42)),
    right("jax", "a Student density in all parameters", lambda x, v, s: jst.t.logpdf(x, v, 0.0, s), 3.0, 4.5, 1.2,
          truth=D(lambda x, v, s: mp.loggamma((v + 1) / 2) - mp.loggamma(v / 2) - mp.log(v * mp.pi) / 2 - mp.log(s) -
          (v + 1) / 2 * mp.log1p((x / s) ** 2 / v))),
    right("jax", "a normal density in a covariance of two parameters",
          lambda a, r: jst.multivariate_normal.logpdf(jnp.array([1.0, -0.5]), jnp.zeros(2),
          jnp.array([[a, r], [r, 1.0]])), 2.0, 0.5,
          truth=D(lambda a, r: gaussian(numbers([1, -0.5]), numbers([0, 0]),
          np.array([[a, r], [r, mpf(1)]], dtype=object)))),
    right("jax", "a mixture of normal densities", lambda w, m: jnp.sum(jax.nn.logsumexp(w - (jnp.array(Z)[:,
          None] - m) ** 2 / 2, axis=1)), [0.2, -0.4], [1.0, -1.0],
          truth=D(lambda w, m: sum(lse(w - (one - m) ** 2 / 2) for one in numbers(Z)))),
    right("jax", "a gamma density", lambda a, b: jnp.sum(jst.gamma.logpdf(jnp.array([0.5, 3.0]), a, scale=1 / b)), 2.3,
          0.8,
          truth=lambda a, b: [2 * mp.log(b) - 2 * mp.digamma(a) + mp.log(mpf("1.5")), 2 * a / b - mpf("3.5")]),
    right("jax", "a tail of a normal distribution", lambda m, s: jst.norm.logsf(4.0, m, s), 0.5, 0.7, digits=8,
          truth=D(lambda m, s: mp.log(mp.erfc((4 - m) / s / mp.sqrt(2)) / 2))),
    right("torch", "a negative binomial likelihood", lambda r, p: torch.distributions.NegativeBinomial(r,
          probs=p).log_prob(torch.tensor([3.0], dtype=torch.float64)).sum(), [2.5], [0.3],
          truth=lambda r, p: [mp.digamma(3 + r[0]) - mp.digamma(r[0]) + mp.log(1 - p[0]),
          3 / p[0] - r[0] / (1 - p[0])]),
    right("torch", "a Dirichlet density", lambda a: torch.distributions.Dirichlet(a).log_prob(torch.tensor([0.2, 0.3,
          0.5], dtype=torch.float64)), [0.7, 2.0, 3.0],
          truth=lambda a: [mp.digamma(sum(a)) - mp.digamma(one) + mp.log(mpf(x)) for one,
          x in zip(a, (0.2, 0.3, 0.5), strict=True)]),
    right("torch", "a divergence of two normal densities", lambda m,
          s: torch.distributions.kl_divergence(torch.distributions.Normal(m, s),
          torch.distributions.Normal(0.0, 2.0)).sum(), [0.5], [0.3],
          truth=lambda m, s: [m[0] / 4, -1 / s[0] + s[0] / 4]),
    right("torch", "a Laplace density", lambda m, b: torch.distributions.Laplace(m,
          b).log_prob(torch.tensor([1.0, -2.0], dtype=torch.float64)).sum(), [0.25], [1.5],
          truth=lambda m, b: [0, -2 / b[0] + mpf("3") / b[0] ** 2]),
    right("autograd", "normal log densities", lambda m, s: anp.sum(ast.norm.logpdf(anp.array(Z), m, s)), 0.4, 1.3,
          truth=lambda m, s: [sum(numbers(Z) - m) / s**2, sum((numbers(Z) - m) ** 2) / s**3 - 4 / s]),
    right("autograd", "a beta-binomial likelihood", lambda a, b: asp.betaln(a + 3, b + 2) - asp.betaln(a, b), 0.6, 1.7,
          truth=lambda a, b: [mp.digamma(a + 3) - mp.digamma(a + b + 5) - mp.digamma(a) + mp.digamma(a + b),
          mp.digamma(b + 2) - mp.digamma(a + b + 5) - mp.digamma(b) + mp.digamma(a + b)]),
    right("autograd", "a Gumbel likelihood", lambda m, s: anp.sum(-(anp.array(Z) - m) / s -
          anp.exp(-(anp.array(Z) - m) / s) - anp.log(s)), 0.2, 0.9,
          truth=D(lambda m, s: sum(-(numbers(Z) - m) / s - exp(-(numbers(Z) - m) / s)) - 4 * mp.log(s))),
    right("numpy", "an autoregression", lambda phi, s: -0.5 * np.sum((np.array(Z[1:]) - phi * np.array(Z[:-1])) ** 2) /
          s**2 - 3 * np.log(s), 0.6, 0.8,
          truth=D(lambda phi, s: -sum((numbers(Z[1:]) - phi * numbers(Z[:-1])) ** 2) / 2 / s**2 - 3 * mp.log(s))),
    right("numpy", "a Gaussian process of two points", gp_value, 0.7, 0.1,
          truth=D(gp_exact)),
)  # fmt: skip


IMAGE = [[1.0, 2.0, -1.0], [0.5, -0.3, 0.8], [2.0, 1.0, 0.1]]
K22 = [[0.5, -1.0], [0.25, 2.0]]
Q, K, V = [[0.1, 0.4], [0.3, -0.2]], [[0.5, 0.2], [-0.1, 0.7]], [[1.0, -1.0], [0.5, 2.0]]


def windows(image, kernel):
    return [[np.sum(image[i : i + 2, j : j + 2] * kernel) for j in range(2)] for i in range(2)]


def attention(q, k, v):
    scores = q @ k.T / mp.sqrt(2)
    return np.array([softmax(row) for row in scores], dtype=object) @ v


def layer_norm(x, eps):
    mean = sum(x) / len(x)
    return (x - mean) / mp.sqrt(sum((x - mean) ** 2) / len(x) + mpf(eps))


class Swish(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.beta = torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))

    def forward(self, x):
        return (x * torch.sigmoid(self.beta * x)).sum()


LAYERS = rows(
    "layers of networks",
    right("jax", "a convolution", lambda im, k: jnp.sum(jax.lax.conv(im[None, None], k[None, None], (1, 1),
          "VALID") ** 2), IMAGE, K22,
          truth=D(lambda im, k: np.sum(np.array(windows(im, k), dtype=object) ** 2))),
    right("jax", "an attention", lambda q, k, v: jnp.sum((jax.nn.softmax(q @ k.T / jnp.sqrt(2.0)) @ v) ** 2), Q, K, V,
          truth=D(lambda q, k, v: np.sum(attention(q, k, v) ** 2))),
    right("jax", "a layer norm", lambda x, g: jnp.sum(g * jax.nn.standardize(x, epsilon=1e-5) ** 3), Z,
          [1.0, 2.0, 0.5, -1.0],
          truth=D(lambda x, g: sum(g * layer_norm(x, 1e-5) ** 3))),
    right("jax", "an average pool", lambda im: jnp.sum(jax.lax.reduce_window(im, 0.0, jax.lax.add, (2, 2), (1, 1),
          "VALID") ** 2) / 16, IMAGE,
          truth=D(lambda im: np.sum(np.array(windows(im, numbers([[1, 1], [1, 1]])), dtype=object) ** 2) / 16)),
    right("jax", "a maximum pool", lambda im: jnp.sum(jax.lax.reduce_window(im, -jnp.inf, jax.lax.max, (2, 2), (1, 1),
          "VALID") ** 2), IMAGE,
          truth=lambda im: [[0, 8, 0], [0, 0, 0], [4, 2, 0]]),
    right("jax", "a two-layer network with a residual", lambda W, U, x: jnp.sum(x + U @ jax.nn.silu(W @ x)), S2, K22,
          [0.5, -1.5],
          truth=D(lambda W, U, x: sum(x + U @ ((W @ x) * sigmoid(W @ x))))),
    right("torch", "a convolution with a stride and a border",
          lambda im, k: F.conv2d(im[None, None], k[None, None], stride=2, padding=1).pow(2).sum(), IMAGE, K22,
          truth=D(lambda im, k: strided(im, k))),
    right("torch", "a transposed convolution", lambda im, k: F.conv_transpose2d(im[None, None], k[None, None])[0, 0, 1,
          1], IMAGE, K22,
          truth=D(lambda im, k: im[1, 1] * k[0, 0] + im[1, 0] * k[0, 1] + im[0, 1] * k[1, 0] + im[0, 0] * k[1, 1])),
    right("torch", "a batch norm in training", lambda x: F.batch_norm(x, None, None, training=True)[:, 0].pow(3).sum(),
          [[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]],
          truth=D(lambda x: sum(layer_norm(x[:, 0], 1e-5) ** 3))),
    right("torch", "a group norm", lambda x: (F.group_norm(x[None, :, None], 2)[0, :, 0] * torch.arange(4.0)).sum(), Z,
          truth=D(lambda x: sum(np.concatenate([layer_norm(x[:2], 1e-5), layer_norm(x[2:], 1e-5)]) * np.arange(4)))),
    right("torch", "a scaled attention", lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None],
          v[None]).pow(2).sum(), Q, K, V,
          truth=D(lambda q, k, v: np.sum(attention(q, k, v) ** 2))),
    right("torch", "a cross entropy with label smoothing", lambda x: F.cross_entropy(x[None], torch.tensor([2]),
          label_smoothing=0.1), Z,
          truth=lambda x: softmax(x) - [mpf(0.1) / 4, mpf(0.1) / 4, 1 - mpf(0.1) * 3 / 4, mpf(0.1) / 4]),
    right("torch", "a module with a parameter", Swish(), [0.5, -1.0], truth=lambda x: swish(x)),
    right("torch", "gelu by tanh", lambda x: F.gelu(x, approximate="tanh").sum(), Z,
          truth=D(lambda x: sum(x / 2 * (1 + tanh(mp.sqrt(2 / mp.pi) * (x + mpf(0.044715) * x**3)))))),
    right("autograd", "a network of two layers", lambda W, b, x: anp.sum(anp.tanh(anp.dot(W, x) + b) ** 2), S2,
          [0.1, -0.2], [0.5, 1.5],
          truth=D(lambda W, b, x: sum(tanh(W @ x + b) ** 2))),
    right("autograd", "a softmax by hand", lambda x: anp.dot(anp.exp(x - anp.max(x)) /
          anp.sum(anp.exp(x - anp.max(x))), anp.arange(4.0)), Z,
          truth=D(lambda x: sum(softmax(x) * np.arange(4)))),
    right("numpy", "a contrastive loss", lambda A: -np.log(np.exp(A[0] @ A[1]) /
          (np.exp(A[0] @ A[1]) + np.exp(A[0] @ A[2]))), IMAGE,
          truth=D(lambda A: mp.log(1 + mp.exp(A[0] @ A[2] - A[0] @ A[1])))),
)  # fmt: skip


def strided(im, k):
    padded = np.full((5, 5), mpf(0), dtype=object)
    padded[1:4, 1:4] = im
    return sum(np.sum(padded[i : i + 2, j : j + 2] * k) ** 2 for i in (0, 2) for j in (0, 2))


def swish(x):
    return D(lambda beta, x: sum(x * sigmoid(beta * x)))(mpf(1.5), x)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Oscillator:
    damping: Any
    rates: Any


class Point:
    """Neither a tuple nor registered: its numbers are constants."""

    scale = 3.0


NESTED = rows(
    "nested arguments",
    right("jax", "a dict of a scale and weights", lambda p, x: p["scale"] * jnp.tanh(p["weights"] @ x),
          {"scale": 2.0, "weights": [0.5, -1.0]}, [1.0, 0.3],
          truth=D(lambda p, x: p["scale"] * mp.tanh(p["weights"] @ x))),
    right("jax", "a registered dataclass", lambda o, t: jnp.sum(jnp.exp(-o.damping * t) * jnp.cos(o.rates * t)),
          Oscillator(0.3, np.array([1.0, 2.5])), 0.9,
          truth=lambda o, t: oscillator(t)),
    right("torch", "a dict of tensors", lambda p, x: (torch.sigmoid(p["w"] @ x) * p["b"]).sum(),
          {"b": [0.5, -2.0], "w": S2}, [1.0, 0.3],
          truth=D(lambda p, x: sum(sigmoid(p["w"] @ x) * p["b"]))),
    right("autograd", "a dict in a dict", lambda p: p["a"]["u"] ** 2 * anp.sin(p["b"]), {"a": {"u": 1.5}, "b": 0.4},
          truth=lambda p: [2 * p["a"]["u"] * mp.sin(p["b"]), p["a"]["u"] ** 2 * mp.cos(p["b"])]),
    right("numpy", "a tuple with a whole number", lambda p, x: x ** p[1] * p[0], (1.5, 3), 0.8,
          truth=lambda p, x: [x**3, 3 * x * x * p[0]]),
    right("jax", "an object of constants", lambda o, x: jnp.sin(x) * o.scale, Point(), 0.8,
          truth=lambda o, x: 3 * mp.cos(x)),
)  # fmt: skip


def oscillator(t):
    return D(lambda damping, rates, t: sum(mp.exp(-damping * t) * np.frompyfunc(mp.cos, 1, 1)(rates * t)))(
        mpf(0.3), numbers([1.0, 2.5]), t
    )


CASTS = rows(
    "casts inside",
    right("jax", "a whole number of the input's size", lambda x: jnp.sum(x ** jnp.arange(x.size)), [0.5, 2.0, 1.5],
          truth=lambda x: [0, 1, 2 * x[2]]),
    right("jax", "a float32 constant", lambda x: jnp.sum(x * jnp.array([0.5, 0.25], dtype=jnp.float32) ** 2),
          [1.5, -2.0], truth=lambda x: [mpf("0.25"), mpf("0.0625")]),
    right("jax", "a pass through float32", lambda x: jnp.sin(x.astype(jnp.float32)).astype(jnp.float64)[0], [0.7],
          digits=6, truth=lambda x: mp.cos(x[0])),
    right("torch", "a pass through float32", lambda x: (x.float() * x.float()).double().sum(), [0.7, 0.1], digits=6,
          truth=lambda x: 2 * x),
    right("torch", "a whole part as an index", lambda x: (x * torch.tensor([1.0, 2.0, 4.0],
          dtype=torch.float64)[x.long()]).sum(), [0.5, 2.5], truth=lambda x: [1, 4]),
    right("autograd", "a mask of floats", lambda x: anp.sum(x**2 * (x > 0.5)), [0.3, 0.7],
          truth=lambda x: [0, 2 * x[1]]),
    right("numpy", "a whole-number power", lambda x: np.sum(x ** np.array([3, 0, -2])), [2.0, 5.0, 4.0],
          truth=lambda x: [12, 0, -2 / x[2] ** 3]),
)  # fmt: skip

STEPS = rows(
    "steps and declared constants",
    right("jax", "a sawtooth", lambda x: x - jnp.floor(x), 2.3, truth=lambda x: 1),
    right("jax", "rounded numbers beside smooth ones", lambda x: jnp.sum(jnp.round(x) * x), [1.2, -0.7],
          truth=lambda x: [1, -1]),
    right("jax", "a quantised signal", lambda x: jnp.sum(jnp.round(x * 4) / 4), [0.3, 0.9], truth=lambda x: [0, 0]),
    right("jax", "a straight-through estimator", lambda x: jnp.sum((x + jax.lax.stop_gradient(jnp.round(x) - x)) * 3),
          [0.4, 1.7], truth=lambda x: [3, 3]),
    right("jax", "a stopped normaliser", lambda x: jnp.sum(x / jax.lax.stop_gradient(jnp.sum(x))), [1.0, 3.0],
          truth=lambda x: [mpf("0.25"), mpf("0.25")]),
    right("jax", "a stopped maximum in a logsumexp", lambda x:
          jnp.log(jnp.sum(jnp.exp(x - jax.lax.stop_gradient(jnp.max(x))))) + jax.lax.stop_gradient(jnp.max(x)), Z,
          truth=lambda x: softmax(x)),
    right("torch", "a remainder", lambda x: torch.remainder(x, 0.75).sum(), [2.0, -1.0], truth=lambda x: [1, 1]),
    right("torch", "a sign of a sine times x", lambda x: (torch.sign(torch.sin(x)) * x).sum(), [4.0, 1.0],
          truth=lambda x: [-1, 1]),
    right("torch", "a straight-through estimator", lambda x: (x + (torch.sign(x) - x).detach()).sum(), [0.4, -1.7],
          truth=lambda x: [1, 1]),
    right("torch", "a stopped maximum in a softmax", lambda x:
          (torch.exp(x - x.max().detach()) / torch.exp(x - x.max().detach()).sum())[2], Z,
          truth=D(lambda x: softmax(x)[2])),
    right("autograd", "a floor", lambda x: anp.floor(x) * anp.sin(x), 2.7, truth=lambda x: 2 * mp.cos(x)),
    right("numpy", "a ceiling", lambda x: np.sum(np.ceil(x) ** 2 + x), [1.5, -0.5], truth=lambda x: [1, 1]),
    right("numpy", "a sign", lambda x: np.sum(np.sign(x) * 5), [1.5, -0.5], truth=lambda x: [0, 0]),
    right("numpy", "a modulo of a product", lambda x, y: (x * y) % 1.0, 1.7, 2.2, truth=lambda x, y: [y, x]),
)  # fmt: skip

ROWS = [*DENSITIES, *LAYERS, *NESTED, *CASTS, *STEPS]
