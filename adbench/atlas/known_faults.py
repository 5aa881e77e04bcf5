"""Bring `backends/known_faults/LIBRARY.toml` up to date with a table: in which releases each fault occurs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from adbench.atlas.table import Atlas, Row
from adbench.catalog.discovery import builtin_folder
from adbench.model.errors import BadFile

Entry = dict[str, Any]
ORDER = ("trap", "operators", "backends", "got", "reason", "thread", "since", "repaired")


def file_of(library: str) -> Path:
    """The file of a library's known faults."""
    return builtin_folder("backends") / "known_faults" / f"{library}.toml"


def updated(text: str, atlas: Atlas, path: Path) -> str:
    """The file's text with `since`, `repaired` and `checked` from the table, and with an entry for each fault that no
    entry names. Entries of other backends, and those of traps that the table lacks, stay as they are. Raises BadFile.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(f"{path}: {error}") from error
    given: list[Entry] = data.get("fault", [])
    of_all = data.get("backends", [atlas.backend])
    rows = [row for row in atlas.traps if row.ever_faulty]
    covered: set[tuple[str, str]] = set()
    entries: list[Entry] = []
    for entry in given:
        if atlas.backend not in entry.get("backends", of_all):
            entries.append(entry)
            continue
        own = {
            (row.name, operator): row
            for row in rows
            for operator in row.operators
            if row.name == entry["trap"] and concerns(entry, operator)
        }
        covered |= own.keys()
        entries.append(_dated(entry, list(own.values()), atlas))
    for row in rows:
        new = tuple(operator for operator in row.operators if (row.name, operator) not in covered)
        if new:
            entries.append(_dated(_new(row, new, atlas), [row], atlas))
    head = {"library": atlas.library, **data, "checked": [atlas.releases[k].name for k in atlas.usable]}
    head.pop("fault", None)
    return text_of(head, entries)


def concerns(entry: Mapping[str, Any], operator: str) -> bool:
    """Whether the entry is about this operator; without operators it is about all."""
    operators = entry.get("operators", [])
    return not operators or any(fnmatchcase(operator, pattern) for pattern in operators)


def _dated(entry: Entry, rows: list[Row], atlas: Atlas) -> Entry:
    """The entry with the first release that has one of the rows' faults, and the first later one that has none."""
    faulty = {k: any(row.is_faulty(k) for row in rows) for k in atlas.usable}
    having = [k for k, has in faulty.items() if has]
    if not having:
        return entry
    dated = {name: value for name, value in entry.items() if name not in ("since", "repaired")}
    last_time = [k for k in faulty if k < having[-1] and not faulty[k]]
    if last_time:
        dated["since"] = atlas.releases[min(k for k in having if k > last_time[-1])].name
    after = [k for k in faulty if k > having[-1]]
    if after:
        dated["repaired"] = atlas.releases[after[0]].name
    return dated


def _new(row: Row, operators: tuple[str, ...], atlas: Atlas) -> Entry:
    """An entry without a reason: a person adds it, and a thread."""
    kind = next(row.kind(k) for k in reversed(range(len(row.outcomes))) if row.is_faulty(k))
    got, _ = row.evidence.get(kind, ("", ""))
    text = {"n": "nan", "e": "raises", "c": "crashes"}.get(kind, got.rpartition("= ")[2] or "wrong")
    entry: Entry = {"trap": row.name, "got": text, "backends": [atlas.backend]}
    return entry if "gradient" in operators else {**entry, "operators": list(operators)}


def text_of(head: Mapping[str, Any], entries: list[Entry]) -> str:
    """The text of a file, its entries sorted by trap and operators."""
    lines = [f"# Known faults of {head['library']}, by trap and operator: docs/how-to/write-a-backend.md#known-faults"]
    lines += [f"{name} = {_toml(head[name])}" for name in ("library", "backends", "checked") if name in head]
    for entry in sorted(entries, key=lambda one: tuple(str(one.get(name, "")) for name in ORDER)):
        lines += ["", "[[fault]]", *(f"{name} = {_toml(entry[name])}" for name in ORDER if name in entry)]
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
