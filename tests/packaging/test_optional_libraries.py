"""The core installation: what works without matplotlib, llvmlite and scipy, and what says which extra it needs."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adbench.optional import EXTRAS, MissingLibrary, library, require
from adbench.results.store import write_run
from tests.test_runs import RUN

ROOT = Path(__file__).parents[2]

# Every Python started with this, workers too, lacks the three libraries.
WITHOUT = """
import importlib.metadata, sys
absent = {"llvmlite", "matplotlib", "scipy"}
sys.modules.update(dict.fromkeys(absent))
version = importlib.metadata.version
def missing(name):
    if name in absent:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = missing
"""

# Commands of one process: its argument is a JSON list of argument lists. Prints [exit code, output, errors] of each.
COMMANDS = """
import contextlib, io, json, sys
from adbench.cli import main
def run():
    try:
        main()
    except SystemExit as end:
        return end.code
found = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["adbench", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run()
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def python(environment: dict[str, str], program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_check_needs_none_of_them_and_reports_what_the_compiled_tape_lacks(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "adbench", "check", "-c", "product_plus_constant", "--operator", "gradient"]
    command += ["-b", "tape", "-b", "tape_compiled", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120, check=False)
    assert done.returncode == 4, done.stderr  # the compiled tape was named, and nothing of it was checked
    records = {one["job"]["backend"]: one for one in json.loads(done.stdout)["records"]}
    assert records["tape"]["status"] == "ok"
    reason = "llvmlite scipy is not installed; pip install llvmlite scipy"
    assert (records["tape_compiled"]["status"], records["tape_compiled"]["reason"]) == ("unsupported", reason)


def test_commands_without_pictures_work_and_others_name_the_extra_in_one_line(
    environment: dict[str, str], tmp_path: Path
) -> None:
    run = tmp_path / "run.json"
    commands = {
        "explain": ["explain", "hypot"],
        "page of a tape": ["explain", "hypot", "--html", str(tmp_path / "hypot.html")],
        "markdown": ["report", str(run), "-o", str(tmp_path / "run.md")],
        "compiled": ["explain", "hypot", "--compiled"],
        "run": ["run", "-c", "hypot", "-o", str(tmp_path / "out")],
        "page": ["report", str(run), "-o", str(tmp_path / "page.html")],
    }
    write_run(tmp_path, RUN)
    told = json.loads(python(environment, COMMANDS, json.dumps(list(commands.values()))))
    found = dict(zip(commands, told, strict=True))
    for name in ("explain", "page of a tape", "markdown"):
        code, out, err = found[name]
        assert (code or 0, err, bool(out)) == (0, "", True), name
    needs = {
        "compiled": "adbench.tape.compile needs llvmlite: pip install 'autodiff-bench[compiled]'",
        "run": "the page of a run needs matplotlib: pip install 'autodiff-bench[plots]'",
        "page": "a plot needs matplotlib: pip install 'autodiff-bench[plots]'",
    }
    for name, message in needs.items():
        assert found[name] == [2, "", f"adbench: {message}\n"]
    assert not (tmp_path / "out").exists()


TAPE = """
import numpy as np
from adbench import tape
from adbench.optional import MissingLibrary
print(tape.gradient(lambda x: tape.exp(x) * x, 1.0)[1])
for call in (
    lambda: tape.compile(lambda x: x * x, 2.0),
    lambda: tape.sparsity(lambda x: x * x, np.ones(2)),
    lambda: tape.gradient(lambda x: tape.sum(tape.erf(x)), np.ones(2)),
    lambda: tape.gradient(lambda a: tape.sum(tape.expm(a)), np.ones((1, 1))),
):
    try:
        call()
    except MissingLibrary as error:
        print(error)
"""


def test_the_engine_runs_and_names_the_extra_of_what_it_cannot_do(environment: dict[str, str]) -> None:
    lines = python(environment, TAPE).splitlines()
    assert float(lines[0]) == pytest.approx(2 * math.e)
    needs = "needs scipy: pip install 'autodiff-bench[scipy]'"
    compiled = "adbench.tape.compile needs llvmlite: pip install 'autodiff-bench[compiled]'"
    assert lines[1:] == [compiled, compiled, f"scipy.special.erf {needs}", f"scipy.linalg.expm {needs}"]


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_library_is_told_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    message = f"^it needs {name}: pip install 'autodiff-bench\\[{EXTRAS[name]}\\]'$"
    with pytest.raises(MissingLibrary, match=message):
        library(f"{name}.part", "it")
    with pytest.raises(NotImplementedError, match=message):  # of a backend: unsupported
        require(name, "it")


def test_an_error_inside_an_installed_library_is_not_taken_for_its_absence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        library("broken", "it")
