"""Near the limits of judgement: faults where rounding is large, and right derivatives where values change in steps."""

from dataclasses import replace

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import torch
from mpmath import mp, mpf
from torch.nn import functional

from tests.functions.campaign.row import elsewhere, right, rows, wrong
from tests.functions.campaign.truth import D, det, eigvalsh, exp, inv, lse, solve
from tests.functions.campaign.wrapped import autograd_rule, jax_callback, jax_jvp, jax_vjp, torch_old

S2 = [[2.0, 0.5], [0.5, 1.0]]
NEAR = [[1.0, 1.0], [1.0, 1 + 2.0**-22]]
PIVOT = [[0.0, 1.0], [1.0, 3.0]]


def of(f, *backs):
    ruled = jax.custom_vjp(f)
    ruled.defvjp(lambda *args: (f(*args), args), lambda args, w: tuple(back(args, f(*args), w) for back in backs))
    return ruled


def solved_back(factor):
    def of_matrix(args, x, w):
        return -jnp.outer(jnp.linalg.solve(args[0].T, w), x) * factor

    return of(lambda A, b: jnp.linalg.solve(A, b), of_matrix, lambda a, x, w: jnp.linalg.solve(a[0].T, w))


def every(row):
    """In all modes, with relations between calls."""
    return replace(row, expected="elsewhere", options={"modes": "all"})


def first_call_kept(slope):
    """A rule that keeps the slope of its first call."""
    kept = []

    def back(x, y, w):
        kept.append(slope(x))
        return w * kept[0]

    return back


def doubled(args, y, w):
    """The outer product with both triangles counted in full."""
    vectors = jnp.linalg.eigh(args[0])[1]
    full = jnp.outer(vectors[:, 0], vectors[:, 0])
    return w * (2 * full - jnp.diag(jnp.diag(full)))


def upper(a):
    return (a + a.T) / 2


def nearest_table(x):
    """A logarithm by the nearest of many nodes and two terms of its series there."""
    node = jnp.round(x * 4096) / 4096
    return jnp.log(node) + (x - node) / node - ((x - node) / node) ** 2 / 2


def nodes_of_trapezoids(x):
    """An integral whose number of nodes depends on its end."""
    n = 64 + int(np.floor(float(getattr(x, "_value", x)) * 8))
    return x / n * (anp.sum(anp.exp(-((x * np.arange(1, n) / n) ** 2))) + 0.5 + anp.exp(-(x**2)) / 2)


def nodes_exactly(x):
    n = 64 + int(mp.floor(x * 8))
    return x / n * (sum(mp.exp(-((x * k / n) ** 2)) for k in range(1, n)) + mpf("0.5") + mp.exp(-(x**2)) / 2)


def reduced_sine(x):
    k = jnp.round(x / jnp.pi)
    return jnp.sin(x - k * jnp.pi) * jnp.where(k % 2 == 0, 1.0, -1.0)


def horner_by_range(x):
    return torch.where(
        x.abs() < 1e-2, 1 - x**2 / 6 * (1 - x**2 / 20 * (1 - x**2 / 42)), torch.sin(x) / torch.where(x == 0, 1.0, x)
    )


