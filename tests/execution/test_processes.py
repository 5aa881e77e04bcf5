"""Worker processes: whatever a library starts ends with them, and signals end a run in order."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from adbench.catalog.source import Source
from adbench.execution.workers.process import WorkerLost, WorkerProcess, WorkerStart, descendants
from adbench.execution.workers.supervisor import resident_bytes
from adbench.model.serialization import to_plain
from tests.support.command import adbench_in_a_process
from tests.support.files import CASE, RIGHT, misbehaving
from tests.support.marks import one_in

DAEMON = '''
def daemon(path):
    """A process in its own session, without our environment, whose parents have ended."""
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sh", ["sh", "-c", f"echo $$ > {path}.part; mv {path}.part {path}; exec sleep 600"], {})
        os._exit(0)
    while not os.path.exists(path):
        time.sleep(0.01)


'''


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess(WorkerStart()) as process:
        yield process


def load(worker: WorkerProcess, folder: Path, statements: str) -> None:
    """Import a backend file with these statements in the worker."""
    file = folder / "library.py"
    file.write_text(misbehaving(f"{DAEMON}{statements}", where="import"))
    worker.ask({"do": "load", "source": to_plain(Source("backends", "library", str(file), builtin=False))}, 60)


def gone(pid: int) -> bool:
    """Whether the process ends soon."""
    for _ in range(500):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.01)
    return False


def test_a_daemon_ends_with_its_worker(tmp_path: Path, worker: WorkerProcess) -> None:
    load(worker, tmp_path, f"daemon({str(tmp_path / 'pid')!r})")
    pid = int((tmp_path / "pid").read_text())
    assert pid in worker.every_pid
    assert resident_bytes(worker.every_pid) > resident_bytes([pid]) > 0
    worker.close()
    assert gone(pid)


def test_two_threads_may_close_a_worker_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, worker: WorkerProcess
) -> None:
    """At an interrupt the main thread closes all workers, and the thread that waits for an answer closes its own."""
    both = threading.Barrier(2)

    def wait_for_the_other(self: WorkerProcess) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        end(self)

    end = WorkerProcess._end_everything
    monkeypatch.setattr(WorkerProcess, "_end_everything", wait_for_the_other)
    with ThreadPoolExecutor(2) as threads:
        for closing in [threads.submit(worker.close) for _ in range(2)]:
            closing.result()
    assert gone(worker.pid)


def test_a_daemon_ends_with_a_worker_that_dies(tmp_path: Path, worker: WorkerProcess) -> None:
    with pytest.raises(WorkerLost, match="died of SIGABRT"):
        load(worker, tmp_path, f"daemon({str(tmp_path / 'pid')!r}); import os; os.abort()")
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_daemon_ends_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    statements = f"{DAEMON}daemon({str(tmp_path / 'pid')!r})\nimport time; time.sleep(600)"
    (tmp_path / "library.py").write_text(misbehaving(statements, where="import"))
    (tmp_path / "softplus.py").write_text(CASE)
    run = subprocess.Popen(
        [sys.executable, "-m", "adbench", "check", "-b", "library.py", "-c", "softplus.py"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "pid").exists():
        time.sleep(0.02)
        assert run.poll() is None
    run.kill()
    run.wait()
    assert gone(int((tmp_path / "pid").read_text()))


def test_descendants_of_this_process_are_those_that_psutil_finds() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"]) as shell:
        while len(found := descendants(shell.pid)) < 2:
            time.sleep(0.01)
        assert sorted(found) == sorted(child.pid for child in psutil.Process(shell.pid).children(recursive=True))
        for pid in (*found, shell.pid):
            os.kill(pid, signal.SIGKILL)
    assert descendants(shell.pid) == []


@pytest.mark.parametrize("statement", one_in(2, ["import os; os._exit(3)", "import sys; sys.exit(3)"]))
def test_a_backend_that_exits_while_it_is_imported_ends_only_its_own_results(tmp_path: Path, statement: str) -> None:
    for name, text in {"leaves": misbehaving(statement, where="import"), "right": RIGHT, "softplus": CASE}.items():
        (tmp_path / f"{name}.py").write_text(text)
    asked = ("-b", "leaves.py", "-b", "right.py", "-c", "softplus.py", "--operator", "gradient")
    found = adbench_in_a_process(tmp_path, "check", *asked)
    assert found.code == 4, found.err
    assert "leaves, softplus n = 1 gradient: importing it: " in found.out
    assert re.search(r"right +[1-9]", found.out), found.out
