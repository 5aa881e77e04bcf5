"""Functions of arrays for `peers`, written with each library's own names: value and gradient by ours, jax and torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench import tape

Function = Callable[[Any, Any], Any]
"""f(xp, x) for a library's namespace xp."""


@dataclass(frozen=True)
class OfArray:
    """A function and its points.

    f       the function
    point   n -> x
    sizes   the sizes n
    """

    f: Function
    point: Callable[[int], Any]
    sizes: tuple[int, ...]


def _elementwise(f: Function, low: float = -2.0, high: float = 3.0) -> OfArray:
    """The sum of f(x) over n numbers from low to high."""
    sizes = (100, 10_000, 1_000_000)
    return OfArray(lambda xp, x: xp.sum(f(xp, x)), lambda n: np.linspace(low, high, n), sizes)


def _softplus(xp: Any, x: Any) -> Any:
    return xp.nn.functional.softplus(x) if xp.__name__ == "torch" else xp.logaddexp(0.0, x)


FUNCTIONS: dict[str, OfArray] = {
    "sin": _elementwise(lambda xp, x: xp.sin(x)),
    "sin_exp": _elementwise(lambda xp, x: xp.sin(x) * xp.exp(x)),
    "tanh": _elementwise(lambda xp, x: xp.tanh(x)),
    "pow": _elementwise(lambda xp, x: x**1.7, 0.1, 3.0),
    "softplus": _elementwise(_softplus),
    "squared_product": OfArray(
        lambda xp, x: xp.sum((x[0] @ x[1]) ** 2),
        lambda n: np.random.default_rng(0).normal(size=(2, n, n)) / n,
        (8, 64),
    ),
}
"""Name -> function. `pow` is x^1.7; `squared_product` is Σ (A B)²."""

PEERS = ("jax", "torch")


def ours(f: Function, x: Any, threads: int) -> tuple[Callable[[], Any], Any]:
    """A call and its compiled function."""
    compiled = tape.compile(lambda x: f(tape, x), x, threads=threads)
    return lambda: compiled(x), compiled


def calls(f: Function, x: Any, threads: int) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """(peer, a call, a call with numpy's result) of each installed peer. jax takes its threads from the environment."""
    try:
        import jax
    except ImportError:
        pass
    else:
        jax.config.update("jax_enable_x64", True)
        point = jax.numpy.asarray(x)
        both = jax.jit(jax.value_and_grad(lambda v: f(jax.numpy, v))).lower(point).compile()

        def by_jax() -> Any:
            return jax.block_until_ready(both(point))

        yield "jax", by_jax, by_jax
    try:
        import torch
    except ImportError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_num_threads(threads)
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)

    def by_torch() -> Any:
        y = f(torch, leaf)
        return y, torch.autograd.grad(y, leaf)[0]

    yield "torch", by_torch, lambda: [part.detach().numpy() for part in by_torch()]
