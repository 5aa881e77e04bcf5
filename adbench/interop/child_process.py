"""A program that answers each line on its standard input with a line on its standard output."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from weakref import finalize

from adbench.interop.line_protocol import MOST_BYTES, Malformed, TooLong, lines, write_line
from adbench.measure.machine.process_tree import signal_name
from adbench.measure.memory import resident_peak
from adbench.measure.readings import Figure

MOST_SHOWN = 200  # characters of a program's message
MOST_READ = 4096  # bytes of its standard error
T = TypeVar("T")


class Failed(RuntimeError):
    """The program reported a failure, died, closed its output, or sent an unusable answer; see the message."""


class Child:
    """A program with numbered requests. It starts with the first request, and again after a loss.

    It inherits standard error; if it exits, the reason has its last error from there. It ends with this object; if this
    process is killed, its standard input is closed.
    """

    def __init__(self, command: str, folder: str) -> None:
        self._command, self._folder = command, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: Iterator[bytes | TooLong] = iter(())
        self._number = 0
        self._printed = 0  # bytes on standard error before it started

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process is not None else None

    def ask(self, line: Callable[[int], str], read: Callable[[bytes], T], number_of: Callable[[T], Any]) -> T:
        """The answer to the next request.

        line        the number of the request, counted from 0 in each process -> its line
        read        the line of the answer -> the answer; raises Malformed for other lines
        number_of   the request number in the answer

        Raises Failed, and ends the program, if there is no answer or it is not the answer to this request.
        """
        if self._process is None:
            self._start()
        number, self._number = self._number, self._number + 1
        answered = self._answered(line(number))
        try:
            answer = read(answered)
        except Malformed as fault:
            shown = words(answered[:MOST_SHOWN].decode(errors="backslashreplace"))
            raise self.lost(f"sent {shown!r}: {fault.reason}") from fault
        if number_of(answer) != number:
            raise self.lost(f"answered request {number} with the id {number_of(answer)}")
        return answer

    def _answered(self, line: str) -> bytes:
        """The answer to a line."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            write_line(self._process.stdin.fileno(), line)
        except OSError as error:
            raise self.lost(f"does not read its input: {error.strerror}", gone=True) from error
        received = next(self._lines, None)
        if received is None:
            raise self.lost("closed its output", gone=True)
        if isinstance(received, TooLong):
            raise self.lost(f"sent a line of {received.length} bytes; the limit is {MOST_BYTES}")
        return received

    def lost(self, reason: str, *, gone: bool = False) -> Failed:
        """End it, and return the error to raise, with the reason, or its cause of death if it seems `gone`."""
        process, self._process = self._process, None
        code = None
        if process is not None:
            if gone:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=2)
            _end(process)
        if code:
            reason = f"died of {signal_name(-code)}" if code < 0 else f"exited with code {code}"
            reason = ": ".join(filter(None, (reason, _last_error(self._printed))))
        return Failed(f"the program {reason}")

    def resident_peak(self, run: Callable[[], Any]) -> Figure:
        """The growth of its resident set at the peak of a run, in bytes, from /proc.

        A lower bound, because reused memory of earlier runs is not counted.
        """
        run()
        if self.pid is None:
            return Figure(None, "the program is not running")
        try:
            return resident_peak(run, proc=Path(f"/proc/{self.pid}"))
        except (OSError, KeyError) as error:
            return Figure(None, f"its memory cannot be read: {error}")

    def _start(self) -> None:
        self._number = 0
        self._printed = os.fstat(2).st_size
        try:
            self._process = subprocess.Popen(
                shlex.split(self._command), cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise Failed(f"the program cannot be started: {error.strerror}") from error
        assert self._process.stdout is not None
        finalize(self, _end, self._process)
        self._lines = lines(self._process.stdout.fileno())


def words(text: str | None) -> str:
    """A program's message, on one line of readable length."""
    line = " ".join((text or "").split())
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}…"


def _last_error(since: int) -> str:
    """The last line on standard error that names an error, or else the last line, if it is a file, as in a worker."""
    try:
        size = os.fstat(2).st_size
        text = os.pread(2, MOST_READ, max(size - MOST_READ, since if since < size else 0))
    except OSError:  # a pipe or a terminal
        return ""
    lines = [line for line in text.decode(errors="backslashreplace").splitlines() if line.strip()]
    return words(next((line for line in reversed(lines) if "error" in line.lower()), lines[-1] if lines else ""))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its pipes, which asks it to end, and kill it if it does not."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
