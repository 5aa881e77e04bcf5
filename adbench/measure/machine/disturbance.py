"""Disturbances of a timed process: counters that are read before and after an epoch, outside the clock.

The system maintains these counters anyway. A counter that it lacks is None.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from adbench.measure.machine import cgroup
from adbench.measure.machine.processors import usable_cpus
from adbench.measure.machine.system_files import PROC, SYS, number, processor_ticks, text
from adbench.optional import posix_module


@dataclass(frozen=True)
class Counters:
    """Counts and durations since the start of the process or the machine.

    switches       involuntary context switches of every thread of this process (getrusage(2))
    waited_ns      time that the main thread was ready but not running (proc_pid_schedstat(5), second field)
    stolen_ms      time that a hypervisor took from the usable processors (proc_stat(5), `steal`); whole ticks
    hot            number of times that heat slowed the usable processors
    held_back      number of times that the control group's limit stopped the process
    """

    switches: int
    waited_ns: int | None = None
    stolen_ms: float | None = None
    hot: int | None = None
    held_back: int | None = None


def counters(*, proc: Path = PROC, sys: Path = SYS) -> Counters:
    """The current counters."""
    resource = posix_module("resource")
    cpus = usable_cpus()
    return Counters(
        switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
        waited_ns=_waited_ns(proc),
        stolen_ms=stolen_ms(cpus, proc=proc),
        hot=heat_count(cpus, sys=sys),
        held_back=cgroup.times_held_back(proc=proc, sys=sys),
    )


def disturbed(before: Counters, after: Counters) -> str | None:
    """The disturbances in between, in words; None if there were none."""
    words = []
    if switches := after.switches - before.switches:
        waited = grown(before.waited_ns, after.waited_ns) * 1e-6
        for_how_long = f", {waited:.2g} ms waiting" if waited >= 0.01 else ""
        words.append(f"{switches} involuntary switch{'es' if switches > 1 else ''}{for_how_long}")
    if stolen := grown(before.stolen_ms, after.stolen_ms):
        words.append(f"steal {stolen:g} ms")
    if hot := grown(before.hot, after.hot):
        words.append(f"throttled {hot:g}× by heat")
    if held_back := grown(before.held_back, after.held_back):
        words.append(f"throttled {held_back:g}× by the control group")
    return "; ".join(words) or None


def stolen_ms(cpus: tuple[int, ...], *, proc: Path = PROC) -> float | None:
    """Milliseconds that a hypervisor took from these processors since the start, summed; None if unknown."""
    stolen = [counts[7] for cpu, counts in processor_ticks(proc).items() if cpu in cpus and len(counts) > 7]
    return sum(stolen) * 1000 / os.sysconf("SC_CLK_TCK") if stolen else None


def heat_count(cpus: tuple[int, ...], *, sys: Path = SYS) -> int | None:
    """The number of times that heat slowed these processors since the start; None if unknown."""
    counts = [count for count in map(number, _heat_files(sys, cpus)) if count is not None]
    return sum(counts) if counts else None


def _waited_ns(proc: Path) -> int | None:
    fields = (text(proc / "self" / "schedstat") or "").split()
    return int(fields[1]) if len(fields) == 3 else None


@cache
def _heat_files(sys: Path, cpus: tuple[int, ...]) -> tuple[Path, ...]:
    folders = (sys / "devices/system/cpu" / f"cpu{cpu}" / "thermal_throttle" for cpu in cpus)
    return tuple(
        file for folder in folders for file in (folder / "core_throttle_count", folder / "package_throttle_count")
        if file.is_file()
    )  # fmt: skip


def grown(before: float | None, after: float | None) -> float:
    """The growth of a counter; 0 if unknown."""
    return max(0.0, after - before) if before is not None and after is not None else 0.0
