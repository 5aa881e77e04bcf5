"""Numbers that the noise of a case's own formula hides are right if they agree with the truth, at neighbours too."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench

NEARLY_SINGULAR = np.array([[1.0, 1.0], [1.0, 1 + 1e-7]])


def double(*numbers: Any) -> Any:
    return torch.tensor(numbers, dtype=torch.float64)


RIGHT: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "solve for a right side": (lambda b: jnp.linalg.solve(NEARLY_SINGULAR, b)[0], np.array([1.0, 2.0]), "gradient"),
    "the second derivative of sinc at 0": (jnp.sinc, 0.0, "hessian"),
    "log_sigmoid far out": (jax.nn.log_sigmoid, 40.0, "gradient"),
    "log_sigmoid of torch far out": (torch.nn.functional.logsigmoid, double(40.0)[0], "gradient"),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 0).sum(), double(1.0, -2.0, 800.0), "gradient"),
    "a tiny cube": (lambda x: x**3, 1e-120, "gradient"),
    "the second derivative of a tiny cube": (lambda x: x**3, 1e-120, "hessian"),
    "a subnormal gradient": (lambda x: x**2 * 1e-310, 3.0, "gradient"),
    "an inverse with zero pivots": (
        lambda A: jnp.linalg.inv(A)[0, 1],
        np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [1.0, 2.0, 3.0]]),
        "gradient",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_number_that_agrees_at_neighbours_too_is_right(name: str) -> None:
    f, x, mode = RIGHT[name]
    found = adbench.check(f, x, modes=mode)
    assert (found.word, found.proved) == ("right", True), found


def cube_with(rule: Callable[[Any], Any]) -> Callable[..., Any]:
    """x³ with this derivative."""
    cube = jax.custom_jvp(lambda x: x**3)
    cube.defjvp(lambda x, v: (x[0] ** 3, rule(x[0]) * v[0]))
    return cube


AT = 1.1e-120
FAULTS: dict[str, Callable[[Any], Any]] = {
    "zero": lambda x: 0.0 * x,
    "the opposite sign": lambda x: -3 * x**2,
    "another factor": lambda x: 2 * x**2,
    "a relative error of 1e-3": lambda x: 3.003 * x**2,
    "a relative error of 1e-9": lambda x: 3 * (1 + 1e-9) * x**2,
    "a relative error of 1e-11": lambda x: 3 * (1 + 1e-11) * x**2,
    "the value at this point for all points": lambda x: 3 * AT**2 + 0 * x,
    "a secant through this point": lambda x: 3 * AT * x,
    "not a number": lambda x: x * jnp.nan,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_the_noise_hides_is_never_right(name: str) -> None:
    assert adbench.check(cube_with(lambda x: 3 * x**2), AT).word == "right"
    assert adbench.check(cube_with(FAULTS[name]), AT).word in ("blind", "wrong")


@pytest.mark.parametrize("matrix", [[[0.0, 1.0], [0.0, 1.0]], [[0.0, 1.0, 2.0], [0.0, 1.0, 3.0], [1.0, 2.0, 3.0]]])
def test_a_zero_pivot_does_not_hide_the_derivative_of_a_determinant(matrix: list[list[float]]) -> None:
    def determinant(rule: Callable[[Any], Any]) -> Any:  # jax's own rule has been wrong there since 0.11.1
        f = jax.custom_vjp(lambda A: jnp.linalg.det(A))
        f.defvjp(lambda A: (jnp.linalg.det(A), A), lambda A, c: (c * rule(A),))
        return f

    def cofactor(A: Any, i: int, j: int) -> Any:
        rest = [np.delete(np.arange(len(A)), k) for k in (i, j)]
        return (-1) ** (i + j) * jnp.linalg.det(A[np.ix_(*rest)])

    def cofactors(A: Any) -> Any:
        return jnp.array([[cofactor(A, i, j) for j in range(len(A))] for i in range(len(A))])

    assert adbench.check(determinant(cofactors), np.array(matrix)).word == "right"
    assert adbench.check(determinant(jnp.zeros_like), np.array(matrix)).is_wrong
