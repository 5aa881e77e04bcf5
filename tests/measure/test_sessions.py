"""The promises of the statistics on thousands of synthetic sessions with known results.

The noise is that of real machines (sessions.py). The naive methods are tried on the very same sessions and fail: so
these tests can tell a bad method from a good one.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from adbench.measure import clock
from adbench.measure.machine.disturbance import Counters
from adbench.measure.readings import Round
from adbench.measure.statistics import (
    Word,
    difference_p_rows,
    hodges_lehmann,
    hodges_lehmann_rows,
    holm,
    log_ratios,
    verdict_word,
)
from tests.measure.sessions import nanoseconds

SESSIONS = 4000
MARGIN = 0.02
LAYOUT = {"quiet": 0.008, "loud": 0.025}  # an idle desktop; two cores shared with others


def over_launches(ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log ratio of each launch, shape (2, sessions, launches, rounds) -> (sessions, launches)."""
    logs = np.log(ns)
    return log_ratios(logs[0], logs[1])


def words(differences: NDArray[np.float64], margin: float = MARGIN) -> Counter[Word]:
    """The share of each word, with one comparison per session."""
    p = difference_p_rows(differences).tolist()
    return Counter(map(verdict_word, hodges_lehmann_rows(differences), p, [margin] * len(p)))


def decided(found: Counter[Word]) -> float:
    return (found["faster"] + found["slower"]) / found.total()


@pytest.mark.parametrize("launches", [8, 12, 20])
@pytest.mark.parametrize("layout", LAYOUT)
def test_the_interval_covers_the_truth_as_often_as_stated(launches: int, layout: str) -> None:
    ns = nanoseconds(np.random.default_rng(1), SESSIONS, launches, slowdown=0.03, layout=LAYOUT[layout])
    intervals = hodges_lehmann_rows(over_launches(ns))
    covered = np.mean([found.low <= np.log(1.03) <= found.high for found in intervals])
    assert covered >= 0.935
    assert covered == pytest.approx(intervals[0].level, abs=0.012)  # and is not wider than necessary


@pytest.mark.parametrize("launches", [5, 8, 12, 20])
@pytest.mark.parametrize("layout", LAYOUT)
def test_identical_backends_rarely_differ_significantly(launches: int, layout: str) -> None:
    ns = nanoseconds(np.random.default_rng(2), SESSIONS, launches, layout=LAYOUT[layout])
    assert decided(words(over_launches(ns))) <= 0.05
    assert decided(words(over_launches(ns), margin=1e-9)) <= 0.056  # 0.05 and three standard errors; no margin helps


@pytest.mark.parametrize("layout", LAYOUT)
def test_eight_launches_detect_a_slowdown_of_five_per_cent(layout: str) -> None:
    ns = nanoseconds(np.random.default_rng(3), SESSIONS, 8, slowdown=0.05, layout=LAYOUT[layout])
    found = words(over_launches(ns))
    assert found["slower"] / SESSIONS >= 0.85
    assert found["faster"] == 0


def test_twenty_launches_usually_call_identical_backends_equivalent() -> None:
    found = words(over_launches(nanoseconds(np.random.default_rng(4), 1000, 20)))
    assert found["equivalent"] / 1000 >= 0.9


@pytest.mark.parametrize("launches", [8, 20])
def test_in_a_run_of_equal_backends_hardly_any_pair_differs_significantly(launches: int) -> None:
    """Six equal backends in twenty groups: three hundred dependent pairs, corrected by Holm."""
    rng, runs, alarms = np.random.default_rng(5), 200, 0
    i, j = np.triu_indices(6, 1)
    for _ in range(runs):
        logs = np.log(nanoseconds(rng, 20, launches, sides=6))
        differences = log_ratios(logs[i], logs[j]).reshape(-1, launches)
        held = holm(difference_p_rows(differences).tolist())
        said = map(verdict_word, hodges_lehmann_rows(differences), held, [1e-9] * len(held))
        alarms += any(word in ("faster", "slower") for word in said)
    assert alarms / runs <= 0.05


def test_a_slowdown_of_five_per_cent_is_detected_among_three_hundred_comparisons() -> None:
    differences = over_launches(nanoseconds(np.random.default_rng(6), SESSIONS, 8, slowdown=0.05))
    p = np.minimum(1, 300 * difference_p_rows(differences))  # the smallest of Holm's family
    found = Counter(map(verdict_word, hodges_lehmann_rows(differences), p.tolist(), [MARGIN] * SESSIONS))
    assert found["slower"] / SESSIONS >= 0.85


def test_the_clock_and_the_statistics_agree_with_the_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Justifies the shortcut: the computation on arrays above, here by the clock, round by round."""
    monkeypatch.setattr(clock.gc, "collect", lambda: 0)  # avoids nine thousand collections of a test's heap
    sessions, launches, rounds, calls = 48, 8, 12, 5
    ns = nanoseconds(np.random.default_rng(7), sessions, launches, slowdown=0.02, rounds=rounds)
    ns -= ns % calls
    said = []
    for session in range(sessions):
        ratios = []
        for launch in range(launches):
            sides = [[timed(int(total), calls) for total in ns[side, session, launch]] for side in (0, 1)]
            assert [r.ns for r in sides[0]] == ns[0, session, launch].tolist()
            ratios.append(float(log_ratios(*np.log([[r.ns / r.calls for r in side] for side in sides]))))
        said.append(
            verdict_word(hodges_lehmann(ratios), holm(difference_p_rows(np.array([ratios])).tolist())[0], MARGIN)
        )
    assert Counter(said) == words(over_launches(ns))
    assert len(set(said)) > 1


def timed(total_ns: int, calls: int) -> Round:
    """A round measured by a clock that moves only during calls."""
    now = 0

    def call() -> None:
        nonlocal now
        now += total_ns // calls

    return clock.epoch(call, calls, clock=lambda: now, watch=lambda: UNDISTURBED)


UNDISTURBED = Counters(switches=0)


# The naive methods fail on the same sessions.


@pytest.mark.parametrize("rounds", [30, 100])
def test_turns_in_one_process_with_a_sign_test_give_false_alarms(rounds: int) -> None:
    a, b = nanoseconds(np.random.default_rng(8), 1000, 1, rounds=rounds)[:, :, 0]
    fewer = np.minimum((a > b).sum(axis=1), (a < b).sum(axis=1))
    assert np.mean(2 * stats.binom.cdf(fewer, rounds, 0.5) <= 0.05) > 0.4


@pytest.mark.parametrize("rounds", [30, 100])
def test_sequential_runs_in_one_process_with_welchs_test_give_false_alarms(rounds: int) -> None:
    a, b = nanoseconds(np.random.default_rng(9), 1000, 1, rounds=2 * rounds)[:, :, 0]
    p = stats.ttest_ind(a[:, :rounds], b[:, rounds:], axis=1, equal_var=False).pvalue
    assert np.mean(p <= 0.05) > 0.25


def test_pooling_the_rounds_of_all_launches_gives_false_alarms() -> None:
    """More processes are not enough, because rounds of one process are not independent."""
    a, b = nanoseconds(np.random.default_rng(10), 1000, 8)
    pooled = np.log(a / b).reshape(1000, -1)
    assert np.mean(difference_p_rows(pooled) <= 0.05) > 0.25
