"""A second opinion on the oracle: power series over balls (python-flint), with rigorous bounds.

The same source runs on the truncated series x + t: its coefficients are the derivatives, each an interval that contains
the true number. The oracle's reference must lie in it, up to the rounding of a double.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adbench import Case, check
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.references import known_at
from adbench.oracle.evidence import BARS, SIGMAS
from adbench.oracle.precise import METHOD
from adbench.oracle.reference import Known

flint = pytest.importorskip("flint", reason="python-flint is not installed: no second opinion on the oracle")

BITS = 600
ROUNDING = 1e-15
Text = Callable[..., Any]


class Series:
    """`xp` on power series over balls: the names used below."""

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        called = {"gammaln": "lgamma"}.get(name, name)
        return lambda x: getattr(x, called)()


ORDINARY: dict[str, Text] = {
    "waves": lambda xp, x: xp.sin(3 * x) * xp.exp(-x * x),
    "a tower": lambda xp, x: xp.exp(xp.sin(xp.exp(xp.cos(x)))),
    "a rational function": lambda xp, x: (x * x - 3 * x + 1) / (x**4 + 2),
    "a bell": lambda xp, x: xp.log(1 + xp.exp(-x * x / 2)) * xp.sqrt(1 + x * x),
    "an angle": lambda xp, x: xp.atan(x * x) / (1 + xp.atan(x) * xp.atan(x)),
    "erf": lambda xp, x: xp.erf(x) * xp.exp(x),
    "log gamma": lambda xp, x: xp.gammaln(x) - x * xp.log(x),
    "tan": lambda xp, x: xp.tan(x / 2) ** 3,
}
HARD: dict[str, tuple[Text, float]] = {
    "(1 - cos x) / x²": (lambda xp, x: (1 - xp.cos(x)) / (x * x), 1e-5),
    "x - sin x": (lambda xp, x: x - xp.sin(x), 1e-6),
    "exp x - 1 - x": (lambda xp, x: xp.exp(x) - 1 - x, 1e-9),
    "log (1 + x) - x": (lambda xp, x: xp.log(1 + x) - x, 1e-8),
    "a large offset": (lambda xp, x: (x + 1e9 - 1e9) ** 3, 0.7),
    "sin of a large number": (lambda xp, x: xp.sin(1e12 * x), 0.7),
    "a polynomial at its root": (lambda xp, x: x**5 - 5 * x**4 + 10 * x**3 - 10 * x * x + 5 * x - 1, 1.001),
}


@pytest.fixture(autouse=True)
def _precise_balls() -> Any:
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    yield
    flint.ctx.prec = before


def balls(text: Text, x: float) -> tuple[Any, Any, Any]:
    """(f, f', f'') at x, as balls."""
    series = text(Series(), flint.arb_series([flint.arb(x), 1], 3))
    return series[0], series[1], 2 * series[2]


def excess(truth: float, ball: Any) -> float:
    """The relative distance of a double from a ball; at most half a unit if the double is nearest."""
    assert ball.rel_accuracy_bits() > 200, f"the ball is too wide: {ball}"
    return float(((flint.arb(truth) - ball) / ball).abs_upper())


def oracle(text: Text, x: float) -> tuple[list[float], Known]:
    """(f, f', f'') by the oracle, and its H v, with v of the size of x, which gives f''."""
    at = point(Case(f=text, inputs=lambda n, rng: {"x": x}, wrt=("x",), sizes=(1,)), 1, 0)
    known = known_at(at, second_order=True, hessian=False, seconds=3.0)
    first = known.first.scalar
    assert first.method == METHOD, first.reason
    numbers = [first.value, *(row.leaves[0].entries[0].derivative for row in (first, known.of("hvp").scalar))]
    assert all(number.lower == number.upper for number in numbers)
    value, slope, along = (float(number.lower) for number in numbers)
    return [value, slope, along / at.direction(0)[0]], numbers[2]


@pytest.mark.parametrize("name", ORDINARY)
def test_value_slope_and_curvature_lie_in_rigorous_balls(name: str) -> None:
    for x in np.random.default_rng(7).uniform(0.1, 2.5, 10):
        truths, _ = oracle(ORDINARY[name], float(x))
        for truth, ball in zip(truths, balls(ORDINARY[name], float(x)), strict=True):
            assert excess(truth, ball) < ROUNDING, f"{name} at {x!r}: {truth!r}, but {ball}"


@pytest.mark.parametrize("name", HARD)
def test_the_reference_is_exact_where_doubles_lose_digits_and_the_verdict_states_it(name: str) -> None:
    text, x = HARD[name]
    (*truths, curvature), along = oracle(text, x)
    *firm, ball = balls(text, x)
    for truth, firm_ball in zip(truths, firm, strict=True):
        assert excess(truth, firm_ball) < ROUNDING, f"{name} at {x!r}: {truth!r}, but {firm_ball}"
    # The second-order step has fewer digits here; the bar and the noise must account for that.
    allowed = (BARS * along.bar + SIGMAS * along.noise) / along.size
    assert excess(curvature, ball) < ROUNDING + allowed, f"{name} at {x!r}: {curvature!r}, but {ball}"
    worst = check(text, x).worst
    assert worst is not None
    assert worst.word in ("verified", "blind"), worst
    assert worst.digits_resolvable < 9.3
    assert abs(worst.got - worst.expected) <= worst.bound
