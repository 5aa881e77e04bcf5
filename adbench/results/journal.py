"""The journal of a run: one JSON object a line, on the disk before the next thing is measured.

    {"kind": "head", "run": …, "plan": [job, …], "asked": {…}}  first: a Run without records, and what is to come
    {"kind": "checked", "record": …}                            a verdict, or why there is none
    {"kind": "launch", "number": 3, "cells": [{"job": …, "launch": …, "control": false}, …], "lost": [record, …]}
                                                                one group in one launch: the unit that is kept
    {"kind": "memory", "job": …, "memory": …}
    {"kind": "facts", "facts": {…}}                             fields of the Run that became known later
    {"kind": "end"}                                             everything planned has been done

A later line about the same thing replaces an earlier one. A process that is killed leaves at most its last line torn:
that one is dropped, and nothing else can be lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

from adbench.model.errors import BadFile, BadOutput
from adbench.model.record import SCHEMA_VERSION, Group, Job, Launch, Launched, Memory, Record, Run, Time, group_of
from adbench.model.serialization import from_plain, to_plain

MAX_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Head:
    """What a run is: `run` without records, the jobs in their order, and what was asked for, to ask for it again."""

    run: Run
    plan: tuple[Job, ...]
    asked: dict[str, Any] = field(default_factory=dict)


@dataclass
class Progress:
    """What a journal holds: for `assemble`, and for whoever goes on with the run.

    records    by job, without time and memory
    launches   (job, control) -> number of the launch -> what it measured
    groups     (number of the launch, group) of every group that was measured, and need not be again
    ended      everything planned was done
    """

    head: Head
    records: dict[Job, Record] = field(default_factory=dict)
    launches: dict[tuple[Job, bool], dict[int, Launch]] = field(default_factory=dict)
    groups: set[tuple[int, Group]] = field(default_factory=set)
    memories: dict[Job, Memory] = field(default_factory=dict)
    ended: bool = False


class Journal:
    """A journal that is being written; nobody else can write to it meanwhile. A context manager.

    `create` and `resume` make one; each method but `close` appends a line and returns when it is on the disk.
    Raises BadOutput where that fails; what was there before stays readable.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path, self._file = path, file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise BadOutput(f"{path}: another adbench is writing to it; wait for its end") from error

    @classmethod
    def create(cls, path: Path, head: Head) -> Journal:
        """A new journal, its folder included. Raises BadOutput where there is one, or none can be made."""
        folder = path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = path.open("r+b" if _holds_nothing(path) else "x+b", buffering=0)
        except FileExistsError:
            raise BadOutput(
                f"{folder}: already holds a run, or is a file; give another folder with -o, or go on with "
                f"--resume {folder}"
            ) from None
        except OSError as error:
            raise BadOutput(f"{folder}: cannot be written: {error.strerror}; give another folder with -o") from error
        journal = cls(path, file)
        try:
            file.truncate(0)
            journal._append("head", run=head.run, plan=head.plan, asked=head.asked)
        except (OSError, BadOutput) as error:
            journal.close()
            what = getattr(error.__cause__ or error, "strerror", None)
            raise BadOutput(f"{folder}: cannot be written: {what}; give another folder with -o") from error
        return journal

    @classmethod
    def resume(cls, path: Path) -> tuple[Journal, Progress]:
        """The journal of an unfinished run, and what it holds; a torn last line is cut off.

        Raises BadFile where it is damaged, BadOutput where it cannot be written.
        """
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            raise BadFile(f"{path}: no such journal; give --resume the folder that an earlier run wrote") from None
        except OSError as error:
            raise BadOutput(f"{path}: cannot be written: {error.strerror}; a run goes on in its own folder") from error
        journal = cls(path, file)
        try:
            progress, whole = _read(path)
            file.truncate(file.seek(whole))
        except BaseException:
            journal.close()
            raise
        return journal, progress

    def checked(self, record: Record) -> None:
        """A verdict, or why there is none: a record without time and memory."""
        self._append("checked", record=record)

    def launched(self, number: int, cells: Sequence[Launched], lost: Sequence[Record] = ()) -> None:
        """One group in launch `number`: what was measured of each cell, and the records of those that were lost."""
        self._append("launch", number=number, cells=cells, lost=lost)

    def memory(self, job: Job, memory: Memory) -> None:
        """What was weighed of a cell."""
        self._append("memory", job=job, memory=memory)

    def facts(self, **facts: Any) -> None:
        """Fields of the Run that were not known when the journal was begun."""
        self._append("facts", facts=facts)

    def end(self) -> None:
        """Everything planned has been done: there is nothing to resume."""
        self._append("end")

    def close(self) -> None:
        """Let go of the file. May be called twice."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind} | to_plain(fields), allow_nan=False).encode() + b"\n"
        start = self._file.tell()
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
            if os.fstat(self._file.fileno()).st_nlink == 0:
                self._put_back()
        except OSError as error:
            with contextlib.suppress(OSError):  # what fitted of the line; `resume` would cut it off as well
                self._file.truncate(self._file.seek(start))
            raise BadOutput(
                f"{self.path}: cannot be written: {error.strerror}; what was measured before is kept: make room, then "
                f"adbench run --resume {self.path.parent}"
            ) from error

    def _put_back(self) -> None:
        """Write everything again, the folder included: whoever deleted it has not ended the run that writes to it."""
        self._file.seek(0)
        written = self._file.readall()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deleted, self._file = self._file, self.path.open("x+b", buffering=0)
        deleted.close()
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        while written:
            written = written[self._file.write(written) :]
        os.fsync(self._file.fileno())


def read(path: Path) -> Progress:
    """What a journal holds, that of a run under way included. Raises BadFile, in one line."""
    return _read(path)[0]


def assemble(progress: Progress) -> Run:
    """The run as far as it got, in the plan's order."""
    records = []
    for job in progress.head.plan:
        record = progress.records.get(job)
        if record is not None:
            time = _time(progress.launches.get((job, False)))
            control = _time(progress.launches.get((job, True)))
            if record.status in ("wrong", "known", "surprise"):  # how fast a wrong answer comes is of no interest
                time = control = None
            records.append(replace(record, time=time, control=control, memory=progress.memories.get(job)))
    return replace(progress.head.run, records=tuple(records))


