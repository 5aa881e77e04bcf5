"""When a result in one process is that of another: but for rounding, and no more."""

import pytest

from adbench.execution.phases.time_phase import differs, rounding
from adbench.model.record import Summary
from adbench.oracle import EntryEvidence, Verdict


@pytest.mark.parametrize(
    ("now", "allowed", "same"),
    [
        (Summary(3, 1.0, 10.0), 1e-6, True),
        (Summary(3, 1.0 + 1e-6, 10.0), 1e-6, True),
        (Summary(3, 1.0 + 1e-4, 10.0), 1e-6, False),
        (Summary(3, 1.0 + 1e-4, 10.0), 1e-4, True),
        (Summary(3, 1.0, 10.1), 1e-6, False),
        (Summary(2, 1.0, 10.0), 1e-6, False),
        (Summary(2, 1.0, 10.0), float("inf"), False),
        (Summary(3, float("nan"), float("nan")), 1e-6, False),
        (Summary(3, float("nan"), float("nan")), float("inf"), False),
        (Summary(3, float("inf"), float("inf")), 1e-6, False),
    ],
)
def test_results_are_the_same_but_for_rounding(now: Summary, allowed: float, same: bool) -> None:
    fault = differs(Summary(3, 1.0, 10.0), now, allowed)
    assert (fault is None) == same
    assert fault is None or "differs from process to process" in fault


def test_equal_infinities_are_equal_and_what_was_not_summed_is_not_compared() -> None:
    huge = Summary(1, float("inf"), float("inf"))
    assert differs(huge, huge) is None
    assert differs(None, huge) is None


def test_less_is_asked_of_what_cannot_be_resolved_or_is_claimed_to_be_rough() -> None:
    right = Verdict("right", "", None, None, 1, 1, 0, 0, "", "")
    entry = EntryEvidence("x", (), 1.0, 1.0, (1.0, 1.0), 1e-3, "verified", 3.0, 3.0)
    unsure = Verdict("verified", "", None, entry, 1, 0, 0, 1, "", "")
    assert rounding(right, None) == 1e-6
    assert rounding(right, 1e-5) == pytest.approx(1e-4)
    assert rounding(unsure, None) == pytest.approx(1e-2)
