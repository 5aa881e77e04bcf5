"""The public names of `adbench`."""

import ast
from pathlib import Path

import numpy as np
import pytest

import adbench
from adbench.results.store import write_run
from tests.support import sessions

ROOT = Path(__file__).parents[1]


def test_every_listed_name_is_there_and_no_other_is() -> None:
    stub = ast.parse((ROOT / "adbench" / "__init__.pyi").read_text("utf-8"))
    listed = [alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert adbench.__all__ == listed
    assert all(getattr(adbench, str(name)) is not None for name in listed)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(adbench, "nothing")  # noqa: B009  # mypy knows that there is no such name


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


def test_the_names_that_completion_shows_are_the_public_ones() -> None:
    assert {"check", "run", "load", "compare"} <= set(dir(adbench)) == set(adbench.__all__)
