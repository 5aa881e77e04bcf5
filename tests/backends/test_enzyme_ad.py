"""The backend enzyme_ad: derivatives of jax's lowered programs, and missing rules."""

from __future__ import annotations

import pytest

from adbench.catalog.discovery import catalog
from tests.backends.loaded import checked

pytestmark = pytest.mark.skipif(
    bool(catalog().backends["enzyme_ad"].missing), reason="enzyme-ad has no wheel for this Python"
)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "how"), [("gradient", "native"), ("hvp", "native"), ("hessian", "from hvp")])
def test_enzyme_differentiates_a_sum_of_products(operator: str, how: str) -> None:
    record = checked("enzyme_ad", "rosenbrock", operator)
    assert (record.status, record.how) == ("ok", how), record.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("cholesky", "no rule for lapack_dpotrf_ffi"),
        ("trap_cumulative_product_zero", "no rule for reduce window"),
        ("trap_stop_gradient", "jax removes stop_gradient"),
        ("trap_recorded_branch", "depends on data"),
    ],
)
def test_a_missing_rule_is_unsupported_in_one_line(case: str, reason: str) -> None:
    record = checked("enzyme_ad", case, "gradient")
    assert record.status == "unsupported"
    assert reason in str(record.reason)
    assert "\n" not in str(record.reason)