def is_open(path: Path) -> bool:
    """Whether a file is a journal whose last line does not say that everything planned was done.

    False where it cannot be read, or begins otherwise.
    """
    beginning, ending = b'{"kind": "head"', json.dumps({"kind": "end"}).encode() + b"\n"
    try:
        with path.open("rb") as file:
            if file.read(len(beginning)) != beginning:
                return False
            file.seek(-min(len(ending), path.stat().st_size), os.SEEK_END)
            return file.read() != ending
    except OSError:
        return False


def _time(launches: Mapping[int, Launch] | None) -> Time | None:
    return Time(tuple(launches[number] for number in sorted(launches))) if launches else None


def _holds_nothing(path: Path) -> bool:
    """Whether there is a journal whose run was ended before its first line was whole."""
    try:
        with path.open("rb") as file:
            return not file.readline().endswith(b"\n")
    except OSError:
        return False


def _read(path: Path) -> tuple[Progress, int]:
    """What a journal holds, and how many bytes of it are whole lines."""
    progress: Progress | None = None
    whole = 0
    for number, line, is_last in _lines(path):
        try:
            data = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            if is_last:  # torn when the process was killed; nobody was told that it is on the disk
                break
            raise BadFile(f"line {number} of {path} is damaged; cut the file off before it to keep what comes before")
        try:
            progress = _begun(data) if progress is None else _with(progress, data)
        except (ValueError, KeyError, TypeError) as error:
            what = " ".join(str(error).split()) or type(error).__name__
            raise BadFile(f"line {number} of {path} is damaged, or no line of a journal: {what}") from error
        whole += len(line)
    if progress is None:
        raise BadFile(f"{path}: holds nothing: its run was ended before it began; run it anew")
    return progress, whole


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line, whether it is the last)."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadFile(f"{path}: larger than {MAX_BYTES // 2**20} MiB; adbench writes no such file")
        with path.open("rb") as file:
            line = file.readline()
            for number in count(1):
                if not line:
                    return
                following = file.readline()
                yield number, line, not following
                line = following
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}") from error


def _begun(data: dict[str, Any]) -> Progress:
    """The first line. Raises ValueError where it is none, or that of another version."""
    if data.pop("kind", None) != "head":
        raise ValueError("a journal begins with its head")
    run = data.get("run")
    version = run.get("schema_version") if isinstance(run, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema version {version}; this adbench goes on with version {SCHEMA_VERSION} only")
    return Progress(from_plain(data, Head))


def _with(progress: Progress, data: dict[str, Any]) -> Progress:
    """The same progress with one line more. Raises ValueError, TypeError or KeyError where it is no such line."""
    match data.pop("kind", None):
        case "checked":
            record = from_plain(data["record"], Record)
            progress.records[record.job] = record
        case "launch":
            number = int(data["number"])
            cells = from_plain(data["cells"], tuple[Launched, ...])
            lost = from_plain(data["lost"], tuple[Record, ...])
            for cell in cells:
                progress.launches.setdefault((cell.job, cell.control), {})[number] = cell.launch
            progress.records |= {record.job: record for record in lost}
            progress.groups |= {(number, group_of(cell.job)) for cell in cells}
            progress.groups |= {(number, group_of(record.job)) for record in lost}
        case "memory":
            progress.memories[from_plain(data["job"], Job)] = from_plain(data["memory"], Memory)
        case "facts":
            run = from_plain(to_plain(progress.head.run) | data["facts"], Run)
            progress.head = replace(progress.head, run=run)
        case "end":
            progress.ended = True
        case other:
            raise ValueError(f"no line is of the kind {other!r}")
    return progress
