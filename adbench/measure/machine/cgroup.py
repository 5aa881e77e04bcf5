"""Limits of this process's control group (Linux cgroups, versions 1 and 2), such as a container's.

A group's limits apply to all groups inside it, so the tightest of the ancestors counts. In a container only visible
ancestors count.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from adbench.measure.machine.system_files import PROC, SYS, text

UNLIMITED = 1 << 60  # version 1 writes "no limit" as a number near 2^63


def cpu_limit(*, proc: Path = PROC, sys: Path = SYS) -> float | None:
    """The limit in processors, such as 1.5; None for no limit."""
    limits = []
    for folder in _folders("cpu", proc, sys):
        quota, period = _two(folder, "cpu.max") or _two(folder, "cpu.cfs_quota_us", "cpu.cfs_period_us") or (None, None)
        if quota is not None and period and quota > 0:
            limits.append(quota / period)
    return min(limits, default=None)


def memory_limit(*, proc: Path = PROC, sys: Path = SYS) -> int | None:
    """The limit in bytes; None for no limit."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [n for folder in _folders("memory", proc, sys) for name in names for n in _numbers(folder / name)]
    return min((int(n) for n in limits if n is not None and n < UNLIMITED), default=None)


def times_held_back(*, proc: Path = PROC, sys: Path = SYS) -> int | None:
    """The number of times that the limit stopped the group or an ancestor; None if unknown."""
    counts = []
    for folder in _folders("cpu", proc, sys):
        for line in (text(folder / "cpu.stat") or "").splitlines():
            name, _, value = line.partition(" ")
            if name == "nr_throttled":
                counts.append(int(value))
    return max(counts, default=None)


def _folders(controller: str, proc: Path, sys: Path) -> Iterator[Path]:
    """The folders of the group and its ancestors, for the controller's own hierarchy (version 1) or the unified one."""
    for line in (text(proc / "self" / "cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            mounts = [sys / "fs/cgroup", sys / "fs/cgroup/unified"]
        elif controller in controllers.split(","):
            mounts = [sys / "fs/cgroup" / controllers, sys / "fs/cgroup" / controller]
        else:
            continue
        mount = next((m for m in mounts if m.is_dir()), None)
        if mount is None:
            continue
        below = Path(path.strip("/"))
        ways = [below, *below.parents] if ".." not in below.parts else [Path()]  # "..": the group is out of sight
        yield from (mount / way for way in dict.fromkeys(ways) if (mount / way).is_dir())


def _two(folder: Path, *names: str) -> tuple[float | None, float | None] | None:
    """The first two words of the files together, as numbers; None if there are fewer."""
    numbers = [number for name in names for number in _numbers(folder / name)]
    return (numbers[0], numbers[1]) if len(numbers) >= 2 else None


def _numbers(file: Path) -> list[float | None]:
    """The words of a file as numbers; None for a word, such as "max"."""
    return [float(word) if word.lstrip("-").isdigit() else None for word in (text(file) or "").split()]
