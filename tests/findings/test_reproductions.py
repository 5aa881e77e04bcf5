"""A finding's script needs only the library and numpy, prints both numbers and exits with 1; its trap is a case."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from adbench import check_cell
from adbench.findings.finding import Finding, read, write
from adbench.findings.programs.expressions import STRUCTURAL, table
from adbench.findings.programs.random_program import Input, Program, Step
from adbench.findings.programs.reproduction import ran, write_files
from adbench.findings.script_libraries import COMPUTED, LIBRARIES, in_library
from adbench.findings.scripts import of_finding
from adbench.model.errors import BadFile
from tests.support.command import adbench
from tests.support.marks import mostly_slow

SLOGDET = Program((Input(((2.0, 1.0), (0.5, 1.0))),), (Step("log_abs_det", "xp.linalg.slogdet({0})[1]", (0,)),))
HYPOT = Program(
    (Input(0.0), Input(0.0)), (Step("hypot", "xp.hypot({0}, {1})", (0, 1)), Step("square", "{0} ** 2", (2,)))
)


def nan_of_hypot(library: str) -> Finding:
    return Finding(HYPOT, "gradient", library, "nan", "nan", "0.0", "x0", "wrong", "power series over balls, proved")


@pytest.mark.parametrize("library", mostly_slow(["torch", "torch_func"], fast=["torch"]))
def test_a_script_of_torch_shows_the_fault_without_adbench(library: str, tmp_path: Path) -> None:
    data, script, issue, trap = write_files(nan_of_hypot(library), tmp_path)
    text = script.read_text()
    assert set(re.findall(r"^import (\w+)", text, re.MULTILINE)) == {"importlib", "platform", "sys", "numpy", "torch"}
    code, printed = ran(script)
    assert code == 1
    assert "gradient got nan, expected 0.0" in printed
    assert "power series over balls, proved" in printed
    assert text.rstrip() in issue.read_text()
    assert read(data) == nan_of_hypot(library)
    assert "wrong" in check_cell(str(trap), 1, library)


OPERATORS = ("jvp", "hvp", *(f"hvp_{a}_over_{b}" for a in ("forward", "reverse") for b in ("forward", "reverse")))
PAIRS = [(name, operator) for name in ("torch_func", "jax_eager", "autograd", "pytensor") for operator in OPERATORS]
PAIRS += [("mygrad", "gradient"), ("jax", "hvp_forward_over_forward")]
FAST = [("autograd", "hvp_forward_over_reverse")]


@pytest.mark.parametrize("pair", mostly_slow(PAIRS, fast=FAST), ids="-".join)
def test_a_script_agrees_where_the_library_is_right(pair: tuple[str, str], tmp_path: Path) -> None:
    """The expected number is that of a right derivative, so the script exits with 0."""
    library, operator = pair
    pytest.importorskip(LIBRARIES[library].module)
    inputs = Input(0.5), Input((1.0, 2.0)), Input(3.0, active=False)
    program = Program(inputs, (Step("sum", "xp.sum(xp.sin({0} * {1}) * {2})", (0, 1, 2)),))
    from adbench.findings.programs.judging import ProgramTrial
    from adbench.oracle.operators import along

    trial = ProgramTrial(program)
    second = operator.startswith("h")
    known = trial.reference(second, 0)
    assert known is not None
    row = known.scalar
    expected = along(row, 0).lower if operator == "jvp" else row.leaves[1].entries[1].derivative.lower
    place = "J v" if operator == "jvp" else "x1[1]"
    finding = Finding(program, operator, library, "nan", "nan", repr(expected), place, "")
    file = write_files(finding, tmp_path)[1]
    assert "adbench" not in file.read_text()
    code, printed = ran(file)
    assert code == 0, printed


@pytest.mark.parametrize("library", ["casadi", "num_dual", "tape_closures"])
def test_a_library_whose_arrays_are_those_of_its_backend_has_a_script_with_adbench(library: str) -> None:
    assert "import adbench" in of_finding(nan_of_hypot(library))


def test_an_operator_or_a_function_that_a_library_lacks_needs_adbench() -> None:
    assert "import adbench" in of_finding(replace(nan_of_hypot("mygrad"), operator="jvp"))
    assert "import adbench" not in of_finding(nan_of_hypot("autograd"))
    program = Program((Input(0.5),), (Step("erfcx", "xp.erfcx({0})", (0,)),))
    assert "import adbench" in of_finding(replace(nan_of_hypot("autograd"), program=program))


def test_every_library_computes_every_operator_that_it_has() -> None:
    for name, library in LIBRARIES.items():
        known = {operator for operator in COMPUTED if library.computed(operator) is not None}
        assert known == (set(COMPUTED) if library.nests else {"value", "gradient", "value_and_gradient"}), name


def test_a_script_exits_with_one_if_the_number_is_wrong(tmp_path: Path) -> None:
    expected = math.nan
    finding = Finding(SLOGDET, "gradient", "torch", "wrong", "9.0", repr(expected), "x0[0, 0]", "")
    assert ran(write_files(finding, tmp_path)[1])[0] == 1


LACKING = {
    "torch": {"betainc", "betaln", "cbrt", "exp1", "expi", "gamma"},
    "jax": {"erfcx"},
}
"""Functions in the table of operations that a library has neither by itself nor in our scripts."""


@pytest.mark.parametrize("name", LACKING)
def test_scripts_have_the_librarys_names_for_nearly_every_expression(name: str) -> None:
    library = LIBRARIES[name]
    pytest.importorskip(library.module)
    missing = set()
    for expression in STRUCTURAL + table():
        text = expression.own.get(name, f"{expression.definition}\n{expression.text}")
        found, _, has_all = in_library(text, library)
        assert "xp." not in found
        if not has_all:
            missing.add(expression.name)
    assert missing == LACKING[name]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{}", "valid JSON, but not a finding: object missing required field program; pass a JSON file "),
        ("[1, 2]", "valid JSON, but not a finding: expected object, got "),
        ("", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
    ],
)
def test_a_file_that_is_no_finding_is_one_line(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(BadFile, match=f"bad.json: {fault}"):
        read(file)
    done = adbench(tmp_path, "minimise", str(file))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"bad.json: {fault}" in done.err


@pytest.mark.slow
def test_minimise_shrinks_a_file_and_runs_its_script(tmp_path: Path) -> None:
    more = (Step("exp", "xp.exp({0})", (0,)), Step("multiply", "{0} * {1}", (3, 4)))
    program = Program(HYPOT.inputs, (*HYPOT.steps, *more))
    finding = Finding(program, "gradient", "torch", "nan", "nan", "0.0", "x0", "wrong")
    write(finding, tmp_path / "found.json")
    done = adbench(tmp_path, "minimise", "found.json", "--seconds", "20")
    assert done.code == 1, done.err
    assert "exit code 1" in done.out
    assert "exp" not in done.out.partition("wrote")[0]


def test_a_script_of_torch_uses_the_mode_of_its_backend(tmp_path: Path) -> None:
    """torch.autograd takes det · A⁻ᵀ of a singular matrix as 0; torch.func has another formula."""
    program = Program((Input(((1.0, 1.0), (1.0, 1.0))),), (Step("det", "xp.linalg.det({0})", (0,)),))
    finding = Finding(program, "gradient", "torch", "wrong", "0.0", "1.0", "x0[0, 0]", "")
    code, printed = ran(write_files(finding, tmp_path)[1])
    assert (code, "got 0.0" in printed) == (1, True), printed