PLANTED = rows(
    "fresh: planted where rounding is large",
    wrong("jax", "a system next to a singular one, its matrix's adjoint by 1e-6", lambda A, b: solved_back(1 + 1e-6)(A,
          b)[0], NEAR, [1.0, 2.0], truth=D(lambda A, b: solve(A, b)[0])),
    wrong("jax", "a system next to a singular one, its sign", lambda A, b: solved_back(-1.0)(A, b)[0], NEAR, [1.0, 2.0],
          truth=D(lambda A, b: solve(A, b)[0])),
    wrong("jax", "a cube of a tiny number", jax_vjp(lambda x: x**3, lambda x, y, w: 2 * w * x * x), 1e-120,
          truth=lambda x: 3 * x**2),
    wrong("jax", "a cube of a tiny number by 1e-6", jax_vjp(lambda x: x**3, lambda x, y, w: (3 + 3e-6) * w * x * x),
          1e-120, truth=lambda x: 3 * x**2),
    wrong("jax", "a logarithm of a sigmoid far out by 1e-5", jax_vjp(jax.nn.log_sigmoid, lambda x, y,
          w: w * jax.nn.sigmoid(-x) * 1.00001), 40.0, truth=lambda x: 1 / (1 + mp.exp(x))),
    wrong("jax", "a logarithm of a sigmoid far out as zero", jax_vjp(jax.nn.log_sigmoid, lambda x, y, w: w * 0.0 * x),
          40.0, truth=lambda x: 1 / (1 + mp.exp(x))),
    wrong("jax", "an inverse error function next to one by 1e-4", jax_vjp(jsp.erfinv, lambda x, y,
          w: w * jnp.sqrt(jnp.pi) / 2 * jnp.exp(y * y) * 1.0001), 0.999999,
          truth=lambda y: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(y) ** 2)),
    wrong("jax", "a quotient with cancellation by its leading term's half", jax_vjp(lambda x: (1 - jnp.cos(x)) / x**2,
          lambda x, y, w: -w * x / 24), 0.02,
          truth=lambda x: (x * mp.sin(x) - 2 * (1 - mp.cos(x))) / x**3),
    wrong("jax", "a determinant with a zero pivot, without its first entry", of(lambda A: jnp.linalg.det(A), lambda a,
          y, w: w * jnp.array([[0.0, -1.0], [-1.0, 0.0]])), PIVOT, truth=lambda A: det(A) * inv(A).T),
    wrong("jax", "a callback next to its end by one half", jax_callback(lambda x: np.log(1 - x), lambda x,
          y: -0.5 / (1 - x)), 1 - 2.0**-20, truth=lambda x: -1 / (1 - x)),
    wrong("jax", "a callback at a huge number", jax_callback(lambda x: x * np.log(x), lambda x,
          y: 1 + jnp.log(x) * 1.00001), 1e12, truth=lambda x: 1 + mp.log(x)),
    wrong("jax", "a hyperbolic tangent far out as twice as much", jax_vjp(jnp.tanh, lambda x, y,
          w: 2 * w / jnp.cosh(x) ** 2), 25.0, truth=lambda x: 1 / mp.cosh(x) ** 2),
    wrong("jax", "an eigenvalue with off-diagonals counted twice", of(lambda A: jnp.linalg.eigvalsh(A)[0], doubled), S2,
          truth=D(lambda A: eigvalsh(upper(A))[0])),
    wrong("jax", "a sum of exponentials with its smallest entry wrong", jax_vjp(lambda x: jnp.log(jnp.sum(jnp.exp(x))),
          lambda x, y, w: w * jnp.exp(x - y) * jnp.array([1, 1, 2.0])), [1.0, 3.0, -25.0],
          truth=lambda x: exp(x - lse(x))),
    wrong("torch", "a tiny adjoint's sign", torch_old(lambda x: (x**5).sum(), lambda x, y,
          w: w * 5 * x**4 * torch.tensor([1.0, -1.0])), [3.0, 1e-8], truth=lambda x: 5 * x**4),
    wrong("torch", "an adjoint below the smallest normal number", torch_old(lambda x: x * 1e-300, lambda x, y,
          w: w * 2e-300), 1.5, truth=lambda x: mpf(1e-300)),
    wrong("torch", "a product of large and small numbers", torch_old(lambda x: x[0] * x[1], lambda x, y,
          w: w * torch.stack([x[1], x[0] * (1 + 1e-7)])), [1e150, 1e-150], truth=lambda x: [x[1], x[0]]),
    wrong("torch", "a difference of large squares by 1e-6", torch_old(lambda x: x[0] ** 2 - x[1] ** 2, lambda x, y,
          w: 2 * w * torch.stack([x[0], -x[1] * (1 + 1e-6)])), [1e8, 1e8], truth=lambda x: [2 * x[0], -2 * x[1]]),
    wrong("autograd", "a value beside a large constant", autograd_rule(lambda x: np.sin(x) + 1e9, lambda x, y,
          w: w * anp.cos(x) * 1.01), 0.5, truth=mp.cos),
    wrong("autograd", "a value beside a large constant by 1e-5", autograd_rule(lambda x: np.sin(x) + 1e6, lambda x, y,
          w: w * anp.cos(x) * 1.00001), 0.5, truth=mp.cos),
    wrong("autograd", "a root's end", autograd_rule(np.sqrt, lambda x, y, w: w / y), 1e-15,
          truth=lambda x: 1 / (2 * mp.sqrt(x))),
    wrong("autograd", "a logarithm of a difference", autograd_rule(lambda x: np.log(x - 1), lambda x, y, w: w / x),
          1 + 2.0**-20, truth=lambda x: 1 / (x - 1)),
    every(wrong("jax", "a second derivative without its sign", jax_jvp(jnp.sin, lambda x, y,
          v: v * jnp.cos(jax.lax.stop_gradient(x))), 0.7, truth=mp.cos)),
    every(wrong("jax", "a rule that swaps after transposing a batch", of(lambda A: A.T @ A, lambda a, y,
          w: a[0] @ (w + w)), [[0.5, 1.0], [2.0, -1.0]], truth=mp.cos)),
    every(wrong("autograd", "a rule that keeps its first slope", autograd_rule(np.sin, first_call_kept(anp.cos)), 0.7,
          truth=mp.cos)),
    every(wrong("torch", "a rule that keeps its first slope", torch_old(torch.sin, first_call_kept(torch.cos)), 0.7,
          truth=mp.cos)),
)  # fmt: skip

