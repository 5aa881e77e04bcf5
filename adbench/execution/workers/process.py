"""A worker process from the parent's side: starting, asking, time-outs, ending.

Each worker is a session, a tree of processes below one that inherits orphans, and a control group where there can be
one. It is killed as a whole, so that children forked by a library do not linger.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from adbench.execution.workers.channel import Channel, Closed
from adbench.execution.workers.control_group import ControlGroup
from adbench.measure.machine.process_tree import descendants, signal_name
from adbench.model.record import Job, Record, Status
from adbench.optional import posix_module

STDERR_KEPT = 4096  # bytes of the end of a worker's output, for the record
MOST_OUTPUT_BYTES = 2**24  # of a worker's output, before it is truncated, so that a printing loop cannot fill the disk
LOOK_SECONDS = 1.0  # between two looks for processes that a worker has started
MARK = "ADBENCH_WORKER"  # in the environment of a worker and its descendants, to find them

# A worker dies with the thread that started it (worker_main.py): that thread must live as long as this process.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


class NoAnswer(Exception):
    """A worker returned no value: `status` and `reason` explain it, `stderr` is the end of its output or a traceback.

    is_bad_file   the reason is a fault of the user's file, and names it
    """

    def __init__(self, status: Status, reason: str, stderr: str = "", *, is_bad_file: bool = False) -> None:
        super().__init__(reason)
        self.status: Status = status
        self.reason, self.stderr, self.is_bad_file = reason, stderr, is_bad_file

    def record(self, job: Job) -> Record:
        """The record of the requested job."""
        return Record(job, self.status, self.reason, stderr=self.stderr or None)


class WorkerLost(NoAnswer):
    """The worker died or did not answer: `status` is "crashed" or "timed_out"."""


@dataclass(frozen=True)
class WorkerStart:
    """The start of a worker: additional environment variables, bytes allocated before any import, processors, and what
    precedes Python on its command line."""

    environment: Mapping[str, str] = field(default_factory=dict)
    heap_bytes: int = 0
    cpus: tuple[int, ...] = ()  # none: those of the parent process
    prefix: tuple[str, ...] = ()


class WorkerProcess(AbstractContextManager["WorkerProcess"]):
    """A fresh interpreter that runs `worker`, in a process group. A context manager: leaving it ends the group.

    Raises WorkerLost if it cannot be started.
    """

    def __init__(self, start: WorkerStart) -> None:
        fcntl = posix_module("fcntl")
        ours, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - has the lifetime of the process
        # The worker appends, wherever we read, and starts at 0 again after we truncate the file.
        fcntl.fcntl(self._output, fcntl.F_SETFL, fcntl.fcntl(self._output, fcntl.F_GETFL) | os.O_APPEND)
        self._output_lock = threading.Lock()  # prevents truncating a later file with the same descriptor
        self._mark = secrets.token_hex(8)
        self._group = ControlGroup.make(self._mark)
        self._turn = 0
        self._sentence: str | None = None
        self._killing = threading.Lock()  # at the end of a run two threads may kill it
        self._killed = False
        self._pids: list[int] = []  # as of `_looked`
        self._looked = -math.inf
        command = [
            *start.prefix,
            sys.executable,
            "-P",
            "-c",
            "from adbench.execution.workers.worker_main import main; main()",
            *(str(theirs.fileno()), str(start.heap_bytes), ",".join(map(str, start.cpus))),
            str(self._group.path) if self._group else "",
        ]
        try:
            with theirs:
                self._process = _SPAWNER.submit(
                    subprocess.Popen,
                    command,
                    env=_environment({**start.environment, MARK: self._mark}),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._output,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                ).result()
        except OSError as error:
            ours.close()
            self._output.close()
            if self._group:
                self._group.remove()
            raise WorkerLost("crashed", f"could not be started: {error.strerror}") from error
        self._gone = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        self._channel = Channel(ours, self._gone)

    @property
    def pid(self) -> int:
        """The id of the process from which the worker's others descend, also that of their session and group."""
        return self._process.pid

    @property
    def every_pid(self) -> list[int]:
        """The ids of all processes of the worker."""
        return [self.pid, *descendants(self.pid)]

    @property
    def recent_pids(self) -> list[int]:
        """`every_pid` of at most a second ago, because finding them takes longer than a short round."""
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._pids, self._looked = self.every_pid, now
        return self._pids

    def signal(self, number: int) -> None:
        """Send a signal to all its processes but the first, which only waits for them."""
        for pid in descendants(self.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    @property
    def is_closed(self) -> bool:
        """Whether `close` has ended it."""
        return self._output.closed

    def ask(self, request: Mapping[str, Any], timeout: float) -> Any:
        """The value of the worker's answer. Raises NoAnswer with the worker's reason if it gives no answer, WorkerLost
        if it dies or does not answer within `timeout` seconds; it is then killed."""
        answer = self._answer(request, timeout)
        if "value" in answer:
            return answer["value"]
        for status in ("unsupported", "skipped"):
            if status in answer:
                raise NoAnswer(status, str(answer[status]))
        reason = str(answer.get("failed") or answer.get("bad_file"))
        raise NoAnswer("failed", reason, answer.get("traceback") or "", is_bad_file="bad_file" in answer)

    def terminate(self, reason: str) -> None:
        """Kill it from another thread; the thread that waits for its answer gets this reason."""
        if not self._killed:
            self._sentence = reason
            self._end_everything()

    def trim_output(self) -> None:
        """Truncate its output if there is too much, because only the end is shown."""
        with self._output_lock:
            if not self.is_closed and os.fstat(self._output.fileno()).st_size > MOST_OUTPUT_BYTES:
                os.ftruncate(self._output.fileno(), 0)

    def close(self) -> None:
        """End the process and everything it started, and discard its output. May be called twice."""
        self._kill()
        with self._output_lock:
            self._output.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        self._turn += 1
        try:
            self._channel.send({**request, "turn": self._turn}, timeout)
            answer = self._channel.receive(timeout)
            if answer.pop("turn", None) != self._turn:
                raise Closed("sent an answer to another request")
            return answer
        except TimeoutError:
            self._kill()
            raise WorkerLost("timed_out", f"no answer within {timeout:g} s", self._last_words()) from None
        except Closed as closed:
            reason = self._cause_of_death(str(closed))
            self._kill()
            raise WorkerLost("crashed", reason, self._last_words()) from None

    def _kill(self) -> None:
        with self._killing:
            if self._killed:
                return
            self._end_everything()
            self._process.wait()
            if self._group:
                self._group.remove()
            self._killed = True  # from now on the id may be another process's
            self._channel.close()
            if self._gone is not None:
                os.close(self._gone)

    def _end_everything(self) -> None:
        """Kill the session, all descendants, everything with its mark in the environment, and its control group.

        The process itself comes last, because it inherits the orphans.
        """
        killed = {self.pid}
        for _ in range(100):  # the next pass finds processes forked meanwhile
            doomed = {*of_session(self.pid), *marked(self._mark), *descendants(self.pid)} - killed
            if not doomed:
                break
            for pid in doomed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= doomed
        if self._group:
            self._group.end()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _cause_of_death(self, seen: str) -> str:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return self._sentence or f"is running, but its socket to the parent is lost: {seen}"
        if self._sentence is not None:
            return self._sentence
        return f"died of {signal_name(-code)}" if code < 0 else f"exited with code {code}"

    def _last_words(self) -> str:
        """The end of stdout and stderr, empty after `close`. Undecodable bytes are escaped."""
        with self._output_lock:
            if self.is_closed:
                return ""
            size = self._output.seek(0, os.SEEK_END)
            self._output.seek(max(0, size - STDERR_KEPT))
            return self._output.read().decode(errors="backslashreplace").strip()


def of_session(session: int) -> Iterator[int]:
    """The ids of the processes of a session."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError):  # it has ended
            if os.getsid(pid) == session:
                yield pid


def marked(mark: str) -> Iterator[int]:
    """The ids of the worker with this mark and its descendants."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):  # it has ended, or belongs to another user
            if psutil.Process(pid).environ().get(MARK) == mark:
                yield pid


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The parent's environment with `extra`, and with adbench importable if it is not installed.

    The worker starts with -P, so that a `torch.py` in the current folder does not replace the library.
    """
    environment = {**os.environ, **extra}
    home = Path(__file__).parents[3]
    if str(home) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), environment.get("PYTHONPATH"))))
    return environment
