"""The journal of a run: one JSON object per line, written to disk before the next measurement.

    {"kind": "head", "run": …, "plan": [job, …], "asked": {…}}  first: a Run without records, and the plan
    {"kind": "checked", "record": …}                            a verdict, or the reason for none
    {"kind": "launch", "number": 3, "cells": [{"job": …, "launch": …, "control": false}, …], "lost": [record, …]}
                                                                one group in one launch: the unit of resuming
    {"kind": "decided", "launches": 4, "groups": […], "jobs": […]}   what takes no launch after these
    {"kind": "memory", "job": …, "memory": …}
    {"kind": "facts", "facts": {…}}                             fields of the Run that became known later
    {"kind": "end"}                                             the run is complete

Each line after the head is an event (model/events.py). Reading applies the events to the progress of the run, as
running does (model/run_progress.py). A later verdict about a cell replaces an earlier one. A killed process leaves at
most its last line torn: reading drops that line, and loses nothing else.

Each line ends in a checksum of the rest, `"crc32": "…"`. A line whose checksum does not match is refused: its numbers
may have changed. Journals of earlier versions have none, and are read and continued without.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any, get_type_hints

from adbench.model.atomic_file import lock
from adbench.model.errors import BadFile, BadOutput
from adbench.model.events import Checked, Decided, Ended, Event, Learned, MemoryMeasured, Timed
from adbench.model.record import SCHEMA_VERSION, Run
from adbench.model.run_progress import Head, Progress, apply
from adbench.model.serialization import from_plain, to_plain

MAX_BYTES = 512 * 2**20

KINDS: dict[str, type[Event]] = {
    "checked": Checked,
    "launch": Timed,
    "decided": Decided,
    "memory": MemoryMeasured,
    "facts": Learned,
    "end": Ended,
}
"""Name of a line after the head -> the event that it holds."""

_CHECKSUM = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\n\Z')
_MOST_ZEROS = 7
"""Zero bytes in a whole line. A power failure leaves blocks of them, damage single ones."""
_LEFT_OUT = ("cost", "seconds", "open_seconds")  # of a check: planning stores them elsewhere
_FACTS = get_type_hints(Run)


class Journal:
    """A journal that is being written, by one process only. A context manager.

    `create` and `resume` make one. `write` appends a line and returns when it is on the disk; it raises BadOutput if
    that fails, and earlier lines stay readable.
    """

    def __init__(self, path: Path, file: FileIO, *, with_checksums: bool = True) -> None:
        self.path, self._file, self._with_checksums = path, file, with_checksums
        try:
            lock(file)
        except OSError as error:
            file.close()
            raise BadOutput(f"{path}: another adbench is writing to it; wait until it ends") from error

    @classmethod
    def create(cls, path: Path, head: Head) -> Journal:
        """Create a journal and its folder. Raises BadOutput if there is one, or if it cannot be created."""
        folder = path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = path.open("r+b" if _holds_nothing(path) else "x+b", buffering=0)
        except FileExistsError:
            raise BadOutput(
                f"{folder}: already holds a run, or is a file; choose another folder with -o, or resume the run: "
                f"adbench run --resume {folder}"
            ) from None
        except OSError as error:
            raise BadOutput(f"{folder}: cannot be written: {error.strerror}; give another folder with -o") from error
        journal = cls(path, file)
        try:
            file.truncate(0)
            journal._append({"kind": "head"} | to_plain(head))
        except (OSError, BadOutput) as error:
            journal.close()
            what = getattr(error.__cause__ or error, "strerror", None)
            raise BadOutput(f"{folder}: cannot be written: {what}; give another folder with -o") from error
        return journal

    @classmethod
    def resume(cls, path: Path) -> tuple[Journal, Progress]:
        """Open the journal of an unfinished run, with its progress; a torn last line is cut off.

        Raises BadFile if it is damaged, BadOutput if it cannot be written.
        """
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            raise BadFile(f"{path}: no such journal; pass --resume the output folder of an earlier run") from None
        except OSError as error:
            raise BadOutput(f"{path}: cannot be written: {error.strerror}; make it writable to resume") from error
        journal = cls(path, file)
        try:
            progress, whole, journal._with_checksums = _read(path)
            file.truncate(file.seek(whole))
        except BaseException:
            journal.close()
            raise
        return journal, progress

    def write(self, event: Event) -> None:
        """Append an event that a resumed run needs."""
        if (line := line_of(event)) is not None:
            self._append(line)

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, data: dict[str, Any]) -> None:
        line = _line(data, with_checksum=self._with_checksums)
        start = self._file.tell()
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
            if os.fstat(self._file.fileno()).st_nlink == 0:
                self._put_back()
        except OSError as error:
            with contextlib.suppress(OSError):  # the torn line; `resume` would cut it off as well
                self._file.truncate(self._file.seek(start))
            raise BadOutput(
                f"{self.path}: cannot be written: {error.strerror}; earlier results are kept; free disk space, then "
                f"adbench run --resume {self.path.parent}"
            ) from error

    def _put_back(self) -> None:
        """Write everything again, with the folder, so that deleting the folder does not end the run."""
        self._file.seek(0)
        written = self._file.readall()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deleted, self._file = self._file, self.path.open("x+b", buffering=0)
        deleted.close()
        lock(self._file)
        while written:
            written = written[self._file.write(written) :]
        os.fsync(self._file.fileno())


def read(path: Path) -> Progress:
    """The progress of the run in a journal, also while the run continues. Raises BadFile with one line."""
    return _read(path)[0]


def line_of(event: Event) -> dict[str, Any] | None:
    """An event as plain data; None if it completes no work."""
    kind = next((name for name, type_ in KINDS.items() if type(event) is type_), None)
    if kind is None:
        return None
    return {"kind": kind} | {name: value for name, value in to_plain(event).items() if name not in _LEFT_OUT}


def event_of(data: dict[str, Any]) -> Event:
    """The event that a line holds. Raises ValueError, TypeError or KeyError for other lines."""
    kind = data.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"unknown kind of line {kind!r}")
    event = from_plain(data, KINDS[kind])
    if isinstance(event, Learned):
        return Learned({name: from_plain(value, _FACTS[name]) for name, value in event.facts.items()})
    return event


def is_open(path: Path) -> bool:
    """Whether a file is a journal of an unfinished run.

    False if it cannot be read or is no journal.
    """
    beginning = b'{"kind": "head"'
    endings = tuple(b"\n" + _line({"kind": "end"}, with_checksum=some) for some in (True, False))
    try:
        with path.open("rb") as file:
            if file.read(len(beginning)) != beginning:
                return False
            file.seek(-min(max(map(len, endings)), path.stat().st_size), os.SEEK_END)
            return not file.read().endswith(endings)
    except OSError:
        return False


def _holds_nothing(path: Path) -> bool:
    """Whether the journal's run ended before its first line was complete."""
    try:
        with path.open("rb") as file:
            return not file.readline().endswith(b"\n")
    except OSError:
        return False


