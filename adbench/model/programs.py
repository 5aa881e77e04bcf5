"""Compiled programs that a check keeps on disk for the next one.

No launch uses them: what compiling takes is among its figures.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "ADBENCH_PROGRAMS"
"""In the environment of a worker that checks: the folder of compiled programs."""


def kept_programs(library: str) -> Path | None:
    """The folder in which a backend may keep the programs that its library compiles; None where it must not.

    The folder exists, belongs to the user, and nobody else can write to it. It may be deleted at any time.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    folder = Path(given) / library
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    trusted = folder.is_dir() and not folder.is_symlink() and about.st_uid == os.getuid() and not about.st_mode & 0o022
    return folder if trusted else None
