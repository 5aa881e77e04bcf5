"""`adbench fuzz` finds planted faults, shrinks them, and finds nothing in a right library."""

import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from adbench import Namespace, tape
from adbench.catalog.selection import resolve
from adbench.findings.finding import Finding, read
from adbench.findings.programs import laboratory as laboratories
from adbench.findings.programs.campaign import Campaign, minimised
from adbench.findings.programs.expressions import DERIVATIVE
from adbench.findings.programs.generation import Coverage, drawn, nan_reaches, with_nan
from adbench.findings.programs.judging import ProgramTrial, differing
from adbench.findings.programs.known import explanation, is_vertical
from adbench.findings.programs.laboratory import Laboratory
from adbench.findings.programs.program_worker import judge
from adbench.findings.programs.random_program import Input, Program, Step
from adbench.findings.programs.reproduction import ran, write_files
from adbench.model.backend import KnownBug
from adbench.vocabulary import FUNCTIONS
from tests.findings.planted import backend, constant, laboratory, planted
from tests.support.command import adbench
from tests.support.marks import one_in

PLANTED = ("sin", "tanh", "sum", "maximum", "linalg.det", "cumulative_prod")
SQRT = Step("sqrt", "xp.sqrt({0})", (0,))


def first_finding(lab: Laboratory, name: str, seed: int, operations: int) -> Finding:
    random, coverage = Random(seed), Coverage()
    for _ in range(3_000):
        program = drawn(random.randrange, coverage, operations)
        if f"xp.{name}(" in program.source() and program.size >= operations // 2:
            found = lab.examine(program, ("gradient",)).findings
            if found:
                return found[0]
    raise AssertionError(f"no fault in {name} was found")


@pytest.mark.parametrize("name", one_in(8, PLANTED))
def test_a_planted_fault_is_found_and_shrunk_to_three_operations(name: str) -> None:
    lab = laboratory(planted(name, 1e-4))
    found = first_finding(lab, name, 7, 30)
    small = minimised(lab, found, 60.0)
    assert small.program.size <= 3
    assert f"xp.{name}(" in small.program.source()
    assert found.program.size > 10


def test_a_value_without_the_nan_of_an_input_is_found_and_shrunk(tmp_path: Path) -> None:
    def ignoring(x: Any) -> Any:
        return tape.sin(tape.where(np.isnan(constant(x)), 0.0, x))

    bad = replace(backend("tape"), name="planted", xp=Namespace(backend("tape").xp, sin=ignoring))
    inputs = (Input.of([0.5, math.nan]), Input.of(2.0))
    steps = (Step("sin", "xp.sin({0})", (0,)), Step("scaled", "{0} * {1}", (1, 2)), Step("sum", "xp.sum({0})", (3,)))
    program = Program(inputs, steps)
    lab = laboratory(bad, backend("tape"))
    (found,) = lab.examine(program, ("value_and_gradient", "gradient")).findings
    assert (found.library, found.kind, found.expected, found.place) == ("planted", "wrong", "nan", "the value")
    small = minimised(lab, found, 60.0)
    assert set(small.program.operations) <= {"sin", "sum"}
    assert small.title == "planted: the value of sin is wrong"
    files = write_files(replace(small, library="autograd"), tmp_path)
    assert [file.suffix for file in files] == [".json", ".py", ".md"]
    assert ran(files[1])[0] == 0, "autograd has no such fault"
    assert read(files[0]).to_plain().keys() == small.to_plain().keys()


def test_a_campaign_with_nan_puts_one_where_it_reaches_the_value() -> None:
    rng = np.random.default_rng(0)
    one = Program((Input.of([1.0, 2.0]), Input.of(3.0, active=False)), (Step("sum", "xp.sum({0}) * {1}", (0, 1)),))
    with_it = with_nan(one, rng)
    assert (with_it.has_nan, one.has_nan, nan_reaches(with_it)) == (True, False, True)
    assert not np.isnan(with_it.inputs[1].native)
    counted = Program((Input.of([1.0, 2.0]),), (Step("count", "xp.sum(xp.zeros_like({0}))", (0,)),))
    assert with_nan(counted, rng) is counted
    linear = Program((Input.of(1.0),), (Step("derivative", DERIVATIVE, (0,), (Step("twice", "{0} * 2.0", (1,)),)),))
    assert with_nan(linear, rng) is linear
    campaign = Campaign(laboratory(backend("tape")), 1, nan=True)
    assert list(campaign.run(60.0, 3)) == []
    assert campaign.judged == 3


