"""Resuming an interrupted run: nothing is lost, measured twice or mixed."""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from adbench import UsageError
from adbench.execution.session import Session, prepare, resume
from adbench.model.errors import BadFile, BadOutput
from adbench.model.events import Checked, Event, MemoryMeasured, Started, Timed
from adbench.model.record import group_of
from adbench.model.run_progress import Head
from adbench.results import run_files
from adbench.results.journal import Journal
from adbench.results.store import JOURNAL, read_run, write_run
from tests.support.files import CASE, RIGHT, without_checksums, write

LAUNCHES = 2


def begun(folder: Path) -> Session:
    """A session over softplus at two sizes with two backends, two launches, and memory."""
    write(folder, softplus=CASE, hand=RIGHT, other=RIGHT)
    return prepare(
        cases=[str(folder / "softplus.py")],
        backends=[str(folder / "hand.py"), str(folder / "other.py")],
        sizes=["1", "10"],
        operators=["gradient"],
        quick=True,
        launches=LAUNCHES,
    )


def units(events: list[Event]) -> Counter[object]:
    """The measurements: checks, groups in launches, memory."""
    found: Counter[object] = Counter()
    for event in events:
        match event:
            case Checked(record):
                found["check", record.job] += 1
            case Timed(number, cells):
                found["launch", number, group_of(cells[0].job)] += 1
            case MemoryMeasured(job):
                found["memory", job] += 1
    return found


@pytest.mark.slow
def test_a_run_interrupted_anywhere_resumes_and_measures_everything_once(tmp_path: Path) -> None:
    made, told = begun(tmp_path), list[Event]()
    whole = set(made.plan.jobs)
    pauses = [Checked, Timed, Timed, MemoryMeasured]  # interrupted after the first of these events
    for kind in (*pauses, None):
        running = made.events(tmp_path / "out" if not told else None)
        for event in running:
            told.append(event)
            if kind is not None and isinstance(event, kind):
                break
        running.close()
        made = resume(tmp_path / "out")
    assert list(made.events()) == []  # nothing remains
    run = made.result()
    assert {record.job for record in run.records} == whole
    expected = Counter({("check", job): 1 for job in whole} | {("memory", job): 1 for job in whole})
    expected |= Counter({("launch", n, group_of(job)): 1 for n in range(LAUNCHES) for job in whole})
    assert units(told) == expected
    for record in run.records:
        assert record.time is not None
        assert [launch.number for launch in record.time.launches] == list(range(LAUNCHES))
        assert record.memory is not None
    assert run.reference_backend == "hand"
    assert all(record.control is not None for record in run.records if record.job.backend == "hand")


pytestmark = pytest.mark.xdist_group("resume")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run interrupted after its first check."""
    folder = tmp_path_factory.mktemp("resume")
    running = begun(folder).events(folder / "out")
    for event in running:
        if isinstance(event, Checked):
            break
    running.close()
    return folder


def test_a_resumed_run_takes_its_request_from_the_journal(interrupted: Path) -> None:
    made = resume(interrupted / "out")
    assert len(made.plan.jobs) == 4
    assert made.settings.launches == LAUNCHES
    assert made.settings.quick
    with pytest.raises(BadOutput, match="another adbench is writing to it"):
        resume(interrupted / "out")
    assert made.forecast.total > 0
    running = made.events()
    next(running)
    running.close()
    resume(interrupted / "out").close()  # the lock is free again


def test_a_changed_file_is_refused(interrupted: Path) -> None:
    for name in ("softplus", "other"):
        file = interrupted / f"{name}.py"
        text = file.read_text()
        file.write_text(text + "\n# changed\n")
        with pytest.raises(UsageError, match=f"{name} has changed since the run started; .* start a new run"):
            resume(interrupted / "out")
        file.unlink()
        with pytest.raises(UsageError, match=rf"{name}\.py: no such file"):
            resume(interrupted / "out")
        file.write_text(text)
    resume(interrupted / "out").close()


def test_another_machine_another_version_and_another_library_are_refused(
    interrupted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run_files.machine.describe()
    with monkeypatch.context() as patch:
        patch.setattr(run_files.machine, "describe", lambda: {**here, "processor": "another"})
        with pytest.raises(UsageError, match=r"from another machine: processor was .*, is another; "):
            resume(interrupted / "out")
    with monkeypatch.context() as patch:
        patch.setattr(run_files, "__version__", "99")
        with pytest.raises(UsageError, match=r"started by adbench .*, this is 99; "):
            resume(interrupted / "out")
    journal = interrupted / "out" / "journal.jsonl"
    text = without_checksums(journal.read_text())
    head = json.loads(text.splitlines()[0])
    head["run"]["versions"]["hand"] = "0.1"
    journal.write_text("\n".join([json.dumps(head), *text.splitlines()[1:], ""]))
    with pytest.raises(UsageError, match=r"hand was version 0[.]1, is None; "):
        resume(interrupted / "out")
    journal.write_text(text)
    resume(interrupted / "out").close()


def test_a_file_that_is_not_a_journal_is_refused(tmp_path: Path, interrupted: Path) -> None:
    with pytest.raises(BadFile, match="no such journal; pass --resume the output folder"):
        resume(tmp_path)
    (tmp_path / "journal.jsonl").write_text("{}\n{}\n")
    with pytest.raises(BadFile, match=r"line 1 of .* is damaged"):
        resume(tmp_path)
    lines = without_checksums((interrupted / "out" / "journal.jsonl").read_text())
    (tmp_path / "journal.jsonl").write_text(lines.replace('"weighings"', '"weightings"'))
    with pytest.raises(BadFile, match=r"not a journal of this adbench: .*weightings"):
        resume(tmp_path)


def test_what_is_not_installed_stays_in_the_run_its_file_and_its_journal(tmp_path: Path) -> None:
    write(tmp_path / "backends", gone='REQUIRES = ("adbench-none",)\n' + RIGHT)
    made = prepare(cases=["hypot"], backend_folders=[str(tmp_path / "backends")], quick=True, budget=1e6)
    run = made.result()
    assert run.not_installed["gone"] == "adbench-none"
    assert "gone" not in run.versions
    assert read_run(write_run(tmp_path, run)).not_installed == run.not_installed
    with closing(Journal.create(tmp_path / JOURNAL, Head(run, made.plan.jobs))):
        pass
    journal, progress = Journal.resume(tmp_path / JOURNAL)
    journal.close()
    assert progress.head.run.not_installed == run.not_installed


def test_a_session_that_starts_nothing_reports_nothing(tmp_path: Path) -> None:
    made = begun(tmp_path)
    assert made.result().records == ()
    running = made.events()
    assert isinstance(next(running), Started)
    running.close()
    assert not (tmp_path / "out").exists()
