"""A worker process, seen from the runner: started, asked, timed out, buried.

Each worker is a session of its own and is killed as a group, so that children a library forked do not linger.
"""

from __future__ import annotations

import contextlib
import os
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

from adbench.suite.channel import Channel, Closed

STDERR_KEPT = 4096  # bytes of what a worker printed last that go into the record

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
    """A fresh interpreter that runs adbench/suite/worker.py. A context manager: leaving it kills the process group.

    Raises WorkerLost where it cannot be started.
    """

    def __init__(self, start: Start) -> None:
        ours, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._sentence: str | None = None
        self._buried = False
        command = [
            sys.executable,
            "-P",
            "-c",
            "from adbench.suite.start import main; main()",
            *(str(theirs.fileno()), str(start.heap_bytes), ",".join(map(str, start.cpus))),
        ]
        try:
            with theirs:
                self._process = _SPAWNER.submit(
                    subprocess.Popen,
                    command,
                    env=_environment(start.environment),
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
        self._channel = Channel(ours)

    @property
    def pid(self) -> int:
        """The process's number, which is that of its session and group too."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The worker's answer. Raises WorkerLost where it dies or is silent for `timeout` seconds; it is killed
        then."""
        try:
            self._channel.send(dict(request))
            return self._channel.receive(timeout)
        except TimeoutError:
            self.kill()
            raise WorkerLost("timed_out", f"no answer within {timeout:g} s", self._last_words()) from None
        except Closed:
            reason = self._cause_of_death()
            self.kill()
            raise WorkerLost("crashed", reason, self._last_words()) from None

    def condemn(self, reason: str) -> None:
        """Kill it from another thread; whoever waits for its answer is told this reason."""
        self._sentence = reason
        self._end_everything()

    def kill(self) -> None:
        """End the process and everything it started. May be called twice."""
        if not self._buried:
            self._end_everything()
            self._process.wait()
            self._channel.close()
            self._buried = True  # from now on the number may be another process's

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._output.close()

    def _end_everything(self) -> None:
        """Kill the session, and what has left it but not its parent."""
        doomed = set(of_session(self.pid))
        with contextlib.suppress(psutil.Error):
            doomed |= {child.pid for child in psutil.Process(self.pid).children(recursive=True)}
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # whoever was forked meanwhile
            os.killpg(self.pid, signal.SIGKILL)

    def _cause_of_death(self) -> str:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return self._sentence or "closed its connection but went on running"
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
    home = Path(__file__).parents[2]
    if str(home) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), environment.get("PYTHONPATH"))))
    return environment
