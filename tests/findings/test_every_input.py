"""`adbench conform --every-input` finds planted faults with their reasons, and nothing in right results."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.execution.workers.process import NoAnswer, WorkerLost
from adbench.findings.conform.places import Floats
from adbench.findings.every_input import input_worker
from adbench.findings.every_input.input_judgement import (
    InputCurve,
    InputFault,
    errors_in_ulp,
    fault_of,
    proved,
    truth_of,
)
from adbench.findings.every_input.input_sweep import InputSweep, _asked, sweep
from adbench.findings.every_input.input_worker import COMPILES_MANY, _in_library, _limit
from adbench.findings.every_input.sixteen_bits import TYPES, every_number, functions
from adbench.model.backend import from_module
from adbench.reports.html import input_page as page
from adbench.reports.text.terminal import input_table as shown
from tests.support.command import adbench

BFLOAT16 = TYPES["bfloat16"]
Slope = Callable[[Floats], Floats]


def judged(
    name: str, right: Slope, got: Slope, own: Slope | None = None, kept: Slope | None = None
) -> InputFault | None:
    """The row of a gradient, given as formulas: the right one, the library's in the type, in float64, and from rounded
    saved values."""
    x = every_number(BFLOAT16)[::7]
    with np.errstate(all="ignore"):
        values = getattr(np, {"asinh": "arcsinh"}.get(name, name))(x)
        exact = {"value64": values, "gradient64": right(x)}
        model = {"value64": values, "gradient64": (own or right)(x), "kept64": (kept or own or right)(x)}
        answer = {"value": BFLOAT16.rounded(values), "gradient": BFLOAT16.rounded(got(x))}
        truth = truth_of(functions()[name], BFLOAT16, x, [exact, model])
        assert fault_of(truth, BFLOAT16, "mine", "value", answer, model) is None
        return fault_of(truth, BFLOAT16, "mine", "gradient", answer, model)


def sech2(x: Floats) -> Floats:
    return np.asarray(4 * np.exp(-2 * np.abs(x)) / (1 + np.exp(-2 * np.abs(x))) ** 2)


def of_rounded_tanh(x: Floats) -> Floats:
    return 1 - BFLOAT16.rounded(np.tanh(x)) ** 2


def without_subnormal(x: Floats) -> Floats:
    return np.where(np.exp(x) < BFLOAT16.smallest, 0.0, np.exp(x))


def of_square_in_float32(x: Floats) -> Floats:
    return 1 / np.sqrt(1 + (x.astype(np.float32) * x.astype(np.float32)).astype(np.float64))


def of_long_quotient(x: Floats) -> Floats:
    return 1 / np.hypot(1, x)


Planted = tuple[str, Slope, Slope, Slope | None, Slope | None]
PLANTED: dict[str, Planted] = {
    "wrong rule": ("tanh", sech2, lambda x: 1.5 * sech2(x), lambda x: 1.5 * sech2(x), None),
    "saved value": ("tanh", sech2, of_rounded_tanh, lambda x: 1 - np.tanh(x) ** 2, of_rounded_tanh),
    "flushed": ("exp", np.exp, without_subnormal, None, None),
    "out of range": ("asinh", of_long_quotient, of_square_in_float32, None, None),
    "rounding": ("asinh", of_long_quotient, lambda x: of_long_quotient(x) * (1 + 0.1 * np.sin(1 / x)), None, None),
}


@pytest.mark.parametrize("reason", list(PLANTED))
def test_a_planted_fault_has_its_reason(reason: str) -> None:
    name, right, got, own, kept = PLANTED[reason]
    row = judged(name, right, got, own, kept)
    assert row is not None
    assert row.reason == reason
    assert max(row.reasons, key=lambda one: row.reasons[one]) == reason


@pytest.mark.parametrize(("name", "right"), [("tanh", sech2), ("exp", np.exp), ("asinh", of_long_quotient)])
def test_a_rounded_result_has_no_fault(name: str, right: Slope) -> None:
    assert judged(name, right, right) is None


def test_a_rule_that_is_wrong_in_all_float64_evaluations_is_found_by_balls() -> None:
    def wrong(x: Floats) -> Floats:
        return 1.5 * sech2(x)

    row = judged("tanh", wrong, wrong, wrong)
    assert row is not None
    assert row.reason == "wrong rule"


def test_where_float64_has_no_digits_the_truth_is_a_proved_polynomial() -> None:
    x = every_number(BFLOAT16)[::301]
    with np.errstate(all="ignore"):
        both = {"value64": x - np.tanh(x), "gradient64": np.tanh(x) ** 2}  # x - tanh x is x³ / 3 near 0
    truth = truth_of(functions()["tanhshrink"], BFLOAT16, x, [both, both])
    for order in ("value", "gradient"):
        assert not np.isnan(truth.lower[order]).any()
    near = (np.abs(x) > 1e-12) & (np.abs(x) < 1e-6)
    assert near.sum() > 10
    np.testing.assert_allclose(truth.lower["value"][near], x[near] ** 3 / 3, rtol=1e-3)


def test_balls_enclose_value_and_gradient_and_both_sides_of_a_kink_and_a_jump() -> None:
    assert proved(functions()["frac"], -3.0) == {"value": (-1.0, 0.0), "gradient": (1.0, 1.0)}
    known = proved(functions()["tanh"], 3.0)
    assert known["gradient"][0] <= 1 / np.cosh(3.0) ** 2 * (1 + 1e-15) <= known["gradient"][1] * (1 + 1e-14)
    assert proved(functions()["abs"], 0.0)["gradient"] == (-1.0, 1.0)


def test_torch_compile_takes_a_function_as_one_graph() -> None:
    torch = pytest.importorskip("torch")
    source = resolve(backends=["torch"]).catalog.backends["torch"]
    compute = _in_library(from_module("torch", load(source)), functions()["tanhshrink"], lambda number, x: number)
    graphs: list[object] = []

    def counting(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compile(compute, backend=counting, fullgraph=True)(torch.ones(3))
    assert len(graphs) == 1


def _endless() -> None:
    input_worker.LIMIT_SECONDS = 1
    _limit(1)
    while True:
        pass


def test_a_function_that_does_not_end_is_ended_by_the_kernel() -> None:
    process = multiprocessing.get_context("spawn").Process(target=_endless)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGXCPU


class DyingWorker:
    """A worker of a library that dies at some functions, alone or among others."""

    def __init__(self, name: str, deaths: dict[str, NoAnswer]) -> None:
        self.name, self.deaths, self.asked = name, deaths, list[list[str]]()

    def ask(self, request: dict[str, Any], _timeout: float) -> list[dict[str, Any]]:
        self.asked.append(request["functions"])
        for name in request["functions"]:
            if name in self.deaths:
                raise self.deaths[name]
        return [{"of": name} for name in request["functions"]]


@pytest.mark.parametrize(
    ("library", "requests"),
    [("jax", [["sin"], ["expi"], ["tan"]]), (COMPILES_MANY, [["sin", "expi", "tan"], ["sin"], ["expi"], ["tan"]])],
)
def test_only_the_function_at_which_a_worker_dies_is_refused(library: str, requests: list[list[str]]) -> None:
    worker: Any = DyingWorker(library, {"expi": WorkerLost("crashed", "died of SIGXCPU")})
    answers = _asked(worker, "float16", ["sin", "expi", "tan"], np.zeros(2))
    assert answers == [{"of": "sin"}, {"refused": "no result within 20 s of processor time"}, {"of": "tan"}]
    assert worker.asked == requests


@pytest.mark.parametrize(("name", "count"), [("bfloat16", 65_280), ("float16", 63_488)])
def test_the_inputs_are_all_finite_numbers_in_order(name: str, count: int) -> None:
    inputs = every_number(TYPES[name])
    assert len(inputs) == count
    assert (np.diff(inputs) >= 0).all()
    assert inputs[-1] == TYPES[name].largest


def test_beyond_the_largest_number_infinity_and_larger_numbers_are_right_and_nan_is_not() -> None:
    truth = np.full(3, 1e50)
    errors = errors_in_ulp(BFLOAT16, np.array([np.inf, 1e50, np.nan]), truth, truth)
    assert errors.tolist() == [0.0, 0.0, np.inf]


def test_at_least_150_functions_are_swept() -> None:
    assert len(functions()) >= 150


def test_the_table_fits_into_80_columns_and_the_page_has_a_picture_and_a_program() -> None:
    row = judged(*PLANTED["saved value"])
    assert row is not None
    right = [InputCurve(name, "mine", "bfloat16", "value", [0.5, 0.5, 0.5, 0.25, -1, 0.5]) for name in ("tanh", "sin")]
    result = InputSweep({"mine": "1"}, ["bfloat16"], 1, faults=[row], right=right, judged=1)
    result.refused = [("expi", "mine", "bfloat16", "it does not end")]
    assert shown.row_of(replace(row, ulp=5.484e34))[4] == "5.5e+34"
    printed = shown.text(result, width=80, colour=False)
    assert max(map(len, printed.splitlines())) <= 80
    assert "saved value" in printed
    html = page.render(result)
    assert html.count("<svg") == 3
    assert "mine (f in bfloat16)" in html
    assert "it does not end" in html


def test_a_curve_leaves_out_the_middle_of_straight_parts_and_what_is_not_judged() -> None:
    assert page.curves([0.25, 0.25, 0.25, 0.25, -1.0, 1e9]) == ["5.0,85.0 191.0,85.0", "315.0,5.0"]


@pytest.mark.slow
def test_torch_loses_the_gradient_of_asinh_and_tanh_in_bfloat16() -> None:
    pytest.importorskip("torch")
    inputs = {"bfloat16": np.array([-(2.0**70), -0.5, 0.0, 1.0, 3.5, 4.0, 2.0**70])}
    found = sweep(resolve(backends=["torch", "tape"]), ["torch"], ["asinh", "tanh", "sin"], ["bfloat16"], inputs=inputs)
    assert {(row.function, row.order, row.reason) for row in found.faults} == {
        ("asinh", "gradient", "out of range"),
        ("tanh", "gradient", "saved value"),
    }
    assert all("import torch" in row.program and "adbench" not in row.program for row in found.faults)
    json.dumps(found.as_plain())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-b", "tape", "--every-input"], "choose from these"),
        (["-b", "torch", "--every-input", "--points", "3"], "leave it out"),
        (["-b", "torch", "--dtype", "float16"], "--dtype needs --every-input"),
        (["-b", "torch", "--every-input", "--operation", "sin", "--device", "cuda"], "no CUDA device"),
    ],
)
def test_options_without_a_meaning_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    result = adbench(tmp_path, "conform", *options)
    assert result.code == 2
    assert message in result.err
