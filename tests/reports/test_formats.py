"""Files for other programs: each is read back by its consumer, its published schema, or the fields it documents."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from adbench.cli.support.output_formats import FORMATS, format_of, write
from adbench.model.record import Run
from adbench.reports.formats import code_quality, markdown, sarif
from tests.reports import runs
from tests.reports.test_hostile import HOSTILE

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
    ends = Counter(end for ends in FORMATS.values() for end in ends)
    assert set(ends.values()) == {1}
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
def test_hostile_names_break_no_format(name: str) -> None:
    records = [runs.record(name, 1, name, name), runs.record("q", 1, name, status="wrong", reason=name or "none")]
    hostile = runs.run(records, commit=COMMIT, machine=MACHINE, sources={f"backends/{name}": f"{name}:1"})
    valid("sarif-2.1.0.json", sarif.render(hostile))
    json.loads(code_quality.render(hostile).encode())


def test_the_command_writes_a_file_and_counts_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    for name in ("sarif", "codequality", "md"):
        write(mixed(), name, tmp_path / name)
        assert (tmp_path / name).exists()
        left_out = "" if name == "md" else f"adbench: {name}: 1 more findings left out: GitHub shows 2\n"
        assert capsys.readouterr().err == left_out
