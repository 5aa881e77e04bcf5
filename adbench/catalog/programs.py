"""`-b 'gradbench:COMMAND'` and `-b 'process:COMMAND'`: a program that speaks a protocol, as the file of a backend.

The file is written into the cache, so that a resumed run finds it again. It imports the module of adbench that speaks
the protocol; nothing of that is imported here.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from adbench.catalog.generated_files import file_stem, generated_file
from adbench.model.errors import BadFile, UsageError

PROTOCOLS: Mapping[str, str] = {
    "gradbench": "adbench.interop.gradbench.tool_backend",
    "process": "adbench.interop.process.process_backend",
}
TEXT = '''"""{summary}"""

from {module} import driven

prepare = driven({command!r}, {folder!r})
'''
CLAIM = "CLAIMED_RELATIVE_ERROR = 1e-{digits}\n"


def protocol_of(text: str) -> str | None:
    """The protocol that a backend's text begins with; None for a name, a glob or a path."""
    protocol, colon, _ = text.partition(":")
    return protocol if colon and protocol in PROTOCOLS else None


def file_of(text: str, folder: Path) -> Path:
    """The backend file of `protocol:COMMAND`, for a program that is run in `folder`."""
    protocol, _, command = text.partition(":")
    return command_file(protocol, command, folder)


def command_file(protocol: str, command: str, folder: Path, name: str = "", digits: int | None = None) -> Path:
    """Write the backend file of a command into the cache; returns its path.

    name   of the backend; by default made from the command and the last path's folder
    digits of its derivatives, if they are inexact by design

    Raises UsageError for an unreadable command or a missing program; BadOutput if the file cannot be written.
    """
    words = _words(protocol, command, folder)
    called = name or f"{protocol}_{file_stem('_'.join(_called(words)))}"
    text = TEXT.format(
        summary=f"{protocol}: {' '.join(command.split())}".replace("\\", "/").replace('"', "'")[:200],
        module=PROTOCOLS[protocol],
        command=command,
        folder=str(folder.resolve()),
    )
    if digits is not None:
        text += CLAIM.format(digits=digits)
    return generated_file("commands", called, text)


def _called(words: list[str]) -> list[str]:
    """The names in a command, the last path with its folder: suites call the program of every tool `run.py`."""
    of_arguments = [place for place in range(1, len(words)) if Path(words[place]).parent.name]
    last = of_arguments[-1] if of_arguments else 0 if len(words) == 1 else None
    return [f"{Path(w).parent.name}_{Path(w).name}" if k == last else Path(w).name for k, w in enumerate(words)]


def configured(file: Path, table: Mapping[str, object]) -> list[Path]:
    """The backends of `[tool.adbench.backends.NAME]`: `gradbench` or `process` with a command, or a `path`.

    A program whose derivatives are inexact by design, such as finite differences, declares their `digits`. A
    command runs in the folder of the file. Raises BadFile, with the name of the wrong entry.
    """
    return [_configured(file, name, entry) for name, entry in table.items()]


def _configured(file: Path, name: str, entry: object) -> Path:
    where, keys = f"{file}: [tool.adbench.backends.{name}]", (*PROTOCOLS, "path")
    digits = entry.get("digits") if isinstance(entry, dict) else None
    way = {k: v for k, v in entry.items() if k != "digits"} if isinstance(entry, dict) else {}
    if len(way) != 1 or not set(way) <= set(keys):
        raise BadFile(f"{where} must have one of {', '.join(keys)}")
    ((key, value),) = way.items()
    if digits is not None and (key == "path" or type(digits) is not int or not 1 <= digits <= 15):
        raise BadFile(f"{where} digits must be an integer from 1 to 15, next to a command; got {digits!r}")
    if not isinstance(value, str):
        raise BadFile(f"{where} {key} must be a string; got {value!r}")
    if key == "path":
        return file.parent / value
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise BadFile(f"{where}: a backend's name has letters, digits and _ . + - only")
    try:
        return command_file(key, value, file.parent, name, digits)
    except UsageError as error:
        raise BadFile(f"{where}: {error}") from error


def _words(protocol: str, command: str, folder: Path) -> list[str]:
    """The words of a command whose program is installed. Raises UsageError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{protocol}:{command}: cannot be read as a command: {error}; check its quotes") from error
    if not words:
        raise UsageError(f"{protocol}: names no command; write -b '{protocol}:PROGRAM ARGUMENTS'")
    if shutil.which(words[0]) is None and shutil.which(str(folder / words[0])) is None:
        raise UsageError(f"{protocol}:{command}: there is no program {words[0]!r}; give its path, or install it")
    return words
