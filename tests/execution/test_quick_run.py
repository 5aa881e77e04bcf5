"""What a quick run leaves out, with the reason: cells with slow calls, and memory by a second method."""

from pathlib import Path

import pytest

from adbench.execution.phases.failure_policy import FailurePolicy, expected
from adbench.execution.phases.memory_phase import LEFT_OUT, METHODS, figures
from adbench.execution.planning.request import LONGEST_CALL_SECONDS, Request
from adbench.execution.session import prepare
from adbench.measure.memory import Figure
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
    assert found.reason == "about 0.26 s per call is too slow for a quick run; -n 128 measures it"


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ({"quick": True}, LONGEST_CALL_SECONDS),
        ({"quick": True, "cases": ["a"]}, LONGEST_CALL_SECONDS),
        ({"quick": True, "sizes": ["128"]}, None),
        ({"quick": True, "time": False}, None),
        ({}, None),
    ],
)
def test_only_a_quick_run_without_sizes_of_its_own_has_a_limit(asked: dict[str, object], limit: float | None) -> None:
    assert Request(**asked).settings.longest_call_seconds == limit  # type: ignore[arg-type]


def test_a_slow_cell_is_checked_and_not_timed_and_larger_ones_are_not_tried(tmp_path: Path) -> None:
    slow = RIGHT.replace("def right(x):", f"def right(x):\n    if x.size > 1: time.sleep({1.5 * LONGEST_CALL_SECONDS})")
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
    assert "s per call is too slow for a quick run; -n 10 measures it" in str(found[10].reason)


def test_memory_is_measured_by_the_first_method_that_has_a_figure() -> None:
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

    assert measured(1.0, 2.0, 3.0, one=True) == [Figure(1.0), LEFT_OUT, LEFT_OUT]
    assert asked == ["allocated"]
    assert measured(None, 0.0, 3.0, one=True) == [Figure(None, "the reason"), Figure(0.0), LEFT_OUT]
    assert all(figure.reason == "the reason" for figure in measured(None, None, None, one=True))
    assert [figure.value for figure in measured(1.0, 2.0, 3.0, one=False)] == [1.0, 2.0, 3.0]
