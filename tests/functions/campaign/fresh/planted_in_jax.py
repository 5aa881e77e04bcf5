"""Wrong rules in jax, written after the first set was examined."""

import math

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from mpmath import mp, mpf

from tests.functions.campaign.row import elsewhere, rows, wrong
from tests.functions.campaign.truth import D, array, eigvalsh, exp, inv, lse, matrix, softmax
from tests.functions.campaign.wrapped import jax_callback, jax_jvp, jax_vjp

A3 = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]]
S3 = [[3.0, 0.5, -1.0], [0.5, 2.0, 0.25], [-1.0, 0.25, 4.0]]
M23 = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]
X4 = [0.75, -1.25, 3.0, 0.5]
P4 = [0.75, 1.25, 3.0, 0.5]


def of(f, *backs):
    """custom_vjp with one function for each argument: back(args, y, w) -> its adjoint."""
    ruled = jax.custom_vjp(f)
    ruled.defvjp(lambda *args: (f(*args), args), lambda args, w: tuple(back(args, f(*args), w) for back in backs))
    return ruled


def total(f, *weights):
    weight = jnp.array(weights) if weights else 1.0
    return lambda *args: jnp.sum(weight * f(*args))


def each(slope):
    return lambda x: [slope(v) for v in x]


SIMPLE = rows(
    "fresh: planted in jax, of one array",
    wrong("jax", "an arc tangent with a root", jax_vjp(jnp.arctan, lambda x, y, w: w / jnp.sqrt(1 + x * x)), 0.6,
          truth=lambda x: 1 / (1 + x * x)),
    wrong("jax", "an inverse sine without its root", jax_jvp(jnp.arcsin, lambda x, y, v: v / (1 - x * x)), 0.6,
          truth=lambda x: 1 / mp.sqrt(1 - x * x)),
    wrong("jax", "a logarithm of another base", jax_vjp(jnp.log10, lambda x, y, w: w / x), 3.0,
          truth=lambda x: 1 / (x * mp.log(10))),
    wrong("jax", "a sigmoid that forgets its complement", jax_vjp(jax.nn.sigmoid, lambda x, y, w: w * y), 1.5,
          truth=lambda x: 1 / (2 + 2 * mp.cosh(x))),
    wrong("jax", "a sigmoid's slope of the value's sigmoid", jax_vjp(jax.nn.sigmoid, lambda x, y,
          w: w * jax.nn.sigmoid(y) * (1 - jax.nn.sigmoid(y))), 1.5,
          truth=lambda x: 1 / (2 + 2 * mp.cosh(x))),
    wrong("jax", "a relative error of 1e-7", jax_vjp(jnp.exp, lambda x, y, w: w * y * (1 + 1e-7)), -1.5, truth=mp.exp),
    wrong("jax", "a relative error of 3e-9", jax_vjp(jnp.sin, lambda x, y, w: w * jnp.cos(x) * (1 - 3e-9)), 0.2,
          truth=mp.cos),
    wrong("jax", "an absolute error of 1e-6 in a tiny entry", total(jax_vjp(jnp.exp, lambda x, y, w: w * y + 1e-6)),
          [-14.0, 3.0], truth=exp),
    wrong("jax", "a slope of half differences with a wide step", jax_jvp(jnp.sin, lambda x, y,
          v: v * (jnp.sin(x + 1e-3) - jnp.sin(x - 1e-3)) / 2e-3), 0.9, truth=mp.cos),
    wrong("jax", "a slope of forward differences", jax_vjp(jnp.exp, lambda x, y, w: w * (jnp.exp(x + 1e-7) - y) / 1e-7),
          0.9, truth=mp.exp),
    wrong("jax", "a derivative of a square with an integer's power", jax_vjp(lambda x: x**5, lambda x, y, w: w * 5 * y),
          1.2, truth=lambda x: 5 * x**4),
    wrong("jax", "a cube root's power", jax_vjp(jnp.cbrt, lambda x, y, w: w * y / 3), 2.0,
          truth=lambda x: 1 / (3 * mp.cbrt(x) ** 2)),
    wrong("jax", "an error function without its constant", jax_jvp(jsp.erf, lambda x, y, v: v * jnp.exp(-x * x)), 0.4,
          truth=lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    wrong("jax", "a Bessel function's sign", jax_vjp(jsp.i0, lambda x, y, w: -w * jsp.i1(x)), 1.4,
          truth=lambda x: mp.besseli(1, x)),
    wrong("jax", "a logarithm of gamma by Stirling's formula", jax_vjp(jsp.gammaln, lambda x, y,
          w: w * (jnp.log(x) - 1 / (2 * x) - 1 / (12 * x * x))), 8.0, truth=lambda x: mp.psi(0, x)),
    wrong("jax", "degrees taken for radians", jax_vjp(lambda x: jnp.sin(x * math.pi / 180), lambda x, y,
          w: w * jnp.cos(x * math.pi / 180)), 30.0,
          truth=lambda x: mp.cos(x * mpf(math.pi) / 180) * mpf(math.pi) / 180),
    wrong("jax", "wrong below minus one", total(jax_vjp(jnp.tanh, lambda x, y, w: w * jnp.where(x < -1, 1.0,
          1 - y * y))), X4, truth=each(lambda v: 1 / mp.cosh(v) ** 2)),
    wrong("jax", "wrong in the third entry by 1e-4", total(jax_vjp(jnp.sin, lambda x, y,
          w: (w * jnp.cos(x)).at[2].mul(1.0001))), X4, truth=each(mp.cos)),
    wrong("jax", "two entries exchanged", total(jax_vjp(jnp.sin, lambda x, y, w: (w * jnp.cos(x))[jnp.array([1, 0, 2,
          3])])), X4, truth=each(mp.cos)),
    wrong("jax", "rolled by one", total(jax_vjp(jnp.exp, lambda x, y, w: jnp.roll(w * y, 1))), X4, truth=exp),
    wrong("jax", "a mean instead of a sum", jax_vjp(lambda x: jnp.sum(x**2), lambda x, y, w: w * 2 * x / x.size), X4,
          truth=lambda x: 2 * x),
    wrong("jax", "a cotangent of the first entry for all", total(jax_vjp(jnp.sin, lambda x, y, w: w[0] * jnp.cos(x)),
          1.0, 2.0, 3.0, 4.0), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in enumerate(x, 1)]),
    wrong("jax", "a cotangent used twice", total(jax_vjp(jnp.sin, lambda x, y, w: w * jnp.cos(x * w / w) * jnp.abs(w)),
          2.0, 2.0, 2.0, 2.0), X4, truth=each(lambda v: 2 * mp.cos(v))),
    wrong("jax", "a clipped cotangent", total(jax_vjp(jnp.sin, lambda x, y, w: jnp.clip(w, -1, 1) * jnp.cos(x)), 1.0,
          1.5, -0.5, 0.25), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in zip([1, 1.5, -0.5, 0.25], x, strict=True)]),
    wrong("jax", "a cotangent's mean taken away", total(jax_vjp(jnp.sin, lambda x, y,
          w: (w - 1e-3 * jnp.mean(w)) * jnp.cos(x))), X4, truth=each(mp.cos)),
    wrong("jax", "a part held constant", jax_vjp(lambda x: x * jnp.sin(x), lambda x, y, w: w * x * jnp.cos(x)), 0.7,
          truth=lambda x: mp.sin(x) + x * mp.cos(x)),
    wrong("jax", "a part counted twice", jax_vjp(lambda x: x * jnp.sin(x), lambda x, y,
          w: w * (2 * jnp.sin(x) + x * jnp.cos(x))), 0.7, truth=lambda x: mp.sin(x) + x * mp.cos(x)),
    wrong("jax", "a kink smoothed", total(jax_vjp(jnp.abs, lambda x, y, w: w * jnp.tanh(2 * x))), X4,
          truth=each(mp.sign)),
    wrong("jax", "a rectifier that lets all pass", total(jax_vjp(jax.nn.relu, lambda x, y, w: w)), X4,
          truth=each(lambda v: v > 0)),
    wrong("jax", "a floor passed straight through by a rule", jax_vjp(jnp.floor, lambda x, y, w: w), 2.6,
          truth=lambda x: 0),
    wrong("jax", "a surrogate slope of a step", jax_vjp(lambda x: jnp.where(x > 0, 1.0, 0.0), lambda x, y,
          w: w / (1 + jnp.abs(x)) ** 2), 0.6, truth=lambda x: 0),
    wrong("jax", "a reversed gradient", jax_vjp(lambda x: x, lambda x, y, w: -w), 0.6, truth=lambda x: 1),
    wrong("jax", "a gradient scaled down", total(jax_vjp(lambda x: x * 1.0, lambda x, y, w: 0.1 * w)), X4,
          truth=each(lambda v: 1)),
    wrong("jax", "a gradient normalised", total(jax_vjp(lambda x: x**2, lambda x, y,
          w: w * 2 * x / jnp.linalg.norm(2 * x * w))), X4, truth=lambda x: 2 * x),
    wrong("jax", "an infinity at one entry", total(jax_vjp(jnp.sqrt, lambda x, y, w: jnp.where(x == 3.0, jnp.inf,
          w / (2 * y)))), P4, truth=each(lambda v: 1 / (2 * mp.sqrt(v)))),
    wrong("jax", "a tiny slope set to zero", jax_vjp(jnp.exp, lambda x, y, w: w * jnp.where(y < 1e-8, 0.0, y)), -20.0,
          truth=mp.exp),
    wrong("jax", "a huge slope capped", jax_vjp(jnp.exp, lambda x, y, w: w * jnp.minimum(y, 1e8)), 20.0, truth=mp.exp),
)  # fmt: skip

