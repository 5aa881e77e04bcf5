"""Indexing, gathering and scattering, sorting and order statistics, transforms of Fourier, complex numbers inside."""

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import Between, D

V5 = [0.5, -1.5, 2.0, 3.5, -0.25]
X33 = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [3.0, 1.0, -2.0]]


def doubled_in_place(x):
    y = x.clone()
    y[1] *= 2
    y[2] = y[1].clone() * x[0]
    return y.prod()


def rolling(x):
    return np.sum(np.stack([x[k : k + 3] for k in range(3)]).mean(axis=1) ** 2)


INDEXING = rows(
    "indexing, gathering and scattering",
    right("jax", "a scatter that adds twice to one entry", lambda x: jnp.sum(jnp.zeros(3).at[jnp.array([0, 0, 2, 1,
          0])].add(x) ** 2), V5,
          truth=lambda x: 2 * np.array([x[0] + x[1] + x[4], x[0] + x[1] + x[4], x[2], x[3], x[0] + x[1] + x[4]])),
    right("jax", "a scatter that multiplies", lambda x: jnp.sum(x.at[jnp.array([0, 2])].multiply(x[:2],
          unique_indices=True)), V5,
          truth=D(lambda x: x[0] * x[0] + x[1] + x[2] * x[1] + x[3] + x[4])),
    right("jax", "a scatter that keeps the minimum", lambda x: jnp.sum(jnp.full(2,
          1.0).at[jnp.array([0, 1, 0, 1, 0])].min(x) ** 2), V5,
          truth=lambda x: [0, 2 * x[1], 0, 0, 2 * x[4]]),
    right("jax", "a slice at a computed place", lambda x: jax.lax.dynamic_slice(x, (jnp.argmax(x),), (2,)).prod(), V5,
          truth=lambda x: [0, 0, 0, x[4], x[3]]),
    right("jax", "a gather of a gather", lambda x: jnp.sum(x[jnp.array([1, 1, 3])][jnp.array([0, 2, 0])] ** 3), V5,
          truth=lambda x: [0, 6 * x[1] ** 2, 0, 3 * x[3] ** 2, 0]),
    right("jax", "a lower triangle", lambda A: jnp.sum(jnp.tril(A) @ jnp.triu(A, 1)), X33,
          truth=D(lambda A: np.sum(np.tril(np.ones((3, 3), int)) * A @ (np.triu(np.ones((3, 3), int), 1) * A)))),
    right("jax", "a rolled product", lambda x: jnp.sum(x * jnp.roll(x, 2)), V5,
          truth=lambda x: np.roll(x, 2) + np.roll(x, -2)),
    right("jax", "sums of segments", lambda x: jnp.prod(jax.ops.segment_sum(x, jnp.array([0, 1, 1, 0, 2]), 3)), V5,
          truth=D(lambda x: (x[0] + x[3]) * (x[1] + x[2]) * x[4])),
    right("torch", "changes in place", doubled_in_place, V5, truth=D(lambda x: x[0] * 2 * x[1] * 2 * x[1] * x[0] * x[3]
          * x[4])),
    right("torch", "index_add of repeated places", lambda x: torch.zeros(2, dtype=x.dtype).index_add(0,
          torch.tensor([0, 1, 0, 1, 1]), x).prod(),
          V5, truth=D(lambda x: (x[0] + x[2]) * (x[1] + x[3] + x[4]))),
    right("torch", "a gather along rows", lambda A: A.gather(1, torch.tensor([[0, 0], [2, 1], [1, 1]])).pow(2).sum(),
          X33,
          truth=lambda A: [[4 * A[0, 0], 0, 0], [0, 2 * A[1, 1], 2 * A[1, 2]], [0, 4 * A[2, 1], 0]]),
    right("torch", "a masked sum of exponentials", lambda x: x[x > 0].exp().sum(), V5,
          truth=lambda x: [mp.exp(v) if v > 0 else 0 for v in x]),
    right("torch", "an unfolded window", lambda x: x.unfold(0, 3, 1).sum(1).pow(2).sum(), V5,
          truth=D(lambda x: sum(sum(x[k : k + 3]) ** 2 for k in range(3)))),
    right("torch", "diagonals and flips", lambda A: (A.diagonal() * A.flip(1).diagonal()).sum(), X33,
          truth=D(lambda A: sum(A[i, i] * A[i, 2 - i] for i in range(3)))),
    right("torch", "an embedding bag of repeated words", lambda W: torch.nn.functional.embedding(torch.tensor([0, 2,
          0]), W).pow(3).sum(), X33,
          truth=lambda W: [6 * W[0] ** 2, 0 * W[1], 3 * W[2] ** 2]),
    right("autograd", "a repeated index", lambda x: anp.sum(x[anp.array([0, 0, 4, 2])] ** 2), V5,
          truth=lambda x: [4 * x[0], 0, 2 * x[2], 0, 2 * x[4]]),
    right("autograd", "a concatenation of slices", lambda x: anp.prod(anp.concatenate([x[1:3], x[::-1][:2]])), V5,
          truth=D(lambda x: x[1] * x[2] * x[4] * x[3])),
    right("autograd", "tiles and repeats", lambda x: anp.sum(anp.tile(x, 2) * anp.repeat(x, 2)), V5,
          truth=D(lambda x: sum(x[k % 5] * x[k // 2] for k in range(10)))),
    right("numpy", "rolling means", rolling, V5, truth=D(lambda x:
          sum((sum(x[k : k + 3]) / 3) ** 2 for k in range(3)))),
    right("numpy", "differences of differences", lambda x: np.sum(np.diff(x, 2) ** 2), V5,
          truth=D(lambda x: sum((x[k] - 2 * x[k + 1] + x[k + 2]) ** 2 for k in range(3)))),
    right("numpy", "a boolean mask", lambda x: np.sum(np.where(x > 0, x**2, -x)), V5,
          truth=lambda x: [2 * v if v > 0 else -1 for v in x]),
    right("numpy", "a transposed broadcast", lambda A, x: np.sum((A.T - x[:3]) ** 2 * x[2]), X33, V5,
          truth=D(lambda A, x: np.sum((A.T - x[:3]) ** 2) * x[2])),
)  # fmt: skip


ORDER = rows(
    "order statistics",
    right("jax", "a median of an even number", jnp.median, V5[:4], truth=lambda x: [mpf("0.5"), 0, mpf("0.5"), 0]),
    right("jax", "a quantile between two numbers", lambda x: jnp.quantile(x, 0.3), V5,
          truth=lambda x: [mpf(0.3) * 4 - 1, 0, 0, 0, 2 - mpf(0.3) * 4], digits=9),
    right("jax", "sorted and weighted", lambda x: jnp.sum(jnp.sort(x) * jnp.arange(5.0)), V5,
          truth=lambda x: [2, 0, 3, 4, 1]),
    right("jax", "the two largest", lambda x: jnp.prod(jax.lax.top_k(x, 2)[0]), V5,
          truth=lambda x: [0, 0, x[3], x[2], 0]),
    right("torch", "a median of an odd number", torch.median, V5, truth=lambda x: [1, 0, 0, 0, 0]),
    right("torch", "a trimmed mean", lambda x: torch.sort(x).values[1:-1].mean(), V5,
          truth=lambda x: [mpf(1) / 3, 0, mpf(1) / 3, 0, mpf(1) / 3]),
    right("torch", "a maximum along rows with its place", lambda A: (A.max(1).values * A.max(1).indices).sum(), X33,
          truth=lambda A: [[0, 0, 2], [0, 0, 0], [0, 0, 0]]),
    right("torch", "a running maximum", lambda x: torch.cummax(x, 0).values.sum(), V5, truth=lambda x: [2, 0, 1, 2, 0]),
    right("autograd", "a sort of squares", lambda x: anp.sort(x**2)[1] * anp.max(x), V5,
          truth=lambda x: [2 * x[0] * x[3], 0, 0, x[0] ** 2, 0]),
    right("numpy", "an entry at the place of the smallest", lambda x, y: y[np.argmin(x)] * np.min(x), V5,
          [1.0, 2.0, 3.0, 4.0, 5.0],
          truth=lambda x, y: [0, y[1], 0, 0, 0, 0, x[1], 0, 0, 0]),
    right("jax", "a maximum at a tie", lambda x, y: jnp.maximum(x, y) * 3, 1.25, 1.25,
          truth=lambda x, y: [Between(0, 3), Between(0, 3)]),
    right("autograd", "a minimum at a tie", lambda x, y: anp.minimum(x, 2 * y), 1.0, 0.5,
          truth=lambda x, y: [Between(0, 1), Between(0, 2)]),
)  # fmt: skip


def dft(x):
    n = len(x)
    return np.array([sum(x[k] * mp.expjpi(mpf(-2 * j * k) / n) for k in range(n)) for j in range(n)], dtype=object)


def square(z):
    return z.real**2 + z.imag**2


V4 = [1.0, -0.5, 2.0, 0.25]

COMPLEX = rows(
    "transforms of Fourier and complex numbers inside",
    right("jax", "a power spectrum", lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 2), V4, truth=lambda x: 8 * x),
    right("jax", "one frequency of a real transform", lambda x: jnp.real(jnp.fft.rfft(x)[1]) *
          jnp.imag(jnp.fft.rfft(x)[1]), V4,
          truth=D(lambda x: dft(x)[1].real * dft(x)[1].imag)),
    right("jax", "a circular convolution", lambda x, y: jnp.real(jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(y)))[0], V4,
          [0.5, 1.0, 0.0, -1.0],
          truth=lambda x, y: [y[0], y[3], y[2], y[1], x[0], x[3], x[2], x[1]]),
    right("jax", "a complex exponential", lambda r, t: jnp.real(r * jnp.exp(1j * t) ** 3), 2.0, 0.4,
          truth=lambda r, t: [mp.cos(3 * t), -3 * r * mp.sin(3 * t)]),
    right("jax", "a phase", lambda x, y: jnp.angle(x + 1j * y), 0.3, -0.4,
          truth=lambda x, y: [-y / (x * x + y * y), x / (x * x + y * y)]),
    right("torch", "a transform in two dimensions", lambda A: torch.fft.fft2(A).abs().pow(2)[1, 2], X33,
          truth=D(lambda A: square(sum(A[j, k] * mp.expjpi(mpf(-2 * (j + 2 * k)) / 3) for j in range(3) for k in
          range(3))))),
    right("torch", "a filter by frequencies", lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.tensor([1.0, 0.5,
          0.0]), n=4).pow(2).sum(), V4,
          truth=D(lambda x: (square(dft(x)[0]) + 2 * square(dft(x)[1]) / 4) / 4)),
    right("torch", "a complex square root", lambda x, y: torch.sqrt(torch.complex(x, y)).imag.sum(), [-3.0], [4.0],
          truth=D(lambda x, y: mp.sqrt(mp.mpc(x[0], y[0])).imag)),
    right("torch", "a modulus of a product", lambda x: (torch.view_as_complex(x.reshape(2, 2)).prod()).abs(), V4,
          truth=D(lambda x: mp.hypot(x[0], x[1]) * mp.hypot(x[2], x[3]))),
    right("autograd", "a real part of a transform", lambda x: anp.real(anp.fft.fft(x))[1] ** 2, V4,
          truth=D(lambda x: dft(x)[1].real ** 2)),
    right("autograd", "a complex quotient", lambda x, y: anp.imag((x + 2j * y) / (y - 1j * x)), 0.7, 0.2,
          truth=D(lambda x, y: (mp.mpc(x, 2 * y) / mp.mpc(y, -x)).imag)),
    right("numpy", "a Mandelbrot iteration in real numbers", lambda x, y: x * x - y * y + x + (2 * x * y + y) ** 2,
          -0.4, 0.3,
          truth=D(lambda x, y: x * x - y * y + x + (2 * x * y + y) ** 2)),
)  # fmt: skip

ROWS = [*INDEXING, *ORDER, *COMPLEX]
