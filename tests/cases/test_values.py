"""The cases' values against figures computed by other means than the cases' own text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import norm

from adbench import Namespace
from adbench.suite.catalog import catalog

CASES = catalog().cases
XP = Namespace(np)


def inputs(name: str, size: int) -> Mapping[str, Any]:
    names, args, _ = CASES[name].bind(size, 0)
    return dict(zip(names, args, strict=True))


def value(name: str, **inputs: Any) -> float:
    return float(CASES[name].f(XP, **inputs))


@pytest.mark.parametrize("name", ["normal_log_density", "normal_log_density_loop"])
def test_normal_log_density_is_scipys(name: str) -> None:
    given = inputs(name, 1_000)
    expected = norm.logpdf(given["y"], given["mu"], given["sigma"]).sum()
    assert value(name, **given) == pytest.approx(expected, rel=1e-13)


def test_matrix_product_is_column_sums_times_row_sums() -> None:
    given = inputs("matrix_product", 32)
    expected = given["A"].sum(axis=0) @ given["B"].sum(axis=1)
    assert value("matrix_product", **given) == pytest.approx(expected, rel=1e-12)


def test_log_determinant_is_the_sum_of_the_eigenvalues_logarithms() -> None:
    given = inputs("log_determinant", 32)
    expected = np.log(np.abs(np.linalg.eigvals(given["A"]))).sum()
    assert value("log_determinant", **given) == pytest.approx(expected, rel=1e-12)


def test_lotka_volterra_converges_to_an_adaptive_solver_with_order_four() -> None:
    given = dict(inputs("lotka_volterra", 10))
    alpha, beta, gamma, delta = given["theta"]
    exact = solve_ivp(
        lambda _, s: [s[0] * (alpha - beta * s[1]), s[1] * (delta * s[0] - gamma)],
        (0, given["duration"]),
        given["start"],
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    ).y[:, -1]
    error = [value("lotka_volterra", **given | {"steps": n}) - exact.sum() for n in (50, 100, 1_000)]
    assert abs(error[2]) < 1e-11
    assert error[0] / error[1] == pytest.approx(2**4, rel=0.1)


def test_recurrence_gives_the_published_values() -> None:
    # Neal's slides print these five for x = (7, 4, 9, 5, 3); the case is their sum.
    published = 50162.08 + 119580.26 + 422851.01 + 646335.83 + 802707.50
    assert value("recurrence", x=np.array([7.0, 4.0, 9.0, 5.0, 3.0])) == pytest.approx(published, abs=0.025)


def test_projectile_flies_farthest_at_the_angle_known() -> None:
    # 44.997 degrees at dt = 0.0001 and speed 1, where a continuous flight has 45 and the range v² / g.
    best = {"angle": math.radians(44.997), "speed": 1.0, "dt": 0.0001}
    assert value("projectile", **best) == pytest.approx(1 / 9.8, rel=1e-3)
    gradient = CASES["projectile"].gradient
    assert gradient is not None
    by_angle = [gradient(**best | {"angle": math.radians(degrees)})[0] for degrees in (44.996, 44.998)]
    assert by_angle[0] > 0 > by_angle[1]


def test_product_plus_constant_is_29_66() -> None:
    given = inputs("product_plus_constant", 1)
    assert value("product_plus_constant", **given) == pytest.approx(29.66, rel=1e-15)
    gradient = CASES["product_plus_constant"].gradient
    assert gradient is not None
    assert gradient(**given) == pytest.approx((2.2, 20.6))
