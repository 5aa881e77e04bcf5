"""Bring `backends/known_faults/LIBRARY.toml` up to date with a table: in which releases each fault occurs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
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


def read_entries(library: str) -> list[Entry]:
    """The known faults of a library; none without a file. Raises BadFile."""
    path = file_of(library)
    return _parsed(path.read_text("utf-8"), path).get("fault", []) if path.is_file() else []


def thread_of(entries: Iterable[Entry], row: Row) -> str:
    """The thread of the first entry about one of the row's operators; "" without one."""
    about = (
        entry
        for entry in entries
        if entry["trap"] == row.name and any(concerns(entry, operator) for operator in row.operators)
    )
    return next((thread for entry in about if (thread := str(entry.get("thread", "")))), "")


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(f"{path}: {error}") from error


def updated(text: str, atlas: Atlas, path: Path) -> str:
    """The file's text with `since`, `repaired` and `checked` from the table, and with an entry for each fault that no
    entry names. Entries of other backends, and those of traps that the table lacks, stay as they are. `checked` has the
    releases that ran every trap. Raises BadFile.
    """
    data = _parsed(text, path)
    given: list[Entry] = data.get("fault", [])
    of_all = data.get("backends", [atlas.backend])
    ours = [entry for entry in given if atlas.backend in entry.get("backends", of_all)]
    entries = [entry for entry in given if entry not in ours]
    rows = [row for row in atlas.traps if row.ever_faulty]
    covered: set[tuple[str, str]] = set()
    for entry in ours:
        own = _rows_of(entry, ours, rows, atlas)
        covered |= {(row.name, operator) for row, operators in own for operator in operators}
        entries.append(_dated(entry, [row for row, _ in own], atlas))
    for row in rows:
        new = tuple(operator for operator in row.operators if (row.name, operator) not in covered)
        if new:
            entries.append(_dated(_new(row, new, atlas), [row], atlas))
    whole = [k for k in atlas.usable if all(row.outcomes[k].isupper() for row in atlas.traps)]
    head = {"library": atlas.library, **data, "checked": [atlas.releases[k].name for k in whole]}
    head.pop("fault", None)
    return text_of(head, entries)


def concerns(entry: Mapping[str, Any], operator: str) -> bool:
    """Whether the entry is about this operator; without operators it is about all."""
    operators = entry.get("operators", [])
    return not operators or any(fnmatchcase(operator, pattern) for pattern in operators)


def _rows_of(entry: Entry, every: list[Entry], rows: list[Row], atlas: Atlas) -> list[tuple[Row, tuple[str, ...]]]:
    """The rows of faults that an entry is about, and their operators.

    An entry without operators is about the gradient, and about the operators that no other entry names and that fail
    in the same releases.
    """
    others = [one for one in every if one["trap"] == entry["trap"] and one.get("operators")]
    is_bare = not entry.get("operators")
    found = []
    for row in rows:
        if row.name == entry["trap"]:
            named = [name for name in row.operators if is_bare and any(concerns(one, name) for one in others)]
            own = tuple(name for name in row.operators if concerns(entry, name) and name not in named)
            found += [(row, own)] if own else []
    first = [_dates([row], atlas) for row, own in found if "gradient" in own]
    return [(row, own) for row, own in found if not (is_bare and first) or _dates([row], atlas) == first[0]]


def _dated(entry: Entry, rows: list[Row], atlas: Atlas) -> Entry:
    """The entry with the releases of its faults; as it is if the table has none of them."""
    if not any(row.is_faulty(k) for row in rows for k in atlas.usable):
        return entry
    dated = {name: value for name, value in entry.items() if name not in ("since", "repaired")}
    return dated | {
        name: value for name, value in zip(("since", "repaired"), _dates(rows, atlas), strict=True) if value
    }


def _dates(rows: list[Row], atlas: Atlas) -> tuple[str, str]:
    """The first release with a fault of the rows, after the last one without; and the first later one without all."""
    decided = [k for k in atlas.usable if any(row.kind(k) != "q" for row in rows)]
    faulty = {k: any(row.is_faulty(k) for row in rows) for k in decided}
    having = [k for k, has in faulty.items() if has]
    before = [k for k in faulty if k < having[-1] and not faulty[k]] if having else []
    after = [k for k in faulty if k > having[-1]] if having else []
    since = atlas.releases[min(k for k in having if k > before[-1])].name if before else ""
    return since, atlas.releases[after[0]].name if after else ""


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
