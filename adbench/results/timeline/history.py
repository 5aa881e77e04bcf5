"""The runs below a folder: their contents, their machines, and whether they are finished or unreadable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adbench.model.errors import AdbenchError, BadFile
from adbench.results import journal
from adbench.results.comparison_inputs import ComparisonInput, digest, of_run
from adbench.results.store import JOURNAL, STORED, read_run

State = Literal["finished", "resumable", "unreadable"]


@dataclass(frozen=True)
class HistoryEntry:
    """One run. An unreadable one has only a `reason`.

    machine    eight digits, the same for runs on like machines with as many threads
    cells      planned, if known; `done`: cells with a record
    wrong      cells with a wrong value or derivative, without known faults
    label      what its user calls it
    floor      the run's noise floor, as a share; None without a control
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
    label: str | None = None


StoredRun = tuple[HistoryEntry, ComparisonInput | None]
"""A run's entry, and its content; None of an unreadable one."""


def stored_runs(folder: Path) -> list[StoredRun]:
    """The runs in a folder and below it, oldest first; unreadable ones come before them, by name.

    Raises BadFile if there is no such folder. Links to folders are not followed.
    """
    if not folder.is_dir():
        raise BadFile(f"{folder}: no such folder; pass a folder with runs, for example that of adbench run -o")
    found = (_stored(path) for path in _runs(folder))
    return sorted(found, key=lambda stored: (stored[0].created or "", str(stored[0].path)))


def _runs(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if not {*STORED}.isdisjoint(names):
            yield Path(place)


def _stored(path: Path) -> StoredRun:
    try:
        run = read_run(path)
        planned, ended = _plan(path)
    except AdbenchError as error:
        return HistoryEntry(path, "unreadable", " ".join(str(error).split())), None
    jobs = [record.job for record in run.records]
    label = run.settings.get("label")
    content = of_run(run, str(path))
    entry = HistoryEntry(
        path,
        "finished" if ended else "resumable",
        created=run.created,
        machine=digest(content.machine),
        cases=tuple(dict.fromkeys(job.case for job in jobs)),
        backends=tuple(dict.fromkeys(job.backend for job in jobs)),
        cells=max(planned, len(jobs)),
        done=len(jobs),
        wrong=sum(record.outcome.word == "wrong" for record in run.records),
        floor=content.floor,
        label=label if isinstance(label, str) and label else None,
    )
    return entry, content


def _plan(path: Path) -> tuple[int, bool]:
    """How many cells were planned, and whether all are done. A run without its journal counts as finished."""
    written = path / JOURNAL
    if not journal.is_open(written):
        return 0, True
    try:
        return len(journal.read(written).head.plan), False
    except BadFile:
        return 0, True
