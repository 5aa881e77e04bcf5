"""A run on disk: nothing lost, nothing half-written, nothing foreign believed."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from adbench import BadFile
from adbench.suite.errors import BadOutput
from adbench.suite.plain import from_plain, to_plain
from adbench.suite.record import Figure, Job, Launch, Memory, Record, Round, Run, Time
from adbench.suite.store import Store, dumps, read_run, write_whole

JOB = Job("case", 3, "backend", "gradient")
LAUNCH = Launch(0, 1.0, 0.5, {"compile": 0.4}, 0.25, 3, True, (Round(10, 1000), Round(10, 3000, 5, "steal 12 ms")))
RECORD = Record(JOB, "ok", time=Time((LAUNCH,)), memory=Memory(Figure(2.0), Figure(1.0), Figure(None, "no")))
RUN = Run(2, "2026-01-01T00:00:00+00:00", "0", 0, {"quick": True}, {"cores": 2}, {"b": None}, {"case": "A."}, (RECORD,))


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    with Store(tmp_path / "out") as store:
        store.add(RECORD)
        store.finish(RUN)
    assert read_run(store.run_file) == RUN
    assert [
        json.loads(line)["job"]["size"] for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    ] == [3]


def test_numbers_that_json_lacks_come_back_too() -> None:
    for value in (math.inf, -math.inf, 1e-300):
        assert from_plain(json.loads(json.dumps(to_plain(Figure(value)), allow_nan=False)), Figure).value == value
    assert math.isnan(from_plain(to_plain(Figure(math.nan)), Figure).value or 0.0)


def test_every_record_is_on_the_disk_before_the_next_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    with Store(tmp_path / "out") as store:
        for _ in range(3):
            store.add(RECORD)
            assert synced[-1] == (tmp_path / "out" / "journal.jsonl").stat().st_size
    assert len(synced) == 3


def test_a_folder_that_holds_a_run_is_not_written_over(tmp_path: Path) -> None:
    with Store(tmp_path / "out") as store:
        store.finish(RUN)
    with pytest.raises(BadOutput, match="already holds a run"):
        Store(tmp_path / "out")
    assert read_run(store.run_file) == RUN


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOutput, match=r"cannot be written|is a file"):
        Store(tmp_path / "file")
    with pytest.raises(BadOutput, match="cannot be written"):
        Store(Path("/proc/nothing/here"))


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x.json"
    write_whole(target, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON, or damaged"),
        (dumps(RUN)[:-40], "not JSON, or damaged"),
        ("[" * 100_000, "not JSON, or damaged"),
        ("3", "not a run of adbench: there is no schema_version"),
        ('{"machine_info": {}, "benchmarks": []}', "not a run of adbench: there is no schema_version"),
        (dumps(replace(RUN, schema_version=99)), "schema version 99; this adbench reads version 2"),
        ('{"schema_version": 2}', "not a run of adbench: "),
        (dumps(RUN).replace('"ok"', '"splendid"'), "not a run of adbench: .*status"),
        (dumps(RUN).replace('"size": 3', '"size": "three"'), "not a run of adbench: .*size"),
        (dumps(RUN).replace('"seed": 0', '"seed": 0, "extra": 1'), "not a run of adbench: .*extra"),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadFile, match=message) as caught:
        read_run(tmp_path / "run.json")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        read_run(tmp_path / "nothing.json")
    with pytest.raises(BadFile, match="cannot be read"):
        read_run(tmp_path)