@pytest.mark.slow
def test_a_right_library_has_no_wrong_number() -> None:
    lab = laboratory(backend("tape"))
    campaign = Campaign(lab, 2)
    assert [one for one in campaign.run(120.0, 150) if one.kind == "wrong"] == []
    assert campaign.judged > 100


def test_a_derivative_is_wrong_only_where_it_exists_on_both_sides() -> None:
    """Libraries may return anything for √x at 0, where the slope is infinite, and for √x · √x, which ends there."""
    lab = laboratory(backend("tape"), backend("autograd"))
    for steps in ((SQRT,), (SQRT, Step("multiply", "{0} * {1}", (1, 1)))):
        assert lab.examine(Program((Input(0.0),), steps), ("gradient", "hvp")).findings == ()


BROKEN = '''
"""A library that ends its process, or does not answer."""
import os, time
from adbench import Namespace
import numpy
KNOWN = {}
xp = Namespace(numpy)
def prepare(operator, f, args, wrt):
    if len(args) > 2:
        raise RuntimeError("out of registers")
    if operator == "gradient":
        os._exit(7) if float(args[0]) > 0 else time.sleep(60)
    return f
'''


@pytest.mark.slow
def test_a_crash_and_a_hang_are_findings_and_do_not_end_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN)
    monkeypatch.setattr(laboratories, "ANSWER_SECONDS", 5.0)
    chosen = resolve(backends=(str(file),))
    with Laboratory.of_workers(chosen.catalog, chosen.backends) as lab:
        found = [lab.examine(Program((Input(x),), (SQRT,)), ("gradient",)).findings[0].kind for x in (1.0, -1.0, 2.0)]
    assert found == ["crashes", "hangs", "crashes"]


def test_known_bugs_explain_findings_with_the_same_functions_and_outcome() -> None:
    chosen = resolve(backends=("torch",))
    program = Program((Input(0.0),), (Step("hypot", "xp.hypot({0}, {0})", (0,)),))
    finding = Finding(program, "gradient", "torch", "nan", "nan", "0.0", "x0", "")
    known = [KnownBug("trap_half_square_hypot", (), "nan", "", "as pytorch/pytorch#2421")]
    assert explanation(finding, known, chosen.catalog.cases).startswith("trap_half_square_hypot: nan")
    other = Finding(program, "gradient", "torch", "wrong", "3.0", "0.0", "x0", "")
    assert explanation(other, known, chosen.catalog.cases) == ""
    large = Program((Input(800.0),), (Step("sinh", "xp.sinh({0})", (0,)), Step("negative_power", "{0} ** -2", (1,))))
    overflow = Finding(large, "hvp", "tape", "nan", "nan", "0.0", "x0", "")
    raises = [KnownBug("trap_square_of_singular_values", (), "raises", "", "")]
    assert explanation(overflow, raises, chosen.catalog.cases) == "", "its slope is infinite because sinh overflows"


@pytest.mark.parametrize(
    ("name", "x", "vertical"),
    [("log", 0.0, True), ("log", 1.0, False), ("lgamma", 2.0, False), ("logit", 1.0, True), ("hypot", 0.0, True)],
)
def test_a_slope_is_infinite_at_the_singular_numbers_of_the_function_and_not_at_its_roots(
    name: str, x: float, vertical: bool
) -> None:
    places = ", ".join(["{0}"] * FUNCTIONS[name].arity)
    program = Program((Input(x),), (Step(name, f"xp.{name}({places})", (0,)),))
    assert is_vertical(Finding(program, "gradient", "torch", "nan", "nan", "0.0", "x0", "")) is vertical


