"""From C++ source to a shared object, by the system's compiler, with a cache.

The name of a cache entry has a digest of everything that it depends on (sources, flags, compiler, processor, version of
the library) and a seal of its content, so adbench builds a damaged or planted entry again. Entries appear atomically.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from adbench.measure.phases import phase
from adbench.model.atomic_file import lock
from adbench.model.errors import AdbenchError, Unsupported
from adbench.model.settings import folder_in_cache, processor_features
from adbench.sealed_folder import SealedFolder

FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-w")
"""Flags for every library, and for plain functions."""

AT_A_LINE = re.compile(r":\d+:\d+: (fatal )?error: ")
INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


_refused: dict[str, str] = {}  # units that do not compile, by key, so that a process tries each once


class BuildError(AdbenchError):
    """Source that does not compile; the message has the compiler's first error and the path of the rest."""


@cache
def compiler() -> tuple[str, ...]:
    """The command: $CXX, else `c++`. Raises Unsupported if it is not installed."""
    setting = os.environ.get("CXX", "")
    command = tuple(shlex.split(setting)) or ("c++",)
    if shutil.which(command[0]) is None:
        what = f"$CXX is {command[0]!r}, which is not a command" if setting else "there is no C++ compiler"
        raise Unsupported(f"{what}; install one, on Debian: apt install g++")
    return command


@cache
def compiler_version() -> str:
    """The first line that the compiler prints for --version."""
    return _output([*compiler(), "--version"]).partition("\n")[0]


@cache
def include_folders() -> tuple[Path, ...]:
    """The compiler's default folders of headers."""
    said = _output([*compiler(), "-x", "c++", "-E", "-v", "-"])
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search list.")[0]
    return tuple(
        Path(line.strip().removesuffix(" (framework directory)")) for line in listed.splitlines() if line.strip()
    )


def archive(name: str, folders: Sequence[Path]) -> str | None:
    """The path of lib<name>.a in these folders or in the linker's, or None."""
    for folder in folders:
        if (folder / f"lib{name}.a").is_file():
            return str(folder / f"lib{name}.a")
    path = _output([*compiler(), f"-print-file-name=lib{name}.a"]).strip()
    return path if os.path.isabs(path) else None


def folder() -> Path:
    """The folder of shared objects: $ADBENCH_BUILDS, else next to the references. It can be deleted at any time.

    Raises Unsupported if somebody else can write to it, because its files will run.
    """
    return _entries().folder


def _entries() -> SealedFolder:
    try:
        return SealedFolder(os.environ.get("ADBENCH_BUILDS") or folder_in_cache("native"))
    except ValueError as error:
        raise Unsupported(f"shared objects cannot be kept: {error}") from error


def with_included(file: Path, more: Sequence[Path]) -> list[str]:
    """The sources of a file and of every file that it includes in quotes, from the same folder or one of `more`."""
    seen: dict[Path, str] = {}
    todo = [file]
    while todo:
        path = todo.pop().resolve()
        if path in seen:
            continue
        seen[path] = path.read_text(encoding="utf-8", errors="replace")
        for name in INCLUDED.findall(seen[path]):
            todo += [place / name for place in (path.parent, *more) if (place / name).is_file()][:1]
    return list(seen.values())


@dataclass(frozen=True)
class Unit:
    """Something to compile.

    options   in addition to FLAGS: folders of headers, macros; the key does not depend on their paths
    links     objects and libraries, last on the command line
    depends   dependencies besides the source, the flags, the compiler and the processor
    title     its name in the progress line
    suffix    ".so", or ".o" for a part shared by many shared objects
    """

    text: str
    options: tuple[str, ...]
    links: tuple[str, ...]
    depends: tuple[object, ...]
    title: str
    suffix: str = ".so"

    @cached_property
    def key(self) -> str:
        """A digest of everything that the result depends on."""
        parts = (self.text, self.suffix, *FLAGS, *self.depends, *compiler(), compiler_version(), processor_features())
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:24]


def cached(unit: Unit) -> Path | None:
    """The unit from the cache; None if it is missing or damaged."""
    entries = _entries()
    for path in entries.folder.glob(f"{unit.key}-*{unit.suffix}"):
        if path.is_file() and not path.is_symlink() and path.name == _name(entries, unit, path):
            return path
        path.unlink(missing_ok=True)  # damaged: loading it could end the process
    return None


