"""Kernels in Triton against their definitions. Without triton, which torch lacks on a CPU, all are skipped."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is imported
pytest.importorskip("triton", reason="triton is not installed; pip install triton")

import adbench  # noqa: E402 - after the optional libraries
from tests.functions.triton_kernels import ROWS  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_defaults")
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ROWS)
def test_a_right_kernel_is_right_and_its_fault_wrong(name: str, kind: str) -> None:
    torch.manual_seed(0)
    make, definition, arguments, fault = ROWS[name]
    given = arguments(TYPES[kind], DEVICE)
    right = adbench.check(make(), *given, definition=definition)
    assert right.is_right, str(right)
    print(right)
    wrong = adbench.check(make(fault), *given, definition=definition)
    assert wrong.is_wrong, str(wrong)
