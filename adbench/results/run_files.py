"""The files of a run's cases and backends: their paths, and whether they have changed since it began."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import Catalog, catalog
from adbench.catalog.source import Source
from adbench.measure import machine
from adbench.model.errors import UsageError
from adbench.model.run_progress import Head
from adbench.version import __version__

SAME_MACHINE = ("processor", "architecture", "cores", "hardware_threads", "system", "python")


def files_of(known: Catalog, backends: Iterable[str], cases: Iterable[str]) -> dict[str, Any]:
    """The files that must stay the same to resume the run: a digest of each, and the paths of user files."""
    chosen = [*_libraries(known, backends), *(known.case_sources[name] for name in cases)]
    twins = {f"{name}.hpp": twin for name in cases if (twin := known.cases[name].twin) is not None}
    return {
        "case_files": _given(source for source in chosen if source.kind == "cases"),
        "backend_files": _given(source for source in chosen if source.kind == "backends"),
        "digests": {f"{source.kind}/{source.name}": _digest(Path(source.path)) for source in chosen}
        | {f"cases/{name}": _digest(path) for name, path in twins.items()},
    }


def with_files(head: Head, known: Catalog) -> Head:
    """The beginning of a new run, to be resumed later or executed on other hosts: these must have the same files."""
    return replace(head, asked=files_of(known, head.run.versions, head.run.cases))


def unchanged(head: Head, folder: Path) -> Catalog:
    """The catalog that the run was planned from. Raises UsageError if the machine or a file has changed."""
    run = head.run
    again = f"the results in {folder} stay readable; start a new run for the rest"
    if run.machine.get("hosts"):
        raise UsageError(f"{folder}: measured on {run.machine['hosts']}; resume it there, with --on")
    here = machine.describe()
    for name in SAME_MACHINE:
        if run.machine.get(name) != here.get(name):
            raise UsageError(
                f"{folder}: from another machine: {name} was {run.machine.get(name)}, is {here.get(name)}; {again}"
            )
    return catalog_of(head, folder, again)


def catalog_of(head: Head, folder: Path | str, again: str) -> Catalog:
    """The catalog that the run was planned from, on any machine. Raises UsageError if a file or a version has changed.

    folder, again   the beginning and the end of an error message
    """
    run, asked = head.run, head.asked
    if run.adbench_version != __version__:
        raise UsageError(f"{folder}: started by adbench {run.adbench_version}, this is {__version__}; {again}")
    found = catalog(asked.get("case_files", ()), asked.get("backend_files", ()))
    cases, backends = tuple(run.cases), tuple(run.versions)
    gone = [f"case {name}" for name in cases if name not in found.cases]
    gone += [f"backend {name}" for name in backends if name not in found.backends]
    if gone:
        raise UsageError(f"{folder}: {', '.join(gone)}: missing; {again}")
    for name, version in run.versions.items():
        if found.backends[name].version != version:
            raise UsageError(f"{folder}: {name} was version {version}, is {found.backends[name].version}; {again}")
    now = files_of(found, backends, cases)["digests"]
    for name, digest in asked.get("digests", {}).items():
        if now.get(name) != digest:
            raise UsageError(f"{folder}: {name} has changed since the run started; {again}")
    return found


def _libraries(known: Catalog, backends: Iterable[str]) -> Iterator[Source]:
    """The sources of the backends, and of the backends that they vary."""
    names = dict.fromkeys(backends)
    for name in tuple(names):
        variant_of = known.backends[name].variant_of
        if variant_of is not None:
            names[variant_of] = None
    return (known.backends[name] for name in names)


def _given(sources: Iterable[Source]) -> list[str]:
    return list(dict.fromkeys(source.path for source in sources if not source.builtin))


def _digest(path: Path) -> str:
    """The digest of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and p.suffix != ".pyc")
    for file in files:
        digest.update(f"{file.relative_to(path)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()
