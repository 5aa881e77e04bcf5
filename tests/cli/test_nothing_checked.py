"""A command that checked nothing is not green: the reason is on the screen, and the exit code is 4."""

import json
from itertools import starmap
from pathlib import Path
from xml.etree import ElementTree

import pytest

from adbench.execution.session import prepare
from adbench.python_run import run
from tests.support.command import adbench
from tests.support.files import CASE, RIGHT, misbehaving, write
from tests.support.marks import one_in

STUB = "def prepare(operator, f, args, wrt):\n    raise NotImplementedError('a stub')\n"
ONLY_VALUES = """
def prepare(operator, f, args, wrt):
    if operator == "value":
        return f
    raise NotImplementedError("no modes")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A case, a right backend, one that refuses everything, and one that has values only."""
    write(tmp_path / "mine", refuses=STUB)
    return write(tmp_path, softplus=CASE, hand=RIGHT, stub=STUB, values=ONLY_VALUES)


@pytest.mark.parametrize(
    ("asked", "reason"),
    one_in(
        3,
        starmap(
            pytest.param,
            [
                (
                    ["-c", "softplus.py", "-b", "stub.py"],
                    "with the backend stub and of the case softplus: 8 of 12 unsupported",
                ),
                (["-c", "hypot", "-b", "torch", "--device", "cuda"], "12 of 12 skipped: no CUDA device"),
                (["-c", "projectile", "-b", "jax"], "13 of 13 unsupported: jax.jit compiles one program for all data"),
                (["-c", "softplus.py", "-b", "values.py"], "unsupported: "),
                (["-c", "softplus.py", "-b", "hand.py", "-b", "stub.py"], "with the backend stub: "),
                (
                    ["-c", "softplus.py", "-b", "refus*", "--backends", "mine"],
                    "with the backend refuses and of the case softplus",
                ),
                (
                    ["-c", "softplus.py", "-b", "hand.py", "-c", "product_plus_constant", "-n", "10"],
                    "no cell of it was in the plan",
                ),
            ],
        ),
    ),
)
def test_a_selected_backend_or_case_that_was_judged_nowhere_is_exit_code_4(
    folder: Path, asked: list[str], reason: str
) -> None:
    done = adbench(folder, "check", *asked)
    assert done.code == 4
    assert "adbench: nothing was checked" in done.err
    assert reason in done.err
    allowed = adbench(folder, "check", *asked, "--allow-nothing")
    assert allowed.code == 0
    assert reason in allowed.err


@pytest.mark.slow
def test_a_measuring_run_and_its_continuation_say_so_too(folder: Path) -> None:
    asked = ["run", "--quick", "-c", "softplus.py", "-b", "stub.py", "-b", "tape", "--launches", "1", "--no-memory"]
    done = adbench(folder, *asked, "-o", "out", "--operator", "gradient")
    assert (done.code, "nothing was checked with the backend stub" in done.err) == (4, True)
    assert adbench(folder, "run", "--resume", "out").code == 4
    assert adbench(folder, "run", "--resume", "out", "--allow-nothing").code == 0
    with pytest.warns(UserWarning, match="nothing was checked with the backend stub"):
        found = run(str(folder / "softplus.py"), [str(folder / "stub.py"), "tape"], time=False, progress=False)
    assert found.unjudged


