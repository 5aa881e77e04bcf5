"""The list of runs: their contents in order, with unreadable ones named."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adbench.model.errors import BadFile
from adbench.model.events import Checked, Ended
from adbench.model.record import Record
from adbench.model.run_progress import Head
from adbench.reports.text.history import text
from adbench.results.journal import Journal
from adbench.results.store import write_run
from adbench.results.timeline.history import HistoryEntry, stored_runs
from tests.reports import runs
from tests.support.sessions import run, times


def history(folder: Path) -> list[HistoryEntry]:
    return [entry for entry, _ in stored_runs(folder)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Runs of four kinds: finished, older and finished with a fault, interrupted, damaged."""
    found = run(times(np.random.default_rng(0), ("tape", "jax")), created="2026-02-01T10:00:00+00:00")
    for name in ("b/done", "a/older", "damaged", "a/cut", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    write_run(tmp_path / "b/done", found)
    wrong = runs.record(backend="tape", status="wrong")
    write_run(tmp_path / "a/older", replace(runs.run([wrong]), created="2026-01-01T10:00:00+00:00"))
    head = Head(replace(found, records=(), created="2026-01-15T10:00:00+00:00"), tuple(r.job for r in found.records))
    with Journal.create(tmp_path / "a/cut/journal.jsonl", head) as journal:
        journal.write(Checked(Record(head.plan[0], "ok")))
    (tmp_path / "damaged/run.json").write_text("{")
    write_run(tmp_path / ".hidden", found)
    return tmp_path


def test_runs_are_listed_oldest_first_with_their_contents(folder: Path) -> None:
    damaged, older, cut, done = history(folder)
    assert [entry.path.name for entry in (damaged, older, cut, done)] == ["damaged", "older", "cut", "done"]
    assert (damaged.state, damaged.created) == ("unreadable", None)
    assert "invalid or damaged JSON" in str(damaged.reason)
    assert (older.state, older.wrong, older.cells, older.floor) == ("finished", 1, 1, None)
    assert (cut.state, cut.done, cut.cells) == ("resumable", 1, 8)
    assert (done.state, done.cases, done.backends, done.done) == (
        "finished",
        ("case0", "case1", "case2", "case3"),
        ("tape", "jax"),
        8,
    )
    assert done.floor is not None
    assert done.floor < 0.01
    assert done.machine == cut.machine


def test_a_resumed_run_that_ends_is_finished(folder: Path) -> None:
    journal, _ = Journal.resume(folder / "a/cut/journal.jsonl")
    with journal:
        journal.write(Ended())
    assert next(entry for entry in history(folder) if entry.path.name == "cut").state == "finished"


def test_a_compressed_run_is_found(folder: Path) -> None:
    plain = folder / "b/done/run.json"
    (folder / "b/done/run.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert next(entry for entry in history(folder) if entry.path.name == "done").done == 8


def test_a_damaged_journal_next_to_a_run_is_named(folder: Path) -> None:
    (folder / "b/done/journal.jsonl").write_bytes(b'{"kind": "head", "run": {}}\n' * 3)
    entry = next(entry for entry in history(folder) if entry.path.name == "done")
    assert entry.state == "unreadable"
    assert "line 1 of" in str(entry.reason)


def test_a_run_of_an_earlier_version_is_read_next_to_its_journal(folder: Path) -> None:
    (folder / "b/done/journal.jsonl").write_bytes(b'{"job": {}, "status": "ok"}\n' * 3)
    assert next(entry for entry in history(folder) if entry.path.name == "done").state == "finished"


def test_an_empty_folder_is_empty_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert history(tmp_path) == []
    with pytest.raises(BadFile, match="no such folder"):
        history(tmp_path / "nothing")


def test_times_are_local_with_their_zone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Kolkata")
            time.tzset()
            _, older, *_ = history(folder)
            assert "1 Jan 2026, 15:30 IST" in text([older], 80)
            assert "1 Jan 2026, 15:30 IST" in text([older], 140)
            assert "never" in text([replace(older, created="never")], 80)
    finally:
        time.tzset()