def test_a_trap_of_a_matrix_function_explains_only_programs_that_call_it() -> None:
    cases = resolve(backends=("tape",)).catalog.cases
    known = [KnownBug("trap_square_of_singular_values", ("h*",), "raises", "", "")]
    power = Step("power_of_three", "{0} ** 3", (0,))
    singular = Step("singular", "xp.sum(xp.linalg.svd({0})[1] ** 2)", (0,))
    explained = [
        explanation(Finding(Program((Input(x),), (step,)), "hvp", "tape", "raises", "", "0.0", "x0", ""), known, cases)
        for x, step in ((0.0, power), (((1.0, 0.0), (0.0, 0.0)), singular))
    ]
    assert explained == ["", "trap_square_of_singular_values: raises"]


def test_the_command_prints_its_throughput_and_finds_nothing_new(tmp_path: Path) -> None:
    done = adbench(tmp_path, "fuzz", "-b", "tape", "--programs", "6", "--seed", "1")
    assert done.code == 0, done.err
    assert "6 programs in" in done.out


def test_a_number_that_rounding_decides_is_not_wrong() -> None:
    """The standard deviation of three equal numbers: torch's mean of them may differ from each by a rounding error."""
    gather = Step("gather", "{0}[numpy.array([0, 0, -1])]", (0,))
    steps = (gather, Step("add_constant", "{0} + 0.1", (1,)), Step("std", "xp.std({0})", (2,)))
    program = Program((Input((0.0,)),), steps)
    assert laboratory(backend("torch")).examine(program, ("gradient",)).findings == ()


SOFTMAX = "xp.exp({0} - xp.max({0})) / xp.sum(xp.exp({0} - xp.max({0})))"
FALSE_FINDINGS = {
    "tanh(30) is 1 only in doubles": (
        (30.0,),
        (Step("tanh", "xp.tanh({0})", (0,)), Step("asin", "xp.asin({0})", (1,))),
    ),
    "reverse mode adds 1 and -1": (
        ((40.0, 0.0),),
        (Step("softmax", SOFTMAX, (0,)), Step("cosh", "xp.cosh({0})", (1,)), Step("sum", "xp.sum({0})", (2,))),
    ),
    "1 - exp(-100) is 1 only in doubles": (
        (100.0,),
        (
            Step("log1mexp", "xp.log(-xp.expm1(-{0}))", (0,)),
            Step("negative", "-{0}", (1,)),
            Step("pow", "{0} ** {0}", (2,)),
        ),
    ),
    "sinc(-1) is 0, or 4e-17 with the float64 π": (
        (-1.0,),
        (Step("sinc", "xp.sinc({0})", (0,)), Step("divide_constant", "1.0 / {0}", (1,))),
    ),
    "the sine of 6e17": (
        (5.2309331045363585,),
        (
            Step(
                "loop",
                "xp.loop(lambda i, y: {body}(y), {0}, 3)",
                (0,),
                (
                    Step("sinh", "xp.sinh({0})", (1,)),
                    Step("power", "{0} ** -3", (2,)),
                    Step("sin", "xp.sin({0})", (3,)),
                ),
            ),
        ),
    ),
    "x⁻⁴ underflows in the derivative of x⁻³": (
        (1.4e87,),
        (Step("negative_power", "{0} ** -3", (0,)), Step("multiply", "{0} * 1e90", (1,))),
    ),
    "log(1 - exp -sinc(1)), which is -∞ or -37.8": (
        (1.0,),
        (
            Step("sinc", "xp.sinc({0})", (0,)),
            Step("log1mexp", "xp.log(-xp.expm1(-{0}))", (1,)),
            Step("atan", "xp.atan({0})", (2,)),
        ),
    ),
    "log Γ of sinc(2), which is 0 or -4e-17": (
        (2.0,),
        (Step("sinc", "xp.sinc({0})", (0,)), Step("lgamma", "xp.lgamma({0})", (1,))),
    ),
    "π x in sinc(x) is rounded": ((645546.466,), (Step("sinc", "xp.sinc({0})", (0,)),)),
    "(-1) ** x is undefined next to 0": (
        (-0.0,),
        (Step("pow", "(-1.0) ** {0}", (0,)), Step("masked", "xp.where({0} > 0, xp.sqrt({0}), 0.0)", (1,))),
    ),
}


