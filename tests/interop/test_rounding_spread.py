"""The bound of a foreign program has the spread of its own rounding errors; a mistake is still wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.execution.operators.rounding_spread import CALLS, noise
from adbench.execution.session import prepare
from adbench.oracle.evidence import MOST_WIDER, EntryEvidence, widened
from tests.interop.programs import command

TOOL = """
import json, math, sys
from itertools import accumulate
def lse(x):
    top = max(x)
    return top + math.log(sum(math.exp(v - top) for v in x))
for line in sys.stdin:
    m = json.loads(line)
    r = {"id": m["id"], "success": True}
    if m["kind"] == "evaluate":
        x = m["input"]["x"]
        shift = SHIFT  # added to every term and taken away again, as another order of a sum
        gradient = [(math.exp(v - lse(x)) + shift - shift) * FACTOR for v in x]
        r |= {"output": gradient, "timings": [{"name": "evaluate", "nanoseconds": 5000}]}
    print(json.dumps(r), flush=True)
"""


def gradient_of(folder: Path, *, shift: float = 0.0, factor: float = 1.0) -> Any:
    text = TOOL.replace("SHIFT", repr(shift)).replace("FACTOR", repr(factor))
    session = prepare(
        backends=[f"gradbench:{command(folder, text)}"],
        cases=["log_sum_exp"],
        sizes=["5"],
        operators=["gradient"],
        time=False,
    )
    for _ in session.events():
        pass
    (record,) = session.result().records
    return record


def test_a_sum_in_another_order_is_right_with_fewer_digits(tmp_path: Path) -> None:
    plain, reordered = gradient_of(tmp_path / "plain"), gradient_of(tmp_path / "reordered", shift=30.0)
    assert plain.status == reordered.status == "ok"
    assert reordered.verdict.word == "right"
    assert plain.verdict.digits - 1.01 < reordered.verdict.digits < plain.verdict.digits


@pytest.mark.parametrize("error", [1e-13, 1e-9])
def test_a_factor_in_the_derivative_is_wrong(tmp_path: Path, error: float) -> None:
    record = gradient_of(tmp_path, factor=1 + error)
    assert record.status == "wrong"


def test_a_program_that_scatters_by_more_than_a_digit_is_wrong(tmp_path: Path) -> None:
    assert gradient_of(tmp_path, shift=1e6).status == "wrong"


def test_a_spread_widens_a_bound_by_one_digit_at_most() -> None:
    item = EntryEvidence("x", (), 1.0 + 5e-14, 1.0, (1.0, 1.0), 1e-14, "wrong", 13.3, 14.0)
    assert widened(item, {}) is item
    near = widened(item, {"x": 1e-15})
    assert near.word == "wrong"
    assert near.bound == pytest.approx(3e-14)
    far = widened(item, {"x": 1e-9})
    assert far.word == "right"
    assert far.bound == pytest.approx(MOST_WIDER * 1e-14)
    assert far.digits_resolvable == pytest.approx(13.0)


def test_the_noise_of_a_smooth_function_is_that_of_its_rounding() -> None:
    rng = np.random.default_rng(0)
    x = 1 + np.arange(CALLS) * 1e-6
    smooth = np.exp(3 * x) * (1 + 1e-9)  # a mistake is smooth too
    found = [noise(smooth + 1e-10 * rng.normal(size=CALLS)) for _ in range(200)]
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(1e-10, rel=0.1)
    assert noise(smooth) < 1e-13
