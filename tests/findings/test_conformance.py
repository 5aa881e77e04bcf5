"""`adbench conform` reports planted and known faults, and nothing for correct operations."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.selection import resolve
from adbench.findings.conform import conformance as sweep
from adbench.findings.conform.fault_threads import THREADS, TRAPS, with_thread
from adbench.findings.conform.judgement import Fault, judged, truth_at
from adbench.findings.conform.operation_worker import OF_SLOPE, THIRD, own_function
from adbench.findings.conform.places import Place, output_shape, places
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.operation import Domain, Operation
from adbench.findings.scripts import of_fault
from adbench.model.backend import KnownBug
from adbench.model.errors import BadFile
from adbench.reports.html import conform as conform_page
from tests.support.command import adbench

PLANTED = """
from adbench import Namespace, Unsupported, on_active, tape
import math, os

def tanh(x):
    return tape.tanh(x)

def exit(x):
    os._exit(3)

xp = Namespace(tape, sinh=exit, linalg=vars(tape.linalg))

def jvp(g, x, v):
    return tape.jvp(g, x, v)[1] * (1 + 1e-6)

OPERATIONS = {
    "gradient": lambda g, x: tape.gradient(g, x)[1],
    "jvp": jvp,
    "vjp": lambda g, x, w: tape.vjp(g, x, w)[1],
}
NESTED = {"jvp": lambda g, x, v: tape.jvp(g, x, v)[1], "vjp": OPERATIONS["vjp"]}

def prepare(operator, f, args, wrt):
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported("no " + operator)
    return on_active(OPERATIONS[operator], operator, f, wrt)
