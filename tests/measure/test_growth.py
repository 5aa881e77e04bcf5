"""Exponents of costs with known growth, constant parts and noise; break-even by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adbench.measure.growth import break_even, growth

DECADES = (1, 10, 100, 1_000, 10_000)
DOUBLINGS = (2, 4, 8, 16, 32, 64, 128, 256)


def costs(
    sizes: tuple[int, ...], b: float, *, floor: float = 0.0, launches: int = 8, noise: float = 0.01, seed: int = 0
) -> NDArray[np.float64]:
    """floor + n^b, with a launch's noise on every figure."""
    exact = floor + np.asarray(sizes, np.float64) ** b
    return exact * np.exp(noise * np.random.default_rng(seed).normal(size=(launches, len(sizes))))


@settings(deadline=None)  # a busy machine is slow
@given(
    b=st.floats(0.3, 3.5),
    floor=st.floats(0, 20),
    scale=st.floats(1e-9, 1e9),
    sizes=st.sampled_from([DECADES, DOUBLINGS, (1, 10, 100), (3, 50, 700, 100_000)]),
)
def test_exact_costs_give_the_exact_exponent_with_any_constant_part(
    b: float, floor: float, scale: float, sizes: tuple[int, ...]
) -> None:
    found = growth(sizes, scale * costs(sizes, b, floor=floor, launches=5, noise=0))
    if found.exponent is None:  # mostly constant part: twenty over 10^0.3
        assert sizes[-1] ** b < 2 * (1 + floor)
        return
    assert found.exponent.estimate == pytest.approx(b, abs=2e-3)
    assert found.constant == pytest.approx(scale * floor, abs=0.05 * scale * (1 + floor))
    assert found.misfit == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("sizes", "b", "floor"),
    [
        (DECADES, 1, 0),
        (DECADES, 1, 5),
        (DECADES, 1, 3_000),
        (DECADES, 0.5, 0),
        (DECADES, 2, 1e5),
        (DOUBLINGS, 3, 0),
        (DOUBLINGS, 3, 5e4),
        ((1, 10, 100), 1, 5),
    ],
)
@pytest.mark.parametrize("launches", [8, 20])
def test_the_interval_covers_the_exponent_as_often_as_stated(
    sizes: tuple[int, ...], b: float, floor: float, launches: int
) -> None:
    sessions, covered = 150, 0
    for seed in range(sessions):
        found = growth(sizes, costs(sizes, b, floor=floor, launches=launches, seed=seed)).exponent
        assert found is not None
        covered += found.low <= b <= found.high
    assert covered / sessions >= 0.90  # 95 %, less three standard errors of 150 sessions


def test_the_constant_part_would_bias_a_line_through_the_logarithms() -> None:
    """Why the constant is fitted too: five sizes of a linear cost, three of them mostly constant part."""
    t = costs(DECADES, 1, floor=100)
    line = np.polyfit(np.log(DECADES), np.log(t.mean(axis=0)), 1)[0]
    found = growth(DECADES, t)
    assert line < 0.6
    assert found.exponent is not None
    assert found.exponent.low > 0.97
    assert found.constant == pytest.approx(100, rel=0.03)
    assert found.basis == "launches"
    assert len(found.by_launch) == 8


@pytest.mark.parametrize("launches", [1, 3])
@pytest.mark.parametrize("sizes", [DECADES, DOUBLINGS])
def test_with_too_few_launches_the_interval_comes_from_the_sizes(launches: int, sizes: tuple[int, ...]) -> None:
    sessions, covered = 150, 0
    for seed in range(sessions):
        found = growth(sizes, costs(sizes, 1, floor=2, launches=launches, seed=seed))
        assert found.basis == "sizes"
        assert found.exponent is not None
        covered += found.exponent.low <= 1 <= found.exponent.high
    assert covered / sessions >= 0.90


def test_one_figure_at_each_of_three_sizes_gives_an_exponent_only_without_a_constant_part() -> None:
    """Three figures cannot separate a constant part from the exponent; a curved line reveals one."""
    straight = growth((1, 10, 100), costs((1, 10, 100), 1, launches=1))
    assert straight.exponent is not None
    assert straight.exponent.low < 1 < straight.exponent.high
    assert straight.constant is straight.misfit is None
    bent = growth((1, 10, 100), costs((1, 10, 100), 1, floor=5, launches=1))
    assert bent.exponent is None
    assert "use more sizes or launches" in str(bent.reason)


def test_constant_costs_have_exponent_zero_and_no_constant_part() -> None:
    found = growth(DECADES, [[1 + math.log(n) for n in DECADES]] * 5)
    assert found.exponent is not None
    assert found.exponent.estimate == pytest.approx(0, abs=0.01)
    assert found.constant is None


def test_a_cost_that_is_not_a_power_has_a_large_misfit() -> None:
    steps = growth(DECADES, [[1.0, 1.1, 90.0, 95.0, 9000.0]] * 5)
    smooth = growth(DECADES, costs(DECADES, 1))
    assert steps.misfit is not None
    assert smooth.misfit is not None
    assert steps.misfit > 0.3 > 0.05 > smooth.misfit


@pytest.mark.parametrize(
    ("sizes", "row", "reason"),
    [
        ((), [], "an exponent needs 3 sizes; there are figures at 0"),
        ((1, 10), [1.0, 10.0], "an exponent needs 3 sizes; there are figures at 2"),
        (DECADES, [5.0, 5.1, 5.0, 5.2, 6.0], "n = 10000 takes only 1.2 times as long as n = 1, too little"),
        (DECADES, [5.0, 4.0, 3.0, 2.0, 1.0], "n = 10000 takes only 0.2 times as long as n = 1, too little"),
        (DECADES, [5.0, 5.0, 5.0, 5.0, 50.0], "only n = 10000 exceeds the constant part"),
    ],
)
def test_a_missing_exponent_has_a_reason(sizes: tuple[int, ...], row: list[float], reason: str) -> None:
    found = growth(sizes, [row] * 8)
    assert found.exponent is None
    assert reason in str(found.reason)


@pytest.mark.parametrize(
    ("sizes", "t", "message"),
    [
        ((1, 10, 100), [[1.0, 2.0]], "a column for each size"),
        ((1, 10, 100), [], "a column for each size"),
        ((1, 10, 100), [[1.0, 2.0, 0.0]], "must be positive"),
        ((1, 10, 100), [[1.0, 2.0, math.nan]], "must be positive"),
        ((1, 100, 10), [[1.0, 2.0, 3.0]], "sizes must ascend"),
        ((0, 10, 100), [[1.0, 2.0, 3.0]], "from 1 or more"),
    ],
)
def test_impossible_costs_are_refused(sizes: tuple[int, ...], t: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        growth(sizes, t)


@pytest.mark.parametrize(
    ("a", "b", "calls"),
    [
        ((10.0, 1.0), (0.0, 2.0), 10.0),
        ((10.0, 1.0), (4.0, 1.5), 12.0),
        ((10.0, 1.0), (4.0, 1.0), None),  # equal cost per call: never
        ((10.0, 2.0), (4.0, 1.0), None),
        ((4.0, 1.0), (10.0, 2.0), 0.0),
        ((4.0, 1.0), (4.0, 1.0), 0.0),
    ],
)
def test_break_even_is_at_equal_cost(a: tuple[float, float], b: tuple[float, float], calls: float | None) -> None:
    assert break_even(*a, *b) == calls
    if calls:
        assert a[0] + calls * a[1] == b[0] + calls * b[1]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_cost_is_a_number_that_is_not_negative(bad: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        break_even(bad, 1.0, 1.0, 1.0)
