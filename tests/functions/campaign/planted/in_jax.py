"""Wrong rules in jax: custom_vjp, custom_jvp and rules around callbacks."""

import jax
import jax.numpy as jnp
import numpy as np
from mpmath import mp, mpf

from tests.functions.campaign.row import rows, wrong
from tests.functions.campaign.truth import D, det, exp, inv, softmax, solve
from tests.functions.campaign.wrapped import jax_callback, jax_jvp, jax_vjp

V3 = [0.5, -1.5, 2.5]
P3 = [0.5, 1.5, 2.5]
A3 = [[2.0, -1.0, 0.5], [0.25, 3.0, 1.0], [-1.0, 0.75, 4.0]]
PI = float(np.pi)


def summed(f, weight=1.0):
    return lambda x: jnp.sum(weight * f(x))


def two(f, back):
    """custom_vjp of two arguments: back(x, y, w) -> their adjoints."""
    ruled = jax.custom_vjp(f)
    ruled.defvjp(lambda x, y: (f(x, y), (x, y)), lambda kept, w: back(*kept, w))
    return ruled


def pushed(f, push):
    """custom_jvp of two arguments: push(x, y, dx, dy)."""
    ruled = jax.custom_jvp(f)
    ruled.defjvp(lambda xs, vs: (f(*xs), push(*xs, *vs)))
    return ruled


def cosines(x):
    return [mp.cos(v) for v in x]


