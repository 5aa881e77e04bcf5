"""Several workers check the jobs of one backend, and the records are those of a single worker."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from adbench.execution import scheduler
from adbench.execution.phases import shared_jobs
from adbench.execution.phases.shared_jobs import SharedJobs
from adbench.execution.session import prepare
from adbench.model.events import Checked
from adbench.model.record import Job, Record
from tests.support.files import CASE, misbehaving, write

CASES = [f"softplus_{i}" for i in range(4)]

MEETS = """
    import os, pathlib, time
    here = pathlib.Path(__file__).parent / "seen"
    (here / str(os.getpid())).touch()
    deadline = pathlib.Path(__file__).stat().st_mtime + 30
    while len(list(here.iterdir())) < {workers} and len(x) > 1 and time.time() < deadline:
        time.sleep(0.01)
"""


def checked(folder: Path, workers: int, patch: pytest.MonkeyPatch) -> tuple[list[Record], int]:
    """The records of a backend that in all cases but the first waits until so many processes compute; their number."""
    folder.mkdir()
    first, *rest = CASES  # a second worker joins after the first case
    write(folder / "cases", **{first: CASE.replace("(1, 10, 100)", "(1,)"), **dict.fromkeys(rest, CASE)})
    write(folder / "backends", meets=misbehaving(MEETS.format(workers=workers).strip()))
    (folder / "backends" / "seen").mkdir()
    patch.setattr(scheduler, "room", lambda threads: workers)
    patch.setattr("adbench.execution.parallel.room", lambda threads: workers)
    patch.setattr(shared_jobs, "WORTH_A_WORKER", 0.0)
    session = prepare(
        cases=[str(folder / "cases" / f"{name}.py") for name in CASES],
        backends=[str(folder / "backends" / "meets.py")],
        operators=("gradient",),
        time=False,
        memory=False,
    )
    found = [event.record.job for event in session.events() if isinstance(event, Checked)]
    assert sorted(found) == sorted(session.plan.jobs)
    return list(session.result().records), len(list((folder / "backends" / "seen").iterdir()))


@pytest.mark.slow
def test_two_workers_check_one_backend_and_find_the_records_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, single = checked(tmp_path / "one", 1, monkeypatch)
    together, two = checked(tmp_path / "two", 2, monkeypatch)
    assert (single, two) == (1, 2)
    assert [record.job for record in together] == [record.job for record in alone]
    assert together == alone
    assert {record.status for record in together} == {"ok"}


def jobs(*cases: str) -> list[Job]:
    return [Job(case, size, "it", "gradient") for case in cases for size in (1, 10)]


def test_no_two_workers_have_the_same_case_and_each_job_is_taken_once() -> None:
    sizes_first = sorted(jobs("a", "b", "c"), key=lambda job: job.size)
    shared, taken = SharedJobs(sizes_first), []
    with shared.worker() as mine, shared.worker() as other:
        first, second = next(mine), next(other)
        assert [first[0].case, second[0].case] == ["a", "b"]
        third = next(mine)  # gives "a" back
        assert third[0].case == "c"
        fourth = next(mine)
        assert fourth == [replace(first[0], size=10)]  # not "b", which the other one has
        taken = [first, second, third, fourth, *mine]
        assert [portion[0] for portion in taken[4:]] == [replace(third[0], size=10)]
        taken += other
    assert sorted(job for portion in taken for job in portion) == sorted(sizes_first)


@pytest.mark.parametrize(("opening", "worth"), [(0.1, True), (1e3, False)])
def test_a_worker_joins_if_the_rest_takes_longer_than_opening_it(opening: float, worth: bool) -> None:
    shared = SharedJobs(jobs("a", "b", "c"))
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(shared.is_worth_a_worker()))
    asking.start()
    with shared.worker() as portions:
        for _ in next(portions):
            shared.note(1.0, opening)
        assert not found  # nobody knows before the first portion
        next(portions)
        asking.join()
    assert found == [worth]


def test_a_worker_that_fails_leaves_nobody_waiting() -> None:
    shared = SharedJobs(jobs("a", "b"))
    with pytest.raises(LookupError), shared.worker():
        raise LookupError("broken")
    assert not shared.is_worth_a_worker()
