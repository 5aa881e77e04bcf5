"""The user's checkout: its git commit, and where in it the cases and backends of a run are defined.

Reports for other programs need both: an annotation of a pull request points at a line, a history at a commit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from inspect import unwrap
from pathlib import Path

from adbench.catalog.ad_hoc import at_size
from adbench.catalog.discovery import Catalog
from adbench.model.case import Case

INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages: a virtual environment inside a checkout is no part of it."""

_PREPARE = re.compile(r"^(?:async )?def prepare\b|^prepare\b|^from .* import .*\bprepare\b", re.M)


def root_and_commit() -> tuple[Path, dict[str, str]]:
    """The repository of the working folder, and the hash and date of its commit.

    Without git or a repository: the working folder, and {}.
    """
    here = Path.cwd()
    top = _git("rev-parse", "--show-toplevel")
    if not top:
        return here, {}
    commit = _git("log", "-1", "--no-show-signature", "--format=%H %cI").split()
    return Path(top), dict(zip(("hash", "date"), commit, strict=True)) if len(commit) == 2 else {}


def sources(root: Path, known: Catalog, cases: Iterable[str], backends: Iterable[str]) -> dict[str, str]:
    """ "cases/NAME" and "backends/NAME" -> "path:line" relative to `root`, for each that is defined inside of it.

    A case's line is that of its function, a backend's that of `prepare`; without `prepare`, line 1.
    """
    places = {f"cases/{name}": _of_case(known.cases[name], known.case_sources[name].path) for name in cases}
    for name in backends:
        library = known.backends[name]
        places[f"backends/{name}"] = (Path(library.path), 0)
    placed = {}
    for name, (file, line) in places.items():
        path = _inside(root, file)
        if path is not None:
            placed[name] = f"{path}:{line or _line_of_prepare(root / path)}"
    return placed


def _of_case(case: Case, file: str) -> tuple[Path, int]:
    """The file and line of a case's function; line 1 of the case's file if the function is not written in Python.

    The function of an ad-hoc case is the user's own.
    """
    f = at_size(case, case.sizes[0]).f
    f = getattr(f, "f", f)
    code = getattr(unwrap(getattr(f, "forward", f)), "__code__", None)
    if code is not None and Path(code.co_filename).is_file():
        return Path(code.co_filename), code.co_firstlineno
    return Path(file), 1


def _inside(root: Path, file: Path) -> str | None:
    """The path relative to the root with forward slashes; None for files elsewhere, and for installed packages."""
    try:
        relative = file.resolve().relative_to(root.resolve())
        return None if INSTALLED & set(relative.parts) or not file.is_file() else relative.as_posix()
    except (OSError, ValueError):
        return None


def _line_of_prepare(file: Path) -> int:
    try:
        text = file.read_text("utf-8", errors="replace")
    except OSError:
        return 1
    match = _PREPARE.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _git(*words: str) -> str:
    """What git prints in the working folder; "" without git, or where it fails."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