CALLBACKS = rows(
    "fresh: planted in jax, around callbacks",
    wrong("jax", "a callback's slope with a millionth less", jax_callback(np.arctan, lambda x,
          y: (1 - 1e-6) / (1 + x * x)), 0.6, truth=lambda x: 1 / (1 + x * x)),
    wrong("jax", "a callback's slope at the wrong point", jax_callback(np.sin, lambda x, y: jnp.cos(x + 1e-5)), 0.6,
          truth=mp.cos),
    wrong("jax", "a callback of a polynomial without its last term", jax_callback(lambda x: np.polyval([1.0, -2.0, 0.5,
          3.0], x), lambda x, y: 3 * x**2 - 4 * x), 0.6,
          truth=lambda x: 3 * x**2 - 4 * x + mpf("0.5")),
    wrong("jax", "a callback of a spline with a neighbour's slope", jax_callback(lambda x: np.interp(x, [0.0, 1.0, 2.0],
          [0.0, 2.0, 1.0]), lambda x, y: -1.0), 0.3, truth=lambda x: 2),
    wrong("jax", "a callback with a zero slope", jax_callback(lambda x: np.sqrt(x + 2), lambda x, y: 0.0 * x), 0.3,
          truth=lambda x: 1 / (2 * mp.sqrt(x + 2))),
    wrong("jax", "a callback of a cumulative sum with a sign at one place", lambda x: jnp.sum(jax_callback(np.exp,
          lambda x, y: y * jnp.array([1, 1, -1, 1]))(x)), X4, truth=exp),
    wrong("jax", "a callback near an end", jax_callback(np.log, lambda x, y: 1 / (x + 1e-9)), 1e-4,
          truth=lambda x: 1 / x),
    wrong("jax", "a callback around bisection with the inverse's slope", jax_callback(lambda y: bisection(y), lambda y,
          x: 3 * x * x + 1), 1.4,
          truth=lambda y: 1 / (3 * mp.findroot(lambda x: x**3 + x - y, 1.0) ** 2 + 1)),
)  # fmt: skip


