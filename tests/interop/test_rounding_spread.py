"""The bound of a library contains the spread of its rounding errors; a mistake is still wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.discovery import catalog, load
from adbench.catalog.programs import command_file
from adbench.execution.in_process import check_cell
from adbench.execution.operators import rounding_spread
from adbench.execution.operators.between_calls import NamedInputs, first_fault
from adbench.execution.operators.perturbed import perturbed
from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined, point
from adbench.execution.operators.references import known_at, with_points
from adbench.execution.operators.relations import Setting
from adbench.execution.operators.relations.setting import PreparedSubject
from adbench.execution.operators.rounding_spread import CALLS, Judge, noise, spread_of
from adbench.execution.session import prepare
from adbench.model.backend import from_module
from adbench.oracle.evidence import MOST_WIDER, EntryEvidence, ErrorSpread, widened
from adbench.oracle.operators import judge_entries
from tests.interop.programs import command

SIZE = 5
REORDERED = 30.0
"""A shift with which a result is beyond the bound of the case's own operations, but not by a digit."""

TEXT = """
import math
def lse(x):
    top = max(x)
    return top + math.log(sum(math.exp(v - top) for v in x))
def gradient(x, shift=SHIFT, factor=FACTOR):
    # The shift is added to every term and taken away again, as another order of a sum.
    return [(math.exp(v - lse(x)) + shift - shift) * factor for v in x]
"""
TOOL = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    r = {"id": m["id"], "success": True}
    if m["kind"] == "evaluate":
        r |= {"output": gradient(m["input"]["x"]), "timings": [{"name": "evaluate", "nanoseconds": 5000}]}
    print(json.dumps(r), flush=True)
