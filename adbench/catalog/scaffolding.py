"""`adbench new`: a commented, working file to change into a new case or backend."""

from __future__ import annotations

import re
from pathlib import Path

from adbench.catalog.discovery import builtin_folder
from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadOutput, UsageError

NAME = re.compile(r"[a-z][a-z0-9_]*")
STARTERS = Path(__file__).with_name("starters")
COMMANDS = {
    "case": ("adbench check -c {file}", "adbench explain {file}", "adbench run --quick -c {file}"),
    # Two cases that a library can be tried on first; without -c it is all of them.
    "backend": (
        "adbench check -b {file} -c hypot -c normal_log_density",
        "adbench check -b {file}",
        "adbench run --quick -b {file} -b tape",
    ),
}
"""The commands that run a new file, a first check first."""


def scaffold(kind: str, name: str, folder: Path) -> tuple[Path, list[str]]:
    """Write `<name>.py` into the folder, and return it with the commands that run it; `kind` is case or backend.

    Raises UsageError for an unusable name or that of a built-in one; BadOutput if the file exists or cannot be
    written.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid name for a {kind}; use lowercase letters, digits and _: my_{kind}")
    if (builtin_folder("cases" if kind == "case" else "backends") / f"{name}.py").exists():
        raise UsageError(f"a built-in {kind} is called {name}, and yours would hide it; choose another name")
    file = folder / f"{name}.py"
    if file.exists() or file.is_symlink():
        raise BadOutput(f"{file} already exists; choose another name, or remove the file")
    text = (STARTERS / f"{kind}.txt").read_text(encoding="utf-8")
    write_whole(file, text.replace("NAME", name))
    return file, [command.format(file=file) for command in COMMANDS[kind]]
