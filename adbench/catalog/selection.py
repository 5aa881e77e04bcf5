"""From names, globs, paths and `[tool.adbench]` to a catalog and the patterns to select from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import Catalog, catalog, load_cases, select
from adbench.catalog.source import KINDS, project_table, read_sources
from adbench.model.errors import BadFile, UsageError


@dataclass(frozen=True)
class Selection:
    """A catalog that holds the user's own files too, and the patterns that select from it."""

    catalog: Catalog
    cases: tuple[str, ...]
    backends: tuple[str, ...]


def resolve(
    *,
    cases: Sequence[str] = (),
    backends: Sequence[str] = (),
    case_folders: Sequence[str] = (),
    backend_folders: Sequence[str] = (),
    start: Path | None = None,
) -> Selection:
    """The catalog, and the part of it that was selected.

    cases, backends                 names, globs, or paths of files, which are loaded and selected; `gradbench:COMMAND`
                                    and `process:COMMAND` are backends too (programs.py). Of a file with VARIANTS, the
                                    path selects the backend of its name, and path:NAME a variant
    case_folders, backend_folders   folders whose files are added to the catalog
    start                           where the search for pyproject.toml begins: here by default, then upwards
    """
    configured = configuration(start or Path.cwd())
    case_files, case_patterns = _split(cases)
    folder = start or Path.cwd()
    backend_files, backend_patterns = _split([_of_program(text, folder) for text in backends])
    named_in_files = [_file_and_name(text) for text in backend_files]
    everything = catalog(
        [*configured["cases"], *case_folders, *case_files],
        [*configured["backends"], *backend_folders, *(file for file, _ in named_in_files)],
    )
    for path in (Path(text).resolve() for text in case_files):
        if path.is_file():
            (source,) = read_sources("cases", path, builtin=False)
            case_patterns += map(escape, load_cases(source))
    backend_patterns += [escape(name) for _, name in named_in_files]
    return Selection(everything, tuple(case_patterns), tuple(backend_patterns))


def installed(chosen: Selection) -> tuple[str, ...]:
    """The names of the selected backends. Raises UnknownName, and UsageError if the library of one is missing."""
    names = select("backend", chosen.catalog.backends, chosen.backends)
    for name in names:
        if reason := chosen.catalog.backends[name].not_installed:
            raise UsageError(f"the backend {name} cannot be used: {reason}")
    return names


def configuration(start: Path) -> dict[str, list[Path]]:
    """`cases` and `backends` of the nearest `[tool.adbench]`, relative to its file.

    Raises BadFile, as `project_table` does, and for a value that is not a list of paths.
    """
    file, table = project_table(start)
    return {key: _configured(file, table, key) for key in KINDS}


def _configured(file: Path, table: Mapping[str, Any], key: str) -> list[Path]:
    """A list of paths; of backends also a table by name."""
    value = table.get(key, [])
    if key == "backends" and isinstance(value, dict):
        from adbench.catalog import programs

        return programs.configured(file, value)
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise BadFile(f"{file}: [tool.adbench] {key} must be a list of paths; got {value!r}")
    return [file.parent / path for path in value]


def _of_program(backend: str, folder: Path) -> str:
    """The file of a backend that is a command; any other backend as it is."""
    if ":" not in backend:
        return backend
    from adbench.catalog import programs

    return str(programs.file_of(backend, folder)) if programs.protocol_of(backend) else backend


def _file_and_name(text: str) -> tuple[str, str]:
    """The file of a path or of path:NAME, and the name of the backend."""
    file, variant, name = text.rpartition(".py:")
    return (f"{file}.py", name) if variant else (text, Path(text).stem)


def _split(wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Paths and patterns apart. A text that ends in .py or has a separator is a path, whether or not it exists."""
    paths = [text for text in wanted if text.endswith(".py") or "/" in text or "\\" in text]
    return paths, [text for text in wanted if text not in paths]
