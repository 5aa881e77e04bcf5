"""Find the cases, backends and reports, and load their files.

The folder listing is the registry: a file `x.py` in a folder of cases is the case `x`. A case's file may define several
as CASES, and a backend's file variants as VARIANTS. Built-in files and a user's are treated alike.
This is the only module of `adbench` that reaches `cases`, `backends` and `reports`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from adbench.catalog.generated_files import is_command
from adbench.catalog.installed import OURS, extras, installed_version, packages_of_debian
from adbench.model.case import Case
from adbench.model.errors import BadFile, UnknownName, UsageError, UserExit, contained
from adbench.model.settings import PROCESSOR
from adbench.optional import EXTRAS

Kind = Literal["cases", "backends", "reports"]
MOST_REASON = 500  # characters of an exception's text


@dataclass(frozen=True)
class Source:
    """A file that defines a case or a backend; enough to load it in another process.

    builtin   whether it ships with adbench: a user must fix a broken file, while a broken built-in one is a record

    The facts that a backend's file has as plain literals, read without importing it; a variant has its library's:

    requires    distributions that it needs
    variant_of  the backend of which it is another way of calling the library
    debian      packages of Debian that it needs
    home        the variable that names the folder of a copy of the library, which then counts instead of these
    licence     of the library, as an SPDX expression
    builds      whether it needs a compiler of the system's
    precision   "float32" where it computes in single precision
    default     whether a run that names no backend has it; None where the file does not say: see `is_default`
    threaded    whether the library uses the threads that it may; so does each of its variants
    devices     that it can use besides the processor
    known       its known faults: "case" or "case operators" -> "what is returned: why (owner/repository#7)"
    """

    kind: Kind
    name: str
    path: str
    builtin: bool
    summary: str = ""
    requires: tuple[str, ...] = ()
    variant_of: str | None = None
    debian: tuple[str, ...] = ()
    home: str | None = None
    licence: str | None = None
    builds: bool = False
    precision: str = "float64"
    default: bool | None = None
    threaded: bool = False
    devices: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)

    def refuses(self, device: str) -> str:
        """Why it cannot compute on this device; "" if it can."""
        return "" if device in (PROCESSOR, *self.devices) else f"{self.name} does not run on {device}; use --device cpu"

    @property
    def is_default(self) -> bool:
        """Whether a run that names no backend has this one, if it is installed.

        The file decides by DEFAULT. Otherwise every backend of the user is included, and each built-in one that is no
        variant and needs no compiler.
        """
        if self.default is not None:
            return self.default
        return not self.builtin or (self.variant_of is None and not self.builds)

    @property
    def own_copy(self) -> bool:
        """Whether the user names a copy of the library, which no package's absence or version concerns."""
        return self.home is not None and bool(os.environ.get(self.home))

    @property
    def missing(self) -> tuple[str, ...]:
        """The required distributions that are not installed."""
        return () if self.own_copy else tuple(name for name in self.requires if installed_version(name) is None)

    @property
    def not_installed(self) -> str:
        """What is missing and how to install it, for an error or a reason; "" if nothing is."""
        missing = " ".join(self.missing)
        return f"{missing} is not installed; pip install {missing}" if missing else ""

    @property
    def missing_of_debian(self) -> tuple[str, ...]:
        """The required packages of Debian that are not installed; all of them on a system without dpkg."""
        if self.own_copy:
            return ()
        there = packages_of_debian(self.debian)
        return tuple(name for name in self.debian if name not in there)

    @property
    def version(self) -> str | None:
        """The installed version of the first required distribution, or else of the first package of Debian; None if it
        needs neither, lacks it, or is the user's own copy."""
        if self.own_copy:
            return None
        if self.requires:
            return installed_version(self.requires[0])
        return packages_of_debian(self.debian).get(self.debian[0]) if self.debian else None


@dataclass(frozen=True)
class Catalog:
    """Cases by name (loaded: they are light), and backends by name (not loaded: they import their library)."""

    cases: Mapping[str, Case]
    case_sources: Mapping[str, Source]
    backends: Mapping[str, Source] = field(default_factory=dict)


def builtin_folder(kind: Kind) -> Path:
    """Where the files that ship with adbench are: inside the package when installed, next to it in a checkout."""
    package = Path(__file__).parents[1]
    inside, beside = package / kind, package.parent / kind
    return inside if inside.is_dir() else beside


