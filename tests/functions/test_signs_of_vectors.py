"""Eigenvectors and singular vectors, whose signs a decomposition leaves open: the library's own decide."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench

Drawn = tuple[np.ndarray, int, int]


def drawn(seed: int) -> Drawn:
    """A matrix, a row and a column."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 9))
    return random.normal(size=(n, n)), *reversed([int(random.integers(n)) for _ in range(2)])


def symmetric(seed: int) -> Drawn:
    matrix, row, column = drawn(seed)
    return matrix + matrix.T, row, column


FUNCTIONS: dict[str, tuple[Callable[[int], Drawn], Callable[..., Any]]] = {
    "torch's eigh": (symmetric, lambda a, row, column: torch.linalg.eigh(a)[1][row, column]),
    "torch's svd": (drawn, lambda a, row, column: torch.linalg.svd(a)[2][column, row]),
    "torch's svd of a wide matrix": (drawn, lambda a, row, column: torch.linalg.svd(a[1:], False).U[:, 0].sum()),
    "jax's eigh": (symmetric, lambda a, row, column: jnp.linalg.eigh(a)[1][row, column]),
    "jax's svd": (drawn, lambda a, row, column: jnp.linalg.svd(a)[0][row, column]),
    "numpy's eigh": (symmetric, lambda a, row, column: np.linalg.eigh(a)[1][row, column]),
    "numpy's svd": (drawn, lambda a, row, column: np.linalg.svd(a)[0][row, column]),
}
OTHER_SIGNS = (9, pytest.param(7, marks=pytest.mark.slow), pytest.param(15, marks=pytest.mark.slow))
"""Seeds of matrices some of whose vectors have one sign in float32 and the other in float64."""

CHECKS = [
    pytest.param(name, dtype, marks=[pytest.mark.slow] if name.startswith("jax") else [])
    for name in FUNCTIONS
    for dtype in ("float32", "float64")
    if (name, dtype) not in (("numpy's eigh", "float32"), ("numpy's svd", "float32"))  # they are checked in float64
]


def chosen(f: Callable[..., Any], row: int, column: int, a: Any) -> Any:
    return f(a, row, column)


def given(name: str, matrix: np.ndarray, dtype: str) -> Any:
    if name.startswith("torch"):
        return torch.tensor(matrix.astype(dtype))
    return jnp.asarray(matrix, dtype) if name.startswith("jax") else matrix.astype(dtype)


@pytest.mark.parametrize("seed", OTHER_SIGNS)
@pytest.mark.parametrize(("name", "dtype"), CHECKS)
def test_a_right_gradient_of_a_vector_is_never_wrong(name: str, dtype: str, seed: int) -> None:
    draw, f = FUNCTIONS[name]
    matrix, *place = draw(seed)
    with jax.enable_x64(True):
        checked = adbench.check(partial(chosen, f, *place), given(name, matrix, dtype))
    assert checked.verdict.word in ("right", "verified"), str(checked)
    assert checked.proved, str(checked)


class WrongSign(torch.autograd.Function):
    """An entry of an eigenvector; its backward pass has the sign of the opposite vector."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a)
        return torch.linalg.eigh(a)[1][0, 1]

    @staticmethod
    def backward(ctx: Any, adjoint: torch.Tensor) -> torch.Tensor:
        (a,) = ctx.saved_tensors
        with torch.enable_grad():
            leaf = a.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(torch.linalg.eigh(leaf)[1][0, 1], leaf)
        return -adjoint * gradient


@pytest.mark.parametrize("seed", OTHER_SIGNS)
def test_a_gradient_of_the_opposite_vector_is_wrong(seed: int) -> None:
    matrix, *_ = symmetric(seed)
    checked = adbench.check(WrongSign.apply, torch.tensor(matrix.astype(np.float32)))
    assert (checked.verdict.word, checked.proved) == ("wrong", True), str(checked)
