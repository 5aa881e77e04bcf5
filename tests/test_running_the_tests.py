"""What `./scripts/test` promises of the run itself."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.conftest import thin_out
from tests.support.marks import mostly_slow

ROOT = Path(__file__).parents[1]
HEARD = """
import signal, subprocess, sys
from tests.support.signals import let_children_hear
let_children_hear()
told = "import signal; print(*(signal.getsignal(n) is signal.SIG_IGN for n in (signal.SIGINT, signal.SIGHUP)))"
subprocess.run([sys.executable, "-c", told], check=True)
signal.raise_signal(signal.SIGINT)
print("still here")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_in_the_background_the_tests_ignore_an_interruption_and_what_they_start_does_not() -> None:
    ignoring = ["sh", "-c", "trap '' INT HUP; exec \"$@\"", "sh", sys.executable, "-c", HEARD]
    done = subprocess.run(ignoring, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["False False", "still here"], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "1"])
def test_slow_tests_that_are_left_out_are_counted(processes: str) -> None:
    asked = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "--numprocesses", processes]
    command = [sys.executable, "-m", "pytest", *asked, "tests/test_running_the_tests.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert "3 slow tests were left out; ./scripts/test --all runs them too" in done.stdout


@pytest.mark.slow
def test_the_exit_code_of_a_process_that_died_is_printed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)\n")
    asked = ["-p", "tests.conftest", "-n", "1", "--max-worker-restart=0", "-c", os.devnull, f"--rootdir={tmp_path}"]
    command = [sys.executable, "-m", "pytest", *asked, str(tmp_path)]
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "gw0 ended with exit code -9" in done.stderr, done.stdout + done.stderr


@dataclass
class Item:
    """As much of a pytest item as `thin_out` uses."""

    nodeid: str
    markers: dict[str, Any] = field(default_factory=dict)

    def get_closest_marker(self, name: str) -> Any:
        return self.markers.get(name)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.markers[mark.name] = mark


def test_of_many_variants_a_few_run_by_default() -> None:
    most, many, six, few = ([Item(f"tests/x/test_y.py::test_{n}[{k}]") for k in range(n)] for n in (80, 12, 6, 3))
    together = [Item(f"tests/x/test_y.py::test_z[{k}]", {"xdist_group": "g"}) for k in range(12)]
    of_cases = [Item(f"tests/cases/test_cases.py::test_z[{k}]") for k in range(12)]
    thin_out([*most, *many, *six, *few, *together, *of_cases])  # type: ignore[list-item]
    assert [k for k, item in enumerate(most) if "exhaustive" not in item.markers] == [0, 27, 54]
    assert [k for k, item in enumerate(most) if "slow" in item.markers] == [27, 54]
    assert [k for k, item in enumerate(many) if "exhaustive" not in item.markers] == [0, 4, 8]
    assert [k for k, item in enumerate(many) if "slow" in item.markers] == [4, 8]
    assert [k for k, item in enumerate(six) if item.markers] == [1, 2, 4, 5]
    assert not any("exhaustive" in item.markers for item in six)
    assert not any(item.markers.keys() & {"slow", "exhaustive"} for item in (*few, *together, *of_cases))


def test_a_parameter_that_is_fast_must_be_one() -> None:
    marks = {param.values[0]: [mark.name for mark in param.marks] for param in mostly_slow("abc", fast="b")}
    assert marks == {"a": ["slow"], "b": [], "c": ["slow"]}
    with pytest.raises(AssertionError, match="not among the parameters"):
        mostly_slow("abc", fast="x")


def test_a_python_that_is_missing_is_named() -> None:
    done = subprocess.run([ROOT / "scripts/test", "--python", "3.99"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "test: Python 3.99 is missing: no python3.99 in the path, and none among pyenv's versions\n"


def test_the_constraints_have_one_release_of_each_distribution_on_every_python() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    asked = [Requirement(line) for line in lines if not line.startswith("#")]
    for python in ("3.11", "3.12", "3.13", "3.14"):
        names = [one.name for one in asked if one.marker is None or one.marker.evaluate({"python_version": python})]
        assert len(names) == len(set(names)) == len({one.name for one in asked})