def catalog(case_paths: Iterable[str | Path] = (), backend_paths: Iterable[str | Path] = ()) -> Catalog:
    """The built-in cases and backends, those of entry points, and those in the given folders or files.

    A user's file replaces a built-in one of the same name. Raises BadFile for an unusable path or file.
    """
    cases: dict[str, Case] = {}
    sources: dict[str, Source] = {}
    for source in _sources("cases", case_paths):
        for name, case in load_cases(source).items():
            cases[name] = case
            sources[name] = Source("cases", name, source.path, source.builtin, case.summary or source.summary)
    return Catalog(cases, sources, {s.name: s for s in _sources("backends", backend_paths)})


def load_cases(source: Source) -> Mapping[str, Case]:
    """The cases that a file defines, by name. Raises BadFile if it defines none."""
    module = load(source)
    several = getattr(module, "CASES", None)
    if several and not isinstance(several, Mapping):
        how = 'define CASES = {"name": Case(...)}'
        raise BadFile(f"{source.path}: CASES is of type {type(several).__name__}; {how}")
    found = several or {Path(source.path).stem: getattr(module, "CASE", None)}
    for name, case in found.items():
        if not isinstance(case, Case):
            what = f"CASES[{name!r}]" if several else "CASE"
            fault = "is missing" if case is None else f"is of type {type(case).__name__}"
            raise BadFile(f"{source.path}: {what} {fault}; define {what} = Case(...)")
    return {name: replace(case, name=name, file=source.path) for name, case in found.items()}


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
    if name in sys.modules:
        return sys.modules[name]
    file = path / "__init__.py" if path.is_dir() else path
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BadFile(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with contained():
            spec.loader.exec_module(module)
    except BaseException as error:  # report any fault of a user's file
        del sys.modules[name]
        if not isinstance(error, Exception) or (isinstance(error, UserExit) and source.kind == "backends"):
            raise  # in a worker: it ends only the backend's own results
        raise BadFile(f"{path}: cannot be imported: {type(error).__name__}: {first_line(error)}") from error
    return module


def report_module(name: str) -> ModuleType:
    """The built-in report of that name: a module of the folder `reports`, as "html.page"."""
    return importlib.import_module(f"{_package('reports', builtin_folder('reports'), builtin=True)}.{name}")


def select(kind: str, known: Mapping[str, object], patterns: Iterable[str]) -> tuple[str, ...]:
    """The names that match any of the patterns (names or globs), in catalog order; all of them for no pattern.

    Raises UnknownName for a pattern that matches nothing.
    """
    wanted = tuple(patterns)
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


def _sources(kind: Kind, paths: Iterable[str | Path]) -> tuple[Source, ...]:
    """Built-in, announced and given files by name; later ones replace earlier ones of the same name."""
    found = {s.name: s for s in _list(kind, builtin_folder(kind), builtin=True)}
    for folder in _announced(kind):
        found |= {s.name: s for s in _list(kind, folder, builtin=False)}
    given: dict[str, Source] = {}
    for path in dict.fromkeys(_resolved(p, kind) for p in paths):
        for source in _list(kind, path, builtin=False):
            if source.name in given:
                both = f"{given[source.name].path} and {source.path}"
                how = "name the command in pyproject.toml: [tool.adbench.backends.NAME]"
                advice = how if is_command(source.path) else "rename one"
                raise UsageError(f"two {kind} are called {source.name!r}: {both}; {advice}")
            given[source.name] = source
    every = found | given
    return tuple(_inherited(source, every) for source in every.values())


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
        threaded=source.threaded or library.threaded,
    )


