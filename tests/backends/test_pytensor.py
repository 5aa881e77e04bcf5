"""The backend pytensor: shapes, loops, nested derivatives, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest

from adbench import Unsupported
from adbench.catalog.discovery import catalog, load
from adbench.execution.operators.fallback import prepare
from adbench.execution.operators.prepared_point import point
from adbench.model.operator import COMPOSITIONS
from tests.backends.loaded import backend

X = np.array([2.0, 3.0])


def gradient(f: Any, x: Any = X) -> Any:
    used = backend("pytensor")
    given = (used.to_native(x),)
    (slope,) = used.prepare("gradient", lambda x: f(used.xp, x), given, (0,))(*given)
    return slope


def test_a_case_can_count_and_index_with_a_shape() -> None:
    np.testing.assert_allclose(gradient(lambda xp, x: xp.sum(x[np.arange(4) % x.shape[0]] ** 2)), 4 * X)


def test_an_inner_derivative_treats_the_outer_variable_as_constant() -> None:
    """d/dx x² (d/dy x y³ at x) = d/dx 3 x⁵: the x in the inner function is a constant there."""
    slope = gradient(lambda xp, x: x**2 * xp.derivative(lambda y: x * y**3, x), np.array(2.0))
    np.testing.assert_allclose(slope, 15 * 2.0**4)


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_a_loop_runs_the_given_number_of_steps(trips: int) -> None:
    slope = gradient(lambda xp, x: xp.sum(xp.loop(lambda i, y: y * x, x, trips)))
    np.testing.assert_allclose(slope, (trips + 1) * X**trips)


@pytest.mark.parametrize(
    "f", [lambda xp, x: x[0] if x[0] > 0 else x[1], lambda xp, x: xp.sum(xp.where(x == 0, 1.0, x))]
)
def test_data_dependent_python_code_is_unsupported(f: Any) -> None:
    with pytest.raises(Unsupported):
        gradient(f)


def prepared(operator: Any, f: Any, x: tuple[Any, ...], v: tuple[Any, ...]) -> Any:
    used = backend("pytensor")
    given = (*map(used.to_native, x), tuple(map(used.to_native, v)))
    return used.prepare(operator, lambda *x: f(used.xp, *x), given, tuple(range(len(x))))(*given)


def test_a_broadcast_number_contributes_to_jv() -> None:
    """d Σ (x - a)² = 2 Σ (x - a) (dx - da) of an array x and a number a."""
    dx = np.array([0.5, 0.25])
    found = prepared("jvp", lambda xp, x, a: xp.sum((x - a) ** 2), (X, 5.0), (dx, 7.0))
    np.testing.assert_allclose(found, 2 * np.sum((X - 5.0) * (dx - 7.0)))


@pytest.mark.parametrize("operator", ["hvp", "jvp"])
def test_an_operation_without_a_derivative_is_named(operator: Any) -> None:
    with pytest.raises(Unsupported, match="no derivative of ProdWithoutZeros"):
        prepared(operator, lambda xp, x: xp.prod(x), (X,), (X,))


def test_a_missing_derivative_names_the_right_operation() -> None:
    with pytest.raises(Unsupported, match="no derivative of jv"):
        gradient(lambda xp, x: xp.sum(pt.jv(x, 0.5)))


def test_a_long_graph_is_refused_before_differentiation(monkeypatch: pytest.MonkeyPatch) -> None:
    def derived(*_: Any) -> Any:
        raise AssertionError("derived all the same")

    module = load(catalog().backends["pytensor"])
    monkeypatch.setitem(module.OPERATIONS, "gradient", derived)
    with pytest.raises(Unsupported, match="operations, more than"):
        gradient(lambda xp, x: xp.sum(sum((xp.sin(k * x) for k in range(1, 201)), 0.0 * x)))


def test_a_sum_of_too_many_arrays_is_unsupported() -> None:
    used = backend("pytensor")
    with pytest.raises(Unsupported, match="31 arrays"):
        used.prepare("value", lambda x: pt.sum(sum((pt.sin(k * x) for k in range(2, 42)), 0.0 * x)), (X,), (0,))


def test_a_scan_inside_nested_derivatives_is_refused() -> None:
    """A scan absorbs everything that leads to its body, so an inner derivative would be 0."""
    used, made = backend("pytensor"), catalog().cases["normal_log_density_loop"]
    at = point(made, 1, 0)
    args = at.native(used, "hvp")[1]
    for composition in COMPOSITIONS:
        with pytest.raises(Unsupported, match="scan"):
            prepare(used, composition, used.function(made, at.names, 1), args, at.wrt)
