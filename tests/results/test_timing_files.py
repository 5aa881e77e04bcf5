"""Files of pytest-benchmark and pyperf: written by these programs, read, compared; anything else is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.measure.unpaired import exceeds_p
from adbench.model.errors import BadFile, UsageError
from adbench.model.record import Job
from adbench.reports.text.comparison import text
from adbench.results.compare import Comparison, compare
from adbench.results.comparison_inputs import in_blocks, key_called, name_of
from adbench.results.gates import exit_code
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
    outside["PYTHONDONTWRITEBYTECODE"] = "1"  # a file that is rewritten within a second would run as it was before
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
    assert (side.made_by, side.one_launch) == ("pytest-benchmark", True)
    assert [name_of(key) for key in side.samples] == ["test_sum[10]", "test_sum[1000]", "case0[10]-tape-gradient"]
    cell = side.samples[CELL]
    assert cell.memory == {"allocated": 8192.0}
    stats = json.loads(made_by_pytest.read_text())["benchmarks"][2]["stats"]
    rounds = np.concatenate(list(cell.logs.values()))
    assert np.exp(np.median(rounds)) == pytest.approx(stats["median"], rel=1e-6)


ROUNDS = """
import pytest

@pytest.mark.parametrize("n", [100, 300])
def test_sum(benchmark, n):
    benchmark.pedantic(lambda: sum(range(WORK * n)), rounds=COUNT, iterations=5, warmup_rounds=5)
"""


@pytest.fixture(scope="module")
def of_rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of pytest-benchmark: 200 rounds and eight times the work, 200 and 5 rounds; and one without its rounds."""
    folder = tmp_path_factory.mktemp("rounds")
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_rounds.py"]
    for name, work, count in (("base", 1, 200), ("slow", 8, 200), ("few", 1, 5)):
        (folder / "test_rounds.py").write_text(f"WORK, COUNT = {work}, {count}\n{ROUNDS}")
        ran(folder, *options, f"--benchmark-json={name}.json")
    ran(folder, *options, "--benchmark-autosave", "--benchmark-storage=saved")
    (saved,) = (folder / "saved").glob("*/*.json")
    saved.rename(folder / "no_rounds.json")
    return folder


def compared(folder: Path, old: str, new: str, **options: Any) -> tuple[Comparison, int]:
    found = compare(read_input(folder / f"{old}.json"), read_input(folder / f"{new}.json"), **options)
    return found, exit_code(found, ["regression"])


def test_two_files_of_pytest_benchmark_decide_from_their_rounds(of_rounds: Path) -> None:
    slower, code = compared(of_rounds, "base", "slow")
    assert (code, {row.word for row in slower.rows}) == (3, {"regression"})
    assert all(row.ratio and row.ratio.low > 2 for row in slower.rows)
    faster, code = compared(of_rounds, "slow", "base")
    assert (code, {row.word for row in faster.rows}) == (0, {"improvement"})
    assert compared(of_rounds, "base", "base")[1] == 0
    assert compared(of_rounds, "base", "slow", absolute=True)[1] == 3
    shown = text(slower, width=100, colour=False)
    assert "One launch each" in shown
    assert "in seconds" in shown


def test_a_margin_may_exceed_all_and_belong_to_one_benchmark(of_rounds: Path) -> None:
    """The second file takes up to eight times as long."""
    assert compared(of_rounds, "base", "slow", margin=20.0)[1] == 0
    found, code = compared(of_rounds, "base", "slow", margins={"test_sum[300]": 20.0})
    assert code == 3
    assert {row.name: row.word for row in found.rows if row.word == "regression"} == {"test_sum[100]": "regression"}
    assert compared(of_rounds, "base", "slow", margins={"test_sum*": 20.0})[1] == 0
    assert compared(of_rounds, "base", "slow", margins={"test_sum*": 20.0, "*[100]": 0.1})[1] == 3
    with pytest.raises(
        UsageError, match=r"'test_sum': no cell of either run has this name; the first is 'test_sum\[100"
    ):
        compared(of_rounds, "base", "slow", margins={"test_sum": 0.5})


@pytest.mark.parametrize(("few", "rounds"), [("few", 5), ("no_rounds", 1)])
def test_too_few_rounds_name_the_option_that_measures_more(of_rounds: Path, few: str, rounds: int) -> None:
    found, code = compared(of_rounds, "base", few)
    assert code == 5
    assert str(found.undecided) == (
        f"200 and {rounds} rounds are too few; write files with 50 or more (pytest --benchmark-min-rounds=50 "
        "--benchmark-json=FILE), or compare folders with several files"
    )


def test_files_of_two_machines_need_absolute(of_rounds: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.json").write_text((of_rounds / "slow.json").read_text().replace('"count": ', '"count": 1'))
    (tmp_path / "base.json").write_text((of_rounds / "base.json").read_text())
    found, code = compared(tmp_path, "base", "slow")
    assert (code, "--absolute" in str(found.undecided)) == (5, True)
    assert compared(tmp_path, "base", "slow", absolute=True)[1] == 3


def test_blocks_of_dependent_rounds_raise_few_alarms() -> None:
    """Neighbouring rounds share 80 % of their noise, and nothing differs. Single rounds raise many alarms."""
    rng = np.random.default_rng(0)

    def launch() -> np.ndarray:
        noise = rng.normal(0, 0.01, 200)
        for k in range(1, 200):
            noise[k] += 0.8 * noise[k - 1]
        return noise

    def alarms(parts: Callable[[np.ndarray], Iterable[np.ndarray]]) -> int:
        samples = [[float(np.median(part)) for part in parts(launch())] for _ in range(200)]
        return sum(exceeds_p(a, b) < 0.025 for a, b in zip(samples[::2], samples[1::2], strict=True))

    assert alarms(lambda rounds: in_blocks(rounds).values()) <= 8
    assert alarms(lambda rounds: rounds[:, None]) >= 15


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
