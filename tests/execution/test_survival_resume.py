"""A run that is killed or interrupted at any moment keeps its finished work and never repeats it."""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from adbench.execution.workers.randomisation import WorkerKey, randomise
from adbench.model.record import Record
from adbench.results.store import read_run
from tests.support.files import CASE, RIGHT, write
from tests.support.survival import arguments, misbehaving_at, rounds_of, run, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # many processes: slow on a busy machine

LAUNCHES = 4
SEATS = (WorkerKey("notes"), WorkerKey("notes", control=True))

# Every process of the backend records its requests to prepare, and its hash seed, which is random per launch.
NOTING = RIGHT.replace(
    "def prepare(operator, f, args, wrt):\n",
    """def prepare(operator, f, args, wrt):
    import os
    with open(NOTE, "a") as note:
        note.write(f"{os.environ['PYTHONHASHSEED']} {len(args[0])}\\n")
""",
)


def noting(home: Path) -> list[str]:
    """The arguments of a run whose one backend writes down, in `home / "note"`, for each real request."""
    write(home / "cases", softplus=CASE)
    write(home / "backends", notes=NOTING.replace("NOTE", repr(str(home / "note"))))
    files = ["-c", str(home / "cases" / "softplus.py"), "-b", str(home / "backends" / "notes.py")]
    return ["run", "--quick", "-o", str(home / "out"), "--operator", "gradient", "--launches", str(LAUNCHES), *files]


def launched(home: Path) -> Counter[tuple[int, int]]:
    """(launch, size) -> the number of requests to prepare it, recorded by the backend."""
    note = home / "note"
    launch_of = {
        start.environment["PYTHONHASHSEED"]: number
        for number in range(LAUNCHES)
        for start in randomise(0, number, SEATS, 3).starts.values()
    }
    asked = (line.split() for line in (note.read_text().splitlines() if note.exists() else ()))
    return Counter((launch_of[seed], int(size)) for seed, size in asked if seed in launch_of)


def journal(home: Path) -> list[str]:
    """The complete lines of the run's journal, or none."""
    path = home / "out" / "journal.jsonl"
    return [line for line in path.read_text().splitlines(True) if line.endswith("\n")] if path.exists() else []


def finished(lines: list[str]) -> Iterator[tuple[int, int]]:
    """(launch, size) of every group in these lines."""
    for line in map(json.loads, lines):
        if line["kind"] == "launch":
            yield from {(line["number"], cell["job"]["size"]) for cell in line["cells"]}


def identity(record: Record) -> object:
    """The parts of a record that interruptions must not change."""
    times = [time and [launch.number for launch in time.launches] for time in (record.time, record.control)]
    word = record.verdict and record.verdict.word
    return record.job, record.status, record.reason, word, times, record.memory is not None


def step(home: Path, rng: random.Random, number: signal.Signals | None) -> bool:
    """Start or resume, and send the signal, if any, at a random moment. Returns whether the signal ended the run."""
    before = journal(home)
    asked = launched(home)
    more = ["run", "--resume", str(home / "out")] if before else noting(home)
    with running(home / "out", *more) as under_way:
        if number is not None:
            under_way.wait_for_lines(len(before) + rng.choice((1, 1, 2, 3)))
            time.sleep(rng.random() * 0.2)
            if under_way.process.poll() is None:
                under_way.tell(number)
        code = under_way.end()
        assert under_way.left_behind() == []
    assert "Traceback" not in under_way.err
    assert journal(home)[: len(before)] == before, "what was on the disk stays as it was"
    assert read_run(home / "out").created
    now = launched(home)
    for unit in finished(before):
        assert now[unit] == asked[unit], f"measured again, though it was in the journal: {unit}"
    if code == 0:
        return False
    assert number is not None, under_way.err
    assert code == (-number if number == signal.SIGKILL else 128 + number), (code, under_way.err)
    return True


