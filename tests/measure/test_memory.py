"""Memory methods against allocations of known size, in a process of its own as in a run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adbench.measure.memory import ALLOCATOR_ENVIRONMENT, Figure, median_of, resident_peak

MEGABYTES_64 = 64 * 2**20

ALLOCATIONS = {
    "numpy": "import numpy as np\ncall = lambda: np.ones(8 * 2**20)",
    "malloc": (
        "import ctypes\nlib = ctypes.CDLL(None)\nlib.malloc.restype = ctypes.c_void_p\n"
        "lib.free.argtypes = [ctypes.c_void_p]\n"
        "def call():\n"
        "    block = lib.malloc(64 * 2**20)\n"
        "    ctypes.memset(block, 1, 64 * 2**20)\n"
        "    lib.free(block)"
    ),
    "torch": "import torch\ncall = lambda: torch.ones(8 * 2**20, dtype=torch.float64)",
}


def measured(allocation: str) -> dict[str, float]:
    """Both figures for one of the allocations, after a warming call."""
    program = (
        f"{ALLOCATIONS[allocation]}\n"
        "import json\nfrom adbench.measure import memory\n"
        "call()\n"
        "print(json.dumps({m.__name__: memory.median_of(m, call).value"
        " for m in (memory.python_peak, memory.resident_peak)}))"
    )
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2]), **ALLOCATOR_ENVIRONMENT}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the resident peak needs Linux's clear_refs")
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_resident_peak_sees_a_known_allocation_within_five_percent(allocation: str) -> None:
    if allocation == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    assert measured(allocation)["resident_peak"] == pytest.approx(MEGABYTES_64, rel=0.05)


def test_the_python_peak_sees_numpy_and_not_malloc() -> None:
    assert measured("numpy")["python_peak"] == pytest.approx(MEGABYTES_64, rel=0.05)
    assert measured("malloc")["python_peak"] < 0.01 * MEGABYTES_64


def test_where_the_kernel_refuses_there_is_a_reason_and_no_figure(tmp_path: Path) -> None:
    figure = resident_peak(lambda: None, proc=tmp_path / "nothing")
    assert figure.value is None
    assert "high-water mark" in str(figure.reason)


def test_one_missing_figure_makes_the_median_missing() -> None:
    figures = iter([Figure(1.0), Figure(None, "gone"), Figure(3.0)])
    assert median_of(lambda call: next(figures), lambda: None) == Figure(None, "gone")
    figures = iter([Figure(1.0), Figure(7.0), Figure(3.0)])
    assert median_of(lambda call: next(figures), lambda: None) == Figure(3.0)
