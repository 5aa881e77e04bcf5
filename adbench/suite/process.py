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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from adbench.suite.channel import Channel, Closed

STDERR_KEPT = 4096  # bytes of what a worker printed last that go into the record


class WorkerLost(Exception):
    """The worker did not answer. `status` is "crashed" or "timed_out"; `stderr` the end of what it had printed."""

    def __init__(self, status: Literal["crashed", "timed_out"], reason: str, stderr: str) -> None:
        super().__init__(reason)
        self.status: Literal["crashed", "timed_out"] = status
        self.reason, self.stderr = reason, stderr


class WorkerProcess:
    """A fresh interpreter that runs adbench/suite/worker.py. A context manager: leaving it kills the process group."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = [
            sys.executable,
            "-P",
            "-c",
            "from adbench.suite.worker import main; main()",
            str(theirs.fileno()),
        ]
        with theirs:
            self._process = subprocess.Popen(
                command,
                env=_environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._channel = Channel(ours)

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

    def kill(self) -> None:
        """End the process and everything it started. May be called twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._output.close()

    def _cause_of_death(self) -> str:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "closed its connection but went on running"
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def _last_words(self) -> str:
        """The end of stdout and stderr. What is not text is shown as such."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - STDERR_KEPT))
        return self._output.read().decode(errors="backslashreplace").strip()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Ours, with `extra`, and with adbench importable where it is not installed.

    The worker starts with -P: a `torch.py` in the folder where adbench was called must not stand in for the library.
    """
    environment = {**os.environ, **extra}
    home = Path(__file__).parents[2]
    if str(home) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), environment.get("PYTHONPATH"))))
    return environment
