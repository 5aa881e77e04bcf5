"""The journal: complete lines stay, a torn one is dropped, a damaged one is reported."""

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adbench.model.errors import BadFile, BadOutput
from adbench.model.events import Checked, Ended, Learned, MemoryMeasured, Timed
from adbench.model.record import Figure, Job, Launch, Launched, Memory, Record, Round, Run, Status, Time, group_of
from adbench.model.run_progress import Head, assemble
from adbench.results.journal import Journal, is_open, read
from tests.support.files import without_checksums

A, B = Job("case", 3, "a", "gradient"), Job("case", 3, "b", "gradient")
HEAD = Head(
    Run(2, "2026-01-01T00:00:00+00:00", "0", 0, {"quick": True}, {"cores": 2}, {"a": None}, {"case": "A."}, ()),
    (A, B),
    {"cases": ["case"]},
)
MEMORY = Memory(Figure(None, "no memray"), Figure(8.0), Figure(4096.0))


def launch(number: int, ns: int = 1000) -> Launch:
    return Launch(number, 0.5, 0.25, {"trace": 0.125}, 0.25, 3, True, (Round(10, ns), Round(10, ns, 5, "steal 12 ms")))


def sealed(text: str) -> bytes:
    """A line of a journal with its checksum."""
    return f'{text[:-1]}, "crc32": "{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def written(folder: Path) -> Path:
    """The journal of a run of two backends and two launches, ended."""
    path = folder / "out" / "journal.jsonl"
    with closing(Journal.create(path, HEAD)) as journal:
        journal.write(Checked(Record(A, "ok")))
        journal.write(Checked(Record(B, "ok")))
        journal.write(Timed(1, (Launched(A, launch(1)), Launched(A, launch(1, 2000), True), Launched(B, launch(1)))))
        journal.write(Timed(0, (Launched(A, launch(0)), Launched(A, launch(0, 3000), True), Launched(B, launch(0)))))
        journal.write(MemoryMeasured(A, MEMORY))
        journal.write(Learned({"loop_overhead_ns": 15.0}))
        journal.write(Ended())
    return path


def test_results_are_assembled_in_the_order_of_plan_and_launches(tmp_path: Path) -> None:
    progress = read(written(tmp_path))
    assert progress.ended
    assert progress.groups == {(0, group_of(A)), (1, group_of(A))}
    assert progress.head.asked == {"cases": ["case"]}
    run = assemble(progress)
    assert run.loop_overhead_ns == 15.0
    assert [record.job for record in run.records] == [A, B]
    assert run.records[0] == Record(
        A,
        "ok",
        time=Time((launch(0), launch(1))),
        control=Time((launch(0, 3000), launch(1, 2000))),
        memory=MEMORY,
    )
    assert run.records[1] == Record(B, "ok", time=Time((launch(0), launch(1))))


@pytest.mark.parametrize(("status", "kept"), [("crashed", Time((launch(0),))), ("wrong", None)])
def test_a_lost_cell_keeps_its_measurements_unless_it_is_wrong(
    tmp_path: Path, status: Status, kept: Time | None
) -> None:
    path = tmp_path / "journal.jsonl"
    with closing(Journal.create(path, HEAD)) as journal:
        journal.write(Checked(Record(A, "ok")))
        journal.write(Checked(Record(B, "ok")))
        journal.write(Timed(0, (Launched(A, launch(0)), Launched(B, launch(0)))))
        journal.write(Timed(1, (Launched(A, launch(1)),), (Record(B, status, "why"),)))
    progress = read(path)
    assert not progress.ended
    assert assemble(progress).records[1] == Record(B, status, "why", time=kept)
    assert (1, group_of(B)) in progress.groups


def test_every_line_is_on_the_disk_before_the_next_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    path = tmp_path / "journal.jsonl"
    with closing(Journal.create(path, HEAD)) as journal:
        for _ in range(3):
            journal.write(Checked(Record(A, "ok")))
            assert synced[-1] == path.stat().st_size
    assert len(synced) == 4


