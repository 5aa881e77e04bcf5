"""Two samples of launches: coverage of intervals, and p-values equal to scipy's."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from adbench.measure.unpaired import FEWEST, exceeds_p, least_p, shift


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 8), (8, 8), (20, 8), (3, 20)])
def test_p_values_equal_scipys(n: int, m: int) -> None:
    rng = np.random.default_rng([n, m])
    for by in (-0.5, 0.0, 0.3):
        for moved in (0.0, 0.5, 2.0):
            new, old = rng.normal(moved, 1, n), rng.normal(0, 1, m)
            expected = mannwhitneyu(new - by, old, alternative="greater", method="exact").pvalue
            assert exceeds_p(new, old, by) == pytest.approx(expected, rel=1e-10)


def test_the_distribution_is_that_of_all_orders() -> None:
    values = range(7)
    found = sorted(
        exceeds_p(list(new), [v for v in values if v not in new])
        for new in map(list, itertools.combinations(values, 3))
    )
    assert len(found) == 35
    assert found[0] == pytest.approx(least_p(3, 4))
    assert all(sum(p <= q for p in found) / 35 <= q + 1e-12 for q in found)  # P(p ≤ q) ≤ q


def test_equal_numbers_are_never_significant() -> None:
    assert exceeds_p([1.0] * 8, [1.0] * 8) == pytest.approx(1.0)
    assert exceeds_p([1.0] * 8, [0.0] * 8, by=1.0) == pytest.approx(1.0)
    found = shift([1.0] * 8, [1.0] * 8)
    assert (found.estimate, found.low, found.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("n", "m"), [(8, 8), (5, 5), (12, 8), (20, 20)])
def test_the_interval_covers_the_shift_as_often_as_stated(n: int, m: int) -> None:
    rng = np.random.default_rng(0)
    covered, level, sessions = 0, 0.0, 2000
    for _ in range(sessions):
        found = shift(rng.standard_t(2, m) + 0.7, rng.standard_t(2, n))  # much heavier tails than a normal's
        covered += found.low <= 0.7 <= found.high
        level = found.level
    assert 0.95 <= level < 0.99
    # The stated coverage is exact: the count is binomial, and four deviations almost never happen.
    assert abs(covered / sessions - level) < 4 * math.sqrt(level * (1 - level) / sessions)


def test_swapping_the_samples_flips_the_sign() -> None:
    rng = np.random.default_rng(1)
    new, old = rng.normal(size=8), rng.normal(size=6)
    there, back = shift(new, old), shift(old, new)
    assert (there.estimate, there.low, there.high) == pytest.approx((-back.estimate, -back.high, -back.low))


def test_the_normal_approximation_for_many_launches_agrees_with_the_exact_distribution() -> None:
    rng = np.random.default_rng(2)
    new, old = rng.normal(0.1, 1, 120), rng.normal(0, 1, 110)
    expected = mannwhitneyu(new, old, alternative="greater", method="exact").pvalue
    assert exceeds_p(new, old) == pytest.approx(expected, abs=1e-3)
    found = shift(new, old)
    assert found.low < found.estimate < found.high


def test_one_outlier_changes_little() -> None:
    quiet = shift([1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07])
    wild = shift([1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 99.0], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07])
    assert wild.estimate == pytest.approx(quiet.estimate, abs=0.01)
    assert wild.high < 1.2


@pytest.mark.parametrize("new", [[], [1.0, math.nan, 1.0, 1.0], [math.inf] * 4, [[1.0]]])
def test_invalid_samples_are_refused(new: list[float]) -> None:
    for ask in (shift, exceeds_p):
        with pytest.raises(ValueError, match="finite numbers in both runs"):
            ask(new, [1.0] * 4)
    with pytest.raises(ValueError, match=f"needs {FEWEST} launches"):
        shift([1.0] * 3, [1.0] * 8)
