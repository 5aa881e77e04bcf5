"""References at high precision: exact to the last bit for closed forms, and reliable at kinks, edges and gaps."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from adbench.oracle.precise import METHOD
from adbench.oracle.reference import Known, Row
from tests.oracle.scalars import judge, reference

Function = Callable[[Any, Any], Any]


class Numpy:
    """The array API names used here, by numpy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def loop(step: Any, state: Any, n: int) -> Any:
        for i in range(n):
            state = step(i, state)
        return state


XP: Any = Numpy()


def known(f: Function, *args: Any, **options: Any) -> Row:
    return reference(
        lambda *a: f(XP, *a),
        args,
        range(len(args)),
        text=f,
        names=[f"x{k}" for k in range(len(args))],
        **options,
    )


def derivative(f: Function, x: float) -> Known:
    found = known(f, x)
    assert found.method == METHOD, found.reason
    return found.leaves[0].entries[0].derivative


def exact(formula: Callable[[Any], Any], x: float) -> float:
    with mpmath.workdps(120):
        return float(formula(mpmath.mpf(x)))


CLOSED: dict[str, tuple[Function, Callable[[Any], Any], tuple[float, ...]]] = {
    "sine": (lambda xp, x: xp.sin(x), mpmath.cos, (1.1, 1e-9, 1e6, 1e15)),
    "sine on an offset of 1e8": (lambda xp, x: xp.sin(x) + 1e8, mpmath.cos, (1.1,)),
    "logarithm near zero": (lambda xp, x: xp.log(x), lambda x: 1 / x, (1e-10, 1e-300, 3.0)),
    "hidden small input": (lambda xp, x: xp.sin(1 + x), lambda x: mpmath.cos(1 + x), (1e-300, 1e-20)),
    "cancellation": (lambda xp, x: (x + 1e60) - 1e60, lambda x: mpmath.mpf(1), (1.0,)),
    "square of a sum": (lambda xp, x: (1e6 + x) ** 2 - 1e12 - 2e6 * x, lambda x: 2 * x, (0.7,)),
    "tiny slope beside a value": (lambda xp, x: 1e-60 * x + 1, lambda x: mpmath.mpf(1e-60), (1.0,)),
    "saturated tanh": (lambda xp, x: xp.tanh(x), lambda x: mpmath.sech(x) ** 2, (0.5, 19.0, 40.0)),
    "overflowing softplus": (lambda xp, x: xp.log1p(xp.exp(x)), lambda x: 1 / (1 + mpmath.exp(-x)), (800.0, -30.0)),
    "power": (lambda xp, x: x**2.5, lambda x: mpmath.mpf(2.5) * x**1.5, (1.7,)),
    "exponent": (lambda xp, x: xp.asarray(2.0) ** x, lambda x: mpmath.log(2) * 2**x, (0.3,)),
    "quotient": (lambda xp, x: xp.exp(x) / x, lambda x: mpmath.exp(x) * (x - 1) / x**2, (1 + 1e-9,)),
    "huge": (lambda xp, x: xp.exp(x), mpmath.exp, (700.0,)),
    "inverse sine": (lambda xp, x: xp.asin(x), lambda x: 1 / mpmath.sqrt(1 - x**2), (1 - 1e-12, 0.1)),
}


@pytest.mark.parametrize("name", CLOSED)
def test_derivatives_are_correct_to_the_last_bit(name: str) -> None:
    f, formula, points = CLOSED[name]
    for x in points:
        found = derivative(f, x)
        assert found.kind == "smooth"
        assert found.lower == found.upper == exact(formula, x), x
        assert found.bar <= 1e-18 * abs(found.lower)


def test_flint_agrees_as_a_second_opinion() -> None:
    flint = pytest.importorskip("flint", reason="python-flint is optional: a second opinion if installed")
    flint.ctx.prec = 400
    for x in (0.3, 1.7, 4.4):
        series = flint.arb_series([x, 1], prec=2)
        expected = (series.sin().exp() / (series * series + 1) + (series + 1).log() * series.sqrt())[1]
        f: Function = lambda xp, x: xp.exp(xp.sin(x)) / (x * x + 1) + xp.log(1 + x) * xp.sqrt(x)  # noqa: E731
        assert derivative(f, x).lower == float(expected.mid())


