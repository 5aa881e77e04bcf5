"""An environment for each release: the library and what it requires, next to this adbench.

adbench and the packages that it requires are installed once: a folder of links to the installed ones, which comes last
on the path of each environment. The library's own requirements therefore take precedence. For another Python than the
running one, the packages are installed into the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from adbench.bisection.interpreters import RUNNING, Interpreter
from adbench.bisection.releases import Release
from adbench.catalog.installed import OURS, installed_version
from adbench.model.atomic_file import lock, write_whole
from adbench.model.errors import UsageError
from adbench.model.settings import folder_in_cache

Installer = Literal["uv", "pip"]

MOST_SECONDS = 1800.0  # of an installation or a build
MOST_REASON = 240  # characters
OPTIONAL = ("llvmlite", "scipy")
"""What the tape uses if it is there."""

COMPLETE = "adbench.json"
"""A file that an environment has once it is complete, with its release and its size."""


class NotInstalled(Exception):
    """A release cannot be installed; the message is one line with the reason."""


@dataclass(frozen=True)
class Environments:
    """The environments of one bisection, in a folder that later bisections reuse.

    extras       requirements besides the library
    most_bytes   environments that were used longest ago are deleted beyond that
    checkout     of commits, and the command that builds one
    interpreter  the Python of the environments
    """

    folder: Path
    installer: Installer
    extras: tuple[str, ...] = ()
    most_bytes: int = 10 * 2**30
    checkout: Path | None = None
    build: str = ""
    interpreter: Interpreter = RUNNING

    @property
    def identity(self) -> list[str]:
        """What an environment depends on besides its release."""
        checkout = "" if self.checkout is None else str(self.checkout.resolve())
        python = (
            (sys.version, sys.prefix)
            if self.interpreter.runs_this
            else (self.interpreter.version, str(self.interpreter.path))
        )
        return [self.installer, *self.extras, checkout, self.build, *python]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other bisections away. Raises UsageError if one is at work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            try:
                lock(file)
            except OSError as error:
                raise UsageError(f"another bisection uses {self.folder}; wait until it ends") from error
            yield

    def python(self, release: Release, spare: Collection[Release] = ()) -> tuple[Path, bool]:
        """The Python of the release's environment, and whether it existed already. Raises NotInstalled.

        spare    releases whose environments stay, whatever their size
        """
        place = self._place(release)
        python, complete = place / "bin" / "python", place / COMPLETE
        if complete.is_file() and python.exists():
            self._link_adbench(place)
            os.utime(complete)
            return python, True
        self.trim((release, *spare))
        shutil.rmtree(place, ignore_errors=True)
        try:
            self._create(place)
            self._link_adbench(place)
            self._install(release, place)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        files = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
        size = sum(file.lstat().st_size for file in files)
        write_whole(complete, json.dumps({"release": release.requirement, "bytes": size}))
        return python, False

    def trim(self, spare: Collection[Release] = ()) -> None:
        """Delete the environments that were used longest ago, until the rest fits into the limit."""
        spared = {self._place(release) for release in spare}
        kept = sorted(self.folder.glob(f"*/{COMPLETE}"), key=lambda file: file.stat().st_mtime, reverse=True)
        total = 0
        for file in kept:
            with suppress(ValueError, KeyError):
                total += json.loads(file.read_text("utf-8"))["bytes"]
            if total > self.most_bytes and file.parent not in spared:
                shutil.rmtree(file.parent, ignore_errors=True)

    def _place(self, release: Release) -> Path:
        parts = [release.requirement, release.digest, *self.identity]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
        name = re.sub(r"[^\w.]+", "-", Path(release.requirement).name)
        return self.folder / f"{name[:60]}-{digest}"

    def _core(self) -> Path:
        """The folder of links to adbench and its requirements; made on first use. Raises NotInstalled."""
        foreign = [] if self.interpreter.runs_this else [*core_requirements(), *_optional()]
        links = our_files() if foreign else core_files()
        parts = [*sorted(map(str, links.values())), *foreign, *([str(self.interpreter)] if foreign else [])]
        place = self.folder / f"core-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]}"
        if not place.is_dir():
            unfinished = place.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            if foreign:
                _ran([*self._pip(str(self.interpreter.path)), "--target", str(unfinished), *foreign])
            for name, target in links.items():
                (unfinished / name).symlink_to(target)
            unfinished.rename(place)
        return place

    def _create(self, place: Path) -> None:
        with_pip = self.checkout is not None  # its build command may want it
        base = str(self.interpreter.path)
        if self.installer == "uv":
            command = ["uv", "venv", "--quiet", "--python", base, *(["--seed"] if with_pip else [])]
        else:
            command = [base, "-m", "venv", *([] if with_pip else ["--without-pip"])]
        _ran([*command, str(place)])

    def _install(self, release: Release, place: Path) -> None:
        python = str(place / "bin" / "python")
        constraints = place / "constraints.txt"
        constraints.write_text("\n".join(core_requirements()) + "\n", encoding="utf-8")
        wanted = [*self.extras] if self.checkout else [release.requirement, *self.extras]
        if wanted:
            _ran([*self._pip(python), "--constraint", str(constraints), *wanted])
        if self.checkout is not None:
            source = place / "source"
            _ran(["git", "clone", "--quiet", "--shared", "--no-checkout", str(self.checkout.resolve()), str(source)])
            _ran(["git", "-C", str(source), "checkout", "--quiet", "--detach", release.requirement])
            path = f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
            _ran(["sh", "-c", self.build], folder=source, VIRTUAL_ENV=str(place), PATH=path)

    def _pip(self, python: str) -> list[str]:
        """The command that installs for this Python."""
        if self.installer == "uv":
            return ["uv", "pip", "install", "--quiet", "--python", python]
        return [sys.executable, "-m", "pip", "--python", python, "install", "--disable-pip-version-check"]

    def _link_adbench(self, place: Path) -> None:
        """Put adbench last on the path of the environment, followed by the sources of a commit."""
        names = {"base": str(place), "py_version_short": self.interpreter.minor}
        packages = Path(sysconfig.get_path("purelib", "venv", vars=names))
        sources = [] if self.checkout is None else [place / "source", place / "source" / "src"]
        lines = "".join(f"{path}\n" for path in (self._core(), *sources))
        (packages / "zz_adbench.pth").write_text(lines, encoding="utf-8")


def environments_of(
    library: str,
    required: Iterable[str],
    extras: Iterable[str],
    installer: Installer | None,
    most_bytes: int,
    checkout: Path | None = None,
    build: str = "",
) -> Environments:
    """The environments of a user's options; `required` is what a backend needs, its library among them."""
    needed = (text for text in required if canonicalize_name(text) != canonicalize_name(library))
    best: Installer = installer or ("uv" if shutil.which("uv") else "pip")
    return Environments(folder_in_cache("bisections"), best, (*needed, *extras), most_bytes, checkout, build)


