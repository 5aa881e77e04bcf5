"""Disks that are full, read-only or cleared during a run, and unusual names."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from adbench.results.store import read_run
from tests.support.files import CASE, RIGHT, write
from tests.support.survival import Run, arguments, misbehaving_at, rounds_of, run, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # many processes: slow on a busy machine


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A separate file system of 512 KiB. Skips if the system does not allow it."""
    here = tmp_path / "disk"
    here.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(here)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only root can mount a disk to fill")
    yield here
    subprocess.run(["umount", "-l", str(here)], check=True)


def fill(disk: Path, left: int) -> Path:
    """Fill the disk up to this many bytes."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    stat = os.statvfs(disk)
    filler.write_bytes(b"x" * (stat.f_bavail * stat.f_frsize - left))
    return filler


def asked(home: Path, folder: Path) -> list[str]:
    """A run of one backend at three sizes into the folder."""
    found = arguments(home, {}, "--launches", "3", sizes=("1", "10", "100"))
    found[found.index("-o") + 1] = str(folder)
    return found


def refused(ran: Run, *words: str) -> None:
    """One clear line, exit code 2, and no process remains."""
    assert ran.process.returncode == 2, ran.err
    *plan, line = ran.err.splitlines()
    assert len(plan) <= 1, "no more than how long it was to take"
    assert line.startswith("adbench: ")
    for word in words:
        assert word in line
    assert ran.seen["left behind"] == []


def gone_on_with(folder: Path) -> None:
    """The run can be resumed, and is then like an undisturbed one."""
    ran = run(folder, "run", "--resume", str(folder))
    assert ran.process.returncode == 0, ran.err
    assert set(rounds_of(folder).values()) == {1}
    records = read_run(folder).records
    assert [record.job.size for record in records] == [1, 10, 100]
    assert all(record.time and len(record.time.launches) == 3 and record.memory for record in records)


def test_a_full_disk_is_a_one_line_error_and_earlier_results_stay(tmp_path: Path, disk: Path) -> None:
    fill(disk, 0)
    refused(run(disk / "out", *asked(tmp_path, disk / "out")), "No space left on device", "-o")
    filler = fill(disk, 12_288)
    ran = run(disk / "out", *asked(tmp_path, disk / "out"))
    refused(ran, "No space left on device", f"adbench run --resume {disk / 'out'}")
    kept = (disk / "out" / "journal.jsonl").read_text()
    assert kept.endswith("\n")
    assert len(kept.splitlines()) >= 1
    assert read_run(disk / "out").created
    filler.unlink()
    gone_on_with(disk / "out")
    assert (disk / "out" / "journal.jsonl").read_text().startswith(kept)


def test_a_disk_full_at_the_end_keeps_the_journal_and_the_old_page(tmp_path: Path, disk: Path) -> None:
    ran = run(disk / "out", *asked(tmp_path, disk / "out"))
    assert ran.process.returncode == 0, ran.err
    old = (disk / "out" / "report.html").read_text()
    fill(disk, 4096)
    refused(run(disk / "out", "run", "--resume", str(disk / "out")), "No space left on device", "--resume")
    refused(run(disk / "out", "report", str(disk / "out")), "report.html: cannot be written: No space left on device")
    assert (disk / "out" / "report.html").read_text() == old
    assert sorted(p.name for p in (disk / "out").iterdir()) == ["journal.jsonl", "report.html", "run.json"]


def test_a_file_size_limit_acts_like_a_full_disk(tmp_path: Path) -> None:
    """For users other than root: cache writes must not end the run either."""
    limited = ("env", "-u", "COVERAGE_PROCESS_CONFIG", "prlimit", "--fsize=8192:8192")  # coverage data would not fit
    ran = run(tmp_path / "out", *asked(tmp_path, tmp_path / "out"), before=limited)
    refused(ran, "File too large", "--resume")
    gone_on_with(tmp_path / "out")


def test_a_read_only_disk_is_reported_before_measuring(tmp_path: Path, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    refused(run(disk / "out", *asked(tmp_path, disk / "out")), "Read-only file system", "-o")
    refused(run(disk / "out", *asked(tmp_path, Path("/dev/null/out"))), "Not a directory", "-o")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_reported_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    refused(run(tmp_path, *asked(tmp_path, tmp_path / "closed" / "out")), "Permission denied", "-o")


def test_results_deleted_during_the_run_exist_at_its_end(tmp_path: Path) -> None:
    with running(tmp_path / "out", *asked(tmp_path, tmp_path / "out")) as under_way:
        under_way.wait_for_lines(4)
        shutil.rmtree(tmp_path / "out")
        assert under_way.end() == 0, under_way.err
    records = read_run(tmp_path / "out").records
    assert [record.status for record in records] == ["ok"] * 3
    assert all(record.time and len(record.time.launches) == 3 for record in records)
    assert under_way.lines()[0].startswith('{"kind": "head"')
    assert set(rounds_of(tmp_path / "out").values()) == {1}


HOSTILE = "<script>alert(1)</script>\n\r\x1b[31m\u202eevil\u0000]]> --> \ud800 &amp; {{ 7 * 7 }} %s | `code`"
LONG = "x" * 5000


def test_arbitrary_names_and_reasons_reach_every_report_as_text(tmp_path: Path) -> None:
    """In the journal, the JSON, the table and the page: nothing is executed, nothing breaks a line."""
    names = [HOSTILE, LONG, HOSTILE * 50]
    case = CASE.replace("CASE = ", "ONE = ") + f"\nCASES = {{name: ONE for name in {names!r}}}\n"
    backends = {
        "<b>bold\n\x1b[31m\u202e": misbehaving_at("first call", f"raise ValueError({HOSTILE!r} * 100)", tmp_path / "1"),
        "y" * 200: misbehaving_at("prepare", f"raise Unsupported({LONG!r} + {HOSTILE!r})", tmp_path / "2"),
        "right\n<i>": RIGHT,
    }
    write(tmp_path / "cases", hostile=case)
    write(tmp_path / "backends", **backends)
    chosen = [f"-b{tmp_path / 'backends' / name}.py" for name in backends]
    more = ["--launches", "1", "-n", "10", "--operator", "gradient", *chosen]
    ran = run(
        tmp_path / "out",
        *("run", "--quick", "-o", str(tmp_path / "out"), "-c", str(tmp_path / "cases" / "hostile.py"), *more),
    )
    assert ran.process.returncode == 4, ran.err
    assert "Traceback" not in ran.err
    found = read_run(tmp_path / "out")
    assert set(found.cases) == set(names)
    assert set(found.versions) == set(backends)
    for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines():
        json.loads(line)
    for record in found.records:
        assert record.status == ("ok" if "right" in record.job.backend else record.status)
        assert "\n" not in str(record.reason)
        assert len(str(record.reason)) < 1000
    for text in (ran.out, ran.err):
        assert not set(text) & {"\x1b", "\u202e", "\r", "\0"}, "a terminal would obey"
        assert max(map(len, text.splitlines()), default=0) < 1000
    page = (tmp_path / "out" / "report.html").read_text(errors="replace")
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert "right\n<i>" not in page
    again = run(tmp_path / "out", "report", str(tmp_path / "out" / "run.json"))
    assert again.process.returncode == 0, again.err
    listed = run(tmp_path / "out", "history", str(tmp_path))
    assert listed.process.returncode == 0, listed.err
    compared = run(tmp_path / "out", "compare", str(tmp_path / "out"), str(tmp_path / "out"), "--markdown")
    assert compared.process.returncode == 0, compared.err
    for text in (listed.out, compared.out):
        assert not set(text) & {"\x1b", "\u202e", "\r", "\0"}
