"""Nine-point differences: correct, with realistic error estimates, also for piecewise smooth functions."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from adbench.oracle.differences import Line, curvature, slope
from adbench.oracle.reference import Known


def at(f: Callable[[float], float], x: float) -> Known:
    def shifted(t: float) -> float:
        try:
            return f(x + t)
        except (ValueError, ArithmeticError):
            return math.nan

    return slope(Line(shifted), abs(x))


SMOOTH: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "square": (lambda x: x * x, lambda x: 2 * x),
    "exp": (math.exp, math.exp),
    "log": (math.log, lambda x: 1 / x),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "runge": (lambda x: 1 / (1 + 25 * x * x), lambda x: -50 * x / (1 + 25 * x * x) ** 2),
    "fast sine": (lambda x: math.sin(50 * x), lambda x: 50 * math.cos(50 * x)),
    "sine on an offset of 1e8": (lambda x: math.sin(x) + 1e8, math.cos),
    "seventh power": (lambda x: x**7, lambda x: 7 * x**6),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_error_is_within_twenty_five_bars(name: str) -> None:
    f, derivative = SMOOTH[name]
    rng = random.Random(1)
    for _ in range(80):
        x = rng.choice([rng.uniform(0.01, 3), 10 ** rng.uniform(-6, 0.7)])
        found = at(f, x)
        assert found.kind == "smooth"
        assert abs(found.lower - derivative(x)) <= 25 * found.bar + 8 * 2.0**-53 * abs(derivative(x)), x


def test_most_digits_are_correct_for_ordinary_functions() -> None:
    for f, x, derivative in [(math.exp, 0.7, math.exp(0.7)), (math.log, 0.3, 1 / 0.3), (math.sin, 1.1, math.cos(1.1))]:
        found = at(f, x)
        assert abs(found.lower / derivative - 1) < 1e-12
        assert found.bar < 2e-12 * derivative


@pytest.mark.parametrize("distance", [0.5, 1e-2, 1e-4, 1e-6])
def test_small_steps_win_if_the_function_is_smooth_only_nearby(distance: float) -> None:
    found = at(lambda x: x**2 if x < 3 else 1000 * x, 3 - distance)
    slack = 25 * found.bar
    assert found.lower - slack <= 2 * (3 - distance) <= found.upper + slack
    assert found.bar < 1e-6


def test_a_changing_step_count_does_not_affect_the_slope() -> None:
    def flight(speed: float) -> float:
        height, up, distance = 0.0, speed, 0.0
        while height >= 0:
            height, up, distance = height + 0.01 * up, up - 0.0981, distance + 0.01 * speed
        return distance

    speed = 5.0
    while abs(flight(speed) - flight(speed + 3e-5)) < 1e-3:
        speed += 1e-5
    found = at(flight, speed)
    steps = round(flight(speed) / (0.01 * speed))
    assert abs(found.lower - 0.01 * steps) < 1e-6


def test_a_kink_gives_the_interval_of_both_one_sided_derivatives() -> None:
    found = at(lambda x: abs(x - 2) + x, 2.0)
    assert found.kind == "kink"
    assert (found.lower, found.upper) == pytest.approx((0.0, 2.0), abs=1e-9)


def test_a_smooth_bend_is_not_a_kink() -> None:
    assert at(lambda x: x * abs(x), 0.0).kind == "smooth"
    assert at(lambda x: math.hypot(x, 1e-2), 0.0).kind == "smooth"


def test_the_edge_of_the_domain_is_examined_from_inside() -> None:
    found = at(lambda x: x * math.sqrt(x) + 3 * x if x >= 0 else math.nan, 0.0)
    assert found.kind == "one-sided"
    assert abs(found.lower - 3) <= 25 * found.bar


def test_a_function_undefined_nearby_is_unknown() -> None:
    found = at(lambda x: math.nan, 1.0)
    assert found.kind == "unknown"
    assert math.isnan(found.bar)


def test_a_function_that_computes_in_single_precision_has_a_wide_bar() -> None:
    import numpy as np

    found = at(lambda x: float(np.sin(np.float32(x))), 1.0)
    assert abs(found.lower - math.cos(1.0)) <= 25 * found.bar
    assert found.bar > 1e-8


def test_the_ladder_is_bounded() -> None:
    noise = random.Random(3)
    line = Line(lambda t: noise.random())
    slope(line, 1.0)
    assert line.evaluations < 400


DOMAINS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "log(1 - x) near 1": (lambda x: math.log(1 - x), 1 - 1e-8, -99999999.49752407),
    "log near 0": (math.log, 1e-12, 1e12),
    "log of a tiny number": (math.log, 1e-300, 1e300),
    "sqrt near 0": (math.sqrt, 1e-12, 5e5),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_steps_shrink_until_they_stay_inside_the_domain(name: str) -> None:
    f, x, derivative = DOMAINS[name]
    found = at(f, x)
    assert found.kind == "smooth"
    assert abs(found.lower - derivative) <= 25 * found.bar < 1e-3 * derivative * math.copysign(1, derivative)


def test_a_value_that_overflows_at_a_step_is_outside_the_domain() -> None:
    found = at(lambda x: math.copysign(math.inf, x) if abs(x - 3) > 0.1 else x * x, 3.0)
    assert abs(found.lower - 6) <= 25 * found.bar < 1e-6


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (math.sqrt, 0.0),
        (lambda x: x * math.log(x) if x else 0.0, 0.0),
        (math.acos, 1.0),
        (math.tan, math.pi / 2 - 1e-9),
    ],
)
def test_a_slope_that_does_not_converge_is_unknown(f: Callable[[float], float], x: float) -> None:
    assert at(f, x).kind == "unknown"


# Second derivatives

CURVES: dict[str, tuple[Callable[[float], float], float]] = {
    "sine": (lambda t: 3 * math.sin(40 * (0.1 + t)), -4800 * math.sin(4.0)),
    "a maximum in float32": (lambda t: float(np.float32(math.cos(3 * t))), -9.0),
    "cancellation": (lambda t: (1e6 + math.cos(t)) - 1e6, -1.0),
    "a cube of the size": (lambda t: abs(t) ** 3, 0.0),
    "a line": (lambda t: 1e5 + 3 * t, 0.0),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_second_derivative_lies_within_its_bar(name: str) -> None:
    f, truth = CURVES[name]
    found = curvature(Line(f))
    assert abs(found.lower - truth) <= 25 * found.bar
    assert found.bar < 0.2 * (abs(truth) or 1e6)


@pytest.mark.parametrize("f", [abs, lambda t: t * abs(t), lambda t: max(t, 0.0) ** 2, lambda t: abs(t) ** 1.5])
def test_a_kink_in_the_slope_has_no_second_derivative(f: Callable[[float], float]) -> None:
    assert curvature(Line(f)).kind == "unknown"
