"""Every function over balls, with two derivatives: compared with mpmath at twice the digits and its difference
quotients."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from flint import arb

from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, Ball, arithmetic
from adbench.oracle.series.functions import SEVERAL, UNARY
from adbench.vocabulary import FUNCTIONS
from tests.oracle import second_opinion
from tests.oracle.balls import quotients

BITS = 192
INSIDE: dict[tuple[float, float], tuple[float, ...]] = {
    (-math.inf, math.inf): (-1.3, 0.3, 2.6),
    (-1.0, math.inf): (-0.8, 1e-9, 3.0),
    (-1.0, 1.0): (-0.9, 0.25, 0.7),
    (0.0, math.inf): (1e-3, 0.7, 40.0),
    (0.0, 1.0): (0.01, 0.4, 0.97),
    (1.0, math.inf): (1.3, 4.0, 250.0),
}
"""Domain -> numbers in it."""
PLACES = {"gamma": (-1.3, 0.3, 2.6), "expi": (-1.3, 0.3, 2.6), "lambertw": (-0.3, 0.5, 20.0)}
"""Numbers outside of the domain too, where the oracle has a series on both sides of a pole."""


def places(name: str) -> tuple[float, ...]:
    return PLACES.get(name) or INSIDE[next(iter(FUNCTIONS[name].domain), (-math.inf, math.inf))]


SIGNATURES: dict[str, list[tuple[float, ...]]] = {
    "atan2": [(0.3, 0.7), (-0.3, -2.0), (2.0, -1e-3), (0.5, 0.0), (0.0, 2.0)],
    "betainc": [(2.0, 3.0, 0.3), (0.5, 4.0, 0.9)],
    "betaln": [(2.0, 3.5), (0.1, 40.0)],
    "gammainc": [(2.0, 0.7), (0.3, 5.0)],
    "gammaincc": [(2.0, 0.7), (0.3, 5.0)],
    "hypot": [(3.0, -4.0), (1e-200, 0.0), (1e200, 1e200)],
    "iv": [(0.5, 1.3), (2.0, 4.0)],
    "jv": [(0.5, 1.3), (2.0, 14.0)],
    "kv": [(0.5, 1.3), (2.0, 4.0)],
    "yv": [(0.5, 1.3), (2.0, 14.0)],
    "logaddexp": [(0.3, -2.0), (800.0, 801.0)],
    "multigammaln": [(4.5, 3.0)],
    "polygamma": [(1.0, 2.3), (2.0, 0.4)],
    "xlog1py": [(2.0, 0.5), (-1.0, 3.0)],
    "xlogy": [(2.0, 0.5), (-1.0, 3.0)],
    "zeta": [(2.5,), (2.5, 1.5)],
}
FIXED = {"betainc": {0, 1}, "gammainc": {0}, "gammaincc": {0}, "iv": {0}, "jv": {0}, "kv": {0}, "yv": {0}}
"""Arguments without a derivative in python-flint."""
WHOLE = {"multigammaln": {1}, "polygamma": {0}}
DIRECTION = (1.0, -0.75, 0.5)


def moved(x: tuple[float, ...], name: str) -> tuple[float, ...]:
    """The direction at x, scaled to extreme sizes; zero for constant arguments."""
    still = FIXED.get(name, set()) | WHOLE.get(name, set())
    size = max(map(abs, x)) if not 1e-10 < max(map(abs, x)) < 1e10 else 1.0
    return tuple(0.0 if k in still else DIRECTION[k] * size for k in range(len(x)))


def expected(name: str, x: tuple[float, ...], v: tuple[float, ...]) -> list[Any]:
    """Value, first and half the second derivative along v, by central differences."""
    function = second_opinion.function(name)
    return [found[0] for found in quotients(lambda place: function(*place), x, v)]


def series_of(function: Callable[..., Ball], x: tuple[float, ...], v: tuple[float, ...]) -> list[Any]:
    arguments = [ball.moving(a, {1: b}) if b else ball.constant(a) for a, b in zip(x, v, strict=True)]
    found = ball.ball(function(*arguments))
    return [found[k] for k in range(3)]


def same(found: list[Any], truth: list[Any], scale: Any) -> None:
    for k, (a, b) in enumerate(zip(found, truth, strict=True)):
        assert a.is_finite(), (k, a)
        assert a.rel_accuracy_bits() > 100 or a.is_zero() or abs(a) < 1e-40 * scale, (k, a)
        assert abs(a - b) < 1e-40 * (scale + abs(b)), (k, a, b)


CASES = [(name, (x,)) for name in UNARY for x in places(name)] + [(n, x) for n, xs in SIGNATURES.items() for x in xs]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("name", "x"), CASES)
def test_values_and_two_derivatives_agree_with_mpmath(name: str, x: tuple[float, ...], exact: bool) -> None:
    function, v = UNARY.get(name) or SEVERAL[name], moved(x, name)
    if name == "zeta" and len(x) == 2:
        v = (0.0, 1.0)
    with arithmetic(Arithmetic(BITS, exact=exact)):
        found = series_of(function, x, v)
        constant = ball.ball(function(*map(ball.constant, x)))
    with arithmetic(Arithmetic(1000)):
        truth = expected(name, x, v)
        scale = abs(truth[0])
        assert constant.overlaps(truth[0]) or abs(constant - truth[0]) < scale * arb(2) ** -550, (constant, truth[0])
        assert found[0].overlaps(truth[0]) or abs(found[0] - truth[0]) < scale * arb(2) ** -550
        same(found, truth, 1 if scale < 1 else scale)


def test_every_function_is_tried() -> None:
    assert set(SIGNATURES) == set(SEVERAL)


SPECIAL = (
    *(0.0, 1.0, -1.0, 0.5, -2.0, 1e-300, -1e-300, 1e-9, 30.0, -30.0, 700.0, -700.0, 1e8),
    *(math.inf, -math.inf, math.nan),
)


def in_double_precision(name: str, *x: float) -> float:
    row = FUNCTIONS[name]
    function = getattr(scipy.special, row.scipy or name, None) or getattr(np, row.numpy or name, None)
    with np.errstate(all="ignore"):
        value = np.logaddexp(0.0, *x) if function is None else function(*x)
    return float(value.real if value.imag == 0 else math.nan)


def agrees(found: Ball, expected: float) -> None:
    """Compares with scipy's value, which may overflow and underflow."""
    if isinstance(found, ball.Special):
        np.testing.assert_equal(found.value, expected)
    elif math.isnan(expected):
        assert found.is_nan()
    else:
        number = ball.ball(found)
        assert abs(number) < 1e-300 or number.rel_accuracy_bits() > 100
        if math.isinf(expected):
            assert (number if expected > 0 else -number) > 1e300
        else:
            assert abs(number - expected) <= 1e-6 * abs(number) + 1e-15, (number, expected)


