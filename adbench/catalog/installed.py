"""Installed distributions of Python and packages of Debian, looked up without importing or installing any."""

from __future__ import annotations

import importlib.metadata
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

OURS = "autodiff-bench"  # the distribution that adbench is installed as
MOST_EXTRAS = 3  # that are named in a command


ALTERNATIVES = {"tensorflow": ("tensorflow-cpu", "tensorflow-macos")}
"""Distributions with the same modules as another one."""


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, or of one with the same modules, without importing it."""
    for name in (distribution, *ALTERNATIVES.get(distribution, ())):
        with suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return None


def pip_command(requirements: Iterable[str]) -> str:
    """The one command that installs these; the extra `all` instead of more than three of ours."""
    every = dict.fromkeys(word for text in requirements for word in text.split())
    names = [text.removeprefix(f"{OURS}[").removesuffix("]") for text in every if text.startswith(f"{OURS}[")]
    others = [text for text in every if not text.startswith(f"{OURS}[")]
    ours = [f"{OURS}[{','.join(names) if len(names) <= MOST_EXTRAS else 'all'}]"] if names else []
    return shlex.join(["pip", "install", *ours, *others])


@cache
def extras() -> frozenset[str]:
    """The names of our extras, as modules are called."""
    try:
        names = importlib.metadata.metadata(OURS).get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
        return frozenset()
    return frozenset(name.replace("-", "_") for name in names)


def has_dpkg() -> bool:
    """Whether this system knows Debian's packages; elsewhere a library may have another name."""
    return shutil.which("dpkg-query") is not None


def packages_of_debian(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages of Debian that are installed; none without dpkg."""
    return _packages(tuple(sorted(set(names)))) if has_dpkg() else {}


@cache
def _packages(names: Sequence[str]) -> dict[str, str]:
    if not names:
        return {}
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${Status}\n", *names]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
    words = [line.split() for line in said.splitlines()]
    return {name: version for name, version, *status in words if status[-1:] == ["installed"]}


def command(debian: Sequence[str], distributions: Sequence[str]) -> str | None:
    """The one command that installs these; None if nothing is missing."""
    apt = "sudo apt install" if has_dpkg() else "install, whatever it is called here:"
    parts = [f"{apt} {' '.join(debian)}"] if debian else []
    if distributions:
        parts.append(f"pip install {' '.join(distributions)}")
    return " && ".join(parts) or None
