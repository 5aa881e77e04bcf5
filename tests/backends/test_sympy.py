"""The backend sympy: branches, nested derivatives, and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adbench import Unsupported
from tests.backends.loaded import backend

X = np.array([2.0, -3.0])


def gradient(f: Any, x: Any = X) -> Any:
    used = backend("sympy")
    given = (x,)
    (slope,) = used.prepare("gradient", lambda x: f(used.xp, x), given, (0,))(*given)
    return slope


def test_a_branch_is_part_of_the_formula_and_evaluated_at_each_call() -> None:
    used = backend("sympy")
    call = used.prepare("gradient", lambda x: used.xp.sum(used.xp.where(x > 0, x**2, 5 * x)), (X,), (0,))
    np.testing.assert_allclose(call(X)[0], [4.0, 5.0])
    np.testing.assert_allclose(call(-X)[0], [5.0, 6.0])


def test_an_inner_derivative_treats_the_outer_variable_as_constant() -> None:
    """d/dx x² (d/dy x y³ at x) = d/dx 3 x⁵: the x in the inner function is a constant there."""
    slope = gradient(lambda xp, x: x**2 * xp.derivative(lambda y: x * y**3, x), np.array(2.0))
    np.testing.assert_allclose(slope, 15 * 2.0**4)


@pytest.mark.parametrize("name", ["sympy", "heyoka"])
def test_directly_nested_derivatives_use_different_symbols(name: str) -> None:
    """d/dy (d/dz z y at y) = d/dy y = 1; with one symbol for both it is d/dy 2 y."""
    used = backend(name)

    def f(x: Any) -> Any:
        return used.xp.derivative(lambda y: used.xp.derivative(lambda z: z * y, y), x) * x

    given = (used.to_native(3.0),)
    assert used.prepare("value", f, given, (0,))(*given) == 3.0


def test_a_growing_formula_is_refused() -> None:
    with pytest.raises(Unsupported, match="takes sympy too long"):
        gradient(lambda xp, x: xp.sum(xp.loop(lambda i, y: y * y + xp.sin(y), x, 20)))
