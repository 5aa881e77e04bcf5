"""The statistics compared with brute force, scipy and known properties."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adbench.measure import statistics
from adbench.measure.statistics import (
    Interval,
    difference_p_rows,
    hodges_lehmann,
    hodges_lehmann_rows,
    holm,
    log_ratios,
    verdict_word,
    wilcoxon_p_rows,
)

patient = settings(deadline=None)  # a busy machine is slow
numbers = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=9)
launches = st.lists(st.floats(-1, 1), min_size=4, max_size=12)


def wilcoxon_p(x: Any) -> float:
    return float(wilcoxon_p_rows(np.array([x], np.float64))[0])


def difference_p(x: Any) -> float:
    return float(difference_p_rows(np.array([x], np.float64))[0])


def by_all_signs(x: list[float]) -> float:
    """The two-sided signed-rank test by trying every sign of every number."""
    ranks = stats.rankdata(np.abs(x)) * (np.asarray(x) != 0)
    smaller = min(sum(r for r, v in zip(ranks, x, strict=True) if v * sign > 0) for sign in (1, -1))
    below = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s) <= smaller for signs in product((0, 1), repeat=len(x))
    ]
    return min(1.0, 2 * float(np.mean(below)))


@patient
@given(numbers)
def test_the_signed_rank_test_is_exact_with_ties_and_zeros(x: list[float]) -> None:
    assert wilcoxon_p(x) == pytest.approx(by_all_signs(x), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 20, 45])
def test_without_ties_it_is_scipys_exact_test(n: int) -> None:
    x = np.random.default_rng(n).normal(0.3, 1, n)
    assert wilcoxon_p(x) == pytest.approx(stats.wilcoxon(x, method="exact").pvalue, rel=1e-12)


def test_zeros_give_a_p_value_of_one() -> None:
    assert wilcoxon_p([0.0] * 8) == difference_p([0.0] * 8) == 1.0


@patient
@given(launches)
def test_a_p_value_is_symmetric_in_the_two_backends(x: list[float]) -> None:
    for test in (wilcoxon_p, difference_p):
        assert 0 <= test(x) <= 1
        assert test(x) == test([-v for v in x])


def test_if_all_launches_agree_student_gives_a_lower_p_value_than_ranks() -> None:
    x = [0.051, 0.049, 0.047, 0.05, 0.052, 0.048, 0.053, 0.046]
    assert wilcoxon_p(x) == pytest.approx(2**-7)
    assert difference_p(x) == pytest.approx(stats.ttest_1samp(x, 0).pvalue, rel=1e-9)
    assert difference_p(x) < 1e-8
    assert difference_p([0.05] * 8) == 0.0  # no scatter at all
    scattered = [0.5, *(0.0001 * k for k in range(1, 8))]  # they agree, but Student's p-value is larger
    assert difference_p(scattered) == wilcoxon_p(scattered) < stats.ttest_1samp(scattered, 0).pvalue
    x[3] = -0.001
    assert difference_p(x) == wilcoxon_p(x)  # one launch disagrees: ranks alone


def test_with_many_comparisons_ranks_alone_are_never_significant() -> None:
    """Why `difference_p_rows` is not Wilcoxon's: a factor of ten in each of eight launches, with seven comparisons."""
    x = [math.log(10) + 0.01 * k for k in range(8)]
    assert holm([wilcoxon_p(x)] + [0.5] * 6)[0] > 0.05
    assert holm([difference_p(x)] + [0.5] * 6)[0] < 0.05


@patient
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=12))
def test_for_a_single_comparison_the_decision_is_wilcoxons(x: list[float]) -> None:
    assert (difference_p(x) <= 0.05) == (wilcoxon_p(x) <= 0.05)


def test_rows_together_give_the_same_as_each_alone() -> None:
    x = np.random.default_rng(3).normal(size=(40, 8))
    x[5], x[6, 0], x[7, :2] = 0, 0, 1.0
    assert hodges_lehmann_rows(x) == [hodges_lehmann(row) for row in x]
    assert difference_p_rows(x).tolist() == [difference_p(row) for row in x]


def test_more_rows_than_fit_in_memory_are_all_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(4).normal(size=(50, 8))
    together = hodges_lehmann_rows(x)
    monkeypatch.setattr(statistics, "_AT_ONCE", 36 * 7)
    assert hodges_lehmann_rows(x) == together


def test_the_estimate_is_the_median_of_the_averages_of_pairs() -> None:
    x = [1.0, 2.0, 4.0, 9.0]
    averages = sorted((a + b) / 2 for i, a in enumerate(x) for b in x[i:])
    found = hodges_lehmann(x)
    assert found.estimate == np.median(averages)
    assert (found.low, found.high, found.level) == (1.0, 9.0, 0.875)


@pytest.mark.parametrize(
    ("n", "attained"), [(4, 0.875), (5, 0.9375), (6, 0.96875), (8, 0.9609375), (12, 0.95751953125), (20, 0.951559)]
)
def test_the_level_is_the_actual_coverage(n: int, attained: float) -> None:
    assert hodges_lehmann(list(range(n))).level == pytest.approx(attained, abs=1e-5)


@pytest.mark.parametrize("n", [4, 5, 8, 13, 20])
@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_the_interval_contains_exactly_the_centres_that_the_test_accepts(n: int, level: float) -> None:
    x = np.random.default_rng(n).normal(size=n).tolist()
    found = hodges_lehmann(x, level)
    for outside in (found.low - 1e-9, found.high + 1e-9):
        assert wilcoxon_p([v - outside for v in x]) <= 1 - found.level + 1e-12
    for inside in (found.low + 1e-9, found.estimate, found.high - 1e-9):
        assert wilcoxon_p([v - inside for v in x]) > 1 - found.level + 1e-12


