"""The Pythons of this machine. Some releases need another Python than the one that runs adbench."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OLDEST = (3, 11)
"""adbench itself needs it."""
ASKED = "import platform; print(platform.python_implementation(), platform.python_version())"
ANSWER_SECONDS = 30.0


@dataclass(frozen=True)
class Interpreter:
    """A Python: its program, and its version such as 3.13.0."""

    path: Path
    version: str

    @property
    def minor(self) -> str:
        """Such as 3.13: packages with machine code are made for one."""
        return ".".join(self.version.split(".")[:2])

    @property
    def runs_this(self) -> bool:
        """Whether it is the Python that runs adbench."""
        return str(self.path) == sys.executable


RUNNING = Interpreter(Path(sys.executable), platform.python_version())


@cache
def every() -> tuple[Interpreter, ...]:
    """The Python that runs adbench, then one of each other minor version, newest first."""
    pythons = {RUNNING.minor: RUNNING}
    for path in _candidates():
        if (python := _asked(path)) is not None:
            pythons.setdefault(python.minor, python)
    return (RUNNING, *sorted((one for one in pythons.values() if one != RUNNING), key=_numbers, reverse=True))


def _candidates() -> list[Path]:
    """Programs on the path called python3.N, and those of pyenv."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    folders += [folder / "bin" for folder in sorted(pyenv.glob("*"), reverse=True)]
    programs = [path for folder in folders for path in sorted(folder.glob("python3.*"))]
    return [path for path in programs if re.fullmatch(r"python3\.\d+", path.name)]


def _asked(path: Path) -> Interpreter | None:
    """The Python of a program; None for one that is too old, is not CPython, or does not run."""
    with suppress(OSError, subprocess.TimeoutExpired, ValueError):
        done = subprocess.run(
            [str(path), "-c", ASKED], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
        kind, version = done.stdout.split()
        interpreter = Interpreter(path, version)
        return interpreter if kind == "CPython" and _numbers(interpreter)[:2] >= OLDEST else None
    return None


def _numbers(python: Interpreter) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", python.version))
