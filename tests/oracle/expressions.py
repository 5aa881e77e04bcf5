"""Random functions over `xp`, as strings, so that output of a failing test can be pasted.

    scalar(rng, depth) -> "xp.sum(xp.sin(A @ x) * y)"

They may be ill-conditioned: where digits are lost, the verdict must be "inconclusive". The names x, y are vectors of
length 4, A is a matrix (4, 4), s a number, E the unit matrix.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Generator = np.random.Generator
SIZE = 4

ELEMENTWISE = (
    "xp.sin({0})",
    "xp.cos({0})",
    "xp.tanh({0})",
    "xp.atan({0})",
    "xp.exp(xp.sin({0}))",
    "xp.exp(-xp.square({0}))",
    "xp.log1p(xp.square({0}))",
    "xp.log(1.5 + xp.sin({0}))",
    "xp.sqrt(1.0 + xp.square({0}))",
    "xp.abs({0})",
    "xp.expm1(xp.tanh({0}))",
    "(1.0 / (2.0 + xp.cos({0})))",
    "(-{0})",
    "({0}**3)",
    "(0.5 - 2.0 * {0})",
)
OF_TWO = (
    "({0} + {1})",
    "({0} - {1})",
    "({0} * {1})",
    "({0} / (1.0 + xp.square({1})))",
    "xp.maximum({0}, {1})",
    "xp.minimum({0}, {1})",
    "xp.where({0} < {1}, xp.sin({0}), {1})",
    "xp.atan2({0}, 1.0 + xp.square({1}))",
)
OF_A_VECTOR = (
    "(A @ {0})",
    "({0} @ A)",
    "xp.cumulative_sum({0})",
    "xp.flip({0})",
    "xp.concat([{0}[1:], {0}[:1]])",
    "xp.linalg.solve(A + 8.0 * E, {0})",
    "xp.reshape(xp.reshape({0}, (2, 2)).T, (4,))",
)
SUMS = (
    "xp.sum({0})",
    "xp.mean({0})",
    "xp.max({0})",
    "xp.prod(1.0 + 0.1 * xp.tanh({0}))",
    "xp.log(xp.sum(xp.exp(xp.tanh({0}))))",
    "xp.sqrt(xp.sum(xp.square({0})))",
    "xp.sum({0}[:, None] * A)",
)


def pick(rng: Generator, among: tuple[str, ...]) -> str:
    return among[int(rng.integers(len(among)))]


def vector(rng: Generator, depth: int) -> str:
    if depth <= 0:
        return pick(rng, ("x", "y", "x", "y", "(s * x)", "xp.sum(A, axis=0)", "A[1, :]"))
    kind = rng.uniform()
    if kind < 0.4:
        return pick(rng, ELEMENTWISE).format(vector(rng, depth - 1))
    if kind < 0.7:
        return pick(rng, OF_TWO).format(vector(rng, depth - 1), vector(rng, depth - 2))
    if kind < 0.9:
        return pick(rng, OF_A_VECTOR).format(vector(rng, depth - 1))
    return f"({scalar(rng, depth - 2)} * {vector(rng, depth - 2)})"


def scalar(rng: Generator, depth: int) -> str:
    if depth <= 0:
        return pick(rng, ("s", "x[1]", "(x @ y)"))
    kind = rng.uniform()
    if kind < 0.7:
        return pick(rng, SUMS).format(vector(rng, depth - 1))
    if kind < 0.85:
        return pick(rng, ELEMENTWISE).format(scalar(rng, depth - 1))
    return f"({scalar(rng, depth - 1)} {pick(rng, ('+', '-', '*'))} {scalar(rng, depth - 2)})"


def function(text: str) -> Callable[..., Any]:
    """f(xp, x, y, A, s, E) of an expression."""
    scope: dict[str, Any] = {}
    exec(f"def f(xp, x, y, A, s, E):\n    return {text}", scope)
    made: Callable[..., Any] = scope["f"]
    return made


def inputs(rng: Generator) -> dict[str, Any]:
    """Numbers of all sizes between a thousandth and ten, sometimes with a large offset."""

    def draw(*shape: int) -> Any:
        offset = 1e3 if rng.uniform() < 0.05 else 0.0
        return rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 1) + offset

    return {"x": draw(SIZE), "y": draw(SIZE), "A": draw(SIZE, SIZE), "s": float(draw()), "E": np.eye(SIZE)}