@patient
@given(launches, st.floats(-5, 5), st.floats(0.1, 10))
def test_the_interval_moves_and_stretches_with_the_numbers(x: list[float], by: float, times: float) -> None:
    plain, moved = hodges_lehmann(x), hodges_lehmann([times * v + by for v in x])
    for name in ("estimate", "low", "high"):
        assert getattr(moved, name) == pytest.approx(times * getattr(plain, name) + by, abs=1e-9)
    assert plain.low <= plain.estimate <= plain.high


def test_one_outlier_hardly_moves_the_estimate() -> None:
    quiet = [0.01, 0.011, 0.012, 0.009, 0.01, 0.011, 0.0095]
    assert hodges_lehmann([*quiet, 5.0]).estimate == pytest.approx(0.0105, abs=0.001)


@pytest.mark.parametrize("x", [[], [1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, math.nan], [[1.0] * 5] * 5])
def test_too_few_launches_have_no_interval(x: Any) -> None:
    with pytest.raises(ValueError, match=r"^an interval needs 4 launches or more|must be finite"):
        hodges_lehmann(x)
    with pytest.raises(ValueError, match="level"):
        hodges_lehmann([1.0] * 5, 95)


def test_a_launch_is_the_median_of_its_rounds() -> None:
    assert log_ratios(np.log([2.0, 4.0, 80.0]), np.log([1.0, 2.0, 4.0])) == pytest.approx(math.log(2))
    assert log_ratios(np.log([1, 2]), np.log([2, 1])) == 0.0


def test_effects_on_a_whole_round_cancel() -> None:
    drift = np.array([1.0, 1.5, 0.7, 3.0])
    assert log_ratios(np.log(1.1 * drift), np.log(drift)) == pytest.approx(math.log(1.1))


def test_a_missing_round_is_left_out_with_its_partner_and_a_launch_without_any_is_missing() -> None:
    a = np.log([[1.0, 2.0, np.nan], [np.nan, np.nan, np.nan], [1.0, 2.0, 3.0]])
    b = np.log([[1.0, 1.0, 9.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    assert log_ratios(a, b) == pytest.approx([math.log(2) / 2, math.nan, math.log(2)], nan_ok=True)


def test_holm_adjusts_step_by_step() -> None:
    """Worked by hand: 4 × 0.01, 3 × 0.02, 2 × 0.03 and 1 × 0.04, never falling."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.3]) == [0.3]


@patient
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(raw <= held <= min(1, raw * len(p)) for raw, held in zip(p, adjusted, strict=True))
    assert all((p[i] < p[j]) <= (adjusted[i] <= adjusted[j]) for i in range(len(p)) for j in range(len(p)))


@pytest.mark.parametrize("p", [[-0.1], [1.5], [math.nan]])
def test_numbers_outside_0_and_1_are_not_probabilities(p: list[float]) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(p)


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [
        (0.04, 0.06, 0.01, "slower"),
        (-0.06, -0.04, 0.01, "faster"),
        (0.04, 0.06, 0.06, "inconclusive"),  # beyond 0, but one of many comparisons
        (-0.01, 0.06, 0.01, "inconclusive"),
        (-0.05, 0.05, 1.0, "inconclusive"),
        (-0.015, 0.015, 1.0, "equivalent"),
        (0.005, 0.015, 0.001, "equivalent"),  # certain, and too small to matter
        (0.005, 0.025, 0.001, "slower"),
        (0.0, 0.03, 0.001, "inconclusive"),  # touches 0
    ],
)
def test_the_word_follows_from_interval_and_p(low: float, high: float, p: float, word: str) -> None:
    assert verdict_word(Interval((low + high) / 2, low, high, 0.95), p, 0.02) == word


def test_the_margin_is_the_same_in_both_directions() -> None:
    """2 % slower is log 1.02, and a / b = 1 / 1.02 is b / a = 1.02."""
    for sign in (1, -1):
        ends = sorted((0.0, sign * math.log(1.0199)))
        assert verdict_word(Interval(0, *ends, 0.95), 1.0, 0.02) == "equivalent"
        ends = sorted((0.0, sign * math.log(1.0201)))
        assert verdict_word(Interval(0, *ends, 0.95), 1.0, 0.02) == "inconclusive"


def test_an_interval_of_low_level_shows_no_equivalence() -> None:
    assert verdict_word(Interval(0, -0.01, 0.01, 0.875), 1.0, 0.02) == "inconclusive"


@pytest.mark.parametrize("margin", [0, -1, math.nan, math.inf])
def test_a_margin_must_be_positive(margin: float) -> None:
    with pytest.raises(ValueError, match=r"^a margin must be positive, such as 0\.05 for 5 %; got [^\n]*$"):
        verdict_word(Interval(0, 0, 0, 0.95), 1.0, margin)


def test_an_interval_has_a_reach_and_a_ratio() -> None:
    found = Interval(-0.1, -0.3, 0.1, 0.95)
    assert found.reach == 0.3
    assert found.exp() == Interval(math.exp(-0.1), math.exp(-0.3), math.exp(0.1), 0.95)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 19, 60])
def test_student_tails_and_quantiles_are_those_of_scipy(freedom: int) -> None:
    for t in (0.0, 0.3, 2.5, 80.0):
        assert statistics.student_tail(freedom, t) == pytest.approx(stats.t.sf(t, freedom), rel=1e-12)
    for tail in (0.25, 0.025, 0.002):
        assert statistics.student_quantile(freedom, tail) == pytest.approx(stats.t.isf(tail, freedom), rel=1e-11)
    assert statistics.student_tail(freedom, math.inf) == 0.0
