"""The cases under pytest-benchmark: checked first, then timed; memory in `extra_info`.

    pytest tests/benchmarks/cells.py --benchmark-json now.json
    pytest tests/benchmarks/cells.py --benchmark-autosave
    pytest tests/benchmarks/cells.py --benchmark-compare --benchmark-histogram

One process measures everything in sequence here, so that small differences mean little: `adbench run` is for ratios
that somebody else can repeat. This is for those who look at pytest-benchmark's tables every day.
"""

from collections.abc import Callable
from typing import Any

import pytest

CASES = {
    "product_plus_constant": 1,
    "normal_log_density": 1_000,
    "recurrence": 5,
    "matrix_product": 32,
    "log_determinant": 8,
}
BACKENDS = ("tape", "jax", "autograd", "finite_differences")


@pytest.mark.parametrize("operator", ["value", "gradient"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("case", "size"), CASES.items())
def test_cell(adbench_cell: Callable[..., Any], case: str, size: int, backend: str, operator: str) -> None:
    adbench_cell(case, size, backend, operator)
