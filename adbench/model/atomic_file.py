"""Atomic writes: a reader sees the old file or the new one, never a part. Locks: one process at a time."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import IO, Any

from adbench.model.errors import BadOutput
from adbench.optional import posix_module


def refuse_file(path: Path) -> None:
    """Raise BadOutput if a file cannot be written here: to be called before the work whose result it is to hold."""
    if path.is_dir():
        raise BadOutput(f"{path}: cannot be written: it is a directory")
    if not os.access(path.parent, os.W_OK):
        reason = "permission denied" if path.parent.is_dir() else f"{path.parent} is no directory"
        raise BadOutput(f"{path}: cannot be written: {reason}")


def write_whole(path: Path, content: str | bytes, *, kept: str = "") -> None:
    """Write a file atomically: temporary file, fsync, rename.

    Raises BadOutput if the file cannot be written; its message ends with `kept`, which names the data that is safe.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes private files; a report is to be shared
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        more = f"; {kept}" if kept else ""
        raise BadOutput(f"{path}: cannot be written: {error.strerror}{more}") from error


def lock(file: IO[Any], *, wait: bool = False) -> None:
    """Lock an open file until it is closed, or its process ends.

    Raises OSError if another process has locked it, unless `wait`.
    """
    fcntl = posix_module("fcntl")
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