STEPPED = rows(
    "fresh: right where values change in steps",
    right("jax", "a table with two terms of a series", nearest_table, 1.7, digits=7, truth=lambda x: 1 / x),
    right("jax", "a sine with its argument reduced", reduced_sine, 100.3, truth=mp.cos, digits=8),
    right("jax", "a triangle wave", lambda x: jnp.abs((20 * x) % 2 - 1), 0.33, truth=lambda x: -20),
    right("jax", "a phase's remainder", lambda x: jnp.sin(2 * jnp.pi * jnp.mod(7 * x, 1.0)), 0.4,
          truth=lambda x: 14 * mp.pi * mp.cos(14 * mp.pi * x), digits=8),
    right("jax", "a pulse far from its edges", lambda x: jnp.where(jnp.abs(x - 1) < 0.05, x**2, 0.0), 1.0,
          truth=lambda x: 2 * x),
    right("jax", "a rectifier a little above its kink", lambda x: jax.nn.relu(x - 1), 1 + 1e-9, truth=lambda x: 1),
    right("jax", "a rectifier a little below its kink", lambda x: jax.nn.relu(x - 1), 1 - 1e-9, truth=lambda x: 0),
    right("jax", "a narrow linear window", lambda x: jnp.clip(1e4 * (x - 1), -1.0, 1.0), 1.00003,
          truth=lambda x: 10000),
    right("jax", "a dead zone", lambda x: jnp.sign(x) * jnp.maximum(jnp.abs(x) - 0.1, 0.0), 0.05, truth=lambda x: 0),
    right("jax", "an exact count of a grid below a number, added", lambda x: jnp.sum(jnp.arange(10.0) < 10 * x) + x,
          0.37, truth=lambda x: 1),
    right("jax", "an oscillation in a branch", lambda x: jnp.where(x > 0, x + 1e-3 * jnp.sin(1e5 * x), 0.0), 0.4,
          truth=lambda x: 1 + 100 * mp.cos(100000 * x), digits=8),
    right("torch", "a series next to zero", horner_by_range, 5e-3, truth=D(lambda x: mp.sin(x) / x)),
    right("torch", "a top entry's square", lambda x: x[x.argmax()] ** 2, [0.5, 2.0, 1.999999], truth=lambda x: [0,
          2 * x[1], 0]),
    right("torch", "a hard sigmoid of a wide range", lambda x: functional.hardtanh(x / 3, -1.0, 1.0), 2.9999,
          truth=lambda x: 1 / mpf(3), digits=8),
    right("torch", "rounds of a clock", lambda t: torch.remainder(t, 0.5) ** 2, 3.2, truth=lambda t: 2 * (t - 3),
          digits=8),
    right("autograd", "an integral whose number of nodes depends on its end", nodes_of_trapezoids, 0.9,
          truth=D(nodes_exactly)),
    right("autograd", "a sorted difference", lambda x: anp.sort(x)[1] - anp.sort(x)[0], [1.0, 1 + 1e-7, 3.0],
          truth=lambda x: [-1, 1, 0]),
    right("numpy", "a tariff in brackets", lambda x: np.where(x < 10, 0.1 * x, np.where(x < 20, 1 + 0.2 * (x - 10),
          3 + 0.4 * (x - 20))), 19.9, truth=lambda x: mpf(0.2)),
    wrong("jax", "a number from a search in a fine table", lambda x: jnp.searchsorted(jnp.linspace(0.0, 1.0,
          2**20 + 1) ** 2, x) / 2.0**20 + 0 * x, 0.3, truth=lambda x: 1 / (2 * mp.sqrt(x))),
    wrong("autograd", "a decimal number of nine places", lambda x: anp.round(x, 9) * 2, 0.3, truth=lambda x: 2),
    wrong("torch", "a decimal number of ten places", lambda x: torch.round(x, decimals=10) ** 2, 0.31234,
          truth=lambda x: 2 * x),
    wrong("torch", "a ceiling of millionths", lambda x: torch.ceil(x * 1e6) / 1e6, 0.25, truth=lambda x: 1),
    elsewhere("jax", "a rule that is wrong where a branch begins", lambda x: jnp.sum(jnp.where(x > 0, jax_vjp(jnp.sin,
          lambda x, y, w: w * jnp.cos(x))(x), jax_vjp(jnp.sin, lambda x, y, w: w)(x))), [0.5, 1.5],
          truth=lambda x: [mp.cos(v) for v in x], points=8),
)  # fmt: skip

ROWS = [*PLANTED, *STEPPED]