EDGES = {
    "a root of x - x": (Input(0.0), (Step("subtract", "{0} - {0}", (0,)), SQRT.renumbered(lambda _: 1))),
    "a power at the end of its domain": (
        Input(1.0),
        (
            Step("subtract", "{0} - {0}", (0,)),
            Step("power_0.5", "{0} ** 0.5", (1,), own={"torch": "torch.pow({0}, 0.5)"}),
        ),
    ),
    "the hypotenuse of two zeros": (
        Input(2.0),
        (
            Step("divide", "{0} / {0}", (0,)),
            Step("log", "xp.log({0})", (1,)),
            Step("hypot", "xp.hypot({0}, {0})", (2,)),
        ),
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_a_singular_operation_on_a_constant_is_at_an_edge(name: str) -> None:
    """The program has the derivative 0, and its last operation has none."""
    given, steps = EDGES[name]
    assert ProgramTrial(Program((given,), steps)).edged


def test_variants_that_differ_only_by_rounding_are_no_finding() -> None:
    """The terms of H v are of the size of the program's values, and cancel."""
    steps = (Step("maximum", "xp.maximum({0}, 0.0)", (0,)), Step("integer_power", "{0} ** 2", (1,)))
    trial = ProgramTrial(Program((Input(0.0),), (*steps, Step("add_constant", "{0} + 10.0", (2,)))))
    ours, theirs = ({"result": [np.float64(number)]} for number in (3e-9, -3e-10))
    assert differing(trial, "hvp", ours, theirs, "torch") is None
    assert differing(trial, "hvp", ours, {"result": [np.float64(1e-3)]}, "torch") is not None


@pytest.mark.parametrize("name", FALSE_FINDINGS)
def test_no_right_library_is_accused(name: str) -> None:
    inputs, steps = FALSE_FINDINGS[name]
    program = Program(tuple(map(Input, inputs)), steps)
    assert laboratory(backend("tape")).examine(program, ("gradient", "value_and_gradient")).findings == ()


def test_an_overflow_on_the_way_is_an_edge() -> None:
    """cosh(4000) is infinite in doubles, and 1 / cosh(4000) is 0 with the second derivative 0 · ∞."""
    steps = (Step("cosh", "xp.cosh({0})", (0,)), Step("divide_constant", "-1.5 / {0}", (1,)))
    found = laboratory(backend("tape")).examine(Program((Input(4000.0),), steps), ("hvp",)).findings
    assert [one.edge for one in found] == [True]


@pytest.mark.slow
def test_an_interruption_prints_the_summary(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "adbench", "fuzz", "-b", "tape", "--seconds", "100", "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(5.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "programs in" in out
    assert "Traceback" not in err


def test_variants_of_a_library_that_differ_where_nothing_is_known_are_a_finding() -> None:
    """The second derivative of max(x, 0)² does not exist at 0."""
    steps = (Step("maximum", "xp.maximum({0}, 0.0)", (0,)), Step("integer_power", "{0} ** 2", (1,)))
    program = Program((Input(0.0),), steps)
    answers = {
        name: {"hvp": {"result": [np.array(number)]}}
        for name, number in (("torch", 0.0), ("torch_compile", 2.0), ("jax", 1.0))
    }
    found = judge(None, {"program": msgspec.to_builtins(program), "seed": 0, "answers": answers})["faults"]
    assert {name: (of["hvp"]["kind"], of["hvp"]["peer"]) for name, of in found.items()} == {
        "torch_compile": ("differs", "torch")
    }
    answers["torch_compile"] = answers["torch"]
    assert judge(None, {"program": msgspec.to_builtins(program), "seed": 0, "answers": answers})["faults"] == {}