def broken_off(home: Path, rng: random.Random, signals: list[signal.Signals]) -> None:
    """Runs ended by all these signals and resumed until done, compared with an undisturbed one."""
    whole = run(home / "whole" / "out", *noting(home / "whole"))
    assert whole.process.returncode == 0, whole.err
    expected = [identity(record) for record in read_run(whole.folder).records]
    number_of_runs = 0
    while signals:
        number_of_runs += 1
        here = home / str(number_of_runs)
        here.mkdir()
        while step(here, rng, signals[0] if signals else None):
            signals = signals[1:]
        assert [identity(record) for record in read_run(here / "out").records] == expected
        assert rounds_of(here / "out") == rounds_of(whole.folder)
        assert set(rounds_of(here / "out").values()) == {1}
        assert min(launched(here).values()) >= len(SEATS)
        assert (here / "out" / "report.html").exists()


@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_kills_lose_nothing_that_was_finished_and_nothing_is_measured_twice(tmp_path: Path, kills: int) -> None:
    broken_off(tmp_path, random.Random(5), [signal.SIGKILL] * kills)


def test_signals_that_ask_for_the_end_lose_nothing_either(tmp_path: Path) -> None:
    broken_off(tmp_path, random.Random(6), [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])


@pytest.mark.parametrize("group", [True, False])
def test_ctrl_c_keeps_finished_work_explains_how_to_resume_and_leaves_no_process(tmp_path: Path, group: bool) -> None:
    """A terminal signals the whole group, others only the process; here a library hangs at that moment."""
    hangs = misbehaving_at("round", "time.sleep(600)", tmp_path / "note")
    with running(tmp_path / "out", *arguments(tmp_path, {"hangs": hangs}, "--launches", "2")) as under_way:
        under_way.wait_for_lines(6)  # the head, two verdicts, the processors, the reference, the clock's floor
        time.sleep(1)
        under_way.tell(signal.SIGINT, group=group)
        assert under_way.end() == 130
        assert under_way.left_behind() == []
    assert f"adbench run --resume {tmp_path / 'out'}" in under_way.err
    assert "Traceback" not in under_way.err
    assert {record.status for record in under_way.records().values()} == {"ok"}
    assert (tmp_path / "out" / "run.json").exists()
    assert (tmp_path / "out" / "report.html").exists()


def test_ctrl_c_twice_ends_at_once_and_leaves_no_process(tmp_path: Path) -> None:
    hangs = misbehaving_at("first call", "time.sleep(600)", tmp_path / "note")
    with running(tmp_path / "out", *arguments(tmp_path, {"hangs": hangs})) as under_way:
        under_way.wait_for_lines(2)
        under_way.tell(signal.SIGINT)
        under_way.tell(signal.SIGTERM)
        assert under_way.end() in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        assert under_way.left_behind() == []
    assert "Traceback" not in under_way.err
    assert read_run(tmp_path / "out").created


ONCE = """
if not os.path.exists(DONE):
    open(DONE, "w").close()
    import psutil
    os.kill(psutil.Process(os.getppid()).ppid(), NUMBER)  # the parent only waits for the worker
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_library_that_kills_the_runner_loses_only_the_current_work(tmp_path: Path, number: signal.Signals) -> None:
    text = ONCE.replace("DONE", repr(str(tmp_path / "done"))).replace("NUMBER", str(int(number)))
    kills = misbehaving_at("round", text, tmp_path / "note")
    ran = run(tmp_path / "out", *arguments(tmp_path, {"kills": kills}, "--launches", "2"))
    assert ran.process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert ran.seen["left behind"] == []
    assert {record.status for record in ran.records().values()} == {"ok"}
    again = run(tmp_path / "out", "run", "--resume", str(tmp_path / "out"))
    assert again.process.returncode == 0, again.err
    assert all(record.time and len(record.time.launches) == 2 for record in again.records().values())
    assert set(rounds_of(tmp_path / "out").values()) == {1}
