"""The releases or commits to bisect, oldest first: from the index, a folder of wheels, a list, or a checkout."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from adbench.model.errors import UnknownName, UsageError

INDEX_SECONDS = 120.0
SHORT = 10  # digits of a commit's name


@dataclass(frozen=True)
class Release:
    """One release or one commit.

    name         its version, or the first digits of the commit
    requirement  what to install: `jax==0.4.30` or the path of a wheel; the digits of a commit
    digest       of the wheel's content; else empty
    title        the first line of the commit's message; else empty
    """

    name: str
    requirement: str
    digest: str = ""
    title: str = ""


def of_index(library: str, good: str, bad: str) -> list[Release]:
    """The releases that pip finds for this Python; pre-releases only if GOOD or BAD is one. Raises UsageError."""
    pre = ["--pre"] if any(version(name).is_prerelease for name in (good, bad)) else []
    names = indexed(library, *pre)
    if not names:
        raise UsageError(f"{library}: pip lists no releases; give them with --versions or --wheels")
    return of_list(library, names)


def indexed(library: str, *more: str) -> list[str]:
    """The releases that pip finds, with more options for it; none if it finds none. Raises UsageError."""
    command = [sys.executable, "-m", "pip", "index", "versions", library, *more]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INDEX_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the index did not answer in {INDEX_SECONDS:.0f} s; give --versions or --wheels") from error
    match = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    return [] if match is None else [name.strip() for name in match[1].split(",")]


def of_list(library: str, names: Iterable[str]) -> list[Release]:
    """These versions, in order. Raises UsageError for one that is no version."""
    every = {name.strip() for name in names if name.strip()}
    return [Release(name, f"{library}=={name}") for name in sorted(every, key=version)]


def of_wheels(library: str, folder: Path) -> list[Release]:
    """The wheels of the library in a folder that this Python can install, one for each version. Raises UsageError."""
    best: dict[Version, tuple[int, Path]] = {}
    preferred = {tag: place for place, tag in enumerate(sys_tags())}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, tags = parse_wheel_filename(path.name)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        places = [preferred[tag] for tag in tags if tag in preferred]
        if name == canonicalize_name(library) and places:
            best[version] = min(best.get(version, (len(preferred), path)), (min(places), path))
    if not best:
        raise UsageError(f"{folder}: has no wheel of {library} for this Python; build some, or omit --wheels")
    return [
        Release(str(version), str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest())
        for version, (_, path) in sorted(best.items())
    ]


def of_commits(checkout: Path, good: str, bad: str) -> tuple[list[Release], str, str]:
    """The commits from GOOD to BAD, following first parents, and the names of the two. Raises UsageError."""
    ends = [git(checkout, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip() for name in (good, bad)]
    for name, commit in zip((good, bad), ends, strict=True):
        if not commit:
            raise UsageError(f"{checkout}: {name!r} is not a commit; give a tag, a branch or a commit of this checkout")
    first, last = ends if _is_ancestor(checkout, *ends) else reversed(ends)
    if not _is_ancestor(checkout, first, last):
        raise UsageError(f"{checkout}: neither of {good} and {bad} comes before the other; bisect needs one line")
    lines = git(checkout, "log", "--reverse", "--first-parent", "--format=%H %s", f"{first}..{last}").splitlines()
    lines.insert(0, git(checkout, "log", "-1", "--format=%H %s", first).strip())
    pairs = [line.partition(" ")[::2] for line in lines]
    return [Release(commit[:SHORT], commit, title=title) for commit, title in pairs], ends[0][:SHORT], ends[1][:SHORT]


def between(every: Sequence[Release], good: str, bad: str) -> list[Release]:
    """The releases from GOOD to BAD, or from BAD to GOOD. Raises UsageError for an end that is not there."""
    names = [release.name for release in every]
    for name in (good, bad):
        if name not in names:
            raise UnknownName("release", name, names)
    low, high = sorted((names.index(good), names.index(bad)))
    if low == high:
        raise UsageError(f"GOOD and BAD are both {good}; give two releases")
    return list(every[low : high + 1])


def git(checkout: Path, *words: str) -> str:
    """The output of git, empty if it fails. Raises UsageError if this is no checkout."""
    if shutil.which("git") is None:
        raise UsageError("--commits needs git, which is not installed")
    if not checkout.is_dir():
        raise UsageError(f"{checkout}: is no directory; --commits needs a git checkout")
    command = ["git", "-C", str(checkout), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "not a git repository" in done.stderr:
        raise UsageError(f"{checkout}: is not a git checkout")
    return done.stdout if done.returncode == 0 else ""


def _is_ancestor(checkout: Path, first: str, last: str) -> bool:
    return git(checkout, "merge-base", first, last).strip() == first


def version(name: str) -> Version:
    """The version of a release. Raises UsageError."""
    try:
        return Version(name)
    except InvalidVersion as error:
        raise UsageError(f"{name!r} is not a version; write one such as 0.4.30") from error
