"""Adaptive integration: order conditions, step sizes, values and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from adbench import Case, Namespace, Unsupported
from adbench.catalog import discovery
from adbench.catalog.source import Source
from adbench.model.backend import from_module
from adbench.model.case import function_of
from tests.support.marks import mostly_slow

CATALOG = discovery.catalog()
PAIR = discovery.load(
    Source("cases", "_dormand_prince", str(discovery.builtin_folder("cases") / "_dormand_prince.py"), True)
)
LOTKA_VOLTERRA = CATALOG.cases["lotka_volterra_adaptive"]
XP = Namespace(np)


def inputs(size: int, seed: int = 0, **changed: Any) -> dict[str, Any]:
    names, args, _ = LOTKA_VOLTERRA.bind(size, seed)
    return dict(zip(names, args, strict=True)) | changed


def integrated(slope: Any, start: Any, end: float, *, h: float = 1.0, tolerance: float = 1e-6) -> Any:
    return PAIR.integrated(XP, lambda _, s: slope(s), np.array(start), 0.0, end, h, tolerance)


def exact(theta: Any, start: Any, t0: float, t1: float, unit: float, **_: Any) -> float:
    a, b, c, d = theta
    found = solve_ivp(
        lambda _, s: [s[0] * (a - b * s[1]), s[1] * (d * s[0] - c)],
        (unit * t0, unit * t1),
        start,
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    )
    return float(found.y[:, -1].sum())


def test_the_pair_meets_the_conditions_of_orders_five_and_four() -> None:
    """Hairer, Nørsett & Wanner (1993), section II.1: trees with at most one branch."""
    A = np.array([(0.0,) * 7] + [row + (0.0,) * (7 - len(row)) for row in PAIR.STAGES])
    b, c = A[-1], A.sum(axis=1)
    assert c == pytest.approx([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1], abs=1e-14)
    assert c[1:] == pytest.approx(PAIR.NODES, abs=1e-14)
    for weights, order in ((b, 5), (b - np.array(PAIR.ERROR), 4)):
        for power in range(order):
            assert weights @ c**power == pytest.approx(1 / (power + 1), abs=1e-14)
        for power in range(1, order - 1):
            assert weights @ A @ c**power == pytest.approx(1 / ((power + 1) * (power + 2)), abs=1e-14)
            assert weights * c @ A @ c ** (power - 1) == pytest.approx(1 / (power * (power + 2)), abs=1e-14)
    assert abs((b - np.array(PAIR.ERROR)) @ c**4 - 1 / 5) > 1e-4  # or the difference would be no error estimate


def test_an_exponential_has_the_error_of_order_five_in_one_step() -> None:
    errors = [integrated(lambda s: s, [1.0], h, h=h, tolerance=1.0)[0] - np.exp(h) for h in (0.2, 0.1)]
    assert errors[0] / errors[1] == pytest.approx(2**6, rel=0.1)


def test_steps_adapt_to_the_integrand_and_end_at_the_end() -> None:
    places: list[float] = []

    def slope(s: Any) -> Any:
        """A bell of width 0.1 at time 5; s[0] is the time."""
        places.append(float(s[0]))
        return np.array([1.0, np.exp(-(((s[0] - 5) / 0.1) ** 2) / 2)])

    time, area = integrated(slope, [0.0, 0.0], 10.3, h=0.5)
    assert time == pytest.approx(10.3, rel=1e-15)
    assert area == pytest.approx(0.1 * np.sqrt(2 * np.pi), abs=1e-5)
    steps = np.diff(np.unique(np.array(places[6::6])))
    assert steps.max() / steps.min() > 16
    assert len(places) > 6 * (len(steps) + 3)  # some steps were repeated


def test_slopes_get_the_time_of_their_stage() -> None:
    """Order five also holds for a slope of time alone: y' = e^t."""
    errors = []
    for h in (0.2, 0.1):
        (found,) = PAIR.integrated(XP, lambda t, s: np.exp(t()) + 0 * s, np.array([0.0]), 1.0, 1.0 + h, h, 1.0)
        errors.append(found - (np.exp(1.0 + h) - np.exp(1.0)))
    assert errors[0] / errors[1] == pytest.approx(2**6, rel=0.1)