@pytest.mark.slow
def test_the_files_for_ci_have_the_reason(folder: Path) -> None:
    files = ["--junit", "c.xml", "--sarif", "c.sarif", "--md", "c.md"]
    asked = ["check", "-c", "softplus.py", "-b", "stub.py", *files]
    adbench(folder, *asked)
    sentence = "nothing was checked with the backend stub and of the case softplus"
    (error,) = ElementTree.parse(folder / "c.xml").findall(".//error")
    assert sentence in error.attrib["message"]
    invocation = json.loads((folder / "c.sarif").read_text())["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert sentence in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert sentence in (folder / "c.md").read_text()
    assert "none wrong, but not everything was checked" in (folder / "c.md").read_text()
    adbench(folder, *asked, "--allow-nothing")
    assert not ElementTree.parse(folder / "c.xml").findall(".//error")
    assert sentence not in (folder / "c.md").read_text() + (folder / "c.sarif").read_text()


@pytest.mark.slow
def test_a_default_backend_need_not_differentiate_the_one_case_that_was_named() -> None:
    named = prepare(cases=["projectile"], time=False, quick=True).result()
    assert [(part.kind, part.names) for part in named.selected] == [("case", ("projectile",))]
    assert {"jax", "tape"} <= set(named.versions)
    everything = prepare(time=False, quick=True).result()
    assert {part.names[0] for part in everything.selected if part.kind == "backend"} == set(everything.versions)
    on_cuda = prepare(time=False, quick=True, device="cuda").result()
    assert not {"tape", "autograd"} & {name for part in on_cuda.selected for name in part.names}
    glob = prepare(cases=["hypot"], backends=["jax*"], time=False, quick=True).result()
    assert [part.asked for part in glob.selected] == ["jax*", "hypot"]


@pytest.mark.slow
def test_a_function_of_a_named_backend_must_be_checked_by_it(folder: Path) -> None:
    (folder / "mine.py").write_text("def f(xp, x):\n    return xp.sum(x * x)\n")
    asked = ["check", "--function", "mine.py:f", "--at", "[1.0, 2.0]", "-b", "tape", "-b", "stub.py"]
    done = adbench(folder, *asked)
    assert (done.code, "nothing was checked with the backend stub" in done.err) == (4, True)
    assert adbench(folder, *asked, "--allow-nothing").code == 0
    assert adbench(folder, *asked[:-2]).code == 0


@pytest.mark.parametrize(
    ("verb", "statement", "where"),
    one_in(
        2,
        starmap(
            pytest.param,
            [
                (["conform", "--operation", "exp", "--points", "1"], "raise NotImplementedError('a stub')", "prepare"),
                (["conform", "--operation", "exp", "--points", "1"], "raise SystemExit(0)", "import"),
                (["fuzz", "--programs", "2"], "raise NotImplementedError('a stub')", "prepare"),
                (["fuzz", "--programs", "2"], "raise SystemExit(0)", "prepare"),
            ],
        ),
    ),
)
def test_a_search_with_a_backend_that_answers_nothing_is_exit_code_4(
    folder: Path, verb: list[str], statement: str, where: str
) -> None:
    write(folder, bad=misbehaving(statement, where=where))
    done = adbench(folder, *verb, "-b", "bad.py")
    assert done.code == 4
    assert "adbench: no derivative was checked with the backend bad: " in done.err


def test_a_campaign_without_a_program_is_exit_code_4(folder: Path) -> None:
    done = adbench(folder, "fuzz", "-b", "tape", "--seconds", "1e-9")
    assert (done.code, "no program was examined" in done.err) == (4, True)


@pytest.mark.slow
def test_digits_of_no_operation_are_exit_code_4(folder: Path) -> None:
    done = adbench(folder, "explain", "hypot", "--digits", "stub.py")
    assert (done.code, "no operation was checked with stub.py: " in done.err) == (4, True)
    assert adbench(folder, "explain", "hypot", "--digits", "tape").code == 0


@pytest.mark.slow
def test_a_gate_that_compared_nothing_is_exit_code_4(folder: Path) -> None:
    for name, backend in (("nothing", "stub.py"), ("tape", "tape")):
        asked = ["run", "--quick", "-c", "softplus.py", "-b", backend, "--launches", "1", "--no-memory", "-o", name]
        adbench(folder, *asked, "--operator", "gradient")
    done = adbench(folder, "compare", "nothing", "nothing", "--fail-on", "correctness")
    assert (done.code, done.err) == (4, "adbench: nothing was compared: no cell was checked in both runs\n")
    done = adbench(folder, "compare", "tape", "tape", "--fail-on", "memory")
    assert (done.code, "no cell has a memory figure of the same method in both runs" in done.err) == (4, True)
    assert adbench(folder, "compare", "tape", "tape", "--fail-on", "correctness").code == 0
    assert adbench(folder, "compare", "nothing", "nothing").code == 0
