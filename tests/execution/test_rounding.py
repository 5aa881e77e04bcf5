"""Results of two processes must agree up to rounding."""

import pytest

from adbench.execution.phases.timing_protocol import differs, rounding
from adbench.model.record import Summary
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.verdict import Verdict


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
def test_results_agree_up_to_rounding(now: Summary, allowed: float, same: bool) -> None:
    fault = differs(Summary(3, 1.0, 10.0), now, allowed)
    assert (fault is None) == same
    assert fault is None or "differs between processes" in fault


def test_equal_infinities_agree_and_missing_sums_are_not_compared() -> None:
    huge = Summary(1, float("inf"), float("inf"))
    assert differs(huge, huge) is None
    assert differs(None, huge) is None


def test_the_tolerance_is_larger_for_unresolved_or_approximate_results() -> None:
    right = Verdict("right", "", None, None, 1, 1, 0, 0, "", "")
    entry = EntryEvidence("x", (), 1.0, 1.0, (1.0, 1.0), 1e-3, "verified", 3.0, 3.0)
    unsure = Verdict("verified", "", None, entry, 1, 0, 0, 1, "", "")
    assert rounding(right, None) == 1e-6
    assert rounding(right, 1e-5) == pytest.approx(1e-4)
    assert rounding(unsure, None) == pytest.approx(1e-2)
