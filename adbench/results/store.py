"""A run on disk: a journal during the run (journal.py), one JSON file at its end, and the page drawn from it.

The JSON file is written atomically, and every value is checked when it is read. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadFile
from adbench.model.record import SCHEMA_VERSION, Job, Run
from adbench.model.run_progress import assemble
from adbench.model.serialization import MOST_RECORDS, from_json, from_plain, to_plain
from adbench.results import journal

T = TypeVar("T")

MAX_BYTES = 512 * 2**20
MOST_PLAIN_BYTES = 32 * 2**20  # as plain data, JSON takes up to thirty times its length
_PRESENT = re.compile(rb'\s*\{\s*"schema_version":\s*%d\s*,' % SCHEMA_VERSION)
RUN, JOURNAL, PAGE = "run.json", "journal.jsonl", "report.html"
STORED = (RUN, f"{RUN}.gz", JOURNAL)
"""The files that hold the run of a folder; the first of them counts, unless a journal is unfinished."""


def default_folder() -> Path:
    """`results/<time>` in the working folder; the time is local, to the second."""
    return Path("results") / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")


def dumps(run: Run) -> str:
    """A run as JSON text: one line for each field and each record, so that `diff` can compare two runs."""
    fields = to_plain(run)
    every = {name: ",\n".join(map(_line, fields.pop(name))) for name in ("threaded", "records")}
    lines = [f"{json.dumps(name)}: {_line(value)}" for name, value in fields.items()]
    lines += [f'"{name}": [\n{records}\n]' if records else f'"{name}": []' for name, records in every.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_run(path: Path) -> Run:
    """The run in a folder that `adbench run` wrote, in its `run.json`, or in the journal of an unfinished run.

    An unfinished journal takes precedence: it holds everything in `run.json`, and later results.
    Raises BadFile with one line for anything else.
    """
    return read_any(path, from_data)


def read_any(path: Path, other: Callable[[Any, Path], T]) -> Run | T:
    """As `read_run`; `other(data, path)` reads the JSON data of a file that does not begin as a run."""
    if path.is_dir():
        path = _file_in(path)
    if is_journal(path):
        return assemble(journal.read(path))
    with _no_garbage():
        return _of_text(read_bytes(path), path, other)


def from_data(data: Any, path: Path) -> Run:
    """The run in the JSON data of the file `path`. Raises BadFile."""
    try:
        version = data.get("schema_version") if isinstance(data, dict) else None
        if type(version) is not int:
            raise ValueError("schema_version is missing")
        if version != SCHEMA_VERSION:
            which = "a later adbench" if version > SCHEMA_VERSION else "no adbench"
            raise ValueError(f"schema version {version}, of {which}; this reads {SCHEMA_VERSION}: update adbench")
        run = from_plain(data, Run)
        _refuse_duplicates(run)
        return run
    except ValueError as error:
        fault = " ".join(str(error).split())
        raise BadFile(f"{path}: valid JSON, but not a run of adbench: {fault}") from error


def _refuse_duplicates(run: Run) -> None:
    """Raises ValueError if a cell, or a launch of a cell, is there twice: statistics would count it twice."""
    jobs: set[Job] = set()
    for place, record in enumerate(run.every_record):
        if record.job in jobs:
            raise ValueError(f".records[{place}]: {_in_words(record.job)} is there twice")
        jobs.add(record.job)
        for time in filter(None, (record.time, record.control)):
            numbers = [launch.number for launch in time.launches]
            if len(set(numbers)) < len(numbers):
                raise ValueError(f".records[{place}]: a launch of {_in_words(record.job)} is there twice")


def _in_words(job: Job) -> str:
    threads = f" with {job.threads} threads" if job.threads else ""
    return f"{job.operator} of {job.case} at size {job.size} by {job.backend}{threads}, seed {job.seed}"


def run_of(text: bytes, path: Path) -> Run:
    """The run in JSON text of the file `path`. Raises BadFile."""
    return _of_text(text, path, from_data)


def _of_text(text: bytes, path: Path, other: Callable[[Any, Path], T]) -> Run | T:
    """The run in JSON text, or what `other` makes of its data.

    A run of this version is read straight into its type, in a tenth of the time. If that fails, short text is read as
    plain data, which gives the better message.
    """
    if _PRESENT.match(text):
        try:
            run = from_json(text, Run)
            _refuse_duplicates(run)
            return run
        except ValueError as error:
            if len(text) > MOST_PLAIN_BYTES:
                raise BadFile(f"{path}: damaged, or not a run of adbench: {error}") from error
    return other(loaded(text, path), path)


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it ends in .gz. Raises BadFile if it is missing, damaged or too large, or
    holds too many records."""
    try:
        text = _unpacked(path) if path.suffix == ".gz" else _plain(path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadFile(f"{path}: damaged, or not compressed by gzip: {error}") from error
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}; pass the folder of a run, or a file in it") from error
    # Counted before parsing, which takes the memory. Quotes in strings are escaped, so only keys match.
    if (records := text.count(b'"status":')) > MOST_RECORDS:
        raise BadFile(f"{path}: holds {records} records; adbench reads at most {MOST_RECORDS}")
    return text


def _plain(path: Path) -> bytes:
    """The content of a file. Raises BadFile if it is too large, before reading it."""
    if path.stat().st_size > MAX_BYTES:
        raise BadFile(f"{path}: larger than {MAX_BYTES // 2**20} MiB, the limit for runs")
    return path.read_bytes()


def _unpacked(path: Path) -> bytes:
    """The content of a compressed file. Raises BadFile as soon as it is too large: a small file may hold gigabytes."""
    text = bytearray()
    with gzip.open(path) as file:
        while part := file.read(2**20):
            text += part
            if len(text) > MAX_BYTES:
                raise BadFile(f"{path}: unpacked, larger than {MAX_BYTES // 2**20} MiB, the limit for runs")
    return bytes(text)


def loaded(text: bytes, path: Path) -> Any:
    """The JSON text of the file `path`, as plain data. Raises BadFile if it is too long or damaged."""
    if text[:80].lstrip().startswith(b"<"):
        raise BadFile(f"{path}: a page, not a run; pass the run: its folder or run.json")
    if len(text) > MOST_PLAIN_BYTES:
        most = f"{MOST_PLAIN_BYTES // 2**20} MiB, the limit for files that this adbench did not write"
        raise BadFile(f"{path}: larger than {most}")
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path}: invalid or damaged JSON: {error}") from error


def is_journal(path: Path) -> bool:
    """Whether a file has the suffix or the beginning of a journal."""
    if path.suffix == Path(JOURNAL).suffix:
        return True
    try:
        with path.open("rb") as file:
            return file.read(16).startswith(b'{"kind": "head"')
    except OSError:
        return False


def write_run(folder: Path, run: Run) -> Path:
    """Write the run's JSON into its folder and return its path. Raises BadOutput; the journal keeps everything."""
    write_whole(folder / RUN, dumps(run), kept=f"all results are safe: make room, then adbench run --resume {folder}")
    return folder / RUN


def _file_in(folder: Path) -> Path:
    """The file of a folder that holds its run."""
    first = next((folder / name for name in STORED if (folder / name).exists()), None)
    if first is None:
        raise BadFile(f"{folder}: contains no run: neither {RUN} nor {JOURNAL}; pass the output folder of adbench run")
    return folder / JOURNAL if journal.is_open(folder / JOURNAL) else first


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Turn the garbage collector off, which would spend most of the time searching millions of permanent values."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON; write it as a string")
