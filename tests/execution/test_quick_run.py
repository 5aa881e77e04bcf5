"""What a run leaves out, with the reason: cells with slow calls, and memory by a method that would see less."""

from pathlib import Path

import pytest

from adbench.execution.phases.failure_policy import FailurePolicy, expected
from adbench.execution.phases.memory_phase import LEFT_OUT, METHODS, figures
from adbench.execution.planning.request import (
    LONGEST_CALL_SECONDS,
    LONGEST_CHECK_SECONDS,
    LONGEST_QUICK_SECONDS,
    Request,
)
from adbench.execution.session import prepare
from adbench.measure.readings import Figure
from adbench.model.record import Job, Record
from tests.support.files import CASE, RIGHT, write


def test_calls_are_expected_to_grow_as_they_did_between_the_two_largest_smaller_sizes() -> None:
    assert expected({}, 10) is None
    assert expected({100: 1.0}, 10) is None, "larger sizes tell nothing"
    assert expected({10: 0.02}, 100) == 0.02, "a single one is a lower bound"
    assert expected({8: 0.001, 32: 0.016}, 128) == pytest.approx(0.256)
    assert expected({1: 9.0, 8: 0.001, 32: 0.016}, 128) == pytest.approx(0.256)
    assert expected({8: 0.5, 32: 0.1}, 128) == 0.1, "they do not get faster"
    assert expected({10: 1e-5, 100: 0.004}, 1000) == 0.004, "an interruption of a short call is no growth"


def test_a_cell_is_left_out_where_its_call_would_be_too_slow_and_only_with_a_limit() -> None:
    def skipped(limit: float | None) -> Record | None:
        policy = FailurePolicy(longest_call=limit)
        for size, seconds in ((8, 0.001), (32, 0.016)):
            policy.note(Record(Job("a", size, "x", "gradient"), "ok"), seconds)
        return policy.skipped(Job("a", 128, "x", "gradient"))

    assert skipped(None) is skipped(0.3) is None
    found = skipped(0.1)
    assert found is not None
    assert (found.status, found.outcome.exit_code) == ("skipped", 0)
    assert found.reason == "about 0.26 s per call is over the limit of 0.1 s; -n 128 measures it"


def test_a_check_leaves_out_what_would_take_too_long_to_check() -> None:
    policy = FailurePolicy(longest_call=5.0, time=False)
    for size, seconds in ((32, 0.05), (64, 0.8)):
        policy.note(Record(Job("a", size, "x", "gradient"), "ok"), seconds)
    found = policy.skipped(Job("a", 128, "x", "gradient"))
    assert found is not None
    assert found.reason == "about 13 s to check is over the limit of 5 s; -n 128 checks it"


def test_a_cell_that_takes_ten_times_the_limit_to_prepare_is_not_timed() -> None:
    policy, job = FailurePolicy(longest_call=1.0), Job("a", 32, "x", "value")
    assert policy.too_slow(job, 0.1, 9.9) is None
    assert policy.too_slow(job, 0.1, 22.4) == "about 22 s to prepare is over the limit of 10 s; -n 32 measures it"


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ({"quick": True}, LONGEST_QUICK_SECONDS),
        ({"quick": True, "cases": ["a"]}, LONGEST_QUICK_SECONDS),
        ({"quick": True, "sizes": ["128"]}, None),
        ({"quick": True, "time": False}, LONGEST_CHECK_SECONDS),
        ({}, LONGEST_CALL_SECONDS),
        ({"suites": ["all"], "rigorous": True}, LONGEST_CALL_SECONDS),
        ({"cases": ["a"]}, None),
        ({"sizes": ["128"]}, None),
        ({"time": False}, LONGEST_CHECK_SECONDS),
        ({"time": False, "cases": ["a"]}, None),
        ({"time": False, "sizes": ["256"]}, None),
    ],
)
def test_what_a_user_names_has_no_limit_unless_the_run_is_quick(asked: dict[str, object], limit: float | None) -> None:
    assert Request(**asked).settings.longest_call_seconds == limit  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_slow_cell_is_checked_and_not_timed_and_larger_ones_are_not_tried(tmp_path: Path) -> None:
    slow = RIGHT.replace(
        "def right(x):", f"def right(x):\n    if x.size > 1: time.sleep({1.5 * LONGEST_QUICK_SECONDS})"
    )
    folder = write(tmp_path, softplus=CASE, slow="import time\n" + slow)
    made = prepare(
        cases=[str(folder / "softplus.py")],
        backends=[str(folder / "slow.py")],
        operators=["gradient"],
        quick=True,
        memory=False,
        launches=1,
    )
    for _ in made.events():
        pass
    found = {record.job.size: record for record in made.result().records}
    # Its quick sizes are 1 and 10; the check of the second finds that it is slow.
    assert found[1].time is not None
    assert found[10].verdict is not None
    assert found[10].verdict.word == "right"
    assert found[10].time is None
    assert "not timed: about 0.1" in str(found[10].reason)
    assert "s per call is over the limit of 0.1 s; -n 10 measures it" in str(found[10].reason)


def test_memory_is_not_measured_by_a_method_that_would_see_less() -> None:
    asked: list[str] = []

    class Method:
        def __init__(self, name: str, value: float | None) -> None:
            self.name, self.value = name, value

        def measure(self, job: Job) -> Figure:
            asked.append(self.name)
            return Figure(self.value, None if self.value is not None else "the reason")

    def measured(*values: float | None, one: bool) -> list[Figure]:
        asked.clear()
        methods = {name: Method(name, value) for name, value in zip(METHODS, values, strict=True)}
        return list(figures(methods, Job("a", 1, "x", "gradient"), one=one))  # type: ignore[arg-type]

    assert measured(1.0, 2.0, 3.0, one=True) == [Figure(1.0), LEFT_OUT["python"], LEFT_OUT["resident"]]
    assert asked == ["allocated"]
    assert measured(None, 0.0, 3.0, one=True) == [Figure(None, "the reason"), Figure(0.0), LEFT_OUT["resident"]]
    assert all(figure.reason == "the reason" for figure in measured(None, None, None, one=True))
    assert measured(1.0, 2.0, 3.0, one=False) == [Figure(1.0), LEFT_OUT["python"], Figure(3.0)]
    assert [figure.value for figure in measured(None, 2.0, 3.0, one=False)] == [None, 2.0, 3.0]
