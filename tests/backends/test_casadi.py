"""casadi's arrays keep numpy's order in every operation, and failed evaluations raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.backends.loaded import backend

A = np.arange(1.0, 7.0).reshape(2, 3)

# Functions of an array of shape (2, 3) whose result depends on the order of the entries.
MOVES: dict[str, Callable[..., Any]] = {
    "reshape": lambda xp, x: xp.reshape(x, (3, 2)),
    "transpose": lambda xp, x: x.T,
    "permute_dims": lambda xp, x: xp.permute_dims(x[None], (2, 0, 1)),
    "flip": lambda xp, x: xp.flip(x, axis=1),
    "roll": lambda xp, x: xp.roll(x, 1, axis=0),
    "row": lambda xp, x: x[1],
    "block": lambda xp, x: x[:, 1:],
    "by places": lambda xp, x: x[np.array([0, 1, 0]), np.array([2, 2, 0])],
    "broadcasting": lambda xp, x: x + xp.asarray([10.0, 20.0, 30.0]) * x[:, :1],
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 2, 3)),
    "stack": lambda xp, x: xp.stack([x, 2 * x], axis=1),
    "concat": lambda xp, x: xp.concat([x, 2 * x], axis=1),
    "sum": lambda xp, x: xp.sum(x, axis=0),
    "mean": lambda xp, x: xp.mean(x, axis=1, keepdims=True),
    "max": lambda xp, x: xp.max(x, axis=1),
    "prod": lambda xp, x: xp.prod(x, axis=0),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=1),
    "matmul": lambda xp, x: xp.matmul(x, x.T),
    "matrix and vector": lambda xp, x: x @ x[0],
    "vector and matrix": lambda xp, x: x[:, 0] @ x,
    "batch": lambda xp, x: xp.stack([x, 2 * x]) @ x.T,
    "solve": lambda xp, x: xp.linalg.solve(x @ x.T, x),
    "inv": lambda xp, x: xp.linalg.inv(x @ x.T),
    "diagonal": lambda xp, x: xp.linalg.diagonal(x @ x.T),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", ["casadi", "casadi_mx"])
def test_entries_keep_numpys_order(name: str, move: str) -> None:
    used, f = backend(name), MOVES[move]
    expected = f(np, A)
    weights = np.arange(1.0, 1.0 + expected.size).reshape(expected.shape)
    given = (used.to_native(A),)
    found = used.prepare("value", lambda x: f(used.xp, x), given, (0,))(*given)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    (slope,) = used.prepare("gradient", lambda x: used.xp.sum(f(used.xp, x) * weights), given, (0,))(*given)
    steps = np.eye(A.size).reshape(A.size, *A.shape) * 1e-6
    differences = [np.sum((f(np, A + h) - f(np, A - h)) * weights) / 2e-6 for h in steps]
    np.testing.assert_allclose(slope.ravel(), differences, rtol=1e-6, atol=1e-6)


def test_the_last_write_counts_and_other_arrays_do_not_change() -> None:
    used = backend("casadi")

    def f(x: Any) -> Any:
        other = x[:]
        other[np.array([0, 0])] = x[1:]
        return used.xp.stack([other, x])

    given = (np.array([1.0, 2.0, 3.0]),)
    np.testing.assert_array_equal(used.prepare("value", f, given, (0,))(*given), [[3.0, 2.0, 3.0], [1.0, 2.0, 3.0]])


def test_a_failed_evaluation_raises_instead_of_returning_old_numbers() -> None:
    used = backend("casadi_mx")
    regular, singular = (np.eye(3), np.zeros((3, 3)))
    call = used.prepare("value", lambda x: used.xp.sum(used.xp.linalg.inv(x)), (regular,), (0,))
    assert call(regular) == 3.0
    with pytest.raises(ArithmeticError, match="evaluation failed"):
        call(singular)
    assert call(regular) == 3.0
