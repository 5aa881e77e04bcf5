"""Change points against known truth: none in series without a change, a planted one at its place and of its size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adbench.measure.change_points import can_decide, change_points

EDGE = math.log(1.05)
CHANGE = math.log(1.2)
SERIES = 60
NOISES = (0.015, 0.06)


def series(
    rng: np.random.Generator,
    noise: float,
    *,
    runs: int = 12,
    launches: int = 8,
    change: float = 0.0,
    at: int = 99,
    days: float = 0.01,
) -> list[np.ndarray]:
    """Launches with this standard deviation and the tails of Student's t with three degrees; `days` of the runs."""
    found = [rng.standard_t(3, launches) * noise / math.sqrt(3) + rng.normal(0, days) for _ in range(runs)]
    return [launch + (change if k >= at else 0.0) for k, launch in enumerate(found)]


@pytest.mark.parametrize("noise", NOISES)
def test_series_without_a_change_have_no_change_point(noise: float) -> None:
    rng = np.random.default_rng(1)
    false = sum(bool(change_points(series(rng, noise), EDGE)) for _ in range(SERIES))
    assert false <= 0.05 * SERIES


def test_without_a_margin_the_number_of_tests_still_counts() -> None:
    rng = np.random.default_rng(7)
    false = sum(bool(change_points(series(rng, 0.015, days=0.0), 1e-9)) for _ in range(SERIES))
    assert false <= 0.05 * SERIES


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("runs", "launches"), [(4, 8), (20, 5), (16, 1)])
def test_many_series_without_a_change_rarely_have_a_change_point(noise: float, runs: int, launches: int) -> None:
    rng = np.random.default_rng(2)
    found = [change_points(series(rng, noise, runs=runs, launches=launches), EDGE) for _ in range(400)]
    assert sum(map(bool, found)) <= 0.05 * 400


@pytest.mark.parametrize("noise", NOISES)
def test_a_planted_change_is_found_at_its_run_with_its_size(noise: float) -> None:
    rng = np.random.default_rng(3)
    at_place = in_range = of_size = 0
    for k in range(SERIES):
        at = 1 + k % 11
        found = change_points(series(rng, noise, change=CHANGE, at=at), EDGE)
        at_place += [point.first for point in found] == [at]
        in_range += any(point.earliest <= at <= point.latest for point in found)
        of_size += any(point.shift.low - 0.02 <= CHANGE <= point.shift.high + 0.02 for point in found)  # days differ
    assert at_place >= 0.95 * SERIES
    assert in_range >= 0.95 * SERIES
    assert of_size >= 0.9 * SERIES


def test_the_range_of_runs_is_wide_where_launches_cannot_tell() -> None:
    rng = np.random.default_rng(4)
    found, right = [], 0
    for k in range(SERIES):
        at = 3 + k % 6
        points = change_points(series(rng, 0.06, launches=3, change=CHANGE, at=at), EDGE)
        found += points
        right += any(point.earliest <= at <= point.latest for point in points)
    assert any(point.latest > point.earliest for point in found)
    assert right >= 0.9 * SERIES


def test_a_stretch_in_the_middle_has_two_ends_and_a_lone_outlier_none() -> None:
    rng = np.random.default_rng(5)
    quiet = series(rng, 0.015)
    bump = [launch + CHANGE * (5 <= k < 7) for k, launch in enumerate(quiet)]
    assert [(point.first, point.shift.estimate > 0) for point in change_points(bump, EDGE)] == [(5, True), (7, False)]
    quiet[6][2] += 3.0
    assert change_points(quiet, EDGE) == []


def test_a_change_below_the_margin_is_ignored_and_a_larger_family_needs_more() -> None:
    rng = np.random.default_rng(6)
    small = series(rng, 0.015, change=math.log(1.03), at=6)
    assert change_points(small, EDGE) == []
    assert change_points(small, math.log(1.005))
    pair = [np.arange(5) * 1e-3, np.full(5, 1.0)]
    assert change_points(pair, EDGE)
    assert can_decide(pair)
    assert not change_points(pair, EDGE, tests=100)
    assert not can_decide(pair, tests=100)
    assert not can_decide([np.zeros(3), np.zeros(3)])
