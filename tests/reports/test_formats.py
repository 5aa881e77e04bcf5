"""Files for other programs: each is read back by its consumer, its published schema, or the fields it documents."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adbench.cli.support.output_formats import FORMATS, format_of
from adbench.model.errors import UsageError
from adbench.model.record import Run
from adbench.reports.formats import asv, bencher, code_quality, google_benchmark, markdown, sarif
from adbench.results.store import dumps
from tests.reports import runs
from tests.reports.test_hostile import HOSTILE
from tests.support.command import adbench

SCHEMAS = Path(__file__).with_name("schemas")
COMMIT = {"hash": "0123456789abcdef0123456789abcdef01234567", "date": "2025-01-02T00:00:00+01:00"}
MACHINE = {"processor": "a processor", "hardware_threads": 4, "python": "CPython 3.11.7", "load_1_minute": 0.5}


def mixed(**changes: Any) -> Run:
    """One right cell with memory, and a cell of every kind that has no time."""
    records = [
        runs.record(backend="tape", seconds=2e-6, memory=runs.memory(1024, None, "the system hides it")),
        runs.record(backend="tape", size=20, seconds=3e-6),
        runs.record(backend="liar", status="wrong", reason="1 of 3 wrong: x[1]: got 2.0, expected 1.0"),
        runs.record(backend="dead", status="crashed", reason="died of SIGSEGV"),
        runs.record(backend="shy", status="unsupported", reason="no cholesky"),
        runs.record(backend="old", status="known", reason="nan: as everybody knows"),
        runs.record(backend="fixed", status="surprise", reason="right, but a known bug"),
    ]
    # A wrong result may have times, of launches before it was found wrong.
    records = [replace(record, time=runs.time()) if record.outcome.is_incorrect else record for record in records]
    sources = {"backends/liar": "src/my backend.py:12", "cases/quadratic": "cases/quadratic.py:3"}
    return runs.run(records, **{"commit": COMMIT, "sources": sources, "machine": MACHINE} | changes)


def valid(schema: str, text: str) -> Any:
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    jsonschema.validate(found, json.loads((SCHEMAS / schema).read_text("utf-8")))
    return found


def test_the_end_of_a_files_name_chooses_one_format() -> None:
    ends = Counter(suffix for form in FORMATS.values() for suffix in form.suffixes)
    assert set(ends.values()) == {1}
    assert format_of(Path("x.bmf.json")) == "bencher"
    assert format_of(Path("X.SARIF")) == format_of(Path("x.sarif.json")) == "sarif"
    assert (format_of(Path("x.json")), format_of(Path("x.txt"))) == ("json", None)


def test_sarif_has_a_result_for_each_wrong_or_failing_cell_at_the_users_line() -> None:
    (run,) = valid("sarif-2.1.0.json", sarif.render(mixed()))["runs"]
    found = {result["ruleId"]: result for result in run["results"]}
    assert list(found) == ["wrong-gradient", "failed", "known-bug-gone"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(found)
    wrong = found["wrong-gradient"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    assert "x[1]: got 2.0, expected 1.0" in wrong["message"]["text"]
    place = wrong["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("src/my%20backend.py", 12)
    (other,) = wrong["relatedLocations"]
    assert other["physicalLocation"]["artifactLocation"]["uri"] == "cases/quadratic.py"
    crashed = found["failed"]["locations"][0]["physicalLocation"]
    assert (crashed["artifactLocation"]["uri"], crashed["region"]["startLine"]) == ("cases/quadratic.py", 3)
    assert len({result["partialFingerprints"]["cell/v1"] for result in run["results"]}) == 3
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_sarif_without_findings_sources_or_an_end_is_valid_too() -> None:
    (fine,) = valid("sarif-2.1.0.json", sarif.render(runs.run([runs.record()])))["runs"]
    assert fine["results"] == []
    (run,) = valid("sarif-2.1.0.json", sarif.render(mixed(sources={}, unchecked=3)))["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "3 of 10 cells not checked" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert all(result["locations"] for result in run["results"])  # GitHub refuses a result without one


def test_sarif_keeps_to_the_number_of_results_that_github_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    (run,) = valid("sarif-2.1.0.json", sarif.render(mixed()))["runs"]
    assert len(run["results"]) == 2
    assert sarif.left_out(mixed()) == "1 more findings left out: GitHub shows 2"


def test_gitlab_gets_the_same_results_with_its_required_fields() -> None:
    found = json.loads(code_quality.render(mixed()))
    assert [issue["check_name"] for issue in found] == [
        "adbench/wrong-gradient",
        "adbench/failed",
        "adbench/known-bug-gone",
    ]
    assert found[0]["location"] == {"path": "src/my backend.py", "lines": {"begin": 12}}
    assert [issue["severity"] for issue in found] == ["critical", "major", "info"]
    assert len({issue["fingerprint"] for issue in found}) == 3
    assert all("\n" not in issue["description"] for issue in found)


def test_the_schema_of_sarif_refuses_a_result_without_a_message() -> None:
    log = json.loads(sarif.render(mixed()))
    del log["runs"][0]["results"][0]["message"]
    with pytest.raises(jsonschema.ValidationError):
        valid("sarif-2.1.0.json", json.dumps(log))


def test_bencher_gets_times_in_nanoseconds_and_bytes_and_never_a_wrong_result() -> None:
    found = valid("bmf.json", bencher.render(mixed()))
    assert list(found) == ["quadratic[10]-tape-gradient", "quadratic[20]-tape-gradient"]
    latency = found["quadratic[10]-tape-gradient"]["latency"]
    assert latency["value"] == pytest.approx(2000)
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]
    assert found["quadratic[10]-tape-gradient"]["python-peak-bytes"] == {"value": 1024}
    assert "resident-peak-bytes" not in found["quadratic[10]-tape-gradient"]
    counted = "5 cells without a time left out: 1 wrong, 1 crashed, 1 unsupported, 1 known, 1 surprise"
    assert bencher.left_out(mixed()) == counted
    assert bencher.left_out(runs.run([runs.record()])) is None


def test_google_benchmark_has_what_its_compare_reads_of_each_launch() -> None:
    found = json.loads(google_benchmark.render(mixed()), parse_constant=pytest.fail)
    assert found["context"]["json_schema_version"] == 1
    assert found["context"]["adbench_cpu_time"] == google_benchmark.NO_CPU_TIME
    entries = found["benchmarks"]
    assert Counter(entry["name"] for entry in entries) == {
        "quadratic[10]-tape-gradient": 9,
        "quadratic[20]-tape-gradient": 9,
    }
    for entry in entries:  # tools/gbench/report.py reads these of every entry, and fails where one is missing
        assert all(type(entry[name]) is float and entry[name] > 0 for name in ("real_time", "cpu_time"))
        assert (entry["time_unit"], entry["run_type"], entry["repetitions"]) == ("ns", "iteration", 9)
    assert [entry["repetition_index"] for entry in entries[:9]] == list(range(9))
    assert {entry["per_family_instance_index"] for entry in entries} == {0, 1}


def asv_results(run: Run, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(benchmarks.json, the results) as written."""
    found = asv.files(run, folder)
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    listed, _, results = found.values()
    return json.loads(listed), json.loads(results)


