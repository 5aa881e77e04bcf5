"""Wrong rules in autograd, and in adbench.tape around numpy."""

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp, primitive
from mpmath import mp

from adbench import tape
from tests.functions.campaign.row import rows, wrong
from tests.functions.campaign.truth import D, det, exp, inv, softmax, solve
from tests.functions.campaign.wrapped import autograd_rule

V3 = [0.5, -1.5, 2.5]
P3 = [0.5, 1.5, 2.5]
A3 = [[2.0, -1.0, 0.5], [0.25, 3.0, 1.0], [-1.0, 0.75, 4.0]]


def summed(f, back, weight=1.0):
    ruled = autograd_rule(f, back)
    return lambda x: anp.sum(weight * ruled(x))


def several(f, *backs):
    """backs: back(x, y, ..., value, w) for each argument, or None."""
    ruled = primitive(lambda *args: f(*args))  # as in `autograd_rule`

    def rule(back):
        return back and (lambda value, *args: lambda w: back(*args, value, w))

    defvjp(ruled, *map(rule, backs))
    return ruled


def cosines(x):
    return [mp.cos(v) for v in x]


def added_last(x, y, w):
    adjoint = np.zeros_like(x)
    adjoint[[0, 0, 2]] = w
    return adjoint


CALLS = []


def kept_slope(x, y, w):
    CALLS.append(2.1 * x)
    return w * CALLS[0]