UNLIKE_SCIPY = {
    ("digamma", 0.0), ("gamma", 0.0),  # scipy gives signed infinities at signed zeros
    ("digamma", -math.inf),
    ("lambertw", -math.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_special_points_agree_with_numpy_and_scipy(name: str) -> None:
    with arithmetic(Arithmetic(400)):
        for x in SPECIAL:
            if (name, x) not in UNLIKE_SCIPY and not (name == "sin" and abs(x) > 1e300):
                found = UNARY[name](ball.constant(x))
                try:
                    agrees(found, in_double_precision(name, x))
                except AssertionError as wrong:
                    raise AssertionError(f"{name}({x})") from wrong


OF_SEVERAL: list[tuple[str, tuple[float, ...]]] = [
    *[("gammainc", (2.0, x)) for x in (0.0, -1.0, math.inf)],
    *[("gammaincc", (2.0, x)) for x in (0.0, -1.0, math.inf)],
    *[("betainc", (2.0, 3.0, x)) for x in (0.0, 1.0, 2.0, -1.0, math.inf)],
    *[(name, (1.0, x)) for name in ("iv", "jv", "kv", "yv") for x in (0.0, 1e-3)],
    *[("kv", (0.5, -1.0)), ("yv", (0.5, -1.0)), ("zeta", (1.0, 1.0)), ("zeta", (2.0, math.inf))],
    *[("xlogy", (0.0, 0.0)), ("xlogy", (0.0, math.nan)), ("xlog1py", (0.0, -1.0)), ("betaln", (0.0, 1.0))],
    *[("logaddexp", x) for x in ((-math.inf, -math.inf), (-math.inf, 2.0), (math.inf, -math.inf), (0.0, math.nan))],
    *[("hypot", x) for x in ((0.0, 0.0), (math.inf, math.nan), (-3.0, math.inf), (1.0, math.nan))],
    *[
        ("atan2", (y, x))
        for y in (0.0, 1.0, -1.0, math.inf, -math.inf, math.nan)
        for x in (0.0, 1.0, -1.0, math.inf, -math.inf)
    ],
]


@pytest.mark.parametrize(("name", "x"), OF_SEVERAL)
def test_functions_of_several_numbers_have_the_special_values_of_scipy(name: str, x: tuple[float, ...]) -> None:
    with arithmetic(Arithmetic(400)):
        agrees(SEVERAL[name](*map(ball.constant, x)), in_double_precision(name, *x))


def test_angles_at_infinity_have_all_digits() -> None:
    with arithmetic(Arithmetic(400)):
        quarter = UNARY["atan"](ball.constant(math.inf))
        assert (quarter * 2 - arb.pi()).contains(0)
        assert quarter.rel_accuracy_bits() > 390


def test_bessel_i_refuses_a_ball_in_which_it_grows_beyond_any_use() -> None:
    with arithmetic(Arithmetic(BITS)):
        assert UNARY["i0"](arb(2.0**52)).is_finite()
        with pytest.raises(ball.NeedsBits):
            UNARY["i0"](arb(2.0**52, 2.0**47))


def test_a_whole_power_of_a_ball_around_zero_is_a_ball_around_zero() -> None:
    with arithmetic(Arithmetic(BITS)):
        nearly = arb(1) / 9 - arb(1) / 9
        for exponent in (0, 1, 2, 3, 7):
            found = ball.power(nearly, arb(exponent))
            assert found.is_finite()
            assert found.contains(0**exponent)


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.limits is not None])
def test_limits_are_the_values_at_infinities_of_numpy_and_scipy(name: str) -> None:
    row = FUNCTIONS[name]
    theirs: Any = getattr(scipy.special, row.scipy or name, None) or getattr(np, row.numpy or name, None)
    with np.errstate(all="ignore"):
        found = [complex((theirs or (lambda x: np.logaddexp(0.0, x)))(x)) for x in (-np.inf, np.inf)]
    expected = [x.real if x.imag == 0 else np.nan for x in found]
    np.testing.assert_array_equal(row.limits, expected)