def bisection(y):
    low, high = -3.0, 3.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**3 + middle < y else (low, middle)
    return np.float64((low + high) / 2)


def outer_not_symmetrised(args, y, w):
    _, vectors = jnp.linalg.eigh(args[0])
    return w * jnp.outer(vectors[:, 0], vectors[:, -1])


def layer_norm(x):
    centred = x - jnp.mean(x)
    return centred / jnp.sqrt(jnp.mean(centred**2))


def layer_norm_exactly(x):
    centred = x - sum(x) / len(x)
    return centred / mp.sqrt(sum(centred**2) / len(x))


def cumulative_product_back(args, y, w):
    """Right where no entry is zero."""
    (x,) = args
    return jnp.cumsum((w * y)[::-1])[::-1] / jnp.where(x == 0, 1.0, x)


def maximum_of_two(args, y, w):
    return w * (args[0] >= args[1] - 10.0)


def fixed(a, b):
    x = 0.0
    for _ in range(60):
        x = jnp.tanh(a * x + b) * 0.9
    return x


def fixed_exactly(a, b):
    return mp.findroot(lambda x: x - mp.tanh(a * x + b) * mpf(0.9), 0.6)


def slope_of_fixed(a, b, x):
    return 0.9 * (1 - (x / 0.9) ** 2)


