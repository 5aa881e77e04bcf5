"""The backend torch_compile: short graphs are correct, others are unsupported in one line."""

from __future__ import annotations

import pytest

from adbench.catalog.discovery import catalog
from tests.backends.loaded import checked

pytestmark = pytest.mark.skipif(bool(catalog().backends["torch_compile"].missing), reason="torch is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "operator"),
    [("normal_log_density", "gradient"), ("rosenbrock", "hvp"), ("trap_broadcast_add", "gradient")],
)
def test_a_short_graph_is_correct(case: str, operator: str) -> None:
    record = checked("torch_compile", case, operator)
    assert (record.status, record.how) == ("ok", "native"), record.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "reason"),
    [("recurrence", "operations, loops unrolled"), ("trap_recorded_branch", "needs one graph for all data")],
)
def test_a_long_or_data_dependent_graph_is_unsupported_in_one_line(case: str, reason: str) -> None:
    record = checked("torch_compile", case, "gradient")
    assert record.status == "unsupported"
    assert reason in str(record.reason)
    assert "\n" not in str(record.reason)