"""


def source(shift: float = 0.0, factor: float = 1.0) -> str:
    return TEXT.replace("SHIFT", repr(shift)).replace("FACTOR", repr(factor))


def gradient_of(folder: Path, *, shift: float = 0.0, factor: float = 1.0) -> Any:
    """The record of a gradbench tool with this gradient."""
    session = prepare(
        backends=[f"gradbench:{command(folder, source(shift, factor) + TOOL)}"],
        cases=["log_sum_exp"],
        sizes=[str(SIZE)],
        operators=["gradient"],
        time=False,
    )
    for _ in session.events():
        pass
    (record,) = session.result().records
    return record


@cache
def here() -> tuple[CasePoint, PointReferences]:
    at = point(catalog().cases["log_sum_exp"], SIZE, 0)
    return at, known_at(at, second_order=False, seconds=1.0)


def judge(gradient: Callable[[Any], Any]) -> Judge:
    """Of a call with this gradient, in this process."""
    library = from_module("tape", load(catalog().backends["tape"]))
    return Judge(library, "gradient", lambda x: (np.array(gradient(x)),))


def gradient(x: Any, shift: float = REORDERED, factor: Any = 1.0) -> Any:
    return (np.exp(x - np.logaddexp.reduce(x)) + shift - shift) * factor


def word(used: Judge, *, is_trap: bool = False) -> str:
    at, known = here()
    at = replace(at, case=replace(at.case, tags=("trap",))) if is_trap else at
    return used.judged(at, used.call(*at.args), known).word


def test_a_sum_in_another_order_is_right_with_fewer_digits(tmp_path: Path) -> None:
    record, (at, known) = gradient_of(tmp_path, shift=REORDERED), here()
    assert record.status == "ok", record.reason
    assert record.verdict.word == "right"
    digits = examined(at, "gradient", (gradient(*at.args, 0.0),), known, None)[0].digits
    assert digits - 1.01 < record.verdict.digits < digits


def test_a_tool_with_a_factor_in_the_derivative_is_wrong(tmp_path: Path) -> None:
    assert gradient_of(tmp_path, factor=1 + 1e-13).status == "wrong"


def test_results_may_scatter_except_at_a_trap() -> None:
    assert word(judge(gradient)) == "right"
    assert word(judge(gradient), is_trap=True) == "wrong"


@pytest.mark.parametrize(("error", "expected"), [(0.0, "right"), (1e-3, "wrong")])
def test_results_in_single_precision_may_scatter_too(error: float, expected: str) -> None:
    at = point(catalog().cases["log_sum_exp"], SIZE, 0, single=True)
    known = known_at(at, second_order=False, seconds=1.0)

    def scatters(x: Any) -> Any:
        x, shift = np.float32(x), np.float32(8.0)
        found = np.exp(x - np.logaddexp.reduce(x)) + shift - shift
        return (found * np.float32([1, 1, 1, 1 + error, 1]),)

    library = replace(from_module("tape", load(catalog().backends["tape"])), precision="float32")
    result = scatters(*at.args)
    used = Judge(library, "gradient", scatters)
    assert examined(at, "gradient", result, known, None)[0].word == "wrong", "without its spread"
    assert used.judged(at, result, known).word == expected


def test_an_adjoint_that_adds_one_contribution_after_another_is_right() -> None:
    pytest.importorskip("xad")
    assert "are right" in check_cell("normal_log_density", 10_000, "xad", "gradient")


@pytest.mark.parametrize(
    ("error", "shift"), [(2e-14, 0.0), (1e-13, 1.0), (1e-10, 1.0), (1e-10, REORDERED), (1e-3, REORDERED)]
)
def test_a_mistake_in_one_entry_is_wrong(error: float, shift: float) -> None:
    factor = np.ones(SIZE)
    factor[3] += error
    assert word(judge(lambda x: gradient(x, shift, factor))) == "wrong"


def test_a_program_that_scatters_by_more_than_a_digit_is_wrong() -> None:
    calls = []
    assert word(judge(lambda x: [calls.append(1), gradient(x, 1e6)][1])) == "wrong"
    assert len(calls) == 1  # no spread could make it right


def test_a_program_that_fails_at_other_inputs_is_wrong() -> None:
    at, known = here()
    used = judge(lambda _x: 1 / 0)
    assert used.judged(at, (gradient(*at.args),), known).word == "wrong"


def test_a_fault_of_the_judge_itself_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding_spread, "noise", lambda _values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        word(judge(gradient))


def test_a_program_that_scatters_between_calls_only_is_right() -> None:
    """Its spread is measured where the result is judged."""
    at, known = here()
    first = perturbed(at)
    sites = [
        NamedInputs(first, known_at(first, second_order=False, seconds=1.0), "first"),
        NamedInputs(at, known, "second"),
    ]

    def scatters(x: Any) -> Any:
        return gradient(x, 0.0 if x[1] == first.args[0][1] else REORDERED)

    assert first_fault(judge(scatters), sites) is None


def test_relations_allow_for_the_spread_of_a_program() -> None:
    (at, known), used = here(), judge(gradient)
    assert PreparedSubject(Setting(used.backend, at.case, SIZE, 0, known), "gradient", used.call).is_right


def test_check_cell_allows_for_the_spread_of_a_program(tmp_path: Path) -> None:
    for protocol, shift, sentence in (("gradbench", REORDERED, "are right"), ("gradbench", 1e6, "wrong")):
        tool = command(tmp_path / str(shift), source(shift) + TOOL)
        file = command_file(protocol, tool, tmp_path)
        assert sentence in check_cell("log_sum_exp", SIZE, str(file))


def test_what_could_hide_in_a_sum_grows_with_its_bound() -> None:
    at = point(catalog().cases["log_sum_exp"], 5_000, 0)
    known, (x,) = known_at(at, second_order=False, seconds=0.1).first, at.args
    found = [
        judge_entries("gradient", (np.exp(x - np.logaddexp.reduce(x)),), known, spread=spread)[0].hidden
        for spread in (None, ErrorSpread({}, np.inf))
    ]
    assert found[0] is not None
    assert asdict(found[1]) == pytest.approx(asdict(found[0].times(MOST_WIDER)))


def test_a_spread_counts_at_its_own_one_of_many_points() -> None:
    at, (x,) = here()[0], here()[0].args
    known = with_points(here()[1], at, 3, seconds=1.0)
    rows = np.array([gradient(row, 0.0) for row in at.stacked(3)[0]])
    rows[2, 0] *= 1 + 4e-14
    assert x.shape == rows[0].shape
    assert examined(at, "batch_gradient_3", (rows,), known, None)[0].word == "wrong"
    for wide, word in (("point 3: x[0]", "right"), ("point 2: x[0]", "wrong")):
        spread = ErrorSpread({wide: np.inf})
        assert examined(at, "batch_gradient_3", (rows,), known, None, spread=spread)[0].word == word


def test_a_spread_widens_a_bound_by_one_digit_at_most() -> None:
    item = EntryEvidence("x", (), 1.0 + 5e-14, 1.0, (1.0, 1.0), 1e-14, "wrong", 13.3, 14.0)
    assert widened(item, ErrorSpread({})) is item
    near = widened(item, ErrorSpread({"x": 1e-15}))
    assert near.word == "wrong"
    assert near.bound == pytest.approx(3e-14)
    for spread in (1e-9, np.inf):
        far = widened(item, ErrorSpread({}, spread))
        assert far.word == "right"
        assert far.bound == pytest.approx(MOST_WIDER * 1e-14)
        assert far.digits_resolvable == pytest.approx(13.0)


def test_an_exact_program_has_no_spread() -> None:
    """The inputs have equal distances, without rounding."""
    at, _ = here()
    found = spread_of(lambda there: {f"x[{k}]": float(x) for k, x in enumerate(there.args[0])}, at)
    assert found == {f"x[{k}]": 0.0 for k in range(SIZE)}
    far = []
    spread_of(lambda there: far.append(there.args[0]) or {}, at)
    assert (np.abs(far[-1] / far[0] - 1) > 2e-9).all()


def test_the_noise_of_a_smooth_function_is_that_of_its_rounding() -> None:
    rng = np.random.default_rng(0)
    x = 1 + np.arange(CALLS) * 1e-6
    smooth = np.exp(3 * x) * (1 + 1e-9)  # a mistake is smooth too
    found = [noise(smooth + 1e-10 * rng.normal(size=CALLS)) for _ in range(200)]
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(1e-10, rel=0.1)
    assert noise(smooth) < 1e-13
