"""Files of the user: a case or a backend, and its facts, read from the text without running it; project settings."""

from __future__ import annotations

import ast
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, ValidationError, convert

from adbench.catalog.installed import installed_version, packages_of_debian
from adbench.model.errors import BadFile
from adbench.model.settings import FLOAT64, PROCESSOR, Role, on_device

Kind = Literal["cases", "backends"]
KINDS: tuple[Kind, ...] = ("cases", "backends")

Low = Literal["float32", "bfloat16", "float16"]
LOW: tuple[Low, ...] = get_args(Low)
"""The types below float64 in which cases can be computed."""


@dataclass(frozen=True)
class Source:
    """A file that defines a case or a backend; enough to load it in another process.

    builtin   whether it ships with adbench: a user must fix a broken file, while a broken built-in one is a record
    device    on which a backend computes

    The facts that a backend's file has as plain literals, read without importing it; a variant has its library's:

    requires    distributions that it needs
    variant_of  the backend of which it is another way of calling the library
    debian      packages of Debian that it needs
    home        the variable that names the folder of a copy of the library, which then counts instead of these
    licence     of the library, as an SPDX expression
    role        whether it is a library, adbench's own engine, or only there for comparison
    builds      whether it needs a compiler of the system's
    precision   "float32" where it computes in single precision
    default     whether a run that names no backend has it; None where the file does not say: see `is_default`
    threaded    whether the library uses the threads that it may; so does each of its variants
    devices     that it can use besides the processor
    dtypes      in which it can compute besides float64, such as "bfloat16"
    no_dtypes   why it has no others
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
    role: Role = "library"
    builds: bool = False
    precision: str = "float64"
    default: bool | None = None
    threaded: bool = False
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    no_dtypes: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    device: str = PROCESSOR

    @property
    def label(self) -> str:
        """Its name in results: with the device, unless that is the processor."""
        return on_device(self.name, self.device)

    def refuses(self, device: str, dtype: str = FLOAT64) -> str:
        """Why it cannot compute on this device in this type; "" if it can."""
        if device not in (PROCESSOR, *self.devices):
            return f"{self.name} does not run on {device}; use --device cpu"
        if dtype in (FLOAT64, self.precision, *self.dtypes):
            return ""
        has = f"{self.name} does not compute in {dtype}; it has {' and '.join((self.precision, *self.dtypes))}"
        return f"{has}: {self.no_dtypes}" if self.no_dtypes else has

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


def read_sources(kind: Kind, path: Path, builtin: bool) -> Iterator[Source]:
    """The file's own entry, and for a backend one for each row of its VARIANTS; read from the text, not run."""
    file = path / "__init__.py" if path.is_dir() else path
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, SyntaxError) and error.lineno:
            raise BadFile(f"{file}, line {error.lineno}: {error.msg}") from error
        why = getattr(error, "strerror", None) or str(error)
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


_Text = Annotated[str, Meta(min_length=1)]
_Texts = tuple[str, ...]

# name in a backend's file -> the type of its value, and that in words
LITERALS: Mapping[str, tuple[Any, str]] = {
    "REQUIRES": (_Texts, "a tuple of distribution names, as plain texts"),
    "SUMMARY": (_Text, "one line, as a plain text"),
    "VARIANT_OF": (_Text, "the name of a backend, as a plain text"),
    "DEBIAN": (_Texts, "a tuple of package names, as plain texts"),
    "HOME": (_Text, "the name of a variable, as a plain text"),
    "LICENCE": (_Text, "an SPDX expression, as a plain text"),
    "ROLE": (Role, f"one of {', '.join(map(repr, get_args(Role)))}"),
    "PRECISION": (Literal["float64", "float32"], '"float64" or "float32"'),
    "BUILDS": (bool, "True or False"),
    "DEFAULT": (bool, "True or False"),
    "THREADED": (bool, "True or False"),
    "DEVICES": (_Texts, 'a tuple of devices, as plain texts, such as ("cuda",)'),
    "DTYPES": (tuple[Low, ...], f"a tuple of types, as plain texts, among {', '.join(LOW)}"),
    "NO_DTYPES": (_Text, "the reason, as a plain text"),
    "KNOWN": (dict[_Text, _Text], "a dict of reasons as plain texts, with keys 'case' or 'case operator'"),
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
        if not isinstance(key, ast.Constant) or not (isinstance(key.value, str) and key.value):
            what = 'a dict of backends, written out: {"mylib_eager": {"SUMMARY": "...", "prepare": prepare_eagerly}}'
            raise BadFile(f"{file}: line {value.lineno}: VARIANTS must be {what}")
        yield str(key.value), value


def _literals(assigned: Mapping[str, ast.expr], file: Path) -> dict[str, Any]:
    """Fields of `Source` by name. Raises BadFile for any other expression or type."""
    fields: dict[str, Any] = {}
    for name, node in assigned.items():
        if name not in LITERALS:
            continue
        kind, what = LITERALS[name]
        try:
            fields[name.lower()] = convert(ast.literal_eval(node), kind)
        except (ValueError, ValidationError) as error:
            raise BadFile(f"{file}: line {node.lineno}: {name} must be {what}") from error
    return fields


def project_table(start: Path) -> tuple[Path, dict[str, Any]]:
    """The nearest pyproject.toml that has `[tool.adbench]`, and that table; empty without one.

    Raises BadFile for a file that names adbench and cannot be read, and for an unknown key that is no table: tables are
    those of commands, whose options only the command line knows.
    """
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        try:
            data = file.read_bytes() if file.is_file() else b""
            table = tomllib.loads(data.decode()).get("tool", {}).get("adbench") if b"adbench" in data else None
        except (OSError, ValueError) as error:
            raise BadFile(f"{file}: cannot be read: {error}") from error
        if table is None:
            continue
        if not isinstance(table, dict):
            raise BadFile(f"{file}: [tool.adbench] must be a table; got {table!r}")
        unknown = sorted(key for key, value in table.items() if key not in KINDS and not isinstance(value, dict))
        if unknown:
            keys = f"{', '.join(KINDS)}, and tables of commands, such as [tool.adbench.check]"
            raise BadFile(f"{file}: [tool.adbench] has no key {unknown[0]!r}; there are: {keys}")
        return file, table
    return start / "pyproject.toml", {}
