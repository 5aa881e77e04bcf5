"""The memory methods and their reasons for missing figures. Known amounts: test_memory_truth.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from adbench.measure import memory
from adbench.measure.memory import ALLOCATOR_ENVIRONMENT, Method, measure, median_of, resident_peak
from adbench.measure.readings import Figure

MEGABYTE = 2**20


@pytest.fixture(autouse=True)
def _probe_anew() -> None:
    memory._memray_sees.cache_clear()


def test_if_the_kernel_refuses_there_is_a_reason_instead_of_a_figure(tmp_path: Path) -> None:
    figure = resident_peak(lambda: None, proc=tmp_path / "nothing")
    assert figure.value is None
    assert "high-water mark" in str(figure.reason)


def test_without_memray_the_reason_has_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "memray", None)
    assert measure("allocated", lambda: None) == Figure(None, "memray is not installed; pip install memray")


def test_if_memray_is_already_in_use_there_is_a_reason(tmp_path: Path) -> None:
    memray = pytest.importorskip("memray", reason="memray is not installed")
    with memray.Tracker(tmp_path / "another"):
        figure = measure("allocated", lambda: None)
    assert figure.value is None
    assert "memray cannot start: " in str(figure.reason)


def test_if_nothing_can_be_written_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("memray", reason="memray is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert "memray cannot start: " in str(measure("allocated", lambda: None).reason)


def test_if_memray_is_blind_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("memray", reason="memray is not installed")
    monkeypatch.setattr(memory, "_traced_peak", lambda call: 0)
    assert "hooks are not installed" in str(measure("allocated", lambda: None).reason)


@pytest.mark.parametrize("method", ["allocated", "python"])
def test_memory_freed_before_further_allocations_counts_once(method: Method) -> None:
    if method == "allocated":
        pytest.importorskip("memray", reason="memray is not installed")

    def call() -> None:
        for _ in range(4):
            bytearray(8 * MEGABYTE)

    assert measure(method, call).value == pytest.approx(8 * MEGABYTE, rel=0.05)


@pytest.mark.parametrize("method", ["allocated", "python"])
def test_memory_from_before_the_call_does_not_count(method: Method) -> None:
    if method == "allocated":
        pytest.importorskip("memray", reason="memray is not installed")
    held = bytearray(64 * MEGABYTE)
    assert measure(method, lambda: bytearray(8 * MEGABYTE)).value == pytest.approx(8 * MEGABYTE, rel=0.05)
    del held


def test_a_measurement_calls_once_to_warm_up_and_three_times_to_count() -> None:
    kept: list[bytearray] = []

    def call() -> bytearray:
        kept.append(bytearray(8 * MEGABYTE if not kept else MEGABYTE))
        return kept[-1]

    assert measure("python", call).value == pytest.approx(MEGABYTE, rel=0.05)
    assert len(kept) == 4


def test_memory_of_the_librarys_threads_is_counted() -> None:
    pytest.importorskip("memray", reason="memray is not installed")
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        figure = measure("allocated", lambda: pool.submit(bytearray, 8 * MEGABYTE).result())
    assert figure.value == pytest.approx(8 * MEGABYTE, rel=0.05)


def test_an_error_in_the_call_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def call() -> None:
        raise OSError("out of paper")

    with pytest.raises(OSError, match="out of paper"):
        resident_peak(call)


def test_one_missing_figure_makes_the_median_missing() -> None:
    figures = iter([Figure(1.0), Figure(None, "gone"), Figure(3.0)])
    assert median_of(lambda call: next(figures), lambda: None) == Figure(None, "gone")
    figures = iter([Figure(1.0), Figure(7.0), Figure(3.0)])
    assert median_of(lambda call: next(figures), lambda: None) == Figure(3.0)


def test_only_the_resident_peak_needs_allocator_settings() -> None:
    assert memory.environment("resident") == ALLOCATOR_ENVIRONMENT
    assert memory.environment("allocated") == memory.environment("python") == {}


def test_a_process_that_does_not_measure_does_not_load_memray() -> None:
    program = "import sys, adbench.measure.memory; sys.exit('memray' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the resident peak needs Linux's clear_refs")
def test_the_first_resident_figure_of_a_process_does_not_count_the_watching() -> None:
    # The call lasts, so that the watching thread looks meanwhile.
    program = (
        "import time; from adbench.measure.memory import resident_peak; "
        "print(resident_peak(lambda: time.sleep(0.02)).value)"
    )

    def first_figure() -> float:
        return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)

    # The system may give or take pages meanwhile. The watching would count in each process.
    assert any(first_figure() == 0 for _ in range(8))
