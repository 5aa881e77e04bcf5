"""Bring `backends/known_faults/LIBRARY.toml` up to date with a table: in which releases each fault occurs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
from packaging.version import Version

from adbench.atlas.table import FAULTS, NONE, Atlas, AtlasRow
from adbench.execution.known_faults import FaultFile, KnownFault
from adbench.model.settings import PROCESSOR


def thread_of(faults: Iterable[KnownFault], row: AtlasRow) -> str:
    """The thread of the first fault about one of the row's operators; "" without one."""
    about = (fault for fault in faults if fault.trap == row.name and any(map(fault.concerns, row.operators)))
    return next((fault.thread for fault in about if fault.thread), "")


def updated(file: FaultFile, atlas: Atlas) -> FaultFile:
    """The file with `since`, `repaired` and `checked` from the table, and with an entry for each fault that no entry
    names. Entries of other backends, of a device and of a type, and those of traps that the table lacks, stay as they
    are. `checked` gets the releases that ran every trap.
    """
    on_processor = [fault for fault in file.faults if fault.device in ("", PROCESSOR) and not fault.dtypes]
    ours = [fault for fault in on_processor if atlas.backend in (fault.backends or file.backends)]
    faults = [fault for fault in file.faults if fault not in ours]
    rows = [one for row in atlas.traps for one in _by_kind(row)]
    covered: set[tuple[str, ...]] = set()
    for fault in ours:
        own = _rows_of(fault, ours, rows, atlas)
        covered |= {(row.name, operator, *row.evidence) for row, operators in own for operator in operators}
        faults.append(_dated(fault, [row for row, _ in own], atlas))
    for row in rows:
        new = tuple(operator for operator in row.operators if (row.name, operator, *row.evidence) not in covered)
        if new:
            faults.append(_dated(_new(row, new, atlas), [row], atlas))
    whole = {atlas.releases[k].name for k in atlas.usable if all(row.outcomes[k].isupper() for row in atlas.traps)}
    checked = sorted({*file.checked, *map(Version, whole)})
    faults.sort(key=lambda fault: fault.place)
    return msgspec.structs.replace(file, checked=tuple(checked), faults=tuple(faults))


def _by_kind(row: AtlasRow) -> list[AtlasRow]:
    """The row once for each kind of fault; the other faults count as right there."""
    of_kinds = []
    for kind in sorted(row.evidence):
        others = FAULTS.replace(kind, "")
        table = str.maketrans(dict.fromkeys(others, "r") | dict.fromkeys(others.upper(), "R"))
        of_kinds.append(replace(row, outcomes=row.outcomes.translate(table), evidence={kind: row.evidence[kind]}))
    return [one for one in of_kinds if one.ever_faulty]


def kinds_of(got: str) -> str:
    """The kinds of faults that an outcome in words allows: "0 or nan" is a wrong number or NaN."""
    kinds = "n" * ("nan" in got.lower()) + "ec" * got.startswith(("raises", "crashes"))
    return kinds + "w" * (not kinds or " or " in got)


def _rows_of(
    fault: KnownFault, every: list[KnownFault], rows: list[AtlasRow], atlas: Atlas
) -> list[tuple[AtlasRow, tuple[str, ...]]]:
    """The rows of faults that an entry is about, and their operators.

    An entry with operators is about faults of its kind, or about all if its words name no kind that occurs. One without
    operators is about the gradient, and about operators that fail in the same releases and that no other entry names.
    """
    rows = [row for row in rows if row.name == fault.trap]
    others = [one for one in every if one.trap == fault.trap and one.operators]
    is_bare = not fault.operators
    pairs = []
    for row in rows:
        named = {name for name in row.operators if any(_is_about(one, name, row, rows) for one in others)}
        own = (name for name in row.operators if _is_about(fault, name, row, rows) and not (is_bare and name in named))
        pairs.append((row, tuple(own)))
    pairs = [(row, own) for row, own in pairs if own]
    dates = [_dates([row], atlas) for row, own in pairs if "gradient" in own]
    return [(row, own) for row, own in pairs if not (is_bare and dates) or _dates([row], atlas) in dates]


def _is_about(fault: KnownFault, operator: str, row: AtlasRow, rows: list[AtlasRow]) -> bool:
    """Whether an entry is about an operator of a row, which has one kind of fault; `rows` are those of its trap."""
    if not fault.concerns(operator):
        return False
    if operator != "gradient" and not fault.operators:
        return True
    kinds = {kind for one in rows if operator in one.operators for kind in one.evidence}
    return {*row.evidence} <= ({*kinds_of(fault.got)} & kinds or kinds)


def _dated(fault: KnownFault, rows: list[AtlasRow], atlas: Atlas) -> KnownFault:
    """The entry with the releases of its faults; as it is if the table has none of them."""
    if not any(row.is_faulty(k) for row in rows for k in atlas.usable):
        return fault
    since, repaired = (Version(name) if name else None for name in _dates(rows, atlas))
    return msgspec.structs.replace(fault, since=since, repaired=repaired)


def _dates(rows: list[AtlasRow], atlas: Atlas) -> tuple[str, str]:
    """The first release with a fault of the rows, after the last one without; and the first later one without all."""
    decided = [k for k in atlas.usable if any(row.kind(k) not in (NONE, "q") for row in rows)]
    faulty = {k: any(row.is_faulty(k) for row in rows) for k in decided}
    having = [k for k, has in faulty.items() if has]
    before = [k for k in faulty if k < having[-1] and not faulty[k]] if having else []
    after = [k for k in faulty if k > having[-1]] if having else []
    since = atlas.releases[min(k for k in having if k > before[-1])].name if before else ""
    return since, atlas.releases[after[0]].name if after else ""


def _new(row: AtlasRow, operators: tuple[str, ...], atlas: Atlas) -> KnownFault:
    """An entry without a reason: a person adds it, and a thread."""
    ((kind, (got, _)),) = row.evidence.items()
    text = {"n": "nan", "e": "raises", "c": "crashes"}.get(kind, got.rpartition("= ")[2] or "wrong")
    named = () if "gradient" in operators else operators
    return KnownFault(trap=row.name, operators=named, backends=(atlas.backend,), got=text)
