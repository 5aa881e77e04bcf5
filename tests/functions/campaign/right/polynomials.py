"""Polynomials, interpolation and tables."""

import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D

KNOTS = [0.0, 1.0, 2.5, 4.0]
HEIGHTS = [1.0, -0.5, 2.0, 0.25]


def cubic_hermite(x, y, at):
    k = sum(at > knot for knot in x) - 1
    h = x[k + 1] - x[k]
    t = (at - x[k]) / h
    return (2 * t**3 - 3 * t**2 + 1) * y[k] + (3 * t**2 - 2 * t**3) * y[k + 1]


def hermite_exact(at, y):
    t = (at - mpf(2.5)) / mpf(1.5)
    return y[2] + (y[3] - y[2]) * t * t * (3 - 2 * t)


ROWS = rows(
    "polynomials, interpolation and tables",
    right("jax", "a polynomial by Horner", lambda c, x: jnp.polyval(c, x), [1.0, -2.0, 0.5, 3.0], 1.7,
          truth=lambda c, x: [x**3, x**2, x, 1, 3 * c[0] * x**2 + 2 * c[1] * x + c[2]]),
    right("jax", "Wilkinson's polynomial next to a root", lambda x: jnp.prod(x - jnp.arange(1.0, 9.0)), 4.0,
          truth=lambda x: mp.fprod(x - k for k in range(1, 9) if k != 4)),
    right("jax", "linear interpolation", lambda x, y: jnp.interp(x, jnp.array(KNOTS), y), 1.75, HEIGHTS,
          truth=lambda x, y: [(y[2] - y[1]) / mpf(1.5), 0, mpf("0.5"), mpf("0.5"), 0]),
    right("jax", "Chebyshev polynomials by a recurrence", lambda x: chebyshev(x), 0.3,
          truth=D(lambda x: mp.chebyt(6, x))),
    right("torch", "Legendre polynomials by a recurrence", lambda x: legendre(x).sum(), [0.4],
          truth=D(lambda x: mp.legendre(4, x[0]))),
    right("torch", "a table between its entries", lambda t, x: table_between(t, x).sum(), HEIGHTS, [1.3],
          truth=lambda t, x: [0, 2 - x[0], x[0] - 1, 0, t[2] - t[1]]),
    right("torch", "bilinear sampling of an image", lambda im: torch.nn.functional.grid_sample(im[None, None],
          torch.tensor([[[[0.3, -0.2]]]], dtype=torch.float64), align_corners=True).sum(),
          [[1.0, 2.0], [3.0, 5.0]], truth=lambda im: bilinear_weights(mpf(0.3), mpf(-0.2))),
    right("autograd", "barycentric interpolation", lambda x, y: lagrange(x, y), 1.3, HEIGHTS,
          truth=D(lambda x, y: lagrange_exact(x, y))),
    right("autograd", "a rational function by nested products", lambda x: (1 + x * (2 + x * 3)) / (1 + x * x), -0.6,
          truth=D(lambda x: (1 + 2 * x + 3 * x**2) / (1 + x * x))),
    right("numpy", "a polynomial by its roots", lambda r: np.prod(1.5 - r), [0.5, 1.0, 2.0],
          truth=lambda r: [mpf("0.25"), mpf("0.5"), -mpf("0.5")]),
    right("numpy", "a spline's piece by a search", lambda x, y: cubic_hermite(KNOTS, y, x), 3.0, HEIGHTS,
          truth=D(lambda x, y: hermite_exact(x, y))),
    right("numpy", "a de Casteljau curve", lambda p, t: casteljau(p, t), HEIGHTS, 0.35,
          truth=D(lambda p, t: sum(mp.binomial(3, k) * t**k * (1 - t) ** (3 - k) * p[k] for k in range(4)))),
)  # fmt: skip


def chebyshev(x):
    a, b = 1.0, x
    for _ in range(5):
        a, b = b, 2 * x * b - a
    return b


def legendre(x):
    a, b = torch.ones_like(x), x
    for n in range(1, 4):
        a, b = b, ((2 * n + 1) * x * b - n * a) / (n + 1)
    return b


def table_between(t, x):
    place = torch.floor(x).long()
    share = x - place
    return t[place] * (1 - share) + t[place + 1] * share


def bilinear_weights(x, y):
    right_share, low_share = (x + 1) / 2, (y + 1) / 2
    return [
        [(1 - low_share) * (1 - right_share), (1 - low_share) * right_share],
        [low_share * (1 - right_share), low_share * right_share],
    ]


def lagrange(x, y):
    weights = [1 / np.prod([a - b for b in KNOTS if b != a]) for a in KNOTS]
    terms = [w / (x - a) for w, a in zip(weights, KNOTS, strict=True)]
    return sum(t * y[k] for k, t in enumerate(terms)) / sum(terms)


def lagrange_exact(x, y):
    return sum(y[k] * mp.fprod((x - b) / (mpf(a) - b) for b in KNOTS if b != a) for k, a in enumerate(KNOTS))


def casteljau(p, t):
    for size in (3, 2, 1):
        p = [(1 - t) * p[k] + t * p[k + 1] for k in range(size)]
    return p[0]
