"""Decisions about a release from numbers: their error rates, and the number of releases that a bisection needs."""

from math import ceil, log, log2

import numpy as np
import pytest

from adbench.bisection.decision import LOOKS, around, exceeds, is_slower, middle, most_installed, side_of

RNG = np.random.default_rng


def launches(rng: np.random.Generator, at: float, noise: float, heavy: bool) -> list[float]:
    """The log ratios of one release: a shift of its process environment, and noise of each launch."""
    drawn = rng.standard_t(2, LOOKS[-1]) if heavy else rng.normal(size=LOOKS[-1])
    return list(at + noise / 2 * rng.normal() + noise * drawn)


def end(bad: list[float], good: list[float], margin: float) -> bool | None:
    """The verdict on BAD, looked at as a bisection does."""
    for many in LOOKS:
        found = is_slower(bad[:many], good[:many], margin)
        if found is not None:
            return found
    return None


def side(release: list[float], good: list[float], bad: list[float]) -> str | None:
    for many in LOOKS:
        found = side_of(release[:many], good, bad)
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_identical_releases_have_no_culprit(noise: float, heavy: bool) -> None:
    rng = RNG(1)
    found = [end(launches(rng, 0, noise, heavy), launches(rng, 0, noise, heavy), 0.2) for _ in range(200)]
    assert found.count(True) == 0


def test_a_slowdown_of_exactly_the_margin_is_called_slower_in_one_of_a_hundred_at_most() -> None:
    """The least favourable case of the hypothesis, without a shift between environments, which no test can see."""
    rng = RNG(2)
    found = [end(list(log(1.2) + rng.normal(size=24)), list(rng.normal(size=24)), 0.2) for _ in range(2000)]
    assert found.count(True) <= 0.01 * 2000 + 3 * (0.01 * 2000) ** 0.5


@pytest.mark.parametrize("heavy", [False, True])
def test_releases_fall_on_the_side_whose_time_they_have(heavy: bool) -> None:
    rng = RNG(3)
    wrong = undecided = 0
    for _ in range(200):
        good, bad = launches(rng, 0, 0.02, heavy), launches(rng, log(1.25), 0.02, heavy)
        for at, truth in ((0.0, "good"), (log(1.25), "bad")):
            found = side(launches(rng, at, 0.02, heavy), good, bad)
            wrong += found not in (truth, None)
            undecided += found is None
    assert (wrong, undecided) == (0, 0)


def test_a_release_half_way_between_is_left_undecided() -> None:
    rng = RNG(4)
    found = [side(*(list(at + 0.02 * rng.normal(size=24)) for at in (log(1.5) / 2, 0.0, log(1.5)))) for _ in range(200)]
    assert found.count(None) > 180


def test_more_noise_than_the_margin_decides_nothing() -> None:
    rng = RNG(5)
    found = [end(list(log(1.2) + rng.normal(size=24)), list(rng.normal(size=24)), 0.2) for _ in range(200)]
    assert found.count(None) >= 190


def test_a_culprit_of_chance_is_not_confirmed() -> None:
    rng = RNG(7)
    found = [exceeds(list(rng.normal(size=24)), list(rng.normal(size=24)), log(1.2) / 2) for _ in range(500)]
    assert found.count(True) <= 5
    assert exceeds(list(log(1.2) + 0.02 * rng.normal(size=6)), list(0.02 * rng.normal(size=6)), log(1.2) / 2)


@pytest.mark.parametrize("releases", [2, 3, 4, 5, 8, 9, 16, 17, 31, 100])
def test_n_releases_need_at_most_log2_n_installations_and_those_of_the_two_ends(releases: int) -> None:
    for first in range(1, releases):
        truth = [k >= first for k in range(releases)]
        states: list[bool | None] = [False, *[None] * (releases - 2), True]
        tried = 2
        while (k := middle(states, [False] * releases)) is not None:
            states[k], tried = truth[k], tried + 1
        assert states[first - 1 : first + 1] == [False, True]
        assert tried <= ceil(log2(releases)) + 2 == most_installed(releases)


def test_skipped_releases_cost_no_decision() -> None:
    releases, rng = 40, RNG(6)
    for first in range(1, releases):
        skipped = [0 < k < releases - 1 and rng.random() < 0.4 for k in range(releases)]
        states: list[bool | None] = [False, *[None] * (releases - 2), True]
        known, tried = [False] * releases, 2
        while (k := middle(states, known)) is not None:
            if skipped[k]:
                known[k] = True
            else:
                states[k], tried = k >= first, tried + 1
        low, high = around(states)
        assert low < first <= high
        assert all(skipped[low + 1 : high])
        assert tried <= most_installed(releases)