ELEMENTWISE = rows(
    "planted in jax: elementwise",
    wrong("jax", "a factor of two", jax_vjp(jnp.sin, lambda x, y, w: 2 * w * jnp.cos(x)), 0.4, truth=mp.cos),
    wrong("jax", "a sign", jax_vjp(lambda x: jnp.exp(-x), lambda x, y, w: w * y), 0.4, truth=lambda x: -mp.exp(-x)),
    wrong("jax", "an inner derivative forgotten", jax_vjp(lambda x: jnp.sin(3 * x),
          lambda x, y, w: w * jnp.cos(3 * x)), 0.4, truth=lambda x: 3 * mp.cos(3 * x)),
    wrong("jax", "a thousandth too much", jax_vjp(jnp.tanh, lambda x, y, w: w * (1 - y * y) * 1.001), 0.4,
          truth=lambda x: 1 / mp.cosh(x) ** 2),
    wrong("jax", "a millionth too much", jax_jvp(jnp.log, lambda x, y, v: v / x * (1 + 1e-6)), 2.4,
          truth=lambda x: 1 / x),
    wrong("jax", "1e-8 too little", jax_jvp(jnp.sqrt, lambda x, y, v: v / (2 * y) * (1 - 1e-8)), 2.4,
          truth=lambda x: 1 / (2 * mp.sqrt(x))),
    wrong("jax", "a constant of 1e-7 added", summed(jax_vjp(jnp.sin, lambda x, y, w: w * (jnp.cos(x) + 1e-7))), V3,
          truth=cosines),
    wrong("jax", "wrong for negative numbers", summed(jax_vjp(lambda x: x * jnp.abs(x), lambda x, y, w: 2 * w * x)),
          V3, truth=lambda x: 2 * abs(x)),
    wrong("jax", "wrong beyond two", summed(jax_vjp(jnp.sin, lambda x, y, w: w * jnp.cos(jnp.minimum(x, 2.0)))), V3,
          truth=cosines),
    wrong("jax", "wrong in the first entry", summed(jax_vjp(jnp.sin,
          lambda x, y, w: (w * jnp.cos(x)).at[0].multiply(1.01))), V3, truth=cosines),
    wrong("jax", "wrong in the last entry by 1e-5", summed(jax_vjp(jnp.sin,
          lambda x, y, w: (w * jnp.cos(x)).at[-1].multiply(1 + 1e-5))), V3, truth=cosines),
    wrong("jax", "entries in the opposite order", summed(jax_vjp(jnp.sin, lambda x, y, w: (w * jnp.cos(x))[::-1])), V3,
          truth=cosines),
    wrong("jax", "a cotangent ignored", summed(jax_vjp(jnp.sin, lambda x, y, w: jnp.cos(x)), 3.0), V3,
          truth=lambda x: [3 * mp.cos(v) for v in x]),
    wrong("jax", "a cotangent squared", summed(jax_vjp(jnp.sin, lambda x, y, w: w * w * jnp.cos(x)), 0.5), V3,
          truth=lambda x: [mp.cos(v) / 2 for v in x]),
    wrong("jax", "a cotangent without its sign", summed(jax_vjp(jnp.sin, lambda x, y, w: abs(w) * jnp.cos(x)), -1.0),
          V3, truth=lambda x: [-mp.cos(v) for v in x]),
    wrong("jax", "a cotangent summed", lambda x: jnp.sum(jnp.arange(3.0) * jax_vjp(jnp.sin,
          lambda x, y, w: jnp.sum(w) * jnp.cos(x))(x)), V3,
          truth=lambda x: [k * mp.cos(v) for k, v in enumerate(x)]),
    wrong("jax", "the slope at the value instead of the point", jax_vjp(jnp.sin, lambda x, y, w: w * jnp.cos(y)), 0.9,
          truth=mp.cos),
    wrong("jax", "the second derivative", jax_vjp(lambda x: x**4, lambda x, y, w: 12 * w * x * x), 0.9,
          truth=lambda x: 4 * x**3),
    wrong("jax", "zeros", summed(jax_vjp(jnp.cos, lambda x, y, w: jnp.zeros_like(x))), V3,
          truth=lambda x: [-mp.sin(v) for v in x]),
    wrong("jax", "a NaN at one entry", summed(jax_vjp(jnp.sinc, lambda x, y, w: w * (jnp.cos(PI * x) - y) / x)),
          [0.5, 0.0],
          truth=lambda x: [-4 / mp.pi, 0]),
    wrong("jax", "a clip that clips", jax_vjp(jnp.exp, lambda x, y, w: jnp.clip(w * y, -1.0, 1.0)), 0.4, truth=mp.exp),
    wrong("jax", "a term of the product rule forgotten", jax_jvp(lambda x: x * jnp.exp(x),
          lambda x, y, v: v * jnp.exp(x)), 0.4, truth=lambda x: (1 + x) * mp.exp(x)),
    wrong("jax", "a slope in float32", jax_vjp(jnp.sin, lambda x, y,
          w: w * jnp.cos(x.astype(jnp.float32)).astype(jnp.float64)), 0.4, truth=mp.cos),
    wrong("jax", "pi to four decimals", jax_vjp(lambda x: jnp.sin(PI * x),
          lambda x, y, w: w * 3.1416 * jnp.cos(PI * x)), 0.3,
          truth=lambda x: mpf(PI) * mp.cos(mpf(PI) * x)),
    wrong("jax", "right for a cotangent of one only", lambda x: 0.5 * jax_vjp(jnp.sin,
          lambda x, y, w: jnp.where(w == 1, w, 1.1 * w) * jnp.cos(x))(x), 0.4,
          truth=lambda x: mp.cos(x) / 2),
    wrong("jax", "wrong for more than two entries", summed(jax_vjp(jnp.sin,
          lambda x, y, w: w * jnp.cos(x) * (1.0 if x.size < 3 else 0.999))), V3, truth=cosines),
    wrong("jax", "wrong at a zero", summed(jax_jvp(jnp.exp, lambda x, y, v: jnp.where(x == 0, 0.0, v * y))),
          [0.0, 0.5], truth=exp),
    wrong("jax", "a softplus by the exponential", jax_vjp(lambda x: jnp.log1p(jnp.exp(x)),
          lambda x, y, w: w * jnp.exp(x)), -7.0, truth=lambda x: 1 / (1 + mp.exp(-x))),
    wrong("jax", "a leak below zero", summed(jax_vjp(jax.nn.relu, lambda x, y, w: w * (x > -1.6))), V3,
          truth=lambda x: [1, 0, 1]),
    wrong("jax", "a callback with a factor", jax_callback(np.cosh, lambda x, y: jnp.sinh(x) * 1.0001), 0.7,
          truth=mp.sinh),
    wrong("jax", "a callback with 1e-6 too much", jax_callback(lambda x: np.exp(np.sin(x)),
          lambda x, y: y * jnp.cos(x) * (1 + 1e-6)), 0.7,
          truth=lambda x: mp.exp(mp.sin(x)) * mp.cos(x)),
    wrong("jax", "a callback of an integral without an end", jax_callback(lambda x: np.cos(x) - np.cos(2 * x),
          lambda x, y: -jnp.sin(x)), 0.7,
          truth=lambda x: -mp.sin(x) + 2 * mp.sin(2 * x)),
)  # fmt: skip


