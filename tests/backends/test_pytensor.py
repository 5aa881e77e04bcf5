"""pytensor's graphs know their lengths, nest their derivatives, and say where a branch would depend on data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adbench import Unsupported
from tests.backends.loaded import backend

X = np.array([2.0, 3.0])


def gradient(f: Any, x: Any = X) -> Any:
    used = backend("pytensor")
    given = (used.to_native(x),)
    (slope,) = used.prepare("gradient", lambda x: f(used.xp, x), given, (0,))(*given)
    return slope


def test_a_case_counts_and_indexes_by_a_shape() -> None:
    np.testing.assert_allclose(gradient(lambda xp, x: xp.sum(x[np.arange(4) % x.shape[0]] ** 2)), 4 * X)


def test_an_inner_derivative_leaves_the_outer_variable_alone() -> None:
    """d/dx x² (d/dy x y³ at x) = d/dx 3 x⁵: the x in the inner function is a constant there."""
    slope = gradient(lambda xp, x: x**2 * xp.derivative(lambda y: x * y**3, x), np.array(2.0))
    np.testing.assert_allclose(slope, 15 * 2.0**4)


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_a_loop_takes_as_many_steps_as_it_is_told(trips: int) -> None:
    slope = gradient(lambda xp, x: xp.sum(xp.loop(lambda i, y: y * x, x, trips)))
    np.testing.assert_allclose(slope, (trips + 1) * X**trips)


@pytest.mark.parametrize(
    "f", [lambda xp, x: x[0] if x[0] > 0 else x[1], lambda xp, x: xp.sum(xp.where(x == 0, 1.0, x))]
)
def test_what_one_graph_cannot_hold_is_unsupported(f: Any) -> None:
    with pytest.raises(Unsupported):
        gradient(f)
