"""From a C++ text to a shared object, by the system's compiler, kept for the next time.

An entry of the cache is named by a digest of everything that it depends on (texts, flags, compiler, processor, version of
the library) and by one of itself: a damaged one is not found, and built anew. It is put in place in one step.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from adbench.measure.phases import phase
from adbench.suite.errors import AdbenchError, Unsupported

FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-w")
"""The same for every library, and for the plain functions beside them."""

INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class BuildError(AdbenchError):
    """A text that does not compile, with the compiler's first words and where the rest is."""


@cache
def compiler() -> tuple[str, ...]:
    """The command: $CXX, else `c++`. Raises Unsupported where there is none."""
    given = os.environ.get("CXX", "")
    command = tuple(shlex.split(given)) or ("c++",)
    if shutil.which(command[0]) is None:
        what = f"$CXX names {command[0]!r}, which is no command" if given else "there is no C++ compiler"
        raise Unsupported(f"{what}; on Debian: apt install g++")
    return command


@cache
def compiler_version() -> str:
    """The first line of what the compiler says of itself."""
    return _output([*compiler(), "--version"]).partition("\n")[0]


@cache
def include_folders() -> tuple[Path, ...]:
    """Where the compiler looks for headers when nothing is said."""
    said = _output([*compiler(), "-x", "c++", "-E", "-v", "-"])
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search list.")[0]
    return tuple(
        Path(line.strip().removesuffix(" (framework directory)")) for line in listed.splitlines() if line.strip()
    )


def archive(name: str, folders: Sequence[Path]) -> str | None:
    """The path of lib<name>.a, in these folders or where the linker looks; None where there is none."""
    for folder in folders:
        if (folder / f"lib{name}.a").is_file():
            return str(folder / f"lib{name}.a")
    found = _output([*compiler(), f"-print-file-name=lib{name}.a"]).strip()
    return found if os.path.isabs(found) else None


def folder() -> Path:
    """Where shared objects are kept: beside the references. May be thrown away at any time."""
    given = os.environ.get("ADBENCH_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(given) if given else home / "adbench") / "native"


def digest(*parts: object) -> str:
    """Of texts, with their borders."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:24]


def with_included(file: Path, more: Sequence[Path]) -> list[str]:
    """The text of a file and of every file that it includes in quotes, from its own folder or from one of `more`."""
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


def shared_object(
    text: str, options: Sequence[str], links: Sequence[str], depends: Sequence[object], title: str
) -> Path:
    """The shared object that a text is compiled and linked to, from the cache where it is there.

    options   beyond FLAGS: where headers are, macros; their paths are not part of what it depends on
    links     objects and libraries, last on the command line
    depends   what the outcome depends on beyond the text, the flags and the compiler
    title     what is being built, in words, for the line that says so

    Raises Unsupported where there is no compiler, BuildError where it refuses.
    """
    return _made(text, (*FLAGS, *options, "-shared"), links, depends, title, ".so")


def common_object(text: str, options: Sequence[str], depends: Sequence[object], title: str) -> Path:
    """As `shared_object`, but not linked: a part that many shared objects have in common."""
    return _made(text, (*FLAGS, *options, "-c"), (), depends, title, ".o")


def _made(
    text: str, flags: Sequence[str], links: Sequence[str], depends: Sequence[object], title: str, suffix: str
) -> Path:
    key = digest(text, *FLAGS, *depends, compiler(), compiler_version(), _processor())
    home = folder()
    found = _found(home, key, suffix)
    if found is not None:
        return found
    home.mkdir(parents=True, exist_ok=True)
    with phase("build"), _one_at_a_time(home / f"{key}.lock"):
        found = _found(home, key, suffix)  # somebody else may just have made it
        if found is not None:
            return found
        print(f"adbench: building {title}", file=sys.stderr, flush=True)
        source, half = home / f"{key}.cpp", home / f"{key}{suffix}.{os.getpid()}"
        source.write_text(text, encoding="utf-8")
        command = [*compiler(), *flags, str(source), "-o", str(half), *links]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            half.unlink(missing_ok=True)
            log = home / f"{key}.log"
            log.write_text(f"{shlex.join(command)}\n{done.stdout}{done.stderr}", encoding="utf-8")
            raise BuildError(f"{title}: {_first_words(done.stderr)}; the whole of it is in {log}")
        ready = home / f"{key}-{_checksum(half)}{suffix}"
        half.replace(ready)
        return ready


def _found(home: Path, key: str, suffix: str) -> Path | None:
    for path in home.glob(f"{key}-*{suffix}"):
        if path.name == f"{key}-{_checksum(path)}{suffix}":
            return path
        path.unlink(missing_ok=True)  # cut off or written into: loading it could end the process
    return None


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    """Who comes second waits, and finds what the first has made. The lock goes with its holder, however that ends."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _first_words(said: str) -> str:
    """The compiler's or linker's first complaints, without the paths before them."""
    lines = [line for line in said.splitlines() if re.search(r"\berror\b|undefined reference|cannot find", line)]
    words = [re.sub(r"^\S*?([^/\s:]+):", r"\1:", line.strip()) for line in lines[:2]]
    return " / ".join(words)[:400] or "the compiler failed without a word"


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@cache
def _processor() -> str:
    """What `-march=native` may mean here: a home folder may be shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
