"""A run on disk: a journal while it runs, one JSON when it is done.

The journal is flushed to the disk after every record: a later crash must not lose earlier ones. The JSON appears
whole or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from adbench.suite.errors import BadFile, BadOutput
from adbench.suite.plain import from_plain, to_plain
from adbench.suite.record import SCHEMA_VERSION, Record, Run

MAX_BYTES = 512 * 2**20


class Store:
    """The output folder of one run: `journal.jsonl`, `run.json`, `report.html`. A context manager.

    Raises BadOutput where the folder cannot be written, or already holds a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._journal = (folder / "journal.jsonl").open("x", encoding="utf-8")
        except FileExistsError:
            raise BadOutput(f"{folder}: already holds a run, or is a file; give another folder with -o") from None
        except OSError as error:
            raise BadOutput(f"{folder}: cannot be written: {error.strerror}; give another folder with -o") from error

    @property
    def run_file(self) -> Path:
        """Where the run's JSON goes."""
        return self.folder / "run.json"

    def add(self, record: Record) -> None:
        """Write one record through to the disk. A later line for the same job replaces an earlier one."""
        json.dump(to_plain(record), self._journal, allow_nan=False)
        self._journal.write("\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    @property
    def page_file(self) -> Path:
        """Where the run's page goes."""
        return self.folder / "report.html"

    def finish(self, run: Run) -> None:
        """Write the run's JSON."""
        write_whole(self.run_file, dumps(run))


def default_folder() -> Path:
    """`results/<time>` in the working folder; the time is local, to the second."""
    return Path("results") / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")


def dumps(run: Run) -> str:
    """A run as JSON text."""
    return json.dumps(to_plain(run), indent=1, allow_nan=False) + "\n"


def read_run(path: Path) -> Run:
    """The run in a file that `adbench run` wrote. Raises BadFile, in one line, for anything else."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadFile(f"{path}: larger than {MAX_BYTES // 2**20} MiB; adbench writes no such file")
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path}: not JSON, or damaged: {error}") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise BadFile(f"{path}: JSON, but not a run of adbench: there is no schema_version")
    if version != SCHEMA_VERSION:
        raise BadFile(f"{path}: schema version {version}; this adbench reads version {SCHEMA_VERSION}")
    try:
        return from_plain(data, Run)
    except ValueError as error:
        raise BadFile(f"{path}: not a run of adbench: {error}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part (temporary file, fsync, rename)."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes private files; a report is to be shared
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
