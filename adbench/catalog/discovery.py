"""Find the cases and backends, and load their files.

The folder listing is the registry: a file `x.py` in a folder of cases is the case `x`. A case's file may define several
as CASES, and a backend's file variants as VARIANTS. Built-in files and a user's are treated alike.
This is the only module of `adbench` that reaches `cases` and `backends`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from adbench.catalog.generated_files import is_command
from adbench.catalog.installed import OURS, extras
from adbench.catalog.source import Kind, Source, read_sources
from adbench.model.case import Case
from adbench.model.errors import BadFile, UnknownName, UsageError, UserExit, contained
from adbench.model.settings import PROCESSOR, backend_and_device
from adbench.optional import EXTRAS

Value = TypeVar("Value")
MOST_REASON = 500  # characters of an exception's text


@dataclass(frozen=True)
class Catalog:
    """Cases by name, and backends by name (not loaded: they import their library)."""

    cases: Mapping[str, Case]
    case_sources: Mapping[str, Source]
    backends: Mapping[str, Source] = field(default_factory=dict)

    def on(self, device: str) -> Catalog:
        """The same with every backend on this device, under its own name."""
        placed = OnDemand(lambda: self.backends, lambda name: replace(self.backends[name], device=device))
        return replace(self, backends=placed)


class OnDemand(Mapping[str, Value]):
    """A mapping that reads its entries when they are needed.

    names   names() -> all names, in order
    read    read(name) -> the value, or None if it has no such entry
    """

    def __init__(self, names: Callable[[], Collection[str]], read: Callable[[str], Value | None]) -> None:
        self._names, self._read = names, cache(read)

    def __getitem__(self, name: str) -> Value:
        value = self._read(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def builtin_folder(kind: Kind) -> Path:
    """Where the files that ship with adbench are: inside the package when installed, next to it in a checkout."""
    package = Path(__file__).parents[1]
    inside, beside = package / kind, package.parent / kind
    return inside if inside.is_dir() else beside


def catalog(case_paths: Iterable[str | Path] = (), backend_paths: Iterable[str | Path] = ()) -> Catalog:
    """The built-in cases and backends, those of entry points, and those in the given folders or files.

    A user's file replaces a built-in one of the same name. Raises BadFile for an unusable path or file. The user's
    files are read at once; built-in ones when they are needed: a user's function needs no case and one backend.
    """
    own = _own("cases", case_paths)
    cases = _loaded(own.values())

    @cache
    def every() -> dict[str, tuple[Case, Source]]:
        files = _files(builtin_folder("cases"))
        others = (files[name] for name in files if name not in own)
        return _loaded(one for file in others for one in read_sources("cases", file, builtin=True)) | cases

    pairs = OnDemand(every, lambda name: cases.get(name) or every().get(name))
    return Catalog(
        OnDemand(every, lambda name: pairs[name][0]),
        OnDemand(every, lambda name: pairs[name][1]),
        _backends(backend_paths),
    )


def _backends(paths: Iterable[str | Path]) -> OnDemand[Source]:
    """The backends by name, also by one such as "jax (cuda)", which is not listed.

    Raises BadFile if a variant of the user's has no library's backend.
    """
    own, files = _own("backends", paths), _files(builtin_folder("backends"))

    @cache
    def every() -> dict[str, Source]:
        builtin = (one for file in files.values() for one in read_sources("backends", file, builtin=True))
        return {source.name: source for source in builtin} | own

    def alone(name: str) -> Source | None:
        if name in own or name not in files:
            return own.get(name) or every().get(name)
        return next(read_sources("backends", files[name], builtin=True))

    alone_by_name = OnDemand(every, alone)
    for source in own.values():
        _inherited(source, alone_by_name)

    def placed(name: str) -> Source:
        backend, device = (name, PROCESSOR) if name in own else backend_and_device(name)
        return replace(_inherited(alone_by_name[backend], alone_by_name), device=device)

    return OnDemand(every, placed)


def _loaded(sources: Iterable[Source]) -> dict[str, tuple[Case, Source]]:
    """The cases of these files, each with its source."""
    return {
        name: (case, Source("cases", name, source.path, source.builtin, case.summary or source.summary))
        for source in sources
        for name, case in load_cases(source).items()
    }


def load_cases(source: Source) -> Mapping[str, Case]:
    """The cases that a file defines, by name. Raises BadFile if it defines none."""
    module = load(source)
    several = getattr(module, "CASES", None)
    if several and not isinstance(several, Mapping):
        how = 'define CASES = {"name": Case(...)}'
        raise BadFile(f"{source.path}: CASES is of type {type(several).__name__}; {how}")
    cases = several or {Path(source.path).stem: getattr(module, "CASE", None)}
    for name, case in cases.items():
        if not isinstance(case, Case):
            what = f"CASES[{name!r}]" if several else "CASE"
            fault = "is missing" if case is None else f"is of type {type(case).__name__}"
            raise BadFile(f"{source.path}: {what} {fault}; define {what} = Case(...)")
    return {name: replace(case, name=name, file=source.path) for name, case in cases.items()}


def load(source: Source) -> ModuleType:
    """Import the file under a separate name, so that `cases/torch.py` never hides the library torch.

    Files in one folder may import each other relatively. A variant's module has the names of its row of VARIANTS, and
    the file's for the rest. Raises BadFile, in one line, for whatever the import raises.
    """
    module = _imported(source)
    row = getattr(module, "VARIANTS", {}).get(source.name) if source.kind == "backends" else None
    if row is None:
        return module
    variant = ModuleType(f"{module.__name__}.{source.name}", source.summary)
    vars(variant).update(row, __file__=source.path, __getattr__=partial(getattr, module))
    return variant


def _imported(source: Source) -> ModuleType:
    path = Path(source.path)
    package = _package(source.kind, path.parent, source.builtin)
    name = f"{package}.{path.stem.replace('.', '_')}"
    try:
        with contained():
            return import_as(name, path / "__init__.py" if path.is_dir() else path)
    except BadFile:
        raise
    except Exception as error:  # report any fault of a user's file
        if isinstance(error, UserExit) and source.kind == "backends":
            raise  # in a worker: it ends only the backend's own results
        raise BadFile(f"{path}: cannot be imported: {type(error).__name__}: {first_line(error)}") from error


def import_as(name: str, file: Path) -> ModuleType:
    """Import a file under this name, once. Raises BadFile if it is no Python file, and what the import raises."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BadFile(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def select(kind: str, known: Mapping[str, object], patterns: Iterable[str]) -> tuple[str, ...]:
    """The names that match any of the patterns (names or globs), in catalog order; all of them for no pattern.

    Raises UnknownName for a pattern that matches nothing.
    """
    wanted = tuple(patterns)
    if len(wanted) == 1 and wanted[0] in known:  # without a look at the others
        return wanted
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise UnknownName(kind, pattern, known)
    return tuple(name for name in known if not wanted or any(fnmatchcase(name, p) for p in wanted))


