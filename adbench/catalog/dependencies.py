"""What a Python file's results depend on: its own text, the texts of files it imports, and versions of libraries."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

OURS = ("adbench",)


def dependencies(file: Path, path: Sequence[str] = ()) -> dict[str, str]:
    """File or distribution -> digest or version, of everything that the file imports, directly or not.

    file   a Python file; nothing is imported to read it
    path   where its modules are found, as sys.path; by default the file's folder, then sys.path

    A file outside the folders of installed packages counts with its text. An installed package counts with its version
    and the versions of the distributions it requires. Imports by computed names are not seen.
    """
    texts: dict[Path, bytes] = {}
    libraries: set[str] = set()
    _follow(file.resolve(), list(path) or [str(file.parent), *sys.path], texts, libraries)
    digests = {str(source): hashlib.sha256(text).hexdigest() for source, text in texts.items()}
    return dict(sorted({**digests, **_versions(libraries), "python": sys.version.split()[0]}.items()))


def text_of(path: Path) -> str:
    """The source of a case's file and of the files next to it that it imports: facts hold until one of them changes."""
    texts: dict[Path, str] = {}
    left = [path]
    while left:
        file = left.pop()
        if file not in texts and (file == path or file.is_file()):
            texts[file] = file.read_text(encoding="utf-8")
            left += _imported_from_beside(file, texts[file])
    return texts.pop(path) + "".join(texts[file] for file in sorted(texts))


def _imported_from_beside(file: Path, text: str) -> Iterator[Path]:
    """The files of `from .name import …` and `from . import name`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for name in [node.module] if node.module else [alias.name for alias in node.names]:
                yield file.with_name(f"{name}.py")


def digest(digests: dict[str, str]) -> str:
    """Hexadecimal digits that change when any dependency does. Names of folders do not count."""
    parts = sorted((Path(name).name, value) for name, value in digests.items())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def file_of(module: str, path: Sequence[str]) -> Path | None:
    """The Python file of a module, found without importing anything; None for a built-in or missing one."""
    spec, places = None, list(path)
    for name in _with_packages(module):
        spec = None
        with suppress(Exception):  # a folder on the path may be anything
            spec = PathFinder.find_spec(name, places)
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    return Path(spec.origin).resolve() if spec and spec.origin and spec.origin.endswith(".py") else None


def _follow(file: Path, path: list[str], texts: dict[Path, bytes], libraries: set[str]) -> None:
    if file in texts:
        return
    try:
        texts[file] = file.read_bytes()
        read = ast.parse(texts[file])
    except (OSError, SyntaxError, ValueError):
        return
    for name in _imported(read, file):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in OURS:
            continue
        imported = file_of(name, [str(file.parent), *path] if not name.startswith(".") else [])
        if imported is None:
            # A name inside a module, as in `from mine import f`; or a package without text.
            parent = name.rpartition(".")[0]
            imported = file_of(parent, [str(file.parent), *path]) if parent else None
        if imported is None or _is_installed(imported):
            libraries.add(top)
        else:
            _follow(imported, path, texts, libraries)


def _imported(read: ast.Module, file: Path) -> Iterator[str]:
    """The modules that a text imports, wherever in it; relative ones by the names they have from the file's folder."""
    for node in ast.walk(read):
        if isinstance(node, ast.Import):
            yield from (name for alias in node.names for name in _with_packages(alias.name))
        elif isinstance(node, ast.ImportFrom):
            around, _ = packages_of(file)  # none for one dot next to the file
            above = around[: len(around) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield from _with_packages(base)
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _with_packages(module: str) -> list[str]:
    """The module, after the packages around it: "a", "a.b"."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def packages_of(file: Path) -> tuple[list[str], Path]:
    """The names of the packages around a file, the outermost first, and its folder."""
    names: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return names, folder


def _is_installed(file: Path) -> bool:
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(file.is_relative_to(Path(place).resolve()) for place in places if place)


def _versions(libraries: set[str]) -> dict[str, str]:
    """Distribution -> version, of these packages and of all that they require."""
    versions: dict[str, str] = {}
    waiting = sorted(libraries)
    while waiting:
        name = waiting.pop()
        for distribution in _distributions(name):
            key = str(distribution.metadata["Name"]).lower()
            if key in versions:
                continue
            versions[key] = distribution.version
            requires = (re.match(r"[\w.-]+", line) for line in distribution.requires or () if "extra ==" not in line)
            waiting += [match.group() for match in requires if match]
    return versions


def _distributions(name: str) -> list[metadata.Distribution]:
    """The installed distribution of this name, or those whose packages include this name."""
    with suppress(metadata.PackageNotFoundError, ValueError):
        return [metadata.distribution(name)]
    return [metadata.distribution(each) for each in metadata.packages_distributions().get(name, ())]
