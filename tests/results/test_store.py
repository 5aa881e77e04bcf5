"""A run on disk: nothing is lost or half-written, and foreign files are refused."""

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from adbench import BadFile
from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadOutput
from adbench.model.events import Checked, Ended, Timed
from adbench.model.record import Figure, Job, Launch, Launched, Memory, Record, Round, Run, Summary, Time
from adbench.model.run_progress import Head
from adbench.model.serialization import from_plain, to_plain
from adbench.results.journal import Journal
from adbench.results.store import dumps, read_run, write_run

JOB = Job("case", 3, "backend", "gradient")
LAUNCH = Launch(0, 1.0, 0.5, {"compile": 0.4}, 0.25, 3, True, (Round(10, 1000), Round(10, 3000, 5, "steal 12 ms")))
RECORD = Record(JOB, "ok", time=Time((LAUNCH,)), memory=Memory(Figure(2.0), Figure(1.0), Figure(None, "no")))
RUN = Run(2, "2026-01-01T00:00:00+00:00", "0", 0, {"quick": True}, {"cores": 2}, {"b": None}, {"case": "A."}, (RECORD,))


def test_a_run_survives_a_round_trip(tmp_path: Path) -> None:
    assert write_run(tmp_path, RUN) == tmp_path / "run.json"
    assert read_run(tmp_path / "run.json") == RUN


def test_numbers_that_json_lacks_survive_a_round_trip() -> None:
    for value in (math.inf, -math.inf, 1e-300):
        plain = json.loads(json.dumps(to_plain(Summary(1, value, 1.0)), allow_nan=False))
        assert from_plain(plain, Summary).total == value
    assert math.isnan(from_plain(to_plain(Summary(1, math.nan, 1.0)), Summary).total)


@pytest.mark.parametrize("text", ["nan", "NaN", "1.5", "infinity", ""])
def test_other_strings_are_not_numbers(text: str) -> None:
    plain = to_plain(Summary(1, 0.0, 1.0)) | {"total": text}
    if text == "nan":
        assert math.isnan(from_plain(plain, Summary).total)
        return
    with pytest.raises(ValueError, match=rf"^\.total: invalid enum value '{text}'$"):
        from_plain(plain, Summary)


def test_a_setting_may_be_a_string_like_a_number() -> None:
    run = replace(RUN, settings={"backends": "nan", "number": "3", "flag": "true", "nothing": "null"})
    assert from_plain(to_plain(run), Run) == run


def test_a_generic_type_is_read_too() -> None:
    plain = [[to_plain(JOB), 3], [to_plain(JOB), 5]]
    assert from_plain(plain, list[tuple[Job, float]]) == [(JOB, 3.0), (JOB, 5.0)]
    with pytest.raises(ValueError, match=r"^\[1\]\[0\]\.size: expected int, got 'x'$"):
        from_plain([plain[0], [to_plain(JOB) | {"size": "x"}, 3]], list[tuple[Job, float]])
    with pytest.raises(ValueError, match=r"^expected array of length >= 2, got \[1.0\]$"):
        from_plain([1.0], tuple[float, float])


def test_a_fault_without_a_name_gives_its_type() -> None:
    """msgspec does not name a dict's key, which may be anything."""
    with pytest.raises(ValueError, match=r"^\.settings\[\.\.\.\]: expected bool \| int \| .*, got array$"):
        from_plain(to_plain(RUN) | {"settings": {"a": []}}, Run)


def test_a_run_without_records_survives_a_round_trip(tmp_path: Path) -> None:
    empty = replace(RUN, records=())
    write_whole(tmp_path / "run.json", dumps(empty))
    assert read_run(tmp_path / "run.json") == empty


def test_one_line_for_each_record(tmp_path: Path) -> None:
    """So that `diff` can compare two runs."""
    lines = dumps(replace(RUN, records=(RECORD, RECORD))).splitlines()
    assert sum(line.startswith('{"job"') for line in lines) == 2


def test_undisturbed_rounds_are_stored_briefly() -> None:
    assert to_plain(Round(10, 1000)) == {"calls": 10, "ns": 1000}
    assert to_plain(Round(10, 1000, 5)) == {"calls": 10, "ns": 1000, "gc_ns": 5}


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")])
def test_a_failed_write_leaves_only_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError
) -> None:
    target = tmp_path / "run.json"
    write_whole(target, "old")

    def fails(descriptor: int) -> None:
        raise fault

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(
        BadOutput, match=rf"run.json: cannot be written: {fault.strerror}; all results are safe: .*--resume "
    ):
        write_run(tmp_path, RUN)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_or_read_only_folder_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(BadOutput, match=r"gone/run.json: cannot be written: No such file"):
        write_run(tmp_path / "gone", RUN)
    with pytest.raises(BadOutput, match=r"run.json: cannot be written"):
        write_run(Path("/proc/self"), RUN)


def test_a_folder_is_read_from_its_run_or_its_unfinished_journal(tmp_path: Path) -> None:
    begun = Journal.create(tmp_path / "journal.jsonl", Head(replace(RUN, records=()), (JOB,)))
    begun.write(Checked(replace(RECORD, time=None, memory=None)))
    assert read_run(tmp_path).records[0].time is None
    assert read_run(tmp_path / "journal.jsonl") == read_run(tmp_path)
    write_run(tmp_path, replace(RUN, seed=5))  # as after Ctrl-C
    begun.write(Timed(0, (Launched(JOB, LAUNCH),)))  # then resumed, and killed
    assert read_run(tmp_path).records[0].time == RECORD.time
    begun.write(Ended())
    assert read_run(tmp_path).seed == 5
    begun.close()