@pytest.mark.parametrize("keep", ["nothing", "half", "all but the end of the line", "zeros"])
def test_a_torn_last_line_is_dropped_and_the_journal_continues_before_it(tmp_path: Path, keep: str) -> None:
    path = written(tmp_path)
    whole = path.read_bytes().splitlines(keepends=True)
    last = whole[-3]
    torn = {"nothing": b"", "half": last[:20], "all but the end of the line": last[:-1], "zeros": bytes(50) + b"\n"}
    path.write_bytes(b"".join(whole[:-3]) + torn[keep])
    assert read(path).memories == {}
    journal, progress = Journal.resume(path)
    assert progress.memories == {}
    assert len(progress.groups) == 2
    with journal:
        journal.write(MemoryMeasured(A, MEMORY))
        journal.write(Ended())
    assert path.read_bytes() == b"".join([*whole[:-2], whole[-1]])
    assert read(path).ended


def test_every_prefix_of_a_journal_is_read_and_loses_at_most_one_line(tmp_path: Path) -> None:
    text = written(tmp_path).read_bytes()
    head = text.index(b"\n") + 1
    path = tmp_path / "cut.jsonl"
    for size in range(0, len(text), 7):
        path.write_bytes(text[:size])
        if size < head:
            with pytest.raises(BadFile, match="before its first result"):
                read(path)
        else:
            lines = text[:size].count(b"\n") - 1
            found = read(path)
            assert len(found.records) + len(found.groups) + len(found.memories) == min(lines, 5)


@pytest.mark.parametrize(
    ("number", "line", "message"),
    [
        (
            3,
            b'{"kind": "chec\n',
            "line 3 of .*journal.jsonl is damaged, or not from a journal: .*; delete it to keep all other lines",
        ),
        (3, b"\x00\xff\n", "line 3 of .* is damaged"),
        (3, b"[" * 100_000 + b"\n", "line 3 of .* is damaged"),
        (3, b"7\n", "line 3 of .* is damaged"),
        (3, sealed('{"kind": "splendid"}'), "line 3 of .*: unknown kind of line 'splendid'"),
        (3, sealed('{"kind": "checked"}'), "line 3 of .*record"),
        (3, sealed('{"kind": "launch", "number": 1, "cells": 3, "lost": []}'), "line 3 of .* damaged"),
        (3, sealed('{"kind": "facts", "facts": {"colour": "red"}}'), "line 3 of .*colour"),
        (3, b'{"kind": "end"}\n', "line 3 of .*: only some of the lines have a checksum"),
        (3, sealed('{"kind": "end"}').replace(b"end", b"enD"), "line 3 of .*: its checksum does not match"),
        (1, b'{"kind": "checked"}\n', "line 1 of .*the first line must be the head"),
        (1, b'{"kind": "head", "run": {"schema_version": 99}}\n', "schema version 99; this adbench resumes .* 2"),
        (1, b'{"kind": "head", "run": 3}\n', "schema version None"),
    ],
)
def test_a_damaged_line_elsewhere_is_named_in_one_line(tmp_path: Path, number: int, line: bytes, message: str) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = line
    path.write_bytes(b"".join(lines))
    for use in (read, Journal.resume):
        with pytest.raises(BadFile, match=message) as caught:
            use(path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("damaged", [(3,), (2, 5), (4, 6, 7)])
def test_the_advice_on_damaged_lines_keeps_all_others(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert max(damaged) < len(lines), "the last line would be torn"
    path.write_bytes(b"".join(b"?\n" if n in damaged else line for n, line in enumerate(lines, 1)))
    with pytest.raises(BadFile) as caught:
        read(path)
    command = str(caught.value).rpartition("other lines: ")[2]
    assert subprocess.run(shlex.split(command), check=False).returncode == 0
    assert path.read_bytes() == b"".join(line for n, line in enumerate(lines, 1) if n not in damaged)
    journal, progress = Journal.resume(path)
    journal.close()
    kept = len(progress.records) + len(progress.groups) + len(progress.memories)
    assert kept >= 5 - len(damaged)


def test_a_flipped_bit_changes_no_value(tmp_path: Path) -> None:
    path = written(tmp_path)
    text = path.read_bytes()
    before = read(path)
    for place in [*range(0, len(text) - 1, 5), len(text) - 1]:
        damaged = bytearray(text)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        if place == len(text) - 1:  # without its end the last line is torn
            assert replace(read(path), ended=True) == before
        else:
            with pytest.raises(BadFile, match=r"^[^\n]*$"):
                read(path)


def test_a_journal_of_an_earlier_version_is_continued_without_checksums(tmp_path: Path) -> None:
    path = written(tmp_path)
    plain = without_checksums(path.read_text())
    path.write_text("".join(plain.splitlines(keepends=True)[:-2]))
    journal, _ = Journal.resume(path)
    with journal:
        journal.write(Learned({"loop_overhead_ns": 15.0}))
        journal.write(Ended())
    assert path.read_text() == plain
    assert read(path).ended
    assert not is_open(path)


def test_a_launch_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], lines[4], *lines[5:]]))
    with pytest.raises(BadFile, match=r"line 6 of .*: launch 0 of case at size 3 is there twice"):
        read(path)