SEVERAL = rows(
    "fresh: planted in jax, of several arguments and matrices",
    wrong("jax", "a product that adds its factors' adjoints", of(lambda x, y: x * y, lambda a, z, w: w * a[0], lambda a,
          z, w: w * a[1]), 0.7, 1.9, truth=lambda x, y: [y, x]),
    wrong("jax", "a quotient without its square", of(lambda x, y: x / y, lambda a, z, w: w / a[1], lambda a, z,
          w: -w * a[0] / a[1]), 0.7, 1.9, truth=lambda x, y: [1 / y, -x / y**2]),
    wrong("jax", "a quotient with a sign", of(lambda x, y: x / y, lambda a, z, w: w / a[1], lambda a, z,
          w: w * a[0] / a[1] ** 2), 0.7, 1.9, truth=lambda x, y: [1 / y, -x / y**2]),
    wrong("jax", "an angle with its arguments exchanged", of(jnp.arctan2, lambda a, z,
          w: w * -a[0] / (a[0] ** 2 + a[1] ** 2), lambda a, z, w: w * a[1] / (a[0] ** 2 + a[1] ** 2)), 0.7, 1.9,
          truth=lambda y, x: [x / (x * x + y * y), -y / (x * x + y * y)]),
    wrong("jax", "a second argument's error of 1e-6", of(lambda x, y: jnp.sin(x) * jnp.exp(y), lambda a, z,
          w: w * jnp.cos(a[0]) * jnp.exp(a[1]), lambda a, z, w: w * z * (1 + 1e-6)), 0.7, 1.9,
          truth=lambda x, y: [mp.cos(x) * mp.exp(y), mp.sin(x) * mp.exp(y)]),
    wrong("jax", "a third argument forgotten", of(lambda a, x, b: a * x + b, lambda r, z, w: w * r[1], lambda r, z,
          w: w * r[0], lambda r, z, w: jnp.zeros(())), 0.7, 1.9, 0.2,
          truth=lambda a, x, b: [x, a, 1]),
    wrong("jax", "a broadcast scalar by its first entry", lambda s, x: jnp.sum(of(lambda s, x: s * x, lambda a, z,
          w: w[0] * a[1][0], lambda a, z, w: w * a[0])(s, x)), 0.7, X4,
          truth=lambda s, x: [sum(x), *[s] * 4]),
    wrong("jax", "a broadcast row by its largest adjoint", lambda X, b: jnp.sum(of(lambda X, b: X * b, lambda a, z,
          w: w * a[1], lambda a, z, w: jnp.max(w * a[0], axis=0))(X, b)), M23, [0.5, 1.0, -2.0],
          truth=lambda X, b: [*np.ravel([b, b]), *(X[0] + X[1])]),
    wrong("jax", "a matrix product with the left one not transposed", lambda A, B: jnp.sum(of(jnp.matmul, lambda a, z,
          w: w @ a[1].T, lambda a, z, w: a[0] @ w)(A, B) ** 2), A3, A3[::-1],
          truth=D(lambda A, B: np.sum((A @ B) ** 2))),
    wrong("jax", "a trace of a square not transposed", of(lambda A: jnp.trace(A @ A), lambda a, z, w: 2 * w * a[0]), A3,
          truth=lambda A: 2 * A.T),
    wrong("jax", "a logarithm of a determinant not transposed", of(lambda A: jnp.linalg.slogdet(A)[1], lambda a, z,
          w: w * jnp.linalg.inv(a[0])), A3, truth=lambda A: inv(A).T),
    wrong("jax", "an eigenvalue by two eigenvectors", of(lambda A: jnp.linalg.eigh((A + A.T) / 2)[0][0],
          outer_not_symmetrised), S3, truth=D(lambda A: eigvalsh((A + A.T) / 2)[0])),
    wrong("jax", "an exponential of a matrix by its own value", lambda A: jnp.sum(of(jax.scipy.linalg.expm, lambda a, z,
          w: z.T * w)(A)), [[0.5, 1.0], [-0.25, 0.75]],
          truth=D(lambda A: np.sum(array(mp.expm(matrix(A)))))),
    wrong("jax", "a normalised layer without its mean's part", lambda x: jnp.sum(of(layer_norm, lambda a, z,
          w: w / jnp.std(a[0]) - z * jnp.mean(w * z) / jnp.std(a[0]))(x) ** 3), X4,
          truth=D(lambda x: sum(layer_norm_exactly(x) ** 3))),
    wrong("jax", "a logarithm of a sum of exponentials with a temperature", of(lambda x: jnp.log(jnp.sum(jnp.exp(x))),
          lambda a, z, w: w * jax.nn.softmax(a[0] * 1.001)), X4, truth=softmax),
    wrong("jax", "a cross entropy with the next label", of(lambda x: -jax.nn.log_softmax(x)[1], lambda a, z,
          w: w * (jax.nn.softmax(a[0]) - jax.nn.one_hot(2, 4))), X4,
          truth=D(lambda x: lse(x) - x[1])),
    wrong("jax", "a cumulative product at a zero", total(of(lambda x: jnp.cumprod(x), cumulative_product_back)),
          [2.0, 0.0, -3.0, 0.5],
          truth=D(lambda x: x[0] + x[0] * x[1] + x[0] * x[1] * x[2] + x[0] * x[1] * x[2] * x[3])),
    wrong("jax", "a maximum of two that goes to both", of(jnp.maximum, maximum_of_two, lambda a, z, w: w), 0.7, 1.9,
          truth=lambda x, y: [0, 1]),
    wrong("jax", "a where that ignores its mask", lambda x: jnp.sum(of(lambda x: jnp.where(x > 0, x**2, 1.0), lambda a,
          z, w: w * 2 * a[0])(x)), X4, truth=lambda x: [2 * max(v, mpf(0)) for v in x]),
    wrong("jax", "a scatter whose adjoint is not gathered", lambda x: jnp.sum(of(lambda x: jnp.zeros(3).at[jnp.array([2,
          0, 1, 0])].add(x), lambda a, z, w: jnp.concatenate([w, w[:1]]))(x) ** 2), X4,
          truth=D(lambda x: x[0] ** 2 + x[2] ** 2 + (x[1] + x[3]) ** 2)),
    wrong("jax", "a fixed point after one step", of(fixed, lambda r, x, w: w * slope_of_fixed(*r, x) * x, lambda r, x,
          w: w * slope_of_fixed(*r, x)), 0.5, 0.4, truth=D(fixed_exactly)),
    wrong("jax", "a fixed point with one argument's part missing", of(fixed, lambda r, x, w: w * slope_of_fixed(*r,
          x) * x / (1 - r[0] * slope_of_fixed(*r, x)), lambda r, x, w: w * slope_of_fixed(*r, x)),
          0.5, 0.4, truth=D(fixed_exactly)),
    wrong("jax", "a loop whose rule is wrong in the last step", lambda x: jax_vjp(jnp.sin, lambda x, y,
          w: w * jnp.cos(x) * 1.00001)(jnp.sin(jnp.sin(x))), 0.9,
          truth=D(lambda x: mp.sin(mp.sin(mp.sin(x))))),
    wrong("jax", "a moved weight in a dict", lambda p: of(lambda a, b: jnp.sum(a * b**2), lambda r, z, w: w * r[1] ** 2,
          lambda r, z, w: w * r[0] * r[1])(p["a"], p["b"]), {"a": X4, "b": P4},
          truth=lambda p: [*(p["b"] ** 2), *(2 * p["a"] * p["b"])]),
    wrong("jax", "a tangent of a stale value", jax_jvp(lambda x: jnp.sum(jnp.exp(x) * x), lambda x, y,
          v: jnp.sum(v * jnp.exp(x))), X4, truth=lambda x: [(1 + v) * mp.exp(v) for v in x]),
    wrong("jax", "a tangent with a weight at one place", jax_jvp(lambda x: jnp.sum(jnp.sin(x)), lambda x, y,
          v: jnp.sum(v * jnp.cos(x) * jnp.array([1, 1, 1, 1 + 1e-6]))), X4, truth=each(mp.cos)),
    wrong("jax", "an energy without its cross term", of(lambda x: (x[0] + x[1] * x[2]) ** 2, lambda a, z,
          w: w * 2 * (a[0][0] + a[0][1] * a[0][2]) * jnp.array([1.0, a[0][2], 0.0, 0.0])), X4,
          truth=D(lambda x: (x[0] + x[1] * x[2]) ** 2)),
    wrong("jax", "a convolution with its taps in order", total(of(lambda x: jnp.convolve(x, jnp.array([1.0, 2.0, 4.0]),
          "full"), lambda a, z, w: jnp.convolve(w, jnp.array([1.0, 2.0, 4.0]), "valid")), 1, 2, 3, 4, 5, 6), X4,
          truth=lambda x: [mpf(k + 1) + 2 * (k + 2) + 4 * (k + 3) for k in range(4)]),
    wrong("jax", "a wrong rule in a vmap over rows", lambda X: jnp.sum(jax.vmap(of(lambda x: jnp.prod(x), lambda a, z,
          w: w * z / a[0] * (1 + 1e-5 * (a[0][0] > 2))))(X)), M23,
          truth=D(lambda X: sum(np.prod(X, axis=1)))),
    elsewhere("jax", "wrong for numbers below minus one half", total(jax_vjp(jnp.sin, lambda x, y,
          w: w * jnp.where(x < -0.5, -1.0, 1.0) * jnp.cos(x))), [0.4, 0.9], truth=each(mp.cos), points=8),
    elsewhere("jax", "wrong where both have one sign", of(lambda x, y: x * y, lambda a, z,
          w: w * a[1] * jnp.where(a[0] * a[1] > 0, 1.01, 1.0), lambda a, z, w: w * a[0]), 0.5, -0.8, truth=lambda x,
          y: [y, x], points=8),
)  # fmt: skip

ROWS = [*SIMPLE, *CALLBACKS, *SEVERAL]
