"""Rates of copies and products: their arithmetic, and what share of them a call reaches at least."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adbench.execution.operators.on_device import least_bytes
from adbench.measure.machine import rates
from adbench.measure.readings import Rate, Rates
from adbench.model.record import Summary
from adbench.reports.html import page
from adbench.reports.text import terminal
from adbench.results.scaling import limits
from tests.reports import runs


def test_a_rate_is_the_amount_by_the_median_of_the_repetitions() -> None:
    durations = iter([900, 100, 200, 100, 400, 100])  # ns; the first does not count
    times = iter([tick for duration in durations for tick in (0, duration)])
    found = rates.rate(lambda: None, 50.0, repetitions=5, clock=lambda: next(times))
    assert found.per_second == pytest.approx(50 / 100e-9)
    assert found.spread == pytest.approx((500e6 - 187.5e6) / 500e6)  # quartiles of 500, 250, 500, 125 and 500


def test_a_copy_counts_the_bytes_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    amounts: list[float] = []
    monkeypatch.setattr(rates, "array_bytes", lambda: 8000)
    monkeypatch.setattr(rates, "rate", lambda work, amount: amounts.append(amount) or Rate(1.0))
    rates.on_processor()
    assert amounts == [16_000, 2 * rates.ORDER**3]
    assert rates.on_processor("float16").arithmetic.reason == "numpy has no fast products of float16"

    def value(f: Any, array: Any) -> Any:
        assert np.array_equal(f(np.eye(2)), -np.eye(2)) or np.array_equal(f(np.eye(2)), np.eye(2))
        return lambda: None, 4

    amounts.clear()
    rates.by_library(value)
    assert amounts == [rates.ON_DEVICE_BYTES, 2 * rates.ORDER_ON_DEVICE**3]  # half as many bytes, read and written


def test_the_array_is_larger_than_the_caches(tmp_path: Path) -> None:
    assert rates.array_bytes(tmp_path) == rates.LEAST_BYTES
    for number, size in enumerate(("48K", "2048K", "32768K")):
        folder = tmp_path / f"devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        (folder / "size").write_text(f"{size}\n")
    assert rates.array_bytes(tmp_path) == 3 * 32 << 20


def test_a_call_reads_its_inputs_and_writes_its_result() -> None:
    def backend(precision: str = "float64", dtype: str = "float64") -> Any:
        return SimpleNamespace(precision=precision, dtype=dtype)

    args = (1.0, np.zeros((2, 3)), np.zeros(5, dtype=np.int32), "static")
    result = Summary(7, 0.0, 0.0)
    assert least_bytes(backend(), args, result) == (1 + 6 + 7) * 8 + 5 * 4
    assert least_bytes(backend("float32"), args, result) == (1 + 6 + 7) * 4 + 5 * 4
    assert least_bytes(backend(dtype="bfloat16"), args, result) == (1 + 6 + 7) * 2 + 5 * 4


HERE = {"cpu": Rates(Rate(10e9, 0.1), Rate(2e9, 0.1)), "cuda": Rates(Rate(1e12), Rate(None, None, "no products"))}
RECORD = replace(runs.record("some", 100, "mine", seconds=1e-6, spread=0.0), least_bytes=4200.0)
RUN = runs.run([RECORD], rates=HERE, flops={"some": {"100": 1000.0}})


def test_the_share_of_a_rate_is_the_amount_by_the_time_and_the_rate() -> None:
    found = limits(RECORD, RUN)
    assert found.copy.value == pytest.approx(0.42)
    assert found.arithmetic.value == pytest.approx(0.5)
    counted = replace(RUN, gradient_operations={"some": 3.0})
    value = replace(RECORD, job=replace(RECORD.job, operator="value"))
    assert [limits(one, counted).arithmetic.value for one in (RECORD, value)] == pytest.approx([1.5, 0.5])
    on_device = limits(replace(RECORD, device="A GPU"), RUN)
    assert on_device.copy.value == pytest.approx(0.0042)
    assert on_device.arithmetic.reason == "no products"


def test_a_share_that_is_unknown_has_its_reason() -> None:
    without = limits(replace(RECORD, least_bytes=None), replace(RUN, flops={}))
    assert without.copy.reason == "the run did not count the bytes"
    assert without.arithmetic.reason is not None
    assert "define `flops` in the file of the case some" in without.arithmetic.reason
    assert limits(RECORD, replace(RUN, rates={})).copy.reason == "the run did not measure the rate"
    wrong = replace(RECORD, status="wrong", reason="it is wrong")
    assert limits(wrong, RUN).copy.reason == "it is wrong"


def test_the_page_and_the_details_say_what_limits_a_call() -> None:
    shown = page.render(RUN)
    assert "Limits of a call" in shown
    assert "42\u00a0%" in shown
    assert "50\u00a0% of arithmetic" in shown
    said = " ".join(terminal.table(RUN, width=100, details=True).split())
    assert "moves at least 4.20 kB: share of the copy rate mine 42 % (50 % of arithmetic)" in said.replace(
        "\u00a0", " "
    )
    assert "Limits of a call" not in page.render(replace(RUN, rates={}))