def test_asv_gets_failures_as_null_and_skipped_cells_as_nan(tmp_path: Path) -> None:
    listed, results = asv_results(mixed(), tmp_path)
    assert (listed["version"], results["version"], results["commit_hash"]) == (2, 2, COMMIT["hash"])
    row = dict(zip(results["result_columns"], results["results"]["quadratic.gradient"], strict=False))
    assert row["params"] == listed["quadratic.gradient"]["params"]
    by_place = dict(zip(product(*row["params"]), row["result"], strict=True))
    assert by_place["10", "'tape'"] == pytest.approx(2e-6)
    assert [by_place["10", f"'{name}'"] for name in ("liar", "dead", "old")] == [None] * 3
    assert math.isnan(by_place["10", "'fixed'"])
    assert math.isnan(by_place["10", "'shy'"])
    assert math.isnan(by_place["20", "'liar'"])
    assert len(row["samples"][0]) == row["stats_repeat"][0] == 9
    assert row["stats_ci_99_a"][0] <= row["stats_q_25"][0] < row["stats_q_75"][0] <= row["stats_ci_99_b"][0]
    assert listed["quadratic.gradient.python_peak_bytes"]["unit"] == "bytes"
    assert json.loads((tmp_path / "a-processor-4/machine.json").read_text("utf-8"))["machine"] == "a-processor-4"


