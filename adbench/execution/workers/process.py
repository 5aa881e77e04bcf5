"""A worker process, seen from the runner: started, asked, timed out, buried.

Each worker is a session of its own and is killed as a group, so that children a library forked do not linger.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil

from adbench.execution.workers.channel import Channel, Closed

STDERR_KEPT = 4096  # bytes of what a worker printed last that go into the record
MOST_OUTPUT_BYTES = 2**24  # that a worker may have printed before it is thrown away: a loop that prints fills no disk
MARK = "ADBENCH_WORKER"  # in the environment of a worker and of all that it starts: by it they are found

# A worker dies with the thread that started it (start.py): that must be one that lives as long as the runner.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


class WorkerLost(Exception):
    """The worker did not answer. `status` is "crashed" or "timed_out"; `stderr` the end of what it had printed."""

    def __init__(self, status: Literal["crashed", "timed_out"], reason: str, stderr: str = "") -> None:
        super().__init__(reason)
        self.status: Literal["crashed", "timed_out"] = status
        self.reason, self.stderr = reason, stderr


@dataclass(frozen=True)
class Start:
    """How a worker is started: environment beside ours, bytes allocated before any import, processors to run on."""

    environment: Mapping[str, str] = field(default_factory=dict)
    heap_bytes: int = 0
    cpus: tuple[int, ...] = ()  # none: wherever the runner may run


class WorkerProcess:
    """A fresh interpreter that runs `worker`, in a process group. A context manager: leaving it kills the group.

    Raises WorkerLost where it cannot be started.
    """

    def __init__(self, start: Start) -> None:
        ours, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        # It writes at the end wherever we read, and from the beginning again where we have thrown away what was there.
        fcntl.fcntl(self._output, fcntl.F_SETFL, fcntl.fcntl(self._output, fcntl.F_GETFL) | os.O_APPEND)
        self._mark = secrets.token_hex(8)
        self._turn = 0
        self._sentence: str | None = None
        self._discarded = False
        command = [
            sys.executable,
            "-P",
            "-c",
            "from adbench.execution.workers.worker_main import main; main()",
            *(str(theirs.fileno()), str(start.heap_bytes), ",".join(map(str, start.cpus))),
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
            raise WorkerLost("crashed", f"could not be started: {error.strerror}") from error
        self._gone = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        self._channel = Channel(ours, self._gone)

    @property
    def pid(self) -> int:
        """The process's number, which is that of its session and group too."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The worker's answer. Raises WorkerLost where it dies or is silent for `timeout` seconds; it is killed
        then."""
        self._turn += 1
        try:
            self._channel.send({**request, "turn": self._turn}, timeout)
            answer = self._channel.receive(timeout)
            if answer.pop("turn", None) != self._turn:
                raise Closed("sent what is no answer")
            return answer
        except TimeoutError:
            self.kill()
            raise WorkerLost("timed_out", f"no answer within {timeout:g} s", self._last_words()) from None
        except Closed as closed:
            reason = self._cause_of_death(str(closed))
            self.kill()
            raise WorkerLost("crashed", reason, self._last_words()) from None

    def terminate(self, reason: str) -> None:
        """Kill it from another thread; whoever waits for its answer is told this reason."""
        if not self._discarded:
            self._sentence = reason
            self._end_everything()

    def trim_output(self) -> None:
        """Throw away what it has printed where that is too much: only the end is ever shown."""
        if os.fstat(self._output.fileno()).st_size > MOST_OUTPUT_BYTES:
            os.ftruncate(self._output.fileno(), 0)

    def kill(self) -> None:
        """End the process and everything it started. May be called twice."""
        if not self._discarded:
            self._end_everything()
            self._process.wait()
            self._discarded = True  # from now on the number may be another process's
            self._channel.close()
            if self._gone is not None:
                os.close(self._gone)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._output.close()

    def _end_everything(self) -> None:
        """Kill the session, and what has left it but not its parent, or neither kept but the environment."""
        killed: set[int] = set()
        for _ in range(100):  # whoever was forked meanwhile is found the next time
            doomed = self._family() - killed
            if not doomed:
                return
            for pid in doomed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= doomed

    def _family(self) -> set[int]:
        """The numbers of the process and of all that it has started."""
        found = {*of_session(self.pid), *marked(self._mark)}
        with contextlib.suppress(psutil.Error):
            found |= {child.pid for child in psutil.Process(self.pid).children(recursive=True)}
        return found

    def _cause_of_death(self, seen: str) -> str:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return self._sentence or f"went on running, but its line to the runner is lost: {seen}"
        if self._sentence is not None:
            return self._sentence
        return f"died of {_signal_name(-code)}" if code < 0 else f"exited with code {code}"

    def _last_words(self) -> str:
        """The end of stdout and stderr. What is not text is shown as such."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - STDERR_KEPT))
        return self._output.read().decode(errors="backslashreplace").strip()


def of_session(session: int) -> Iterator[int]:
    """The numbers of the processes of a session."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError):  # it ended meanwhile
            if os.getsid(pid) == session:
                yield pid


def marked(mark: str) -> Iterator[int]:
    """The numbers of the processes that a worker with this mark started, at whatever remove, and of itself."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):  # it ended meanwhile, or is another user's
            if psutil.Process(pid).environ().get(MARK) == mark:
                yield pid


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # of the real-time ones only the first and the last have names
        return f"signal {number}"


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Ours, with `extra`, and with adbench importable where it is not installed.

    The worker starts with -P: a `torch.py` in the folder where adbench was called must not stand in for the library.
    """
    environment = {**os.environ, **extra}
    home = Path(__file__).parents[3]
    if str(home) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), environment.get("PYTHONPATH"))))
    return environment
