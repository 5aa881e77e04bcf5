"""`adbench check --function` and `adbench run --function`, as a user calls them."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from adbench.cli import cli
from adbench.cli.support.function_options import spread
from adbench.execution.in_process import check_cell
from adbench.model.errors import UsageError
from adbench.results.store import read_run
from tests.support.command import adbench
from tests.support.files import CASE, RIGHT, write

MINE = """
import numpy as np

def f(xp, a, b): return a * xp.sin(b)
def loss(params, n):
    print("printed")
    return np.sum(params["w"] ** n) + params["b"]
def log(x): return np.log(x)
def tiny(xp, x): return (x + 1e-30) ** 3 - x ** 3
def sizes(n): return {"w": np.arange(1.0, n + 1), "b": 0.5}
def softplus(x): return np.sum(np.log1p(np.exp(x)))
def of_tape(x):
    import adbench.tape as tape
    return tape.sin(x)
def uses(x): return np.sum(np.exp(x) * x)
"""
OF_TORCH = """
import torch

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x) * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.exp(x)

def wrong(x): return torch.sum(Scaled.apply(x))
def right(x): return torch.sum((torch.exp(x.float()) * x.float()).to(x.dtype))
def plain(x): return torch.sum(torch.exp(x) * x)
def halves(n): return torch.linspace(-1, 1, n).bfloat16()
"""


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    """What a command imports in this process is undone."""
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield
    sys.path[:], sys.meta_path[:] = path, finders
    for name in set(sys.modules) - modules:
        if name.startswith(("mine_of_cli", "torch_of_cli", "adbench_cases_")):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    return write(tmp_path, mine_of_cli=MINE, torch_of_cli=OF_TORCH)


def test_an_option_is_repeated_before_each_of_its_values() -> None:
    asked = ["--at", "1.0", "-2.0", "[1, -2]", "--arg", "n=3", "-b", "tape", "x", "--at", "-3"]
    assert spread(asked) == [
        *("--at", "1.0", "--at", "-2.0", "--at", "[1, -2]", "--arg", "n=3", "-b", "tape", "x", "--at", "-3"),
    ]  # fmt: skip


def test_value_and_gradient_are_next_to_the_truth_for_each_backend(folder: Path) -> None:
    asked = ["--function", "mine_of_cli:f", "--at", "1.0", "-2.0", "-b", "tape", "-b", "finite_differences"]
    done = adbench(folder, "check", *asked, COLUMNS="80")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "f: right with tape; approximate with finite_differences; truth proved"
    assert "✓ right: gradient of f by tape; truth proved" in lines
    row = re.search(r"✓ b +(\S+) +(\S+) +(exact|[\d.]+)\n", done.out)
    assert row
    assert float(row[1]) == pytest.approx(np.cos(-2.0), rel=1e-12)
    assert float(row[2]) == pytest.approx(np.cos(-2.0), rel=1e-12)
    assert row[3] == "exact" or float(row[3]) > 13
    assert max(map(len, [line for line in lines if not line.startswith("again: ")])) <= 80
    assert lines[-1] == f"again: cd {folder} && adbench check {shlex.join(asked)}"


def test_a_wrong_gradient_is_found_and_both_printed_lines_repeat_it_from_elsewhere(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(folder, off=RIGHT.replace("return 1 / (1", "return 1.01 / (1"))
    asked = ["--function", "mine_of_cli.py:softplus", "--at", "[1, 2]", "-b", "off.py", "--junit", "j.xml"]
    done = adbench(folder, "check", *asked)
    assert done.code == 1, done.err
    assert "✗ wrong: gradient of softplus by off" in done.out
    line = done.out.splitlines()[-1].removeprefix("again: ").replace("adbench", f"{sys.executable} -m adbench", 1)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    repeated = subprocess.run(line, shell=True, cwd=elsewhere, capture_output=True, text=True, timeout=100)
    assert (repeated.returncode, repeated.stdout) == (1, done.out)
    words = re.search(r"check_cell\('(.*?)', 1, '(.*?)', 'gradient', seed=0\)", (folder / "j.xml").read_text())
    assert words
    assert "2 of 2 wrong" in check_cell(words[1], 1, words[2], "gradient", seed=0)


@pytest.mark.slow
def test_a_wrong_custom_gradient_of_torch_is_found(folder: Path) -> None:
    done = adbench(folder, "check", "--function", "torch_of_cli.py:wrong", "--at", "[1, 2]", "--json")
    assert done.code == 1, done.err
    record = next(r for r in json.loads(done.out)["records"] if r["job"]["operator"] == "gradient")
    assert [(entry["where"], entry["word"]) for entry in record["entries"][:2]] == [("x", "wrong"), ("x", "wrong")]
    assert [entry["index"] for entry in record["entries"][:2]] == [[0], [1]]


def test_a_kernel_is_judged_by_its_definition_in_the_types_that_another_function_makes(folder: Path) -> None:
    asked = ["--definition", "torch_of_cli.py:plain", "--inputs", "torch_of_cli.py:halves", "-n", "2", "3"]
    right = adbench(folder, "check", "--function", "torch_of_cli.py:right", *asked)
    assert right.code == 0, right.out + right.err
    assert " ".join(right.out.split()).count("in bfloat16; truth proved") == 2
    assert right.out.splitlines()[-1].endswith(f"check --function torch_of_cli.py:right {' '.join(asked)}")
    wrong = adbench(folder, "check", "--function", "torch_of_cli.py:wrong", *asked, "--json")
    assert wrong.code == 1, wrong.out + wrong.err
    assert [table["word"] for table in json.loads(wrong.out)] == ["wrong", "wrong"]


def test_points_around_the_given_one_leave_out_where_there_is_no_value(folder: Path) -> None:
    done = adbench(folder, "check", "--function", "mine_of_cli:log", "--at", "2", "--points", "3")
    assert done.code == 0, done.err
    assert "3 derivatives of log by tape" in done.out
    assert "2 points outside the function's domain left out: the other sign, zeros;" in " ".join(done.out.split())


def test_rounding_that_hides_the_answer_has_an_exit_code_of_its_own(folder: Path) -> None:
    done = adbench(folder, "check", "--function", "mine_of_cli:tiny", "--at", "1.0", "-b", "tape")
    assert done.code == 5, done.out + done.err
    assert done.out.startswith("? blind: rounding hides the answer: gradient of tiny by tape; truth proved")


def test_another_function_makes_the_arguments_of_each_size(folder: Path) -> None:
    """What the function prints is not among the results."""
    asked = ["--function", "mine_of_cli:loss", "--inputs", "mine_of_cli:sizes", "--arg", "n=3", "-n", "2", "40"]
    done = adbench(folder, "check", *asked, "--json")
    assert done.code == 0, done.err
    assert "printed" in done.err
    records = [record for record in json.loads(done.out)["records"] if record["job"]["operator"] == "gradient"]
    assert [(record["job"]["size"], len(record["entries"])) for record in records] == [(2, 3), (40, 10)]
    planned = adbench(folder, "run", *asked, "--plan", "--json")
    assert {(cell["size"], cell["operator"]) for cell in json.loads(planned.out)["cells"]} == {
        (size, operator) for size in (2, 40) for operator in ("value", "gradient")
    }


@pytest.mark.slow
def test_a_run_measures_a_function_at_the_sizes_that_another_function_makes(folder: Path) -> None:
    asked = ["--function", "mine_of_cli:loss", "--inputs", "mine_of_cli:sizes", "--arg", "n=3", "-n", "2", "40"]
    done = adbench(folder, "run", *asked, "--quick", "--launches", "1", "--no-memory", "-o", "out")
    assert done.code == 0, done.err
    assert "✓ right: 2 derivatives of loss by tape" in done.out
    found = read_run(folder / "out" / "run.json")
    assert {record.job.size for record in found.records if record.time is not None} == {2, 40}
    assert all(record.entries for record in found.records)
    assert {len(record.entries) for record in found.records if record.job.operator == "gradient"} == {10, 3}


KERNEL = ("--function", "torch_of_cli:wrong", "--definition", "torch_of_cli:plain")
WRONG = [
    (("--at", "1"), "--at needs a function; add --function module:f"),
    (("--function", "mine_of_cli:f", "--at", "1", "2", "-c", "hypot"), "--function replaces the cases; remove --case"),
    (("--function", "mine_of_cli:loss", "--at", "1", "--inputs", "mine_of_cli:sizes"), "both give the arguments"),
    (
        ("--function", "mine_of_cli:of_tape", "--at", "1", "-b", "jax"),
        "of_tape is written for tape, which the backend jax",
    ),
    (("--function", "mine_of_cli:f", "--at", "1", "2", "-b", "tapee"), "no backend 'tapee'"),
    (("--function", "mine_of_cli:f", "--at", "1", "x"), "'x' is not a number"),
    (("--function", "mine_of_cli:f", "--at", "1", "2", "--wrt", "c"), "wrt: 'c' is not a floating-point argument"),
    (("--function", "mine_of_cli:f", "--attt", "1"), "No such option"),
    (("--definition", "mine_of_cli:f"), "--definition needs a function; add --function module:f"),
    ((*KERNEL, "--at", "1", "-b", "tape"), "-b has no meaning with --definition; leave it out"),
    ((*KERNEL, "--at", "[1, 2]", "-n", "3"), "-n has no meaning without --inputs"),
    ((*KERNEL, "--inputs", "torch_of_cli:halves", "-n", "x"), "-n 'x' is not a size"),
    (("--function", "torch_of_cli:wrong", "--definition", "torch_of_cli:none", "--at", "1"), "'none'"),
    (("--function", "torch_of_cli:wrong", "--definition", "mine_of_cli:tiny", "--at", "[1, 2]"), "returns the shape"),
]


@pytest.mark.parametrize(("asked", "message"), WRONG)
def test_a_function_asked_for_wrongly_is_one_line(folder: Path, asked: tuple[str, ...], message: str) -> None:
    done = adbench(folder, "check", *asked)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


@pytest.mark.slow
def test_a_check_of_a_suite_runs_what_is_timed_and_one_of_a_function_does_without(folder: Path) -> None:
    write(folder, hand=RIGHT + "\n\ndef before_timing():\n    open('loaded', 'w').close()\n", case=CASE)
    function = ("--function", "mine_of_cli:softplus", "--at", "0.5")
    assert adbench(folder, "check", *function, "-b", "hand.py").code == 0
    assert not (folder / "loaded").exists()
    assert adbench(folder, "check", "-c", "case.py", "-n", "1", "-b", "hand.py", "--operator", "gradient").code == 0
    assert (folder / "loaded").exists()


def test_a_backend_that_cannot_says_why_and_what_to_do(folder: Path) -> None:
    done = adbench(folder, "check", "--function", "mine_of_cli:uses", "--at", "[1, 2]", "-b", "torch")
    assert done.code == 4
    assert done.out.startswith("∅ torch: ")
    assert "the function calls numpy: leave torch out" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("command", "faster"), [("check", "for less: adbench check -b NAME"), ("run", "two minutes: adbench run --quick")]
)
def test_a_long_default_says_how_long_it_takes_and_what_is_faster(
    command: str, faster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def stop(*_: object, first: str = "", **__: object) -> None:
        told.append(first)
        raise UsageError("stopped")

    monkeypatch.setattr(f"adbench.cli.{command}.execute", stop)
    done = CliRunner().invoke(cli, [command])
    assert re.search(rf"backends.*: about \d+ .*{faster}", done.stderr + told[0]), done.stderr
