"""Files of pytest-benchmark and pyperf: written by these programs, read, compared; anything else is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.model.errors import BadFile, UsageError
from adbench.model.record import Job
from adbench.results.compare import compare, exit_code
from adbench.results.comparison_inputs import key_called, name_of
from adbench.results.importers.timing_files import read_input
from adbench.results.store import write_run
from tests.support.sessions import run, times

PYTEST = """
import pytest

@pytest.mark.parametrize("n", [10, 1000])
def test_sum(benchmark, n):
    benchmark(lambda: sum(range(n)))

def test_cell(benchmark):
    benchmark.extra_info.update(case="case0", size=10, backend="tape", operator="gradient", seed=0)
    benchmark.extra_info["memory"] = {"allocated_peak_bytes": {"value": 8192.0, "reason": None},
                                      "python_peak_bytes": {"value": None, "reason": "no"}}
    benchmark(lambda: sum(range(50)))
"""

PYPERF = """
import pyperf

runner = pyperf.Runner(values=2, processes=5, warmups=1)
runner.bench_func("case0[10]-tape-gradient", lambda: sum(range(100)))
runner.bench_func("anything <else>", lambda: sum(range(100)))
"""


def ran(folder: Path, *command: str) -> None:
    # pytest-benchmark measures nothing in a pytest-xdist worker, so the program must not see it
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    command = (sys.executable, *command)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=outside)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def made_by_pytest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pytest_benchmark")
    (folder / "test_made.py").write_text(PYTEST)
    options = ["--benchmark-json=made.json", "--benchmark-max-time=0.01", "--benchmark-min-rounds=3"]
    ran(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options)
    return folder / "made.json"


@pytest.fixture(scope="module")
def made_by_pyperf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pyperf")
    (folder / "made.py").write_text(PYPERF)
    ran(folder, "made.py", "-o", "made.json", "--quiet", "--min-time", "0.0005")
    return folder / "made.json"


pytestmark = pytest.mark.xdist_group("timing files")

CELL = Job("case0", 10, "tape", "gradient")


def test_a_pytest_benchmark_file_is_one_launch(made_by_pytest: Path) -> None:
    side = read_input(made_by_pytest)
    assert side.made_by == "pytest-benchmark"
    assert [name_of(key) for key in side.samples] == ["test_sum[10]", "test_sum[1000]", "case0[10]-tape-gradient"]
    cell = side.samples[CELL]
    assert cell.memory == {"allocated": 8192.0}
    stats = json.loads(made_by_pytest.read_text())["benchmarks"][2]["stats"]
    assert cell.seconds_per_call == pytest.approx(stats["median"], rel=1e-6)
    assert len(cell.logs) == 1
    found = compare(side, side)
    assert found.same
    assert {row.word for row in found.rows} == {"inconclusive"}
    assert exit_code(found, ["regression"]) == 5  # one process says nothing about the next


def test_a_pyperf_file_has_a_launch_for_each_process(made_by_pyperf: Path) -> None:
    side = read_input(made_by_pyperf)
    assert side.made_by == "pyperf"
    assert list(side.samples) == [CELL, "anything <else>"]
    assert len(side.samples[CELL].logs) == 5
    found = compare(side, side, absolute=True)
    assert exit_code(found, ["regression"]) == 0
    assert all(row.ratio and row.ratio.estimate == 1.0 for row in found.rows)


def test_the_machine_of_each_program_is_recognised_as_the_same(made_by_pytest: Path, made_by_pyperf: Path) -> None:
    assert compare(read_input(made_by_pytest), read_input(made_by_pyperf)).same


def test_a_foreign_file_can_be_compared_with_a_run(made_by_pytest: Path, made_by_pyperf: Path, tmp_path: Path) -> None:
    write_run(tmp_path, run(times(np.random.default_rng(0), ("tape", "jax"))))
    for theirs in (made_by_pytest, made_by_pyperf):
        found = compare(read_input(theirs), read_input(tmp_path))
        words = {row.name: row.word for row in found.rows}
        assert words["case0[10]-tape-gradient"] == "inconclusive"
        assert words["case0[10]-jax-gradient"] == "new"


def copies(made: Path, folder: Path, count: int, factor: float) -> Path:
    """Files like those of several runs of pytest-benchmark, each with another time."""
    folder.mkdir()
    for number in range(count):
        data = json.loads(made.read_text())
        for benchmark in data["benchmarks"]:
            scale = factor * (1 + 0.001 * number)
            benchmark["stats"]["median"] *= scale
            benchmark["stats"]["data"] = [scale * seconds for seconds in benchmark["stats"]["data"]]
        (folder / f"000{number}_made.json").write_text(json.dumps(data))
    return folder


def test_each_pytest_benchmark_file_in_a_folder_is_a_launch(made_by_pytest: Path, tmp_path: Path) -> None:
    old, new = copies(made_by_pytest, tmp_path / "old", 6, 1.0), copies(made_by_pytest, tmp_path / "new", 6, 1.3)
    found = compare(read_input(old), read_input(new), absolute=True)
    assert {row.word for row in found.rows} == {"regression"}
    assert exit_code(found, ["regression"]) == 3
    assert exit_code(compare(read_input(old), read_input(old), absolute=True), ["regression"]) == 0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("c[10]-tape-gradient", Job("c", 10, "tape", "gradient")),
        ("c[10]-my-own-jax-value_and_gradient-seed=3", Job("c", 10, "my-own-jax", "value_and_gradient", 3)),
        ("a[1]-b[2]-c-hvp", Job("a[1]-b", 2, "c", "hvp")),
        ("c[10]-tape-speed", "c[10]-tape-speed"),
        ("c[ten]-tape-gradient", "c[ten]-tape-gradient"),
        ("c[10]--gradient", "c[10]--gradient"),
        ("test_sum[10]", "test_sum[10]"),
        ("", ""),
        ("line\nbreak[1]-<b>-value", Job("line\nbreak", 1, "<b>", "value")),
    ],
)
def test_a_name_is_a_cell_by_one_rule(name: str, key: Job | str) -> None:
    assert key_called(name) == key
    assert name_of(key) == name


BENCHMARK: dict[str, Any] = {"name": "b", "stats": {"median": 1.0}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"benchmarks": [], "machine_info": 3},
            r"not a valid file of pytest-benchmark: \.machine_info: expected object, got 3",
        ),
        (
            {"benchmarks": [{"name": "b"}], "machine_info": {}},
            r"pytest-benchmark: \.benchmarks\[0\]: object missing required field stats",
        ),
        (
            {"benchmarks": [BENCHMARK | {"stats": {"median": -1}}], "machine_info": {}},
            r"benchmarks\[0\].stats.median: expected float > 0.0, got -1",
        ),
        (
            {"benchmarks": [BENCHMARK | {"name": 7}], "machine_info": {}},
            r"benchmarks\[0\].name: expected str, got 7",
        ),
        (
            {"benchmarks": [BENCHMARK | {"extra_info": []}], "machine_info": {}},
            r"benchmarks\[0\].extra_info: expected object, got \[\]",
        ),
        ({"benchmarks": [BENCHMARK] * 100_001, "machine_info": {}}, r"benchmarks: expected array of length <= 100000"),
        ({"benchmarks": [], "version": "1.0"}, "a pyperf file without a timed benchmark"),
        (
            {"benchmarks": [{"runs": [{"values": ["x"]}]}], "version": "1.0"},
            r"not a valid file of pyperf: .*\.values\[0\]: expected float, got 'x'",
        ),
        ({"benchmarks": [{"runs": [{"values": [0]}]}], "version": "1.0"}, r"values\[0\]: expected float > 0.0, got 0"),
        ({"benchmarks": []}, "not a valid file of pyperf: object missing required field version"),
        ({"benchmarks": 3, "version": 1}, r"not a valid file of pyperf: \.benchmarks: expected array, got 3"),
        ({"benchmark": []}, "not a run of adbench: schema_version is missing"),
        ([1], "not a run of adbench"),
    ],
)
def test_an_unknown_file_is_a_one_line_error(tmp_path: Path, data: object, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BadFile, match=message) as caught:
        read_input(path)
    assert "\n" not in str(caught.value)


def test_a_file_with_no_benchmark_has_nothing_in_common(tmp_path: Path, made_by_pytest: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"benchmarks": [], "machine_info": {}}')
    with pytest.raises(UsageError, match="no cell in common"):
        compare(read_input(path), read_input(made_by_pytest))


def test_a_folder_of_other_files_is_reported(tmp_path: Path, made_by_pytest: Path) -> None:
    with pytest.raises(BadFile, match=r"neither run.json nor journal.jsonl nor pytest-benchmark files"):
        read_input(tmp_path)
    folder = copies(made_by_pytest, tmp_path / "mixed", 1, 1.0)
    (folder / "other.json").write_text("{}")
    with pytest.raises(BadFile, match=r"other.json: a folder without a run must contain only pytest-benchmark files"):
        read_input(folder)
    elsewhere = made_by_pytest.read_text().replace('"count": ', '"count": 1')
    (folder / "other.json").write_text(elsewhere)
    with pytest.raises(BadFile, match="measured on another machine"):
        read_input(folder)
