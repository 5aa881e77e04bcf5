"""On a loaded machine, launches are compared by rounds that nothing disturbed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adbench.model.record import Run, Time
from adbench.results.analysis import floor, ratios
from adbench.results.matched_samples import is_loaded, second_smallest
from tests.support.sessions import run, times


def session(share: float, *, seed: int = 0) -> Run:
    """Two equally fast backends; this share of the rounds is flagged, and takes up to three times as long."""
    rng = np.random.default_rng(seed)
    logs = times(rng, ("tape", "b1"), layout=0.004, shared=0.002, noise=0.004, changes={"b1": np.exp(-0.7)})
    hit = {job: rng.random(rows.shape) < share for job, rows in logs.items()}
    slowed = {job: rows + hit[job] * rng.uniform(0.2, 1.1, rows.shape) for job, rows in logs.items()}
    found = run(slowed, seed=seed)
    records = []
    for record in found.records:
        assert record.time
        control = None
        if record.control:
            control = flagged(record.control, hit[record.job])
        records.append(replace(record, time=flagged(record.time, hit[record.job]), control=control))
    return replace(found, records=tuple(records))


def flagged(time: Time, hit: np.ndarray) -> Time:
    launches = []
    for launch, row in zip(time.launches, hit, strict=True):
        reasons = ["1 involuntary switch" if bad else None for bad in row]
        rounds = [replace(one, disturbed=why) for one, why in zip(launch.rounds, reasons, strict=True)]
        launches.append(replace(launch, rounds=tuple(rounds)))
    return Time(tuple(launches))


@pytest.mark.parametrize(("share", "loaded"), [(0.0, False), (0.2, False), (0.3, True), (0.6, True)])
def test_a_machine_is_loaded_if_over_a_quarter_of_the_rounds_are_disturbed(share: float, loaded: bool) -> None:
    found = session(share)
    assert is_loaded(found.records) is loaded
    assert floor(found).loaded is loaded


def test_second_smallest_rounds_are_as_precise_as_on_a_quiet_machine() -> None:
    quiet, loaded = session(0.0), session(0.55)
    nothing = np.zeros((8, 12))
    unknown = [replace(r, time=r.time and flagged(r.time, nothing), control=None) for r in loaded.records]
    unflagged = replace(loaded, records=tuple(unknown))
    widths = [
        np.median([np.log(r.interval.high / r.interval.low) for r in ratios(one) if r.interval])
        for one in (quiet, loaded, unflagged)
    ]
    assert widths[1] < 2 * widths[0]
    assert widths[2] > 5 * widths[0]


def test_missing_rounds_do_not_count() -> None:
    logs = np.array([[3.0, 1.0, 2.0], [5.0, np.nan, np.nan], [np.nan] * 3])
    np.testing.assert_array_equal(second_smallest(logs), [2.0, 5.0, np.nan])
    np.testing.assert_array_equal(second_smallest(logs[:, :1]), [3.0, 5.0, np.nan])
