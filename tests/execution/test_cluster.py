"""A run on many machines: whole groups, the host on every record, and nothing lost with a worker.

A cluster of two workers on this machine: real processes of Dask, real workers of adbench below them.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adbench.execution.cluster import dask_cluster
from adbench.execution.cluster.dask_cluster import SEEDS, address_of, groups_of
from adbench.execution.session import Session, prepare, resume
from adbench.model.errors import UsageError
from adbench.model.record import Job, Record
from adbench.optional import MissingLibrary
from adbench.results.journal import Journal
from adbench.results.run_files import with_files
from adbench.results.store import JOURNAL
from tests.support.command import adbench_in_a_process
from tests.support.files import CASE, RIGHT, misbehaving, write

# Dask warns about the machine (a used port, a slow disk), which is not adbench's fault.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("cluster")]

OTHER = CASE.replace("log1p(xp.exp(x))", "sqrt(1 + x * x)").replace("Sum of softplus", "Sum of hyperbolas")


@pytest.fixture(scope="module")
def two() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as local:
        yield local


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    slow = misbehaving("import time; time.sleep(1.0)")
    return write(tmp_path, softplus=CASE, hyperbola=OTHER, hand=RIGHT, slow=slow)


def on(local: Any) -> str:
    return str(local.scheduler_address).replace("tcp://", "dask://")


def checking(folder: Path, **options: Any) -> Session:
    files = {"cases": [str(folder / "softplus.py"), str(folder / "hyperbola.py")], "sizes": ["2"]}
    return prepare(**(files | options), operators=("value", "gradient"), time=False, memory=False, quick=True)


def records(session: Session, **options: Any) -> list[Record]:
    for _ in session.events(**options):
        pass
    return list(session.result().records)


def without_host(found: list[Record]) -> list[Record]:
    return [replace(record, host=None) for record in found]


@pytest.mark.slow
def test_a_worker_killed_half_way_loses_nothing_and_changes_no_record(two: Any, folder: Path) -> None:
    from distributed import Client

    backends = [str(folder / "hand.py"), str(folder / "slow.py")]
    here = records(checking(folder, backends=backends))
    killed: list[int] = []

    def kill_the_first_that_is_busy() -> None:
        with Client(two.scheduler_address, set_as_default=False) as client:
            pids = client.run(os.getpid)
            for _ in range(600):
                busy = [worker for worker, keys in client.processing().items() if any("hyperbola" in k for k in keys)]
                if busy:
                    time.sleep(0.5)  # into the group
                    os.kill(pids[busy[0]], signal.SIGKILL)
                    killed.append(pids[busy[0]])
                    return
                time.sleep(0.1)

    killer = threading.Thread(target=kill_the_first_that_is_busy)
    killer.start()
    session = checking(folder, backends=backends)
    there = records(session, on=on(two))
    killer.join()
    assert len(killed) == 1
    (lost,) = str(session.result().machine["lost_workers"]).split(", ")
    assert lost.startswith("tcp://127.0.0.1:")
    assert without_host(there) == here
    assert all(record.host for record in there)
    assert {record.status for record in here} <= {"ok", "wrong", "unsupported"}


@pytest.mark.slow
def test_a_run_is_timed_on_hosts_and_can_be_read_resumed_and_reported(two: Any, folder: Path) -> None:
    asked = {"cases": [str(folder / "softplus.py")], "backends": [str(folder / "hand.py"), "tape"], "sizes": ["10"]}
    session = prepare(**asked, quick=True, launches=2, memory=False)
    found = records(session, folder=folder / "out", on=on(two))
    assert all(record.time is not None and len(record.time.launches) == 2 for record in found)
    assert len({record.host for record in found}) == 1
    run = session.result()
    assert run.reference_backend == "tape"
    assert run.machine["hosts"] == found[0].host
    assert any(record.control for record in found)
    assert set(run.known_bugs.backends) == {"hand", "tape"}
    assert run.known_bugs.backends["tape"]
    with pytest.raises(UsageError, match="resume it there, with --on"):
        resume(folder / "out")
    again = resume(folder / "out", on=on(two))
    assert [event for event in again.events(on=on(two)) if type(event).__name__ in ("Checked", "Timed")] == []
    assert list(again.result().records) == found
    journal, progress = Journal.resume(folder / "out" / JOURNAL)
    journal.close()
    assert progress.ended


@pytest.mark.slow
def test_a_host_with_another_file_or_none_is_a_one_line_error(two: Any, folder: Path) -> None:
    session = checking(folder, backends=[str(folder / "hand.py")])
    session._progress.head = with_files(session._progress.head, session.catalog)  # as at the start of its events
    (folder / "softplus.py").write_text(CASE + "\n# changed\n", "utf-8")
    with pytest.raises(UsageError, match="this host: cases/softplus has changed since the run started"):
        records(session, on=on(two))


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_run_with_the_line_that_resumes_it(folder: Path) -> None:
    """Scheduler and worker are processes, as on a cluster; the scheduler is killed during the first group."""
    pytest.importorskip("distributed")
    dask, kept = [sys.executable, "-m", "distributed.cli.dask_scheduler"], folder / "scheduler.json"
    about = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(kept)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}

    def kill_once_begun() -> None:
        for _ in range(600):
            if (folder / "out" / JOURNAL).exists():
                break
            time.sleep(0.1)
        time.sleep(0.5)
        scheduler.kill()

    with subprocess.Popen([*dask, *about], **quiet) as scheduler:
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            "--scheduler-file",
            str(kept),
            "--nthreads",
            "1",
        ]
        worker = subprocess.Popen([*command, "--no-nanny", "--no-dashboard", "--death-timeout", "20"], **quiet)
        try:
            while not kept.exists():
                time.sleep(0.1)
            address = json.loads(kept.read_text())["address"].replace("tcp://", "dask://")
            time.sleep(3)  # until the worker has registered
            asked = ["-c", "softplus.py", "-b", "slow.py", "-n", "2", "-n", "10", "--quick", "--no-memory", "-o", "out"]
            threading.Thread(target=kill_once_begun).start()
            done = adbench_in_a_process(folder, "run", *asked, "--on", address)
        finally:
            for process in (scheduler, worker):
                process.kill()
            worker.wait()
    assert done.code == 4, done.err
    assert "Traceback" not in done.err
    assert f"{address}: lost the connection to the scheduler" in done.err
    assert f"to resume: adbench run --resume out --on {address}" in done.err


@pytest.mark.parametrize("text", ["", "dask://", "tcp://host:1", "dask://host", "dask://host:port", "dask://a b:1"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write dask://HOST:PORT"):
        address_of(text)


def test_an_address_becomes_the_schedulers() -> None:
    assert address_of("dask://node-1:8786") == "tcp://node-1:8786"


def test_a_missing_scheduler_or_dask_is_a_one_line_error_and_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.5)
    session = checking(folder, backends=[str(folder / "hand.py")])
    with pytest.raises(UsageError, match="no scheduler answers; start one"):
        records(session, folder=folder / "out", on="dask://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingLibrary, match=r"--on needs distributed: pip install 'autodiff-bench\[dask\]'"):
        records(session, folder=folder / "out", on="dask://127.0.0.1:1")
    assert not (folder / "out").exists()


def jobs(seeds: int) -> list[Job]:
    return [
        Job(case, size, backend, operator, seed)
        for case in ("a", "b")
        for size in (1, 10)
        for operator in ("value", "gradient")
        for seed in range(seeds)
        for backend in ("x", "y", "z")
    ]


@pytest.mark.parametrize("timed", [True, False])
def test_ratios_never_mix_two_hosts(timed: bool) -> None:
    planned = jobs(3)
    groups = groups_of(planned, timed=timed)
    assert sorted(job for group in groups for job in group) == sorted(planned)
    where = {job: k for k, group in enumerate(groups) for job in group}
    for job in planned:
        assert {where[replace(job, backend=name)] for name in "xyz"} == {where[job]}
    assert len(groups) == 2


def test_thousands_of_points_are_spread_and_a_timed_case_is_not() -> None:
    planned = [Job("a", 1, backend, "gradient", seed) for seed in range(1000) for backend in ("x", "y")]
    assert len(groups_of(planned, timed=False)) == 1000 // SEEDS
    assert len(groups_of(planned, timed=True)) == 1
