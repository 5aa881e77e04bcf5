"""The processes below a process, and the memory that only they hold."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from adbench.measure.machine.system_files import fields


def descendants(pid: int) -> list[int]:
    """The numbers of all processes below a process; none if it has ended."""
    family = [pid]
    for each in family:
        try:
            threads = os.listdir(f"/proc/{each}/task")
            for thread in threads:
                with open(f"/proc/{each}/task/{thread}/children", "rb") as file:
                    family += map(int, file.read().split())
        except OSError:  # it ended meanwhile, or this kernel has no such files
            if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
                with contextlib.suppress(psutil.Error):
                    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return family[1:]


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:  # only the first and the last real-time signal have names
        return f"signal {number}"


def cpu_ns(pids: Iterable[int]) -> dict[int, int]:
    """The processor time of each running process, in nanoseconds: id -> time. Empty on other systems than Linux."""
    times = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it ended meanwhile
            times[pid] = time.clock_gettime_ns(~pid << 3 | 2)  # the clock's number, as clock_getcpuclockid(3) makes it
    return times


def private_bytes(pids: Iterable[int]) -> int:
    """The resident memory of these processes that they share with no other, so that a fork does not count twice."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, KeyError, ValueError):  # it ended meanwhile
            of = fields(Path(f"/proc/{pid}/smaps_rollup"))
            total += sum(int(of[name].split()[0]) * 1024 for name in ("Private_Clean", "Private_Dirty"))
    return total