def requirement(backend: Source) -> str:
    """What `pip install` needs for a backend: our extra for its library, or else its distributions."""
    library = EXTRAS.get(next(iter(backend.requires), ""), backend.variant_of or backend.name)
    return f"{OURS}[{library}]" if backend.builtin and library in extras() else " ".join(backend.requires)


def first_line(error: BaseException) -> str:
    """The first non-empty line of an exception's text, of a length that a person reads."""
    try:
        text = str(error)
    except Exception:  # also a user's exception may fail
        return "no readable message"
    line = next((line.strip() for line in text[: 20 * MOST_REASON].splitlines() if line.strip()), "no message")
    return line if len(line) <= MOST_REASON else f"{line[:MOST_REASON]}…"


def _own(kind: Kind, paths: Iterable[str | Path]) -> dict[str, Source]:
    """Announced and given files by name; later ones replace earlier ones of the same name."""
    announced = {s.name: s for folder in _announced(kind) for s in _list(kind, folder)}
    own: dict[str, Source] = {}
    for path in dict.fromkeys(_resolved(p, kind) for p in paths):
        for source in _list(kind, path):
            if source.name in own:
                both = f"{own[source.name].path} and {source.path}"
                how = "name the command in pyproject.toml: [tool.adbench.backends.NAME]"
                advice = how if is_command(source.path) else "rename one"
                raise UsageError(f"two {kind} are called {source.name!r}: {both}; {advice}")
            own[source.name] = source
    return announced | own


