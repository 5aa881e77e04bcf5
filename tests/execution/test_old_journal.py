"""An earlier adbench's journal is read by the code that runs apply, written back unchanged, and resumed."""

import json
from pathlib import Path

import pytest

from adbench import __version__
from adbench.execution.session import resume
from adbench.measure import machine
from adbench.model.events import Checked, MemoryMeasured, Timed
from adbench.model.record import group_of
from adbench.model.run_progress import Head, Progress, apply, assemble
from adbench.model.serialization import from_plain, to_plain
from adbench.results.journal import event_of, line_of, read

OLD = Path(__file__).parents[1] / "results" / "journal_of_0.1.0.jsonl"
LAUNCHES = 2


def lines() -> list[dict[str, object]]:
    return [json.loads(line) for line in OLD.read_text().splitlines()]


def test_every_line_is_an_event_and_is_written_back_unchanged() -> None:
    for line in lines()[1:]:
        assert json.dumps(line_of(event_of(dict(line)))) == json.dumps(line)


def test_reading_applies_the_same_events_as_a_run() -> None:
    head, *rest = lines()
    head.pop("kind")
    progress = Progress(from_plain(head, Head))
    for line in rest:
        apply(event_of(line), progress)
    assert progress == read(OLD)
    assert progress.ended
    run = assemble(progress)
    assert [record.outcome.word for record in run.records] == ["right", "right"]
    assert all(record.time and record.control for record in run.records)
    assert run.reference_backend == "tape"


@pytest.mark.slow
def test_an_interrupted_run_resumes_where_it_ended(tmp_path: Path) -> None:
    head, *rest = lines()
    head["run"]["machine"] = machine.describe()  # type: ignore[index]
    head["run"]["adbench_version"] = __version__  # type: ignore[index]  # another version starts a new run
    head["asked"]["digests"] = {}  # type: ignore[index]  # the files may have changed since
    done = [line for line in rest if line["kind"] in ("checked", "facts") or line.get("number") == 0]
    for line in done:
        if "machine" in line.get("facts", {}):  # type: ignore[operator]
            line["facts"]["machine"] = machine.describe()  # type: ignore[index]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (head, *done)))
    session = resume(tmp_path)
    events = list(session.events())
    assert not [event for event in events if isinstance(event, Checked)]
    timed = [event for event in events if isinstance(event, Timed)]
    assert {(event.number, event.group) for event in timed} == {(1, group_of(job)) for job in session.plan.jobs}
    assert [event.job.operator for event in events if isinstance(event, MemoryMeasured)] == ["gradient"]
    run = session.result()
    for record in run.records:
        assert record.time is not None
        assert [launch.number for launch in record.time.launches] == list(range(LAUNCHES))
    found = read(tmp_path / "journal.jsonl")
    assert found.ended
    assert to_plain(assemble(found)) == to_plain(run)
