"""Bring `backends/known_faults/LIBRARY.toml` up to date with a table: in which releases each fault occurs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.version import Version

from adbench.atlas.table import FAULTS, Atlas, Row
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
    entry names. Entries of other backends, and those of traps that the table lacks, stay as they are. `checked` gets
    the releases that ran every trap. Raises BadFile.
    """
    data = _parsed(text, path)
    given: list[Entry] = data.get("fault", [])
    of_all = data.get("backends", [atlas.backend])
    ours = [entry for entry in given if atlas.backend in entry.get("backends", of_all)]
    entries = [entry for entry in given if entry not in ours]
    rows = [one for row in atlas.traps for one in _by_kind(row)]
    covered: set[tuple[Any, ...]] = set()
    for entry in ours:
        own = _rows_of(entry, ours, rows, atlas)
        covered |= {(row.name, operator, *row.evidence) for row, operators in own for operator in operators}
        entries.append(_dated(entry, [row for row, _ in own], atlas))
    for row in rows:
        new = tuple(operator for operator in row.operators if (row.name, operator, *row.evidence) not in covered)
        if new:
            entries.append(_dated(_new(row, new, atlas), [row], atlas))
    whole = {atlas.releases[k].name for k in atlas.usable if all(row.outcomes[k].isupper() for row in atlas.traps)}
    checked = sorted(whole | set(data.get("checked", ())), key=Version)
    head = {"library": atlas.library, **data, "checked": checked}
    head.pop("fault", None)
    return text_of(head, entries)


def concerns(entry: Mapping[str, Any], operator: str) -> bool:
    """Whether the entry is about this operator; without operators it is about all."""
    operators = entry.get("operators", [])
    return not operators or any(fnmatchcase(operator, pattern) for pattern in operators)


def _by_kind(row: Row) -> list[Row]:
    """The row once for each kind of fault; the other faults count as right there."""
    found = []
    for kind in sorted(row.evidence):
        others = FAULTS.replace(kind, "")
        table = str.maketrans(dict.fromkeys(others, "r") | dict.fromkeys(others.upper(), "R"))
        found.append(replace(row, outcomes=row.outcomes.translate(table), evidence={kind: row.evidence[kind]}))
    return [one for one in found if one.ever_faulty]


def kinds_of(got: str) -> str:
    """The kinds of faults that an outcome in words allows: "0 or nan" is a wrong number or NaN."""
    kinds = "n" * ("nan" in got.lower()) + "ec" * got.startswith(("raises", "crashes"))
    return kinds + "w" * (not kinds or " or " in got)


def _rows_of(entry: Entry, every: list[Entry], rows: list[Row], atlas: Atlas) -> list[tuple[Row, tuple[str, ...]]]:
    """The rows of faults that an entry is about, and their operators.

    An entry with operators is about faults of its kind, or about all if its words name no kind that occurs. One without
    operators is about the gradient, and about operators that fail in the same releases and that no other entry names.
    """
    rows = [row for row in rows if row.name == entry["trap"]]
    others = [one for one in every if one["trap"] == entry["trap"] and one.get("operators")]
    is_bare = not entry.get("operators")
    found = []
    for row in rows:
        named = {name for name in row.operators if any(_is_about(one, name, row, rows) for one in others)}
        own = (name for name in row.operators if _is_about(entry, name, row, rows) and not (is_bare and name in named))
        found.append((row, tuple(own)))
    found = [(row, own) for row, own in found if own]
    dates = [_dates([row], atlas) for row, own in found if "gradient" in own]
    return [(row, own) for row, own in found if not (is_bare and dates) or _dates([row], atlas) in dates]


def _is_about(entry: Entry, operator: str, row: Row, rows: list[Row]) -> bool:
    """Whether an entry is about an operator of a row, which has one kind of fault; `rows` are those of its trap."""
    if not concerns(entry, operator):
        return False
    if operator != "gradient" and not entry.get("operators"):
        return True
    kinds = {kind for one in rows if operator in one.operators for kind in one.evidence}
    return {*row.evidence} <= ({*kinds_of(entry["got"])} & kinds or kinds)


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
    ((kind, (got, _)),) = row.evidence.items()
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