def _read(path: Path) -> tuple[Progress, int, bool]:
    """The progress of the run in a journal, the number of bytes in complete lines, and whether they have checksums."""
    progress: Progress | None = None
    whole, checked = 0, False
    damaged: dict[int, str] = {}
    for number, line, is_last in _lines(path):
        if is_last and (not line.endswith(b"\n") or line.count(0) > _MOST_ZEROS):
            break  # torn because the process was killed; nothing depends on it
        try:
            data, has_checksum = _data(line)
            if progress is None:
                progress, checked = _begun(data), has_checksum
            elif has_checksum != checked:
                raise ValueError("only some of the lines have a checksum")
            else:
                _enter(event_of(data), progress)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            damaged[number] = " ".join(str(error).split()) or type(error).__name__
            if progress is None:
                break
        whole += len(line)
    if damaged:
        raise BadFile(_advice(path, damaged))
    if progress is None:
        raise BadFile(f"{path} is empty: the run ended before its first result; run it again")
    return progress, whole, checked


def _advice(path: Path, damaged: Mapping[int, str]) -> str:
    """What is wrong, and how to keep the other lines: each is complete in itself, and resuming does the rest again."""
    first, *others = damaged
    lines = f"line {first}" if not others else f"{len(damaged)} lines, the first is line {first},"
    fault = f"{lines} of {path} {'are' if others else 'is'} damaged, or not from a journal: {damaged[first]}"
    if first == 1:
        return f"{fault}; start a new run"
    numbers = ";".join(f"{number}d" for number in damaged)
    command = f"sed -i '{numbers}' {shlex.quote(str(path))}"
    return f"{fault}; delete {'them' if others else 'it'} to keep all other lines: {command}"


def _line(data: dict[str, Any], *, with_checksum: bool) -> bytes:
    text = json.dumps(data, allow_nan=False).encode()
    return text[:-1] + b', "crc32": "%08x"}\n' % zlib.crc32(text) if with_checksum else text + b"\n"


def _data(line: bytes) -> tuple[dict[str, Any], bool]:
    """The data of a line, and whether it has a checksum. Raises ValueError if the checksum does not match."""
    found = _CHECKSUM.search(line)
    text = line[: found.start()] + b"}" if found else line
    if found and zlib.crc32(text) != int(found[1], 16):
        raise ValueError("its checksum does not match")
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return data, found is not None


def _enter(event: Event, progress: Progress) -> None:
    """Apply an event. Raises ValueError if the launch is there already."""
    if isinstance(event, Timed) and (event.number, event.group) in progress.groups:
        raise ValueError(f"launch {event.number} of {event.group[0]} at size {event.group[1]} is there twice")
    apply(event, progress)


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line, whether it is the last)."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadFile(f"{path}: larger than {MAX_BYTES // 2**20} MiB, the limit for journals")
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
    """The progress that the first line holds. Raises ValueError if it is no head, or has another version."""
    if data.pop("kind", None) != "head":
        raise ValueError("the first line must be the head")
    run = data.get("run")
    version = run.get("schema_version") if isinstance(run, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema version {version}; this adbench resumes only version {SCHEMA_VERSION}")
    return Progress(from_plain(data, Head))
