"""Looking at the launches before the last one: no more false words, and intervals that still cover the truth.

The naive methods, tried on the same numbers, fail: so these tests can tell a bad method from a good one.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from adbench.measure.statistics import (
    LOOKS,
    SIGNIFICANT,
    difference_p_rows,
    hodges_lehmann_rows,
    looks,
    sequential_interval_rows,
    sequential_p_rows,
)

Array = NDArray[np.float64]
PLANNED = 8
MARGIN = math.log1p(0.02)


def launches(kind: str, scatter: float, rows: int, truth: float = 0.0) -> Array:
    """Log ratios of launches: normal, with heavy tails, or with one launch in twenty disturbed."""
    rng = np.random.default_rng(7)
    shape = (rows, PLANNED)
    if kind == "heavy":
        return rng.standard_t(3, shape) * scatter / math.sqrt(3) + truth
    disturbed = 1 + 9 * (rng.random(shape) < 0.05) if kind == "disturbed" else 1
    return rng.normal(size=shape) * scatter * disturbed + truth


@pytest.mark.parametrize("planned", [4, 5, 6, 8, 10, 12, 20, 25])
def test_all_looks_together_spend_the_whole_error(planned: int) -> None:
    shares = looks(planned)
    assert sum(shares.values()) == pytest.approx(SIGNIFICANT)
    assert set(shares) == {launches for launches in LOOKS if launches < planned} | {planned}
    assert min(shares.values()) > 0


@pytest.mark.parametrize("kind", ["normal", "heavy", "disturbed"])
@pytest.mark.parametrize("scatter", [0.015, 0.06])
def test_of_equal_pairs_one_in_twenty_is_called_different_whenever_one_stops(kind: str, scatter: float) -> None:
    """Stopping at the first look that says so is the worst that a rule can do."""
    x = launches(kind, scatter, 20_000)
    at_looks = [x[:, :n] for n in looks(PLANNED)]
    found = np.minimum.reduce([sequential_p_rows(rows, PLANNED) for rows in at_looks])
    naive = np.minimum.reduce([difference_p_rows(rows) for rows in at_looks])
    assert np.mean(found <= SIGNIFICANT) <= 0.053
    assert np.mean(naive <= SIGNIFICANT) > 0.06


def test_a_further_launch_never_takes_a_decision_back() -> None:
    x = launches("normal", 0.015, 500, truth=0.03)
    before = np.ones(len(x))
    for n in looks(PLANNED):
        now = sequential_p_rows(x[:, :n], PLANNED)
        assert (now <= before).all()
        before = now


def test_a_row_that_lost_a_launch_counts_as_the_next_look() -> None:
    x = launches("normal", 0.015, 50, truth=0.05)[:, :7]
    last = looks(PLANNED)[PLANNED]
    alone = difference_p_rows(x) * SIGNIFICANT / last
    assert (sequential_p_rows(x, PLANNED) <= alone * (1 + 1e-12)).all()
    assert (sequential_p_rows(x, PLANNED) < 1).any()


def stopped(x: Array) -> list[Array]:
    """The launches of each row up to the first look that finds a difference, or an interval within the margin."""
    found = []
    for row in x:
        n = PLANNED
        for look in [k for k in looks(PLANNED) if k < PLANNED]:
            (interval,) = hodges_lehmann_rows(row[None, :look])
            if (
                interval.high - interval.low <= 2 * MARGIN
                or sequential_p_rows(row[None, :look], PLANNED) <= SIGNIFICANT
            ):
                n = look
                break
        found.append(row[None, :n])
    return found


@pytest.mark.parametrize("kind", ["normal", "heavy", "disturbed"])
@pytest.mark.parametrize("truth", [0.0, 0.03, 0.3])
def test_intervals_cover_the_truth_after_stopping(kind: str, truth: float) -> None:
    rows = stopped(launches(kind, 0.015, 1_000, truth))
    assert np.mean([row.shape[1] for row in rows]) < 7.9
    covers, naive = [], []
    for row in rows:
        (found,), (ranks,) = sequential_interval_rows(row, PLANNED), hodges_lehmann_rows(row)
        covers.append(found.low <= truth <= found.high)
        naive.append(ranks.low <= truth <= ranks.high)
        assert found.level >= 0.95
    assert np.mean(covers) >= 0.94
    assert np.mean(naive) < 0.95
