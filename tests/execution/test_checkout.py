"""A run knows its commit, and the lines where the user's cases, functions and backends are defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from adbench.catalog.ad_hoc import ad_hoc
from adbench.catalog.discovery import catalog
from adbench.execution import checkout
from adbench.execution.session import prepare
from adbench.results.store import dumps, run_of
from tests.support.files import CASE, RIGHT, git, repository, write


@pytest.fixture
def checked_out(tmp_path: Path) -> Path:
    write(tmp_path / "sub", softplus=CASE, my_backend=RIGHT, placed="import math\n\n\ndef f(x):\n    return x * x\n")
    repository(tmp_path)
    return tmp_path


def test_paths_are_relative_to_the_repository_and_lines_are_those_of_the_functions(
    checked_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checked_out / "sub")
    run = prepare(cases=["softplus.py"], backends=["my_backend.py", "tape"], time=False, memory=False).result()
    assert run.sources["cases/softplus"] == "sub/softplus.py:5"
    assert run.sources["backends/my_backend"] == "sub/my_backend.py:10"
    assert "backends/tape" not in run.sources
    assert run.commit["hash"] == git(checked_out, "rev-parse", "HEAD")
    assert run_of(dumps(run).encode(), checked_out).sources == run.sources


def test_a_function_of_the_command_line_is_where_the_user_wrote_it(
    checked_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checked_out / "sub")
    file = ad_hoc("placed:f", ("1.0",)).case_file()
    known = catalog([file])
    found = checkout.sources(checked_out, known, [file.stem], [])
    assert found == {f"cases/{file.stem}": "sub/placed.py:4"}


def test_files_elsewhere_and_installed_packages_have_no_place(
    checked_out: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    inside = write(checked_out / ".venv/lib/site-packages/p", softplus=CASE)
    known = catalog([inside / "softplus.py"], [tmp_path_factory.mktemp("elsewhere")])
    found = checkout.sources(checked_out, known, ["softplus", "hypot"], ["tape"])
    assert found == {}


def test_outside_of_a_repository_the_working_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert checkout.root_and_commit() == (tmp_path, {})
    monkeypatch.setenv("PATH", "")
    assert checkout.root_and_commit() == (tmp_path, {})