def _inherited(source: Source, every: Mapping[str, Source]) -> Source:
    """A variant, completed with the facts of its library's backend. Raises BadFile if there is no such backend."""
    if source.variant_of is None:
        return source
    library = every.get(source.variant_of)
    if library is None or library.variant_of is not None:
        libraries = ", ".join(name for name, other in every.items() if other.variant_of is None)
        said = f"VARIANT_OF names {source.variant_of!r}, which is no library's backend"
        raise BadFile(f"{source.path}: {said}; there are: {libraries}")
    return replace(
        source,
        requires=source.requires or library.requires,
        debian=source.debian or library.debian,
        home=source.home or library.home,
        licence=source.licence or library.licence,
        role=library.role if source.role == "library" else source.role,
        threaded=source.threaded or library.threaded,
    )


def _resolved(named: str | Path, kind: Kind) -> Path:
    """The path from the root. Raises BadFile, with the path as given, if nothing is there or it cannot be reached."""
    try:
        path = Path(named).resolve()
        if path.is_file() or path.is_dir():
            return path
    except (OSError, RuntimeError) as error:  # a RuntimeError is a circle of links
        raise BadFile(f"{named}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    link = f", it is a link to {Path(named).readlink()}" if Path(named).is_symlink() else ""
    raise BadFile(f"{path if not link else named}: no such file or folder of {kind}{link}")


def _list(kind: Kind, path: Path) -> Iterator[Source]:
    """The user's files of a folder, or the one file, as sources. Raises BadFile if they cannot be read."""
    if not path.exists():
        raise BadFile(f"{path}: no such file or folder of {kind}")
    try:
        for entry in [path] if path.is_file() else _files(path).values():
            yield from read_sources(kind, entry, builtin=False)
    except OSError as error:
        raise BadFile(f"{error.filename or path}: cannot be read: {error.strerror}; change its permissions") from error


def _files(folder: Path) -> dict[str, Path]:
    """Name -> file or package, of the entries of a folder. Names that begin with `_` or `.` are helpers."""
    return {
        entry.stem: entry
        for entry in sorted(folder.iterdir())
        if not entry.name.startswith(("_", "."))
        and (entry.suffix == ".py" if entry.is_file() else (entry / "__init__.py").is_file())
    }


def _announced(kind: Kind) -> Iterator[Path]:
    """The folders of entry points, of the group `adbench.cases` or `adbench.backends`."""
    for entry in importlib.metadata.entry_points(group=f"adbench.{kind}"):
        spec = importlib.util.find_spec(entry.module)
        if spec is None or not spec.submodule_search_locations:
            raise BadFile(
                f"entry point {entry.name!r} of group adbench.{kind} names {entry.value!r}, which is no package"
            )
        yield Path(next(iter(spec.submodule_search_locations)))


def _package(kind: Kind, folder: Path, builtin: bool) -> str:
    """The name of the package for a folder, made on first use: `adbench.cases`, or a separate one for a user's."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    name = f"adbench.{kind}" if builtin else f"adbench_{kind}_{digest}"
    if name not in sys.modules:
        package = ModuleType(name, f"The files of {folder}.")
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name
