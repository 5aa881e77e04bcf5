"""A control group (Linux cgroup version 2) for each worker: the kernel ends the whole group, also what left its tree.

It needs a hierarchy in which this process may make groups, such as a user's systemd service or a container with its
own; elsewhere there is none. No controller is enabled, so measurements are the same in a group and outside.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil

from adbench.measure.machine.system_files import PROC, SYS, text

PREFIX = "adbench-"
MOST_SECONDS = 2.0  # that the kernel gets to end a group


class ControlGroup:
    """An empty group below this process's own; `path` is its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, name: str, *, proc: Path = PROC, sys: Path = SYS) -> ControlGroup | None:
        """A new group with this name; None if there can be none, or the kernel (before 5.14) cannot end groups."""
        home = _own(proc, sys)
        if home is None:
            return None
        for old in home.glob(f"{PREFIX}*"):
            runner = old.name.split("-")[1]
            if runner.isdigit() and not psutil.pid_exists(int(runner)):  # it was killed
                with contextlib.suppress(OSError):  # a process is still ending
                    old.rmdir()
        group = cls(home / f"{PREFIX}{os.getpid()}-{name}")
        try:
            group.path.mkdir()
        except OSError:
            return None
        if not all(os.access(group.path / file, os.W_OK) for file in ("cgroup.kill", "cgroup.procs")):
            group.remove()
            return None
        return group

    def end(self) -> None:
        """Kill every process of the group."""
        with contextlib.suppress(OSError):  # it has been removed
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Delete the group once its processes have ended."""
        deadline = time.monotonic() + MOST_SECONDS
        while self.path.is_dir() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # a process is still ending
                self.path.rmdir()
                return
            time.sleep(0.001)


def _own(proc: Path, sys: Path) -> Path | None:
    """The folder of this process's group in version 2's hierarchy."""
    for line in (text(proc / "self/cgroup") or "").splitlines():
        if line.startswith("0::"):
            for mount in (sys / "fs/cgroup/unified", sys / "fs/cgroup"):
                folder = mount / line.removeprefix("0::").strip("/")
                if (folder / "cgroup.procs").is_file():
                    return folder
    return None
