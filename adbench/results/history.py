"""The runs below a folder: what there is, where it was made, whether it is finished. What cannot be read is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adbench.measure.machine import fingerprint
from adbench.model.errors import AdbenchError, BadFile
from adbench.results import journal
from adbench.results.analysis import floor
from adbench.results.comparison_inputs import digest
from adbench.results.store import JOURNAL, RUN, read_run

State = Literal["finished", "resumable", "unreadable"]


@dataclass(frozen=True)
class Entry:
    """One run. Where it is unreadable, `reason` says why and nothing else is known.

    machine    eight digits that runs on one machine, or on two that are alike, have in common
    cells      that were planned, as far as is known, and `done` those that have a record
    wrong      cells with a wrong value or derivative, those that are known to be wrong left out
    floor      what the run says of two that are the same, as a share; None without a control
    """

    path: Path
    state: State
    reason: str | None = None
    created: str | None = None
    machine: str | None = None
    cases: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    cells: int = 0
    done: int = 0
    wrong: int = 0
    floor: float | None = None


def history(folder: Path) -> list[Entry]:
    """The runs in a folder and those below it, oldest first; those that cannot be read come before them, by name.

    Raises BadFile where there is no such folder. Links to folders are not followed.
    """
    if not folder.is_dir():
        raise BadFile(f"{folder}: no such folder; give one that runs were written to, as with adbench run -o")
    return sorted((_entry(path) for path in _runs(folder)), key=lambda entry: (entry.created or "", str(entry.path)))


def _runs(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if RUN in names or JOURNAL in names:
            yield Path(place)


def _entry(path: Path) -> Entry:
    try:
        run = read_run(path)
        planned, ended = _plan(path)
    except AdbenchError as error:
        return Entry(path, "unreadable", " ".join(str(error).split()))
    jobs = [record.job for record in run.records]
    return Entry(
        path,
        "finished" if ended else "resumable",
        created=run.created,
        machine=digest(fingerprint(run.machine)),
        cases=tuple(dict.fromkeys(job.case for job in jobs)),
        backends=tuple(dict.fromkeys(job.backend for job in jobs)),
        cells=max(planned, len(jobs)),
        done=len(jobs),
        wrong=sum(record.status == "wrong" for record in run.records),
        floor=floor(run).reach,
    )


def _plan(path: Path) -> tuple[int, bool]:
    """How many cells were planned, and whether all is done. A run without its journal is as finished as it will be."""
    written = path / JOURNAL
    if not journal.is_open(written):
        return 0, True
    try:
        return len(journal.read(written).head.plan), False
    except BadFile:
        return 0, True
