"""Ctrl-C, SIGTERM and other signals: the first ends the run in order, the second ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from adbench.execution.workers.supervisor import end_all
from adbench.model.errors import Interrupted

__all__ = ["Interrupted", "listen"]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")
"""Those that would end the process; batch systems send the last three before a limit."""


def listen() -> None:
    """Make the first signal raise Interrupted in the main thread; the next one ends workers and process.

    A signal that the parent process ignores (nohup) stays ignored. Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _first)


def _first(number: int, _: FrameType | None) -> None:
    for name in SIGNALS:
        other = getattr(signal, name, None)
        if other is not None and signal.getsignal(other) is _first:
            signal.signal(other, _second)
    raise Interrupted(number)


def _second(number: int, _: FrameType | None) -> None:
    end_all()
    os._exit(128 + number)