def of_solve(back):
    return lambda A, b: jnp.sum(two(jnp.linalg.solve, back)(A, b) ** 2)


def transposed_adjoint(A, b, w):
    adjoint = jnp.linalg.solve(A, w)
    return -jnp.outer(adjoint, jnp.linalg.solve(A, b)), adjoint


def transposed_outer(A, b, w):
    adjoint = jnp.linalg.solve(A.T, w)
    return -jnp.outer(jnp.linalg.solve(A, b), adjoint), adjoint


def matrix_forgotten(A, b, w):
    return jnp.zeros_like(A), jnp.linalg.solve(A.T, w)


def fixed(a):
    x = 0.5
    for _ in range(80):
        x = jnp.cos(a * x)
    return x


def fixed_exactly(a):
    return mp.findroot(lambda x: x - mp.cos(a * x), 0.7)


def gathered_last(x, y, w):
    """An adjoint of x[[0, 0, 2]] that keeps one of the contributions."""
    return jnp.zeros_like(x).at[jnp.array([0, 0, 2])].set(w)


def between(x):
    return jnp.interp(x, jnp.arange(4.0), jnp.array([1.0, 3.0, 2.0, 7.0]))


STRUCTURED = rows(
    "planted in jax: arrays and several arguments",
    wrong("jax", "a system with the matrix not transposed", of_solve(transposed_adjoint), A3, V3,
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    wrong("jax", "a system with the outer product transposed", of_solve(transposed_outer), A3, V3,
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    wrong("jax", "a system without its matrix", of_solve(matrix_forgotten), A3, V3,
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    wrong("jax", "a determinant's inverse not transposed", jax_vjp(jnp.linalg.det,
          lambda A, y, w: w * y * jnp.linalg.inv(A)), A3, truth=lambda A: det(A) * inv(A).T),
    wrong("jax", "an inverse not transposed on one side", lambda A: jax_vjp(jnp.linalg.inv,
          lambda A, y, w: -y @ w @ y.T)(A)[0, 1], A3,
          truth=lambda A: -np.outer(inv(A)[0], inv(A)[:, 1])),
    wrong("jax", "a softmax without its coupling", lambda x: jax_vjp(jax.nn.softmax, lambda x, y, w: w * y)(x)[1], V3,
          truth=D(lambda x: softmax(x)[1])),
    wrong("jax", "a norm not divided", jax_vjp(lambda x: jnp.sqrt(jnp.sum(x * x)), lambda x, y, w: w * x), V3,
          truth=lambda x: x / mp.sqrt(sum(x * x))),
    wrong("jax", "a cumulative sum not reversed", lambda x: jnp.sum(jax_vjp(jnp.cumsum,
          lambda x, y, w: jnp.cumsum(w))(x) * jnp.arange(3.0)), V3, truth=lambda x: [3, 3, 2]),
    wrong("jax", "a product by division at a zero", jax_vjp(jnp.prod,
          lambda x, y, w: w * y / jnp.where(x == 0, 1.0, x)), [2.0, 0.0, 3.0], truth=lambda x: [0, 6, 0]),
    wrong("jax", "a maximum shared by all", jax_vjp(jnp.max, lambda x, y, w: w * jnp.ones_like(x) / 3), V3,
          truth=lambda x: [0, 0, 1]),
    wrong("jax", "a sort not undone", lambda x: jnp.sum(jax_vjp(jnp.sort, lambda x, y, w: w)(x) * jnp.arange(3.0)), V3,
          truth=lambda x: [1, 0, 2]),
    wrong("jax", "a gather that keeps one contribution", lambda x: jnp.sum(jax_vjp(lambda x: x[jnp.array([0, 0, 2])],
          gathered_last)(x) ** 2), V3, truth=lambda x: [4 * x[0], 0, 2 * x[2]]),
    wrong("jax", "arguments exchanged", two(lambda x, y: x * jnp.sin(y),
          lambda x, y, w: (w * x * jnp.cos(y), w * jnp.sin(y))), 0.7, 0.4,
          truth=lambda x, y: [mp.sin(y), x * mp.cos(y)]),
    wrong("jax", "an argument forgotten", two(lambda x, y: x * jnp.sin(y),
          lambda x, y, w: (w * jnp.sin(y), jnp.zeros_like(y))), 0.7, 0.4,
          truth=lambda x, y: [mp.sin(y), x * mp.cos(y)]),
    wrong("jax", "a tangent forgotten", pushed(lambda x, y: x**2 * y, lambda x, y, dx, dy: 2 * x * y * dx), 0.7, 0.4,
          truth=lambda x, y: [2 * x * y, x * x]),
    wrong("jax", "a power without its logarithm", pushed(lambda x, y: x**y,
          lambda x, y, dx, dy: y * x ** (y - 1) * dx + x**y * dy), 1.7, 2.4,
          truth=lambda x, y: [y * x ** (y - 1), x**y * mp.log(x)]),
    wrong("jax", "a hypotenuse not divided in one argument", pushed(jnp.hypot,
          lambda x, y, dx, dy: x * dx / jnp.hypot(x, y) + y * dy), 1.7, 2.4,
          truth=lambda x, y: [x / mp.hypot(x, y), y / mp.hypot(x, y)]),
    wrong("jax", "a broadcast bias averaged", lambda X, b: jnp.sum(two(lambda X, b: X + b,
          lambda X, b, w: (w, jnp.mean(w, axis=0)))(X, b) ** 2), A3, V3,
          truth=D(lambda X, b: np.sum((X + b) ** 2))),
    wrong("jax", "a matrix product with a factor transposed",
          lambda A, x: jnp.sum(two(lambda A, x: A @ x, lambda A, x, w: (jnp.outer(x, w), A.T @ w))(A, x) ** 2), A3, V3,
          truth=D(lambda A, x: sum((A @ x) ** 2))),
    wrong("jax", "a fixed point without its denominator", jax_vjp(fixed, lambda a, x, w: -w * x * jnp.sin(a * x)), 0.8,
          truth=D(fixed_exactly)),
    wrong("jax", "a fixed point with a sign in its denominator",
          jax_vjp(fixed, lambda a, x, w: -w * x * jnp.sin(a * x) / (1 - a * jnp.sin(a * x))), 0.8,
          truth=D(fixed_exactly)),
    wrong("jax", "the slope of the neighbouring interval", jax_vjp(between,
          lambda x, y, w: w * jnp.array([2.0, -1.0, 5.0])[jnp.ceil(x).astype(int)]), 1.3, truth=lambda x: -1),
    wrong("jax", "a Fourier transform's adjoint not normalised",
          lambda x: jax_vjp(lambda x: jnp.real(jnp.fft.fft(x)), lambda x, y, w: jnp.real(jnp.fft.ifft(w)))(x)[1], V3,
          truth=lambda x: [mp.cos(2 * mp.pi * k / 3) for k in range(3)]),
    wrong("jax", "a variance with the mean's part doubled", jax_vjp(jnp.var,
          lambda x, y, w: w * 2 * (x - 2 * jnp.mean(x)) / 3), P3, truth=lambda x: 2 * (x - sum(x) / 3) / 3),
    wrong("jax", "a rule in a scan with 1e-4 too much in each step",
          lambda x: jax.lax.scan(lambda s, _: (jax_jvp(jnp.sin, lambda y, z, v: v * jnp.cos(y) * 1.0001)(s), None), x,
          None, length=3)[0], 0.8,
          truth=D(lambda x: mp.sin(mp.sin(mp.sin(x))))),
    wrong("jax", "a rule under vmap that mixes rows", lambda X: jnp.sum(jnp.arange(3.0) * jax_vjp(jax.vmap(jnp.sum),
          lambda X, y, w: jnp.broadcast_to(w, X.shape))(X)), A3,
          truth=lambda X: [[0] * 3, [1] * 3, [2] * 3]),
    wrong("jax", "a convolution's kernel not flipped", lambda x: jax_vjp(lambda x: jnp.convolve(x,
          jnp.array([1.0, 2.0, 4.0]), "same"), lambda x, y, w: jnp.convolve(w, jnp.array([1.0, 2.0, 4.0]),
          "same"))(x)[0], V3,
          truth=lambda x: [2, 1, 0]),
)  # fmt: skip

ROWS = [*ELEMENTWISE, *STRUCTURED]