KINKS: dict[str, tuple[Function, float, float, float]] = {
    "abs": (lambda xp, x: abs(x), 0.0, -1.0, 1.0),
    "relu": (lambda xp, x: xp.maximum(x, 0.0), 0.0, 0.0, 1.0),
    "concave": (lambda xp, x: xp.minimum(3 * x, x) + x**2, 0.0, 1.0, 3.0),
    "abs elsewhere": (lambda xp, x: abs(x - 2) + x, 2.0, 0.0, 2.0),
    "branch": (lambda xp, x: xp.where(x < 1, x, 5 * x - 4), 1.0, 1.0, 5.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_a_kink_is_the_interval_of_the_one_sided_derivatives(name: str) -> None:
    f, x, low, high = KINKS[name]
    found = known(f, x)
    at = found.leaves[0].entries[0].derivative
    assert (at.kind, at.lower, at.upper) == ("kink", low, high)
    value = float(f(XP, x))
    for g in (low, high, 0.5 * (low + high)):
        verdict = judge(value, (g,), found)
        assert verdict.word == "right", verdict.sentence
        assert [(kink.place, kink.got) for kink in verdict.conventions] == [("x0", g)]
    for g in (low - 1e-9, high + 1e-9, math.nan):
        assert judge(value, (g,), found).word == "wrong"


def test_a_kink_next_to_the_point_does_not_count() -> None:
    assert derivative(lambda xp, x: abs(x - 1), 1 + 2.0**-52).lower == 1.0
    assert derivative(lambda xp, x: xp.sqrt(x * x + 1e-20), 0.0).kind == "smooth"


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda xp, x: x * xp.sqrt(x), 0.0, 0.0),
        (lambda xp, x: xp.sqrt(x), 0.0, math.inf),
        (lambda xp, x: xp.sqrt(1 - x * x), 1.0, -math.inf),
        (lambda xp, x: 2 * x + x * xp.sqrt(x), 0.0, 2.0),
        (lambda xp, x: abs(x) ** 1.5, 0.0, 0.0),
        (lambda xp, x: xp.sign(x) * xp.sqrt(abs(x)), 0.0, math.inf),
        (lambda xp, x: x * abs(x), 0.0, 0.0),
        (lambda xp, x: xp.where(x > 0, xp.sqrt(x), 0.0), -1.0, 0.0),
        (lambda xp, x: xp.where(x == 0, 1.0, xp.sin(x) / x), 0.0, 0.0),
        (lambda xp, x: xp.asarray(0.0) ** x, 2.0, 0.0),
        (lambda xp, x: xp.exp(-(x**2.0)), 0.0, 0.0),
        (lambda xp, x: xp.floor(x) * 3, 0.5, 0.0),
    ],
)
def test_limits_at_edges_and_power_laws(f: Function, x: float, expected: float) -> None:
    with np.errstate(all="ignore"):
        found = known(f, x)
        verdict = judge(float(f(XP, np.float64(x))), (expected,), found)
    assert verdict.word == "right", verdict.sentence
    assert judge(None, (math.nan,), found).word == "wrong"
    assert judge(None, (expected + 1.0 if math.isfinite(expected) else 1.0,), found).word == "wrong"


def test_undefined_functions_are_reported_as_unknown() -> None:
    with np.errstate(all="ignore"):
        found = known(lambda xp, x: xp.log(x), -1.0)
    assert judge(math.nan, (math.nan,), found).word == "blind"


def test_the_fastest_wiggles_are_resolved() -> None:
    f: Function = lambda xp, x: xp.sum(x * x) + 1e-20 * xp.sin(1e23 * x[0])  # noqa: E731  one expression
    slopes = [entry.derivative for entry in known(f, np.array([1.0, 2.0])).leaves[0].entries]
    assert slopes[0].lower == pytest.approx(2 + 1e3 * exact(lambda x: mpmath.cos(mpmath.mpf(1e23) * x), 1.0), rel=1e-12)
    assert slopes[1].lower == 4.0


def test_an_entry_without_a_limit_is_unsure_and_reported() -> None:
    def spiral(xp: Any, x: Any) -> Any:
        size = xp.where(x[0] == 0, 1.0, abs(x[0]))
        return x[0] * xp.sin(xp.log(size)) + 3 * x[1]

    found = known(spiral, np.array([0.0, 2.0]))
    unsure, smooth = (entry.derivative for entry in found.leaves[0].entries)
    assert (unsure.kind, smooth.kind, smooth.lower) == ("unsure", "smooth", 3.0)
    verdict = judge(6.0, (np.array([0.1, 3.0]),), found)
    assert verdict.word in ("verified", "blind")
    assert "differences" in verdict.sentence
    assert judge(6.0, (np.array([0.1, 3.0 + 1e-8]),), found).word == "wrong"


def test_a_branch_change_nearby_is_ignored() -> None:
    # The branch changes 1e-20 away.
    f: Function = lambda xp, x: xp.where(x[0] > 1 + xp.exp(xp.asarray(-46.0)), 7 * x[0], x[0]) + x[1]  # noqa: E731
    found = known(f, np.array([1.0, 2.0]))
    slopes = [entry.derivative for entry in found.leaves[0].entries]
    assert slopes[0].lower == slopes[0].upper == 1.0
    assert slopes[1].lower == slopes[1].upper == 1.0


def test_data_dependent_loops_and_matrix_functions_run() -> None:
    def newton(xp: Any, x: Any) -> Any:
        y = x
        while abs(y * y - x) > 1e-12:
            y = (y + x / y) / 2
        return y

    assert derivative(newton, 2.0).lower == pytest.approx(0.5 / math.sqrt(2.0), rel=1e-6)
    a = np.array([[2.0, 0.3], [0.1, -1.5]])
    found = known(lambda xp, a: xp.linalg.slogdet(a)[1], a)
    verdict = judge(math.log(abs(np.linalg.det(a))), (np.linalg.inv(a).T,), found)
    assert verdict.word == "right", verdict.sentence


def test_eigenvectors_at_a_multiple_eigenvalue() -> None:
    def trace_of_exponential(xp: Any, a: Any) -> Any:
        values, vectors = xp.linalg.eigh(a)
        return xp.sum((vectors * xp.exp(values)) @ xp.permute_dims(vectors, (1, 0)) * xp.eye(2))

    found = known(trace_of_exponential, np.eye(2))
    truth = [entry.derivative.lower for entry in found.leaves[0].entries]
    assert truth == pytest.approx([math.e, 0.0, 0.0, math.e], abs=1e-15)
    # The usual rule divides by the difference of the eigenvalues.
    assert judge(2 * math.e, (np.full((2, 2), math.nan),), found).word == "wrong"
