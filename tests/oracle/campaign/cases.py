"""Functions for planted faults: small ones of every shape, and some too large to examine every entry."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Case

Maker = Callable[[np.random.Generator], Any]
LARGE = 100_000
LONG = 300


def uniform(*shape: int, low: float = 0.4, high: float = 1.6) -> Maker:
    return lambda rng: rng.uniform(low, high, shape)


def made(f: Callable[..., Any], *, constants: tuple[str, ...] = (), **makers: Maker) -> Case:
    """A case at one size; the seed alone decides the inputs."""
    active = tuple(name for name in makers if name not in constants)
    return Case(f=f, inputs=lambda n, rng: {k: make(rng) for k, make in makers.items()}, wrt=active, sizes=(1,))


def array_valued(f: Callable[..., Any], *, sparsity: Any = None, **makers: Maker) -> Case:
    return Case(
        f=f,
        inputs=lambda n, rng: {k: make(rng) for k, make in makers.items()},
        wrt=tuple(makers),
        sizes=(1,),
        operators=("value", "jacobian", "jvp", "vjp"),
        sparsity=sparsity,
    )


def chain(xp: Any, x: Any) -> Any:
    return xp.sum(xp.sin(x[1:]) * x[:-1] ** 2) + xp.exp(0.2 * x[0] * x[-1])


def mixture(xp: Any, A: Any, b: Any) -> Any:
    return xp.sum(xp.tanh(A @ b) * b) + xp.sum(A * A * A) / 3.0


def tower(xp: Any, x: Any) -> Any:
    """Entries between 1e-9 and 1e3."""
    return xp.sum(xp.sin(x) * xp.asarray(10.0 ** np.linspace(-9, 3, 5)))


def couples(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(x**2 * xp.sin(y)) + x[0] * y[-1]


def residuals(xp: Any, x: Any) -> Any:
    return x[1:] * x[1:] - xp.exp(0.5 * x[:-1])


def residuals_pattern(n: int) -> tuple[list[int], list[int]]:
    rows = range(5)
    return [*rows, *rows], [*rows, *(row + 1 for row in rows)]


SMALL = made(chain, x=uniform(5))
MATRIX = made(mixture, A=uniform(3, 3), b=uniform(3))
SYMMETRIC = made(lambda xp, A: xp.sum((A + A.T) ** 3) / 10.0 + xp.sum(xp.sin(A) * A), A=uniform(3, 3))
TOWER = made(tower, x=uniform(5))
COUPLES = made(couples, x=uniform(4), y=uniform(4))
PAIR = made(lambda xp, x: xp.sin(x[0]) * x[1] ** 2 + xp.exp(x[0]), x=uniform(2))
SCALAR = made(lambda xp, a, b: a * a * b + xp.sin(b), a=lambda rng: float(rng.uniform(1, 2)), b=lambda rng: 1.3)
WITH_CONSTANT = made(lambda xp, x, c: xp.sum(xp.sin(x * c)), constants=("c",), x=uniform(5), c=uniform(5))
WITH_ZEROS = made(lambda xp, x: xp.sum(xp.sin(x[:3])) + x[0] * x[1], x=uniform(5))
LONG_CHAIN = made(chain, x=uniform(LONG))
LARGE_WAVES = made(lambda xp, x: xp.sum(xp.sin(x) * x), x=uniform(LARGE))
LARGE_STEEP = made(lambda xp, x: xp.sum(xp.exp(6.0 * x)), x=uniform(LARGE))
RESIDUALS = array_valued(residuals, x=uniform(6))
SPARSE = array_valued(residuals, sparsity=residuals_pattern, x=uniform(6))
MANY_OUTPUTS = array_valued(lambda xp, x: xp.sin(x[:, None] * x[None, :]) * x[:, None], x=uniform(7))