"""


def swept(backend: str, *operations: str, **options: Any) -> sweep.Conformance:
    chosen = resolve(backends=[backend])
    name = Path(backend).stem if backend.endswith(".py") else backend
    return sweep.conform(chosen, [name], operations, **options)


@pytest.fixture
def planted(tmp_path: Path) -> str:
    """A backend whose J v is off by a millionth, and whose process dies in sinh."""
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    return str(file)


# The table ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_two_hundred_operations_are_functions_of_torch_and_of_jax(library: str) -> None:
    assert sum(library in operation.own for operation in OPERATIONS.values()) >= 200


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_every_function_that_an_expression_names_exists(library: str) -> None:
    pytest.importorskip(library)
    for operation in OPERATIONS.values():
        expression = operation.expression(library)
        if expression is None:
            continue
        assert callable(own_function(expression)), operation.name
        for node in ast.walk(ast.parse(expression)):
            if isinstance(node, ast.Attribute) and re.fullmatch(rf"{library}(\.\w+)+", ast.unparse(node)):
                module, _, name = ast.unparse(node).rpartition(".")
                home = functools.reduce(getattr, module.split(".")[1:], importlib.import_module(library))
                assert hasattr(home, name), f"{operation.name}: {expression}"


def test_the_shape_of_a_result_follows_from_the_signature() -> None:
    product = Operation("product", lambda xp, x, y: x @ y, "(m,n),(n,k)->(m,k)", (Domain(), Domain()))
    assert output_shape(product, [(2, 3), (3, 4)]) == (2, 4)
    assert output_shape(product, [(5, 2, 3), (3, 4)]) == (5, 2, 4)
    assert not product.is_elementwise
    assert OPERATIONS["hypot"].is_elementwise


def test_an_operation_needs_a_domain_for_each_argument() -> None:
    with pytest.raises(ValueError, match="1 domains"):
        Operation("two", lambda xp, x, y: x + y, "(),()->()", (Domain(),))


# Points ------------------------------------------------------------------------------------------------------------


def test_points_are_special_and_random_and_cover_the_whole_range_of_exponents() -> None:
    numbers = [place.arguments[0] for place in places(OPERATIONS["sin"]) if not np.ndim(place.arguments[0])]
    assert {0.0, 1.0, -1.0} <= set(numbers)
    assert any(np.signbit(x) and x == 0 for x in numbers)
    exponents = np.log10(np.abs([x for x in numbers if x != 0]))
    assert exponents.min() < -308
    assert exponents.max() > 308
    assert {place.kind for place in places(OPERATIONS["sin"])} == {"random", "special", "range", "shape"}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_points_lie_in_the_domain_and_are_the_same_for_the_same_seed(name: str) -> None:
    operation = OPERATIONS[name]
    found, again = list(places(operation, 3)), list(places(operation, 3))
    assert found
    for place, same in zip(found, again, strict=True):
        for domain, x, y in zip(operation.domain, place.arguments, same.arguments, strict=True):
            np.testing.assert_array_equal(x, y)
            assert ((np.asarray(x) >= domain.lower) & (np.asarray(x) <= domain.upper)).all()
            if domain.kind == "definite":
                assert (np.linalg.eigvalsh(np.add(x, np.swapaxes(x, -1, -2))) >= 0.0).all()
        if place.weights is not None:
            assert place.weights.shape == output_shape(operation, place.shapes)


# Silence -----------------------------------------------------------------------------------------------------------


def verdicts(name: str, x: Any, **answers: float) -> dict[str, Fault | None]:
    truth = truth_at(OPERATIONS[name], Place((x,), None, "special"))
    plain = {operator: {"value": value} for operator, value in answers.items()}
    return {one.operator: one.fault for one in judged(truth, "test", plain)}


def test_a_result_below_the_normal_range_may_be_zero() -> None:
    assert verdicts("exp", -740.0, value=0.0, jvp=0.0) == {"value": None, "jvp": None}
    assert verdicts("exp", -700.0, value=0.0)["value"] is not None


def test_a_product_with_v_may_be_zero_where_the_derivative_underflows() -> None:
    assert verdicts("atan", 1.3e160, jvp=0.0) == {"jvp": None}
    assert verdicts("atan", 1.3e100, jvp=0.0)["jvp"] is not None


def test_digits_that_the_point_does_not_hold_are_not_missed() -> None:
    x = 1e10
    assert verdicts("sin", x, value=float(np.sin(np.nextafter(x, 2 * x)))) == {"value": None}
    fault = verdicts("sin", x, value=float(np.sin(x * (1 + 1e-12))))["value"]
    assert fault is not None


def test_conditioning_is_told_from_a_direction_that_jumps_at_a_power_of_two() -> None:
    assert verdicts("exp", 1.0, jvp=3.0)["jvp"] is not None


def test_a_derivative_is_not_judged_where_the_value_is_wrong() -> None:
    found = verdicts("exp", 1.0, value=3.0, jvp=3.0)
    assert found["value"] is not None
    assert "jvp" not in found


def test_points_without_a_finite_value_are_not_judged() -> None:
    assert verdicts("exp", 750.0, value=float("nan"), jvp=float("nan")) == {}


def test_a_convention_at_a_tie_is_no_fault() -> None:
    """Each partial derivative of the median of three equal numbers is zero, but its gradient is not."""
    truth = truth_at(OPERATIONS["median"], Place((np.zeros(3),), None, "special"))
    answer = {"gradient": {"value": [np.array([0.0, 1.0, 0.0])]}}
    assert [one.fault for one in judged(truth, "test", answer)] == [None]
    assert not truth.is_differentiable


def test_infinity_is_right_at_a_nearly_singular_matrix_and_wrong_at_others() -> None:
    def fault(x: Any) -> Fault | None:
        truth = truth_at(OPERATIONS["log_abs_det"], Place((x,), None, "special"))
        return judged(truth, "test", {"value": {"value": float("-inf")}})[0].fault

    row = np.array([3.1, 0.9470, -2.0713])
    assert fault(np.outer(row, row)) is None  # singular but for the rounding of its entries
    assert fault(np.eye(3)) is not None


def test_an_exception_is_no_fault_where_the_derivative_does_not_exist() -> None:
    def fault(x: float) -> Fault | None:
        truth = truth_at(OPERATIONS["vector_norm_1"], Place((np.array([x, 1.0, 2.0]),), None, "special"))
        return judged(truth, "test", {"gradient": {"raises": "RuntimeError: no"}})[0].fault

    assert fault(3.0) is not None
    truth = truth_at(OPERATIONS["sqrt"], Place((0.0,), None, "special"))
    assert [one.fault for one in judged(truth, "test", {"gradient": {"raises": "no"}})] == [None]


def test_a_derivative_is_not_judged_where_the_definition_loses_the_value() -> None:
    truth = truth_at(OPERATIONS["vector_norm_4"], Place((np.full(3, 1e-160),), None, "range"))
    gradient = {"value": [np.full(3, np.nan)]}
    found = judged(truth, "test", {"value": {"value": 0.0}, "gradient": gradient})
    assert [one.fault for one in found] == [None]


def test_float32_is_judged_as_such() -> None:
    def fault(error: float, single: bool) -> Fault | None:
        truth = truth_at(OPERATIONS["sin"], Place((0.5,), None, "random"), single)
        return judged(truth, "test", {"value": {"value": math.sin(0.5) * (1 + error)}})[0].fault

    assert fault(1e-6, single=True) is None
    assert fault(1e-6, single=False) is not None
    assert fault(1e-2, single=True) is not None


def test_a_point_beyond_float32_is_left_out_of_its_sweep() -> None:
    assert Place((1e39,), None, "range").in_single is None
    assert Place((1e-39,), None, "range").in_single is None
    assert Place((0.1, 0.0), None, "range").in_single == Place((float(np.float32(0.1)), 0.0), None, "range")


def test_the_third_derivative_is_judged_where_the_lower_ones_are_right() -> None:
    truth = truth_at(OPERATIONS["exp"], Place((1.0,), None, "special"))
    assert truth.of_slope is not None
    third = math.e * truth.of_slope.at.vector(OF_SLOPE)[0][0]

    def fault(value: float, third: float) -> Fault | None:
        answers = {"value": {"value": value}, THIRD: {"value": [third]}}
        return next((one.fault for one in judged(truth, "test", answers) if one.operator == THIRD), None)

    assert fault(math.e, third) is None
    found = fault(math.e, third * (1 + 1e-4))
    assert found is not None
    assert found.operator == THIRD
    assert fault(3.0, 3.0) is None


# Sweeps ------------------------------------------------------------------------------------------------------------

RIGHT = ("sin", "exp", "logaddexp", "xlogy", "log1p", "softmax", "cumprod", "solve", "max", "median")


@pytest.mark.exhaustive
def test_the_tape_has_no_fault_in_operations_that_it_computes_well() -> None:
    found = swept("tape", *RIGHT)
    assert not found.faults
    assert all(cell.checked for cell in found.cells)


@pytest.mark.slow
def test_a_planted_error_is_found_in_its_operator_alone_and_a_crash_does_not_end_the_sweep(planted: str) -> None:
    found = swept(planted, "tanh", "sinh", "exp", most_points=3)
    tanh, sinh, exp = found.cells
    assert {(fault.operator, fault.kind) for fault in tanh.faults} == {("jvp", "digits")}
    assert 5.5 < tanh.faults[0].digits < 6.5
    assert {fault.kind for fault in sinh.faults} == {"crashes"}
    assert {fault.operator for fault in exp.faults} == {"jvp"}


@pytest.mark.slow
def test_a_baseline_excuses_its_own_faults_only(planted: str, tmp_path: Path) -> None:
    save, page = tmp_path / "baseline.json", tmp_path / "page.html"
    few = ("--points", "6", "--operation", "tanh")
    first = adbench(tmp_path, "conform", "-b", planted, *few, "--save", str(save), "-o", str(page))
    assert first.code == 1
    assert "6.0 digits correct" in " ".join(first.out.split())
    assert "planted-tanh" in page.read_text()
    again = adbench(tmp_path, "conform", "-b", planted, *few, "--against", str(save))
    assert again.code == 0, again.out
    plain = json.loads(save.read_text())
    plain["cells"][0]["faults"] = []
    save.write_text(json.dumps(plain))
    new = adbench(tmp_path, "conform", "-b", planted, *few, "--against", str(save))
    assert new.code == 1
    assert "1 fault that the baseline lacks" in new.out


def test_an_interruption_keeps_the_operations_that_were_finished(planted: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    few = ("exp", "sin", "cos")
    ended = swept(planted, *few, most_points=2, seconds=1e-3)
    assert [cell.operation for cell in ended.cells] == ["exp"]
    assert ended.missing == ("sin", "cos")
    interrupted = swept(planted, *few, most_points=2, told=interrupt)
    assert interrupted.interrupted == 130
    assert len(interrupted.missing) == 3


def test_a_file_that_cannot_be_written_is_refused_before_the_sweep(tmp_path: Path) -> None:
    done = adbench(tmp_path, "conform", "-b", "tape", "--save", str(tmp_path / "none" / "baseline.json"))
    assert done.code == 2
    assert "cannot be written" in done.err


@pytest.mark.slow
def test_a_sweep_that_ended_early_is_continued(planted: str, tmp_path: Path) -> None:
    names = ["--operation", "sin", "--operation", "tanh", "--operation", "cos", "--points", "3"]
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    sweeping = "conform", "-b", planted
    assert adbench(tmp_path, *sweeping, *names, "--save", str(whole)).code == 1
    assert adbench(tmp_path, *sweeping, *names, "--seconds", "1e-9", "--save", str(part)).code == 1
    first = json.loads(part.read_text())
    assert (len(first["cells"]), len(first["missing"])) == (1, 2)
    assert adbench(tmp_path, *sweeping, "--points", "3", "--continue", str(part), "--save", str(part)).code == 1
    assert json.loads(part.read_text()) == json.loads(whole.read_text())
    other = adbench(tmp_path, "conform", "-b", "tape", "--continue", str(part))
    assert other.code == 2
    assert "pass the same libraries" in other.err


def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("[1]")
    with pytest.raises(BadFile, match="not a result of adbench conform"):
        sweep.read(file)


def test_the_operations_are_listed_with_the_functions_of_a_library(tmp_path: Path) -> None:
    done = adbench(tmp_path, "conform", "-b", "torch", "--operation", "gelu", "--list")
    assert done.code == 0
    assert "torch.nn.functional.gelu(x)" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "operation", "operator"),
    [
        ("torch", "sinc", "hvp_forward_over_reverse"),  # 0 instead of -π²/3
        ("torch", "half_square_of_norm", "hvp_forward_over_reverse"),
        ("torch", "log_abs_det", "hvp_reverse_over_forward"),
        ("torch", "cumprod", "hvp_reverse_over_forward"),
        ("jax", "sinc", "gradient"),
        ("jax", "half_square_of_norm", "gradient"),
        ("autograd", "sinc", "gradient"),  # by the definition, in autograd's names
    ],
)
def test_known_faults_are_found_unseeded_and_their_program_shows_them(
    library: str, operation: str, operator: str, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    (cell,) = swept(library, operation).cells
    fault = next(fault for fault in cell.faults if fault.operator == operator)
    file = tmp_path / "shown.py"
    file.write_text(of_fault(fault, cell.own))
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    shown = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert shown["got"] == fault.got
    assert shown["expected"] == fault.expected


# The page ----------------------------------------------------------------------------------------------------------


def test_the_page_leads_from_each_faulty_cell_to_its_point_and_program() -> None:
    fault = Fault("sinc", "torch", "gradient", "digits", 5.0, {"x": 1e-6}, "range", "x", "1.0", "1.1", ("x",))
    cell = sweep.ConformanceCell(
        "sinc", "torch", "elementary functions", "torch.sinc(x)", 3, 0, {}, [fault], {(1, -6): 5.0}
    )
    right = sweep.ConformanceCell("sin", "torch", "elementary functions", "torch.sin(x)", 3)
    page = conform_page.render(sweep.Conformance({"torch": "2"}, (right, cell)))
    assert 'href="#torch-sinc"' in page
    assert 'id="torch-sinc"' in page
    assert page.index(">sinc<") < page.index(">sin<")  # the gravest first, whatever the order of the cells
    assert "x = 1e-06" in page
    assert "torch.sinc(x)" in page
    assert "<polyline" in page
    assert "http" not in page.partition("<body")[2]


def test_hostile_names_do_not_act_on_the_page() -> None:
    cell = sweep.ConformanceCell("<q>operation", "<q>library", "<q>family", refused={"value": "<q>reason"})
    page = conform_page.render(sweep.Conformance({"<q>library": "<q>version"}, (cell,)))
    assert "<q>" not in page
    assert "&lt;q&gt;operation" in page


def test_a_fault_names_the_thread_of_the_same_known_bug() -> None:
    fault = Fault("sinc", "torch", "gradient", "digits", 5.0, {"x": 1e-6}, "range", "x", "1.0", "1.1", ("x",))
    known = [KnownBug("trap_sinc_near_zero", (), "five digits", "", "pytorch/pytorch#196885")]
    assert with_thread(fault, known).thread == "pytorch/pytorch#196885"
    assert with_thread(fault, {}).thread == ""
    assert with_thread(replace(fault, operation="tanh", library="jax_eager"), {}).thread == "jax-ml/jax#40343"


def test_a_thread_about_one_kind_of_fault_is_not_named_for_another() -> None:
    fault = Fault(
        "log_ndtr", "torch", "hvp_reverse_over_reverse", "wrong", 0.0, {"x": -13000.0}, "range", "x", "1", "2"
    )
    assert with_thread(fault, {}).thread == "as jax-ml/jax#25564"
    assert with_thread(replace(fault, kind="nan", point={"x": 1e300}), {}).thread == ""
    assert with_thread(replace(fault, operator="gradient"), {}).thread == ""
    jvp = replace(fault, operation="cholesky_inverse", operator="jvp")
    assert with_thread(jvp, {}).thread == "pytorch/pytorch#196682"


def test_a_norm_that_overflows_is_not_the_norm_at_zero() -> None:
    fault = Fault("vector_norm", "autograd", "value", "nan", 0.0, {"x": [1e200, 1.0]}, "range", "", "inf", "1e200")
    assert with_thread(fault, {"trap_norm_at_zero": "nan (HIPS/autograd#151)"}).thread == ""
    assert with_thread(replace(fault, library="torch"), {}).thread == "pytorch/pytorch#193006"


def test_known_bugs_are_looked_up_under_names_that_exist() -> None:
    assert TRAPS.keys() <= OPERATIONS.keys()
    assert {key.split()[0] for of in THREADS.values() for key in of} <= OPERATIONS.keys()
    cases = resolve().catalog.case_sources
    assert {case for every in TRAPS.values() for case in every} <= set(cases)
