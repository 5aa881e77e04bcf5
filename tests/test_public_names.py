"""The public names of `adbench`, and the module paths of earlier versions."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import adbench
from adbench.interop.gradbench import tool_backend
from adbench.moved_modules import MOVED
from adbench.results.store import read_run, write_run
from tests.support import sessions

ROOT = Path(__file__).parents[1]


def test_every_listed_name_is_there_and_no_other_is() -> None:
    stub = ast.parse((ROOT / "adbench" / "__init__.pyi").read_text("utf-8"))
    listed = [alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert adbench.__all__ == listed
    assert all(getattr(adbench, str(name)) is not None for name in listed)
    with pytest.raises(AttributeError, match="no attribute 'reports'"):
        getattr(adbench, "reports")  # noqa: B009  # mypy knows that there is no such name


@pytest.mark.parametrize("old", MOVED)
def test_an_old_module_path_gives_the_new_module_and_a_warning(old: str) -> None:
    """In a separate process, because the second import of a module does not warn."""
    program = f"import sys, importlib; importlib.import_module({old!r}); print(sys.modules[{old!r}].__name__)"
    done = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", program],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.strip() == MOVED[old]
    assert f"{old} has moved to {MOVED[old]}" in done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_paths_serve_as_documentation_and_cached_files_used_them() -> None:
    schema = json.loads((files("adbench.suite") / "run.schema.json").read_text("utf-8"))
    assert schema["title"].startswith("A run of adbench")
    assert import_module("adbench.suite.store").read_run is read_run
    assert import_module("adbench.neighbours.gradbench.backend").driven is tool_backend.driven


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_below_an_old_path_that_nobody_used_is_not_loaded_twice() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"CONTRIBUTING\.md"):
        import_module("adbench.suite.journal")


def test_runs_are_loaded_and_compared_from_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, slowdown in (("old", 1.0), ("new", 1.5)):
        (tmp_path / name).mkdir()
        times = sessions.times(rng, ("tape", "jax", "autograd"), changes={"jax": slowdown})
        write_run(tmp_path / name, sessions.run(times))
    run = adbench.load(tmp_path / "new")
    assert isinstance(run, adbench.Run)
    assert run == adbench.load(str(tmp_path / "new" / "run.json"))
    found = adbench.compare(tmp_path / "old", str(tmp_path / "new"), margin=0.1)
    assert found.margin == 0.1
    assert {row.word for row in found.rows if "-jax-" in row.name} == {"regression"}
    with pytest.raises(adbench.BadFile, match="none"):
        adbench.load(tmp_path / "none")