def test_two_cannot_write_to_one_journal(tmp_path: Path) -> None:
    path = written(tmp_path)
    with Journal.resume(path)[0]:
        with pytest.raises(BadOutput, match="another adbench is writing"):
            Journal.resume(path)
        assert read(path).ended  # reading does not disturb the writer
    Journal.resume(path)[0].close()


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = path.read_bytes()
    with pytest.raises(BadOutput, match=r"already holds a run.*--resume"):
        Journal.create(path, HEAD)
    assert path.read_bytes() == before


def test_unwritable_and_missing_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOutput, match=r"cannot be written|is a file"):
        Journal.create(tmp_path / "file" / "journal.jsonl", HEAD)
    with pytest.raises(BadOutput, match="cannot be written"):
        Journal.create(Path("/proc/nothing/here/journal.jsonl"), HEAD)
    with pytest.raises(BadFile, match="no such journal"):
        Journal.resume(tmp_path / "journal.jsonl")
    with pytest.raises(BadFile, match="No such file"):
        read(tmp_path / "journal.jsonl")


def test_a_full_disk_loses_only_the_line_that_did_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal.create(path, HEAD)
    journal.write(Checked(Record(A, "ok")))
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(BadOutput, match=r"No space left on device; earlier results are kept.*--resume"):
            journal.write(Checked(Record(B, "ok")))
    assert path.read_bytes() == before
    journal.write(Checked(replace(Record(B, "ok"), reason="later")))
    journal.close()
    assert len(read(path).records) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full is Linux's")
def test_a_really_full_disk_is_a_one_line_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("r+b", buffering=0) as file, pytest.raises(BadOutput, match="No space left"):
        Journal(Path("/dev/full"), file).write(Checked(Record(A, "ok")))


def test_a_process_killed_while_writing_loses_no_confirmed_line(tmp_path: Path) -> None:
    """SIGKILL at a random moment: every announced line is read, and the run can be resumed."""
    program = (
        "import sys; from pathlib import Path; from tests.results.test_journal import *\n"
        "journal = Journal.create(Path(sys.argv[1]), HEAD)\n"
        "for number in range(10**6):\n"
        "    journal.write(Timed(number, (Launched(A, launch(number)),)))\n"
        "    print(number, flush=True)\n"
    )
    for wanted in (0, 3, 17, 40):
        path = tmp_path / f"{wanted}.jsonl"
        command = [sys.executable, "-c", program, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line) >= wanted:
                    process.send_signal(signal.SIGKILL)
                    break
            announced = [wanted, *map(int, process.stdout.read().split())]
        journal, progress = Journal.resume(path)
        journal.close()
        there = {number for number, _ in progress.groups}
        assert set(range(max(announced) + 1)) <= there
        assert len(there) <= max(announced) + 2
        assert all(json.loads(line) for line in path.read_text().splitlines())
