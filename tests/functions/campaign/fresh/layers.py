"""Layers of networks, and nested arguments."""

from dataclasses import dataclass

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
from mpmath import mp, mpf
from torch.nn import functional

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D, exp, log, relu, sin, softmax, tanh

A3 = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]]
B3 = [1.0, -0.5, 2.0]
M23 = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]
X6 = [0.75, -1.25, 3.0, 0.5, -2.0, 1.5]


def normalised(x):
    centred = x - sum(x) / len(x)
    return centred / mp.sqrt(sum(centred**2) / len(x) + mpf(1e-5))


def attention(Q, K, V):
    out = [softmax(K @ q / mp.sqrt(3)) @ V for q in Q]
    return sum(sum(row**2) for row in out)


def entropy(p):
    return -anp.sum(p * anp.log(p))


@dataclass(frozen=True)
class Weights:
    """A layer's parameters."""

    w: object
    b: object


jax.tree_util.register_dataclass(Weights, data_fields=["w", "b"], meta_fields=[])


def layer(weights):
    return jnp.sum(jnp.tanh(weights.w @ jnp.array(B3)) * weights.b)


def gated(x, W):
    first, second = jnp.split(x @ W, 2)
    return jnp.sum(first * jax.nn.sigmoid(second))


LAYERS = rows(
    "fresh: layers and nested arguments",
    right("jax", "a convolution in one dimension", lambda x, k: jnp.sum(jax.lax.conv(x[None, None], k[None, None], (2,),
          "VALID") ** 3), X6, B3,
          truth=D(lambda x, k: sum(sum(x[i : i + 3] * k) ** 3 for i in (0, 2)))),
    right("jax", "a normalised layer", lambda x, g: jnp.sum(jax.nn.standardize(x) ** 3 * g), X6, X6[::-1],
          truth=D(lambda x, g: sum(normalised(x) ** 3 * g))),
    right("jax", "an attention", lambda Q, K, V: jnp.sum((jax.nn.softmax(Q @ K.T / jnp.sqrt(3.0), axis=-1) @ V) ** 2),
          M23, A3, A3, truth=D(attention)),
    right("jax", "a gated unit", gated, B3, [[1.0, 0.5], [-0.25, 2.0], [0.75, -1.0]], truth=D(lambda x,
          W: (x @ W)[0] / (1 + mp.exp(-(x @ W)[1])))),
    right("jax", "a dict of weights", lambda p: jnp.sum(jnp.tanh(p["w"] @ p["x"]) * p["b"]), {"b": [0.5, -1.0],
          "w": M23, "x": B3},
          truth=D(lambda p: sum(tanh(p["w"] @ p["x"]) * p["b"]))),
    right("jax", "a dataclass inside", lambda w, b: layer(Weights(w, b)), M23, [0.5, -1.0],
          truth=D(lambda w, b: sum(tanh(w @ np.array(B3)) * b))),
    right("jax", "a function over a batch", lambda X, w: jnp.sum(jax.vmap(lambda x: jnp.sin(x @ w) * x[0])(X)), M23, B3,
          truth=D(lambda X, w: sum(sin(X @ w) * X[:, 0]))),
    right("jax", "a function recomputed", lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.exp(jnp.sin(y)) * y)(x)), X6,
          truth=D(lambda x: sum(exp(sin(x)) * x))),
    right("jax", "a derivative inside", lambda x: jax.grad(lambda y: jnp.exp(y) * jnp.sin(y * x))(0.5), 1.3,
          truth=D(lambda x: mp.exp(mpf("0.5")) * (mp.sin(x / 2) + x * mp.cos(x / 2)))),
    right("torch", "a convolution in two dimensions", lambda x, k: functional.conv2d(x[None, None], k[None, None],
          padding=1).pow(2).sum(), A3, [[1.0, -1.0], [0.5, 2.0]],
          truth=D(lambda x, k: sum(sum(np.ravel(np.pad(x, 1, constant_values=mpf(0))[i : i + 2,
          j : j + 2] * k)) ** 2 for i in range(4) for j in range(4)))),
    right("torch", "a normalisation of groups", lambda x: (functional.group_norm(x[None, :, None], 2)[0, :,
          0] ** 3).sum(), X6,
          truth=D(lambda x: sum(normalised(x[:3]) ** 3) + sum(normalised(x[3:]) ** 3))),
    right("torch", "a normalisation of a batch", lambda X, w: (functional.batch_norm(X, None, None, w,
          training=True) ** 3).sum(), A3, B3,
          truth=D(lambda X, w: sum(sum((normalised(X[:, j]) * w[j]) ** 3) for j in range(3)))),
    right("torch", "an attention of torch", lambda Q, K, V: functional.scaled_dot_product_attention(Q, K,
          V).pow(2).sum(), M23, A3, A3, truth=D(attention)),
    right("torch", "a pooling by maxima and means", lambda x: (functional.max_pool1d(x[None],
          2) * functional.avg_pool1d(x[None], 2)).sum(), X6,
          truth=D(lambda x: sum(max(x[k], x[k + 1]) * (x[k] + x[k + 1]) / 2 for k in (0, 2, 4)))),
    right("torch", "a cosine similarity", lambda x, y: functional.cosine_similarity(x, y, dim=0), B3, [0.5, 2.0, -1.0],
          truth=D(lambda x, y: x @ y / mp.sqrt(x @ x) / mp.sqrt(y @ y))),
    right("torch", "a bilinear form", lambda x, W, y: functional.bilinear(x[None], y[None], W[None]).sum(), B3, A3, B3,
          truth=D(lambda x, W, y: x @ W @ y)),
    right("torch", "an upsampling", lambda x: functional.interpolate(x[None, None], scale_factor=2,
          mode="linear").pow(2).sum(), B3,
          truth=D(lambda x: sum(v**2 for v in [x[0], (3 * x[0] + x[1]) / 4, (x[0] + 3 * x[1]) / 4,
          (3 * x[1] + x[2]) / 4, (x[1] + 3 * x[2]) / 4, x[2]]))),
    right("torch", "a triplet loss", lambda a, p, n: functional.triplet_margin_loss(a, p, n, margin=5.0, eps=0.0), B3,
          [0.5, 2.0, -1.0], [3.0, 1.0, 0.25],
          truth=D(lambda a, p, n: mp.sqrt(sum((a - p) ** 2)) - mp.sqrt(sum((a - n) ** 2)) + 5)),
    right("autograd", "a network of two layers", lambda W, x, b: anp.sum(anp.maximum(W @ x, 0.0) * b), M23, B3,
          [0.5, -1.0], truth=D(lambda W, x, b: sum(relu(W @ x) * b))),
    right("autograd", "a softmax's entropy",
          lambda x: entropy(anp.exp(x - anp.max(x)) / anp.sum(anp.exp(x - anp.max(x)))),
          B3, truth=D(lambda x: -sum(softmax(x) * log(softmax(x))))),
    right("numpy", "a normalised layer", lambda x: np.sum(((x - np.mean(x)) / np.sqrt(np.var(x) + 1e-5)) ** 3), X6,
          truth=D(lambda x: sum(normalised(x) ** 3))),
)  # fmt: skip

ROWS = LAYERS