def test_a_folder_without_a_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"contains no run: neither run.json nor journal.jsonl"):
        read_run(tmp_path)


def changed(old: str, new: str) -> str:
    text = dumps(RUN)
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid or damaged JSON"),
        (dumps(RUN)[:-40], "invalid or damaged JSON"),
        ("[" * 100_000, "invalid or damaged JSON"),
        ('{"a":' * 100_000, "invalid or damaged JSON"),
        ("\x00" * 10, "invalid or damaged JSON"),
        ("3", "not a run of adbench: .*schema_version is missing"),
        ('{"machine_info": {}, "benchmarks": []}', "not a run of adbench: .*schema_version is missing"),
        ('{"schema_version": true}', "schema_version is missing"),
        (dumps(replace(RUN, schema_version=99)), "schema version 99, of a later adbench; this reads 2"),
        (dumps(replace(RUN, schema_version=0)), "schema version 0, of no adbench; this reads 2"),
        ('{"schema_version": 2}', "not a run of adbench: object missing required field created"),
        (changed('"ok"', '"splendid"'), r": \.records\[0\].status: invalid enum value 'splendid'"),
        (changed('"size": 3', '"size": "three"'), r"records\[0\].job.size: expected int, got 'three'"),
        (changed('"size": 3', '"size": true'), r"records\[0\].job.size: expected int, got True"),
        (changed('"seed": 0,', '"seed": 0, "ex\\ntra": 1,'), "object contains unknown field ex tra"),
        (
            changed('"ns": 1000', '"ns": -1'),
            r"records\[0\].time.launches\[0\].rounds\[0\].ns: expected int >= 0, got -1",
        ),
        (changed('"calls": 10', '"calls": 0'), r"rounds\[0\].calls: expected int >= 1, got 0"),
        (changed('"prepare_seconds": 0.5', '"prepare_seconds": "nan"'), "prepare_seconds: expected float, got 'nan'"),
        (changed('"prepare_seconds": 0.5', '"prepare_seconds": NaN'), "NaN is not valid JSON"),
        (changed('"value": 2.0', '"value": "nan"'), r"value: expected float \| null, got 'nan'"),
        (changed('"value": 2.0', '"value": -2'), r"value: expected float >= 0.0, got -2"),
        (dumps(replace(RUN, records=(replace(RECORD, time=Time(())),))), r"launches: expected array of length >= 1"),
        (changed('"size": 3,', f'"size": 3, "{"x" * 9999}": 1,'), "job: object contains unknown field xxx"),
        (changed('"quick": true', f'"quick": {[[0] * 9999]}'), r"settings\[...\]: expected .* got array"),
        (changed('"seed": 0,', '"seed": 0, "\\ud800": 1,'), "surrogates not allowed"),
    ],
)
def test_a_file_that_is_not_a_run_is_a_one_line_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadFile, match=message) as caught:
        read_run(tmp_path / "run.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_million_records_are_refused_before_they_take_the_memory(tmp_path: Path) -> None:
    record = '{"job":{"case":"c","size":1,"backend":"b","operator":"value"},"status":"ok"}'
    path = tmp_path / "run.json"
    path.write_text('{"schema_version":2,"records":[' + ",".join([record] * 10**6) + "]}")
    with pytest.raises(BadFile, match="holds 1000000 records; adbench reads at most 100000"):
        read_run(path)


def test_a_too_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # a sparse tebibyte that takes no space
    with pytest.raises(BadFile, match="larger than 512 MiB"):
        read_run(path)


def test_names_may_be_any_string(tmp_path: Path) -> None:
    nasty = "a\nb<script>alert(1)</script>|`\u202e\x00\x1b[31m\ud800"
    run = replace(RUN, records=(replace(RECORD, job=Job(nasty, 1, nasty, "gradient"), reason=nasty),))
    write_run(tmp_path, run)
    assert read_run(tmp_path / "run.json") == run


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        read_run(tmp_path / "nothing.json")


@pytest.mark.parametrize("place", ["a record", "a launch", "a control"])
def test_a_result_that_is_there_twice_is_refused(tmp_path: Path, place: str) -> None:
    time = Time((LAUNCH, LAUNCH))
    records = {
        "a record": (RECORD, RECORD),
        "a launch": (replace(RECORD, time=time),),
        "a control": (replace(RECORD, control=time),),
    }
    (tmp_path / "run.json").write_text(dumps(replace(RUN, records=records[place])))
    with pytest.raises(BadFile, match=r"^[^\n]*records\[\d\]: [^\n]*gradient of [^\n]* is there twice$"):
        read_run(tmp_path)


@pytest.mark.parametrize(("field", "value"), [("size", 10**30), ("ns", 10**400), ("calls", 2**60), ("number", -1)])
def test_a_whole_number_that_no_float_holds_is_refused(tmp_path: Path, field: str, value: int) -> None:
    changed_text, count = re.subn(rf'"{field}": \d+', f'"{field}": {value}', dumps(RUN), count=1)
    assert count == 1
    (tmp_path / "run.json").write_text(changed_text)
    with pytest.raises(BadFile, match=rf"^[^\n]*{field}: expected int [<>]= [^\n]*$"):
        read_run(tmp_path)