def test_a_rejected_last_step_is_repeated() -> None:
    assert integrated(lambda s: s, [1.0], 2.0, h=16.0)[0] == pytest.approx(np.exp(2.0), abs=1e-4)


@pytest.mark.parametrize("end", [1.0, np.nan])
def test_integration_of_nan_ends(end: float) -> None:
    assert np.isnan(integrated(lambda s: s * np.nan, [1.0], end)).all()


def test_integration_of_a_diverging_solution_ends() -> None:
    with np.errstate(all="ignore"):
        assert not np.isfinite(integrated(lambda s: s * s, [1.0], 100.0)).any()  # 1 / (1 - t)


@pytest.mark.parametrize("seed", range(3))
def test_lotka_volterra_converges_to_another_solver_with_the_tolerance(seed: int) -> None:
    given = inputs(30, seed)
    truth = exact(**given)
    for tolerance in (1e-5, 1e-7, 1e-9, 1e-11):
        error = LOTKA_VOLTERRA.f(XP, **given | {"tolerance": tolerance}) - truth
        assert abs(error) < 30 * tolerance  # twenty to seven hundred steps, each with part of the tolerance
    assert abs(LOTKA_VOLTERRA.f(XP, **given | {"tolerance": 1e-3}) - truth) > 1e-7  # the error falls with the tolerance


def test_lotka_volterra_conserves_its_invariant() -> None:
    a, b, c, d = inputs(5)["theta"]

    def conserved(s: Any) -> float:
        return float(d * s[0] - c * np.log(s[0]) + b * s[1] - a * np.log(s[1]))

    def slope(s: Any) -> Any:
        return np.array([s[0] * (a - b * s[1]), s[1] * (d * s[0] - c)])

    start = np.array([0.6, 1.4])
    end = integrated(slope, start, 20.0, tolerance=1e-9)
    assert abs(end - start).max() > 0.1
    assert conserved(end) == pytest.approx(conserved(start), abs=1e-7)


def test_the_gradient_is_that_of_the_exact_flow_to_the_tolerance() -> None:
    given = inputs(30, tolerance=1e-10)
    assert LOTKA_VOLTERRA.gradient is not None
    found = np.concatenate([np.ravel(g) for g in LOTKA_VOLTERRA.gradient(**given)])
    h, expected = 1e-4, []
    for name in LOTKA_VOLTERRA.wrt:
        for place in np.ndindex(np.shape(given[name])):
            step = np.zeros(np.shape(given[name]))
            step[place] = h
            sides = [exact(**given | {name: given[name] + sign * step}) for sign in (1, -1)]
            expected.append((sides[0] - sides[1]) / (2 * h))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def calls_of_the_slope(size: int, seed: int) -> int:
    calls = 0

    class Counting(Namespace):
        def stack(self, parts: Any) -> Any:
            nonlocal calls
            calls += 1
            return np.stack(parts)

    LOTKA_VOLTERRA.f(Counting(np), **inputs(size, seed))
    return calls


@pytest.mark.parametrize(
    "name",
    mostly_slow(("tape_compiled", "cppad_reuse", "cppad_optimised", "adolc_reuse"), fast=("adolc_reuse",)),
)
def test_a_recording_is_not_reused_for_other_steps(name: str) -> None:
    case: Case = LOTKA_VOLTERRA
    assert len({calls_of_the_slope(30, seed) for seed in range(4)}) > 1
    try:
        used = from_module(name, discovery.load(CATALOG.backends[name]))
        names, args, wrt = case.bind(30, 0)
        f = function_of(case, names, used.xp)
        call = used.prepare("gradient", f, used.native_inputs(args), wrt)
    except Unsupported as reason:
        pytest.skip(f"{name}: {reason}")
    for seed in (1, 2, 0, 3):
        args = (*case.bind(30, seed)[1][:4], *args[4:])
        got = used.numpy_result(call(*used.native_inputs(args)))
        assert case.gradient is not None
        for found, expected in zip(got, case.gradient(**dict(zip(names, args, strict=True))), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
