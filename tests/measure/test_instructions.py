"""Counts of instructions: proportional to the work, nearly equal from process to process, planted slowdowns found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adbench.execution.planning.request import Request
from adbench.execution.session import prepare
from adbench.measure import instructions
from adbench.model.errors import UsageError
from tests.support.files import CASE, RIGHT, write

COUNTS = """
import itertools, sys
from adbench.measure.instructions import count
def work(n):
    for _ in itertools.repeat(None, n):  # allocates nothing: allocating depends on the memory's layout
        pass
print(*(count(lambda: work(int(n)), 2).value for n in sys.argv[1:]), flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def _valgrind(request: pytest.FixtureRequest) -> None:
    """Skip without Valgrind what needs it; in CI nothing is skipped."""
    if instructions.counter() is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Valgrind is not installed; apt install valgrind")


def counts(folder: Path, *sizes: int, padding: int = 0) -> list[float]:
    """The instructions of loops of these sizes, counted in a process with another layout of its memory."""
    environment = os.environ | {instructions.FOLDER_VARIABLE: str(folder), "PADDING": "x" * padding}
    command = [*instructions.command(folder), sys.executable, "-c", COUNTS, *map(str, sizes)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(word) for word in ran.stdout.split()]


@pytest.mark.slow  # two processes under Callgrind
def test_counts_are_proportional_to_the_work_and_two_per_cent_more_stand_out(tmp_path: Path) -> None:
    once, twice, planted = counts(tmp_path, 10_000, 20_000, 10_200)
    again, _, planted_again = counts(tmp_path, 10_000, 20_000, 10_200, padding=3_000)
    assert twice / once == pytest.approx(2, rel=0.01)
    assert again == pytest.approx(once, rel=0.01)
    for more in (planted, planted_again):
        assert 1.01 < more / once < 1.03
    assert not list(tmp_path.glob("count.*.*")), "files of counts that were read are removed"


@pytest.mark.slow
def test_a_run_counts_the_instructions_of_its_right_cells(tmp_path: Path) -> None:
    write(tmp_path / "cases", softplus=CASE)
    backends = write(tmp_path / "backends", right=RIGHT, twice=RIGHT.replace("1 / (1", "0.0 * np.exp(-x) + 1 / (1"))
    made = prepare(
        cases=[str(tmp_path / "cases" / "softplus.py")],
        backends=[str(backends / f"{name}.py") for name in ("right", "twice")],
        sizes=["1000"],
        operators=["gradient"],
        quick=True,
        launches=1,
        memory=False,
        instructions=True,
    )
    list(made.events())
    run = made.result()
    figures = {record.job.backend: record.instructions for record in run.records}
    assert all(figure is not None and figure.reason is None for figure in figures.values()), figures
    assert figures["twice"].value > 1.2 * figures["right"].value  # type: ignore[union-attr, operator]
    assert run.settings["instructions"] == instructions.counter()
    assert {record.memory for record in run.records} == {None}


def test_the_request_is_refused_where_nothing_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--device cuda computes elsewhere"):
        _ = Request(instructions=True, device="cuda").settings
    monkeypatch.setattr(instructions, "counter", lambda: None)
    with pytest.raises(UsageError, match="needs Valgrind, which is not installed; install it"):
        _ = Request(instructions=True).settings
    assert Request().settings.instructions is None