def our_files() -> dict[str, Path]:
    """Name -> folder, of adbench."""
    ours = Path(__file__).parents[1]
    if (ours / "backends").is_dir():  # installed: they are inside
        return {ours.name: ours}
    return {path.name: path for path in (ours, *(ours.parent / name for name in ("backends", "cases")))}


def core_files() -> dict[str, Path]:
    """Name -> file or folder, of adbench and of each package that it requires, directly or not."""
    files = our_files()
    waiting = [*(Requirement(line).name for line in core_requirements()), *_optional()]
    seen = set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
        files |= {top: Path(str(distribution.locate_file(top))) for top in sorted(tops)}
        waiting += [Requirement(line).name for line in _needed(distribution)]
    return files


def _optional() -> list[str]:
    return [name for name in OPTIONAL if installed_version(name) is not None]


def core_requirements() -> list[str]:
    """What adbench itself requires, as requirements. Raises UsageError if adbench is not installed as a package."""
    try:
        return _needed(metadata.distribution(OURS))
    except metadata.PackageNotFoundError as error:
        raise UsageError(f"bisect needs adbench as an installed package: pip install {OURS}, or -e . here") from error


def environment_of(**more: str) -> dict[str, str]:
    """The variables of a process that must find nothing but its own environment's packages."""
    foreign = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
    return {k: v for k, v in os.environ.items() if k not in foreign} | {"PYTHONNOUSERSITE": "1"} | more


def ran(
    command: Sequence[str], *, asked: str = "", seconds: float | None = None, **more: object
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a process, which ends in order if this one is interrupted."""
    process = subprocess.Popen(
        command, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        out, err = process.communicate(asked, timeout=seconds)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise
    return process.returncode, out, err


def _ran(command: Sequence[str], folder: Path | None = None, **more: str) -> None:
    """Run a step of an installation, with more variables. Raises NotInstalled."""
    try:
        code, out, err = ran(command, seconds=MOST_SECONDS, cwd=folder, env=environment_of(**more))
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"took over {MOST_SECONDS / 60:.0f} minutes") from error
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from error
    if code:
        raise NotInstalled(reason_in(out, err) or f"{command[0]}: exit code {code}")


def reason_in(out: str, err: str) -> str:
    """Why pip, uv or a build failed: one line of its output."""
    if "╰─▶" in err:  # uv wraps its explanation
        return _short(err.partition("╰─▶")[2].partition("\n\n")[0])
    conflict = re.search(r"The conflict is caused by:\n((?: +.+\n)+)", out + err)
    if conflict:
        return _short("; ".join(line.strip() for line in conflict[1].splitlines()))
    lines = [line.strip() for line in (err.strip() or out.strip()).splitlines() if line.strip()]
    causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause: ")]  # uv since 0.13
    errors = causes[:1] or [line for line in lines if re.match(r"(ERROR|error|fatal)\b", line)]
    return _short(re.sub(r"^ERROR: ", "", (errors or lines or [""])[-1]))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_REASON else line[: MOST_REASON - 1] + "…"


def _needed(distribution: metadata.Distribution) -> list[str]:
    """The requirements that apply here, without those of extras."""
    lines = [Requirement(line) for line in distribution.requires or ()]
    return [f"{line.name}{line.specifier}" for line in lines if not line.marker or line.marker.evaluate({"extra": ""})]