AUTOGRAD = rows(
    "planted in autograd",
    wrong("autograd", "a factor of three", summed(np.sin, lambda x, y, w: 3 * w * anp.cos(x)), V3, truth=cosines),
    wrong("autograd", "a sign", summed(np.cos, lambda x, y, w: w * anp.sin(x)), V3,
          truth=lambda x: [-mp.sin(v) for v in x]),
    wrong("autograd", "an inner derivative forgotten", summed(lambda x: np.exp(x * x), lambda x, y, w: w * y * x), V3,
          truth=lambda x: 2 * x * exp(x * x)),
    wrong("autograd", "a thousandth too much", summed(np.arctan, lambda x, y, w: 1.001 * w / (1 + x * x)), V3,
          truth=lambda x: 1 / (1 + x * x)),
    wrong("autograd", "a millionth too much", summed(np.sinh, lambda x, y, w: w * anp.cosh(x) * (1 + 1e-6)), V3,
          truth=lambda x: [mp.cosh(v) for v in x]),
    wrong("autograd", "1e-8 too much", summed(np.exp, lambda x, y, w: w * y * (1 + 1e-8)), V3, truth=exp),
    wrong("autograd", "wrong for negative numbers", summed(lambda x: np.abs(x) ** 3, lambda x, y, w: 3 * w * x * x),
          V3, truth=lambda x: 3 * x * abs(x)),
    wrong("autograd", "wrong in one entry", summed(np.sin, lambda x, y, w: w * anp.cos(x) * np.array([1.0, 1.0,
          1.00001])), V3, truth=cosines),
    wrong("autograd", "the smallest entry set to zero", summed(lambda x: x**6,
          lambda x, y, w: w * 6 * x**5 * (np.abs(x) > 0.1)), [3.0, 1e-2, 1.0], truth=lambda x: 6 * x**5),
    wrong("autograd", "a tiny entry with another sign", summed(lambda x: x**4,
          lambda x, y, w: w * 4 * x**2 * np.abs(x)), [50.0, -1e-3], truth=lambda x: 4 * x**3),
    wrong("autograd", "entries reversed", summed(np.sin, lambda x, y, w: (w * anp.cos(x))[::-1]), V3, truth=cosines),
    wrong("autograd", "a cotangent ignored", summed(np.sin, lambda x, y, w: anp.cos(x), 2.0), V3,
          truth=lambda x: [2 * mp.cos(v) for v in x]),
    wrong("autograd", "a cotangent's absolute value", summed(np.sin, lambda x, y, w: np.abs(w) * anp.cos(x), -2.0), V3,
          truth=lambda x: [-2 * mp.cos(v) for v in x]),
    wrong("autograd", "a cotangent's largest entry", lambda x: anp.sum(np.array([1.0, 2.0,
          3.0]) * autograd_rule(np.sin, lambda x, y, w: np.max(w) * anp.cos(x))(x)), V3,
          truth=lambda x: [(k + 1) * mp.cos(v) for k, v in enumerate(x)]),
    wrong("autograd", "the slope at the value", summed(np.tanh, lambda x, y, w: w / anp.cosh(y) ** 2), V3,
          truth=lambda x: [1 / mp.cosh(v) ** 2 for v in x]),
    wrong("autograd", "a slope kept from the first call", lambda x: anp.sum(autograd_rule(np.square, kept_slope)(x)),
          V3, truth=lambda x: 2 * x),
    wrong("autograd", "a sqrt's slope without its two", summed(np.sqrt, lambda x, y, w: w / y), P3,
          truth=lambda x: [1 / (2 * mp.sqrt(v)) for v in x]),
    wrong("autograd", "a NaN at one entry", summed(lambda x: x**2, lambda x, y, w: w * 2 * y / x), [0.0, 1.0],
          truth=lambda x: [0, 2]),
    wrong("autograd", "a slope in single precision", summed(np.exp,
          lambda x, y, w: w * np.float64(1) * y.astype(np.float32)), V3, truth=exp),
    wrong("autograd", "an error function without two over root pi",
          lambda x: anp.sum(autograd_rule(np.vectorize(lambda v: float(mp.erf(v)), otypes=[float]),
          lambda x, y, w: w * anp.exp(-x * x))(x)), V3,
          truth=lambda x: [2 / mp.sqrt(mp.pi) * mp.exp(-v * v) for v in x]),
    wrong("autograd", "a logarithm of a determinant not transposed",
          autograd_rule(lambda A: np.linalg.slogdet(A)[1], lambda A, y, w: w * anp.linalg.inv(A)), A3,
          truth=lambda A: inv(A).T),
    wrong("autograd", "a determinant without its value", autograd_rule(np.linalg.det,
          lambda A, y, w: w * anp.linalg.inv(A).T), A3, truth=lambda A: det(A) * inv(A).T),
    wrong("autograd", "a system with the matrix not transposed",
          lambda A, b: anp.sum(several(np.linalg.solve, lambda A, b, x, w: -anp.outer(anp.linalg.solve(A, w), x),
          lambda A, b, x, w: anp.linalg.solve(A, w))(A, b) ** 2), A3, V3,
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    wrong("autograd", "an argument's rule missing", lambda x, y: anp.sum(several(lambda x, y: x * y,
          lambda x, y, v, w: w * y, lambda x, y, v, w: 0 * w)(x, y)), V3, P3, truth=lambda x, y: [*y, *x]),
    wrong("autograd", "the arguments' rules exchanged", lambda x, y: anp.sum(several(lambda x, y: x * y**2,
          lambda x, y, v, w: 2 * w * x * y, lambda x, y, v, w: w * y**2)(x, y)), V3, P3,
          truth=lambda x, y: [*(y * y), *(2 * x * y)]),
    wrong("autograd", "only the second argument wrong by 1e-4",
          lambda x, y: anp.sum(several(np.multiply, lambda x, y, v, w: w * y, lambda x, y, v, w: w * x * 1.0001)(x,
          y)), V3, P3, truth=lambda x, y: [*y, *x]),
    wrong("autograd", "a broadcast row's gradient averaged", lambda X, b: anp.sum(several(np.add, lambda X, b, v, w: w,
          lambda X, b, v, w: anp.mean(w, axis=0))(X, b) ** 2), A3, V3,
          truth=D(lambda X, b: np.sum((X + b) ** 2))),
    wrong("autograd", "an outer product's factors exchanged",
          lambda x, y: anp.sum(several(np.outer, lambda x, y, v, w: anp.dot(w.T, y),
          lambda x, y, v, w: anp.dot(w, x))(x, y) * np.array(A3)), V3, P3,
          truth=D(lambda x, y: np.sum(np.outer(x, y) * np.array(A3).astype(object)))),
    wrong("autograd", "a gather that keeps one contribution",
          lambda x: anp.sum(autograd_rule(lambda x: x[[0, 0, 2]], added_last)(x) ** 2), V3,
          truth=lambda x: [4 * x[0], 0, 2 * x[2]]),
    wrong("autograd", "a logsumexp without its normaliser", autograd_rule(lambda x: np.log(np.sum(np.exp(x))),
          lambda x, y, w: w * anp.exp(x - anp.max(x))), V3, truth=softmax),
    wrong("autograd", "a cumulative sum not reversed", lambda x: anp.sum(autograd_rule(np.add.accumulate,
          lambda x, y, w: np.cumsum(w))(x) * np.arange(3.0)), V3, truth=lambda x: [3, 3, 2]),
    wrong("autograd", "a variance with one degree less", autograd_rule(np.var, lambda x, y, w: w * (x - anp.mean(x))),
          P3, truth=lambda x: 2 * (x - sum(x) / 3) / 3),
    wrong("autograd", "a distance's gradient of one end", lambda x,
          y: several(lambda x, y: np.sqrt(np.sum((x - y) ** 2)), lambda x, y, v, w: w * (x - y) / v,
          lambda x, y, v, w: w * (x - y) / v)(x, y), V3, P3,
          truth=D(lambda x, y: mp.sqrt(sum((x - y) ** 2)))),
    wrong("autograd", "a trapezoidal rule without its ends' halves",
          lambda x: autograd_rule(lambda x: np.trapezoid(x**2), lambda x, y, w: 2 * w * x)(x), V3,
          truth=lambda x: [x[0], 2 * x[1], x[2]]),
)  # fmt: skip


def on_tape(f, *gradients):
    return tape.function_gradients(f, gradients)


TAPE = rows(
    "planted in adbench.tape around numpy",
    wrong("tape", "a factor", lambda x: tape.sum(on_tape(np.sin, lambda y, v, x: 1.5 * v * tape.cos(x))(x)), V3,
          truth=cosines),
    wrong("tape", "a sign for large numbers", lambda x: tape.sum(on_tape(np.sin,
          lambda y, v, x: v * tape.cos(x) * np.where(np.abs(getattr(x, "val", x)) > 2, -1.0, 1.0))(x)), V3,
          truth=cosines),
    wrong("tape", "a millionth too much", lambda x: tape.sum(on_tape(np.exp,
          lambda y, v, x: v * tape.exp(x) * (1 + 1e-6))(x)), V3, truth=exp),
    wrong("tape", "a second argument with the first one's slope",
          lambda x, y: on_tape(lambda x, y: x * y * y, lambda z, v, x, y: v * y * y, lambda z, v, x, y: v * y * y)(x,
          y), 0.7, 1.3,
          truth=lambda x, y: [y * y, 2 * x * y]),
)  # fmt: skip

ROWS = [*AUTOGRAD, *TAPE]
