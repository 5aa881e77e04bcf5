"""Small functions at points of full precision, where mutants of the engine must show.

Gradients have entries of about one and nothing cancels, so an error in the ninth digit is visible. In `HARD`, a
derivative is a small difference of large numbers, with fewer than nine digits in double precision.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Case

Maker = Callable[[np.random.Generator], Any]


def number(rng: np.random.Generator) -> float:
    return float(rng.uniform(0.4, 1.1))


def vector(rng: np.random.Generator) -> Any:
    return rng.uniform(0.4, 1.1, 5)


def weights(rng: np.random.Generator) -> Any:
    return rng.uniform(1.0, 2.0, 5)


def with_zero(rng: np.random.Generator) -> Any:
    return rng.uniform(0.4, 1.1, 5) * [1, 1, 0, 1, 1]


def matrix(rng: np.random.Generator) -> Any:
    """Far from symmetric and from singular."""
    return rng.uniform(0.4, 1.1, (3, 3)) + np.diag([3.0, 4.0, 5.0])


def positive(rng: np.random.Generator) -> Any:
    root = rng.uniform(-0.5, 0.5, (3, 3))
    return root @ root.T + np.diag([2.0, 3.0, 4.0])


def block(rng: np.random.Generator) -> Any:
    return rng.uniform(0.4, 1.1, (2, 3, 2))


def column(rng: np.random.Generator) -> Any:
    return rng.uniform(0.4, 1.1, (3, 1))


def row(rng: np.random.Generator) -> Any:
    return rng.uniform(0.4, 1.1, (1, 3))


def case(f: Callable[..., Any], **makers: Maker) -> Case:
    """f(xp, **inputs); inputs with a name in capitals, or called w, are constants."""
    active = tuple(name for name in makers if name not in ("w", "W"))
    return Case(f=f, inputs=lambda n, rng: {k: make(rng) for k, make in makers.items()}, wrt=active, sizes=(1,))


def elementwise(name: str) -> Case:
    return case(lambda xp, x, w: xp.sum(w * getattr(xp, name)(x)), x=vector, w=weights)


sines, exponentials, cosines, tangents = map(elementwise, ("sin", "exp", "cos", "tanh"))
logarithms = elementwise("log")
cubes = case(lambda xp, x, w: xp.sum(w * x**3.0), x=vector, w=weights)
powers = case(lambda xp, x, y, w: xp.sum(w * x**y), x=vector, y=weights, w=weights)
sums = case(lambda xp, x, w: xp.sum(x * w), x=vector, w=weights)
product = case(lambda xp, A, B, W: xp.sum((A @ B) * W), A=matrix, B=matrix, W=matrix)
applied = case(lambda xp, A, x: xp.sum(xp.sin(A @ x / 5)), A=matrix, x=lambda rng: rng.uniform(0.4, 1.1, 3))
weighted_log_sum = case(lambda xp, x, w: xp.logsumexp(x * w), x=vector, w=weights)
log_sum = case(lambda xp, x: xp.logsumexp(x), x=vector)
inverse = case(lambda xp, A, W: xp.sum(xp.linalg.inv(A) * W), A=matrix, W=matrix)
solution = case(lambda xp, A, B, W: xp.sum(xp.linalg.solve(A, B) * W), A=matrix, B=matrix, W=matrix)
log_det = case(lambda xp, A: xp.linalg.slogdet(A)[1], A=matrix)
determinant = case(lambda xp, A: xp.linalg.det(A), A=matrix)
root = case(lambda xp, A, W: xp.sum(xp.linalg.cholesky(A) * W), A=positive, W=matrix)
gathered = case(lambda xp, x, w: xp.sum(w * x[np.array([3, 0, 4, 1, 2])]), x=vector, w=weights)
repeated = case(lambda xp, x, w: xp.sum(w * x[np.array([0, 0, 2, 2, 2])]), x=vector, w=weights)
overlapping = case(lambda xp, x: xp.sum(xp.sin(x[1:]) * x[:-1]), x=vector)
first = case(lambda xp, x: x[0] * x[1] + xp.sin(x[2]) * x[0], x=vector)
contraction = case(lambda xp, A, B, W: xp.sum(xp.einsum("ij,jk->ki", A, B) * W), A=matrix, B=matrix, W=matrix)
outer = case(lambda xp, x, y, W: xp.sum(W * (x * y)), x=column, y=row, W=matrix)
difference = case(lambda xp, x, y, W: xp.sum(W * (x - y)), x=column, y=row, W=matrix)
quotient = case(lambda xp, x, y, W: xp.sum(W * (x / y)), x=column, y=row, W=matrix)
angle = case(lambda xp, x, y, w: xp.sum(w * xp.atan2(x, y)), x=vector, y=weights, w=weights)
length = case(lambda xp, x, y, w: xp.sum(w * xp.hypot(x, y)), x=vector, y=weights, w=weights)
larger = case(lambda xp, x, y, w: xp.sum(w * xp.maximum(x, y)), x=vector, y=vector, w=weights)
chosen = case(lambda xp, x, y, w: xp.sum(w * xp.where(x < 0.7, x * y, x - y)), x=vector, y=weights, w=weights)
running = case(lambda xp, x, w: xp.sum(w * xp.cumulative_sum(x)), x=vector, w=weights)
running_down = case(lambda xp, A, W: xp.sum(W * xp.cumulative_sum(A, axis=0)), A=matrix, W=matrix)
running_product = case(lambda xp, x, w: xp.sum(w * xp.cumulative_prod(x)), x=vector, w=weights)
multiplied = case(lambda xp, x: xp.prod(x), x=vector)
columns = case(lambda xp, A, w: xp.sum(xp.sum(A * A, axis=0) * w[:3]), A=matrix, w=weights)
largest = case(lambda xp, A, w: xp.sum(xp.max(A[:, ::-1], axis=0)[:2] * w[:2]), A=matrix, w=weights)
soft = case(lambda xp, A, w: xp.sum(xp.logsumexp(A, axis=0) * w[:3]), A=matrix, w=weights)
reversed_ = case(lambda xp, x, w: xp.sum(w * xp.flip(x)), x=vector, w=weights)
rolled = case(lambda xp, x, w: xp.sum(w * xp.roll(x, 2)), x=vector, w=weights)
lower = case(lambda xp, A, W: xp.sum(W * xp.tril(A)), A=matrix, W=matrix)
joined = case(
    lambda xp, x, y, W: xp.sum(xp.concat([x, y]) * W[0]), x=column, y=column, W=lambda r: block(r).reshape(1, 6, 2)
)
turned = case(
    lambda xp, x, w: xp.sum(xp.permute_dims(x, (2, 0, 1)) * w), x=block, w=lambda rng: rng.uniform(1, 2, (2, 2, 3))
)
reshaped = case(lambda xp, A, W: xp.sum(xp.reshape(A, (9,)) * xp.reshape(W, (9,))), A=matrix, W=matrix)
repeats = case(lambda xp, x, W: xp.sum(xp.broadcast_to(x, (3, 3)) * W), x=row, W=matrix)
used_twice = case(lambda xp, x, w: xp.sum(w * xp.sin(x)) + xp.sum(w * xp.exp(x)), x=vector, w=weights)
twice_same_rule = case(lambda xp, x, w: xp.sum(w * xp.exp(x)) + xp.sum(w * xp.exp(0.5 * x)), x=vector, w=weights)
one_product = case(lambda xp, x, y: xp.sum(x * y) + xp.sum(xp.sin(x)), x=vector, y=vector)
array_products = case(lambda xp, x, y: xp.sum(x * y) + xp.sum(x * x), x=vector, y=vector)
scalars = case(lambda xp, a, b: a * b + xp.sin(a) * b - b / a, a=number, b=number)
scalar_square = case(lambda xp, a, b: a * a * b - (b - a) * a, a=number, b=number)
scalar_curve = case(lambda xp, a, b: a * a * b + xp.sin(b), a=number, b=number)
scalar_constants = case(lambda xp, a, b: 3.0 * a * b + b * 2.5 - (1.5 - a) * b + 2.0 / a, a=number, b=number)
written = case(lambda xp, x, w: xp.sum(w * tape_written(xp, x)), x=vector, w=weights)
sorted_ = case(lambda xp, x, w: xp.sum(w * xp.sort(x)), x=vector, w=weights)
two_shapes = case(lambda xp, A, x: xp.sum(xp.sin(A / 4) * x) * x[0], A=matrix, x=lambda rng: rng.uniform(0.4, 1.1, 3))
zeros_in_products = case(lambda xp, x: xp.prod(x), x=with_zero)
zeros_in_sines = case(lambda xp, x, w: xp.sum(w * xp.sin(x)), x=with_zero, w=weights)
zeros_in_squares = case(lambda xp, x, w: xp.sum(w * (x + 1.0) ** 2.0 + w * xp.tanh(x)), x=with_zero, w=weights)
constant_factor = case(lambda xp, x: xp.sum(2.5 * x * xp.exp(x)), x=vector)


def tape_written(xp: Any, x: Any) -> Any:
    """x with its second element replaced, in libraries with in-place writes."""
    y = x * 1.0
    y[1] = x[0] * x[0]
    return y


def overwritten_later(xp: Any, x: Any, w: Any) -> Any:
    b = xp.asarray([3.0, 5.0, 2.0, 4.0, 6.0])
    y = xp.sum(x * b) + xp.sum(x * w)
    b[...] = 0.0
    return y


# Hard points: the derivative is a small difference, and sin is the last link of its chain


def behind_sine(g: Callable[[Any, Any], Any]) -> Case:
    return case(lambda xp, x, w: xp.sum(w * g(xp, xp.sin(x))), x=vector, w=weights)


HARD = {
    "a cancelling square": behind_sine(lambda xp, s: (1e6 + s) ** 2.0 - 1e12 - 2e6 * s),
    "an offset": behind_sine(lambda xp, s: ((s + 1e8) - 1e8) ** 2.0),
    "a large offset": behind_sine(lambda xp, s: ((s + 1e9) - 1e9) ** 2.0),
    "a fast wave": behind_sine(lambda xp, s: xp.cos(1e8 * s)),
    "exponentials": behind_sine(lambda xp, s: xp.exp(20.0 + 1e-7 * s) - np.exp(20.0) * (1.0 + 1e-7 * s)),
    "an ill-conditioned matrix": case(
        lambda xp, x: xp.linalg.slogdet(1.0 / (np.add.outer(np.arange(8.0), np.arange(8.0)) + xp.sin(x) + 1.0))[1],
        x=number,
    ),
}