def _resolved(given: str | Path, kind: Kind) -> Path:
    """The path from the root. Raises BadFile, with the path as given, if nothing is there or it cannot be reached."""
    try:
        path = Path(given).resolve()
        if path.is_file() or path.is_dir():
            return path
    except (OSError, RuntimeError) as error:  # a RuntimeError is a circle of links
        raise BadFile(f"{given}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    link = f", it is a link to {Path(given).readlink()}" if Path(given).is_symlink() else ""
    raise BadFile(f"{path if not link else given}: no such file or folder of {kind}{link}")


def _list(kind: Kind, path: Path, *, builtin: bool) -> Iterator[Source]:
    """The files of a folder, or the one file, as sources. Raises BadFile if they cannot be read."""
    try:
        yield from _entries(kind, path, builtin)
    except OSError as error:
        raise BadFile(f"{error.filename or path}: cannot be read: {error.strerror}; change its permissions") from error


def _entries(kind: Kind, path: Path, builtin: bool) -> Iterator[Source]:
    """Names that begin with `_` or `.` are helpers, not entries."""
    if path.is_file():
        yield from _defined(kind, path, builtin)
        return
    if not path.is_dir():
        raise BadFile(f"{path}: no such file or folder of {kind}")
    for entry in sorted(path.iterdir()):
        is_entry = entry.suffix == ".py" if entry.is_file() else (entry / "__init__.py").is_file()
        if is_entry and not entry.name.startswith(("_", ".")):
            yield from _defined(kind, entry, builtin)


def _defined(kind: Kind, path: Path, builtin: bool) -> Iterator[Source]:
    """The file's own entry, and for a backend one for each row of its VARIANTS; read from the text, not run."""
    file = path / "__init__.py" if path.is_dir() else path
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, SyntaxError) and error.lineno:
            raise BadFile(f"{file}, line {error.lineno}: {error.msg}") from error
        why = getattr(error, "strerror", None) or first_line(error)
        raise BadFile(f"{file}: not a readable Python file: {why}") from error
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    own = Source(kind, path.stem, str(path), builtin, summary)
    if kind != "backends":
        yield own
        return
    assigned = dict(_assigned(tree))
    assigned.pop("SUMMARY", None)  # a file's is its docstring
    own = replace(own, **_literals(assigned, file))
    yield own
    for name, row in _rows(assigned.get("VARIANTS"), file):
        variant = replace(own, name=name, variant_of=own.variant_of or own.name, known={}, default=None)
        yield replace(variant, **_literals(row, file))


def _is_texts(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(text, str) for text in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) and text for pair in value.items() for text in pair)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


# name in a backend's file -> whether a value is right, and what it must be
LITERALS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "REQUIRES": (_is_texts, "a tuple of distribution names, as plain texts"),
    "SUMMARY": (_is_text, "one line, as a plain text"),
    "VARIANT_OF": (_is_text, "the name of a backend, as a plain text"),
    "DEBIAN": (_is_texts, "a tuple of package names, as plain texts"),
    "HOME": (_is_text, "the name of a variable, as a plain text"),
    "LICENCE": (_is_text, "an SPDX expression, as a plain text"),
    "PRECISION": (lambda value: value in ("float64", "float32"), '"float64" or "float32"'),
    "BUILDS": (_is_bool, "True or False"),
    "DEFAULT": (_is_bool, "True or False"),
    "THREADED": (_is_bool, "True or False"),
    "DEVICES": (_is_texts, 'a tuple of devices, as plain texts, such as ("cuda",)'),
    "KNOWN": (_is_table, "a dict of reasons as plain texts, with keys 'case' or 'case operator'"),
}


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names that the file's own statements assign, and their values."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))


def _rows(table: ast.expr | None, file: Path) -> Iterator[tuple[str, dict[str, ast.expr]]]:
    """The rows of VARIANTS: names of backends, and of each the names that it defines. Raises BadFile."""
    for name, row in _items(table, file) if table else ():
        yield name, dict(_items(row, file))


def _items(table: ast.expr, file: Path) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else [(table, table)]:
        if not isinstance(key, ast.Constant) or not _is_text(key.value):
            what = 'a dict of backends, written out: {"mylib_eager": {"SUMMARY": "...", "prepare": prepare_eagerly}}'
            raise BadFile(f"{file}: line {value.lineno}: VARIANTS must be {what}")
        yield str(key.value), value


def _literals(assigned: Mapping[str, ast.expr], file: Path) -> dict[str, Any]:
    """Fields of `Source` by name. Raises BadFile for any other expression or type."""
    fields: dict[str, Any] = {}
    for name, node in assigned.items():
        if name not in LITERALS:
            continue
        is_right, what = LITERALS[name]
        try:
            value = ast.literal_eval(node)
        except ValueError:
            value = None
        if not is_right(value):
            raise BadFile(f"{file}: line {node.lineno}: {name} must be {what}")
        fields[name.lower()] = tuple(value) if isinstance(value, list) else value
    return fields


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