def _name(entries: SealedFolder, unit: Unit, built: Path) -> str:
    """The name of an entry with this content."""
    return f"{unit.key}-{entries.seal(unit.key + unit.suffix, built.read_bytes()).hex()[:32]}{unit.suffix}"


def built(unit: Unit, header: Callable[[], Path | None] = lambda: None) -> Path:
    """The unit from the cache, or built with the precompiled header that header() gives before it.

    Raises Unsupported if there is no compiler, BuildError if the source does not compile.
    """
    if (there := cached(unit)) is not None:
        return there
    home, prefix = folder(), header()
    if unit.key in _refused:
        raise BuildError(_refused[unit.key])
    with phase("build"), _one_at_a_time(unit.key):
        if (there := cached(unit)) is not None:  # another process may have made it meanwhile
            return there
        print(f"adbench: building {unit.title}", file=sys.stderr, flush=True)
        source, half = home / f"{unit.key}.cpp", home / f"{unit.key}{unit.suffix}.{os.getpid()}"
        source.write_text(unit.text, encoding="utf-8")
        kind = "-shared" if unit.suffix == ".so" else "-c"
        command = [*compiler(), *FLAGS, *unit.options, kind, str(source), "-o", str(half), *unit.links]
        done = _run([*compiler(), "-include", str(prefix), *command[len(compiler()) :]] if prefix else command)
        if done.returncode != 0 and prefix:
            done = _run(command)
            if done.returncode == 0:  # the precompiled header was the cause
                prefix.with_suffix(".hpp.gch").unlink(missing_ok=True)
        if done.returncode != 0:
            half.unlink(missing_ok=True)
            log = home / f"{unit.key}.log"
            log.write_text(f"{shlex.join(command)}\n{done.stdout}{done.stderr}", encoding="utf-8")
            refusal = f"{unit.title}: {_first_words(done.stderr)}; the whole of it is in {log}"
            if AT_A_LINE.search(done.stderr):  # false if the compiler was killed, or the disk is full
                _refused[unit.key] = refusal
            raise BuildError(refusal)
        ready = home / _name(_entries(), unit, half)
        half.replace(ready)
        source.unlink()
        return ready


def precompiled(unit: Unit) -> Path | None:
    """The path of a precompiled header with the unit's source; None if it cannot be precompiled.

    The compiler takes the `.gch` next to that path if it fits, and otherwise the source at the path.
    """
    header = folder() / f"{unit.key}.hpp"
    ready = header.with_suffix(".hpp.gch")
    if ready.is_file():
        return header
    with phase("build"), _one_at_a_time(unit.key):
        if not ready.is_file():
            print(f"adbench: precompiling {unit.title}", file=sys.stderr, flush=True)
            header.write_text(unit.text, encoding="utf-8")
            half = ready.with_name(f"{ready.name}.{os.getpid()}")
            if _run([*compiler(), *FLAGS, *unit.options, "-x", "c++-header", str(header), "-o", str(half)]).returncode:
                half.unlink(missing_ok=True)
                return None
            half.replace(ready)
    return header


@contextmanager
def _one_at_a_time(key: str) -> Iterator[None]:
    """A lock: a second process waits and finds the first one's result. The system releases it with its process."""
    with (folder() / f"{key[:2]}.lock").open("w") as file:  # one for many keys, because locks are never removed
        lock(file, wait=True)
        yield


def _first_words(said: str) -> str:
    """The compiler's or linker's first errors, without the paths before them."""
    lines = [line for line in said.splitlines() if re.search(r"\berror\b|undefined reference|cannot find", line)]
    words = [re.sub(r"^\S*?([^/\s:]+):", r"\1:", line.strip()) for line in lines[:2]]
    return " / ".join(words)[:400] or "the compiler failed without a message"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the compiler, with messages in English."""
    english = os.environ | {"LC_ALL": "C"}
    nothing = subprocess.DEVNULL
    return subprocess.run(
        command, env=english, stdin=nothing, capture_output=True, text=True, errors="replace", check=False
    )


def _output(command: Sequence[str]) -> str:
    done = _run(command)
    return done.stdout + done.stderr