def test_asvs_list_of_benchmarks_keeps_those_of_earlier_runs(tmp_path: Path) -> None:
    asv_results(mixed(), tmp_path)
    other = [runs.record(size=40, backend="new"), runs.record("cubic")]
    listed, _ = asv_results(runs.run(other, commit=COMMIT, machine=MACHINE), tmp_path)
    assert listed["quadratic.gradient"]["params"][0] == ["10", "20", "40"]
    assert {"cubic.gradient", "quadratic.gradient.python_peak_bytes"} <= set(listed)


@pytest.mark.parametrize("commit", [{}, {"hash": "../../etc", "date": COMMIT["date"]}])
def test_asv_needs_a_commit(commit: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git checkout"):
        asv.files(mixed(commit=commit), tmp_path)


def test_asv_itself_reads_the_results(tmp_path: Path) -> None:
    reader = pytest.importorskip("asv.results", reason="asv is not installed")
    asv_results(mixed(), tmp_path)
    (found,) = reader.iter_results_for_machine(str(tmp_path), "a-processor-4")
    assert found.commit_hash == COMMIT["hash"]
    values = found.get_result_value("quadratic.gradient", [["10"], ["'tape'", "'liar'"]])
    assert values == [pytest.approx(2e-6), None]


def test_a_job_summary_of_a_check_names_every_wrong_result_and_an_interruption() -> None:
    run = mixed(unchecked=3)
    checked = replace(run, records=tuple(replace(record, time=None, memory=None) for record in run.records))
    text = markdown.render(checked)
    assert text.startswith("### adbench: 7 results, ✗ 1 wrong, † 1 crashed\n")
    assert "**interrupted: 3 of 10 cells not checked**" in text
    assert "| liar |  | 1 |" in text
    assert "| ✗ wrong | quadratic | 10 | gradient | liar | 1 of 3 wrong" in text
    assert "* ∅ unsupported, shy on 1 cell: no cholesky" in text


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_break_no_format(name: str, tmp_path: Path) -> None:
    records = [runs.record(name, 1, name, name), runs.record("q", 1, name, status="wrong", reason=name or "none")]
    hostile = runs.run(records, commit=COMMIT, machine=MACHINE, sources={f"backends/{name}": f"{name}:1"})
    valid("sarif-2.1.0.json", sarif.render(hostile))
    valid("bmf.json", bencher.render(hostile))
    for text in (
        google_benchmark.render(hostile),
        code_quality.render(hostile),
        *asv.files(hostile, tmp_path).values(),
    ):
        json.loads(text.encode())
    assert all(path.is_relative_to(tmp_path) and ".." not in path.parts for path in asv.files(hostile, tmp_path))


def test_the_command_writes_each_format_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(dumps(mixed()), "utf-8")
    for name in ("x.sarif", "x.bmf.json", "x.gbench.json", "x.asv"):
        done = adbench(tmp_path, "report", "run.json", "-o", name)
        assert done.code == 0, done.err
        assert (tmp_path / name).exists()
        assert ("5 cells without a time " in done.err) == (name != "x.sarif")
    done = adbench(tmp_path, "report", "run.json", "--format", "asv")
    assert (done.code, "-o FOLDER" in done.err) == (2, True)
    (tmp_path / "x.asv/benchmarks.json").write_text("[]", "utf-8")
    done = adbench(tmp_path, "report", "run.json", "-o", "x.asv")
    assert (done.code, done.err.count("\n"), "not a list of benchmarks" in done.err) == (2, 1, True)
