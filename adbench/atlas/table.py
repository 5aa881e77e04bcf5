"""The table of an atlas: trap × operator × release → outcome, and its file.

The outcomes of operators that agree in every release share a row. A row has one letter for each release: its kind of
outcome, as a capital letter where the trap was run, and as a small one where that is inferred, because the releases
before and after it agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from adbench.model.errors import BadFile, UsageError

KINDS: Mapping[str, str] = {
    "r": "right",
    "n": "NaN",
    "w": "a wrong number",
    "e": "an exception",
    "c": "a crash",
    "u": "unsupported",
    "q": "not decided",
    "-": "no result: the release cannot be installed, or does not run",
}
"""Letter of a row -> the outcome."""
FAULTS = "nwec"
NONE = "-"
TABLES = Path(__file__).with_name("tables")
"""The tables that come with adbench."""
VERSION = 1


@dataclass(frozen=True)
class ReleaseRow:
    """A release: the Python that it ran on, and why it has no result; "" if it has."""

    name: str
    python: str = ""
    reason: str = ""


@dataclass(frozen=True)
class AtlasRow:
    """Operators of a trap or an operation that agree in every release.

    outcomes   a letter for each release
    evidence   kind -> what was returned where it was first seen, and what was expected
    """

    name: str
    operators: tuple[str, ...]
    outcomes: str
    evidence: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def kind(self, release: int) -> str:
        """The letter of the outcome, as a small one."""
        return self.outcomes[release].lower()

    def is_faulty(self, release: int) -> bool:
        """Whether the release has this fault."""
        return self.kind(release) in FAULTS

    @property
    def ever_faulty(self) -> bool:
        """Whether some release has it."""
        return any(letter.lower() in FAULTS for letter in self.outcomes)

    def changes(self) -> Iterator[tuple[int, int]]:
        """Pairs of neighbouring releases with results, of which one has the fault."""
        known = [k for k in range(len(self.outcomes)) if self.kind(k) not in (NONE, "q")]
        for before, after in pairwise(known):
            if self.is_faulty(before) != self.is_faulty(after):
                yield before, after


@dataclass(frozen=True)
class Atlas:
    """The table of a library: its releases, oldest first, and the rows of traps and of operations."""

    library: str
    backend: str
    made: str
    releases: tuple[ReleaseRow, ...]
    traps: tuple[AtlasRow, ...]
    operations: tuple[AtlasRow, ...] = ()

    @property
    def rows(self) -> tuple[AtlasRow, ...]:
        """All rows."""
        return self.traps + self.operations

    @property
    def usable(self) -> tuple[int, ...]:
        """The releases with results."""
        return tuple(k for k, release in enumerate(self.releases) if not release.reason)


def text_of(atlas: Atlas) -> str:
    """The file: one line for each release and each row."""

    def listed(lines: list[Any]) -> str:
        inside = ",\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
        return f"[\n{inside}\n]"

    head = {"adbench atlas": VERSION, "library": atlas.library, "backend": atlas.backend, "made": atlas.made}
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    releases = [[one.name, one.python, one.reason] for one in atlas.releases]
    parts.append(f'"releases": {listed(releases)}')
    for key, rows in (("traps", atlas.traps), ("operations", atlas.operations)):
        lines = [
            [row.name, " ".join(row.operators), row.outcomes, {k: list(v) for k, v in sorted(row.evidence.items())}]
            for row in sorted(rows, key=lambda row: (row.name, row.operators))
        ]
        parts.append(f'"{key}": {listed(lines)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read(path: Path) -> Atlas:
    """The atlas in a file. Raises BadFile."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["adbench atlas"] != VERSION:
            raise ValueError(f"its version is {data['adbench atlas']}, not {VERSION}")
        releases = tuple(ReleaseRow(*map(str, line)) for line in data["releases"])
        traps, operations = (tuple(_row(line, len(releases)) for line in data[key]) for key in ("traps", "operations"))
        return Atlas(data["library"], data["backend"], data["made"], releases, traps, operations)
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadFile(f"{path}: is not a table of adbench atlas ({error!r})") from error


def _row(line: Any, releases: int) -> AtlasRow:
    name, operators, outcomes, evidence = line
    if len(outcomes) != releases or not set(outcomes.lower()) <= set(KINDS):
        raise ValueError(f"{name}: outcomes {outcomes!r}")
    return AtlasRow(
        name, tuple(operators.split()), outcomes, {kind: (got, want) for kind, (got, want) in evidence.items()}
    )


def merged(before: Atlas, newer: Atlas) -> Atlas:
    """A table with the rows of a later one, which replace those of the same names. Raises UsageError if the tables have
    different backends or releases.
    """

    def columns(atlas: Atlas) -> str:
        return f"{atlas.backend} with {', '.join(release.name for release in atlas.releases)}"

    def rows(old: tuple[AtlasRow, ...], new: tuple[AtlasRow, ...]) -> tuple[AtlasRow, ...]:
        names = {row.name for row in new}
        return (*(row for row in old if row.name not in names), *new)

    if columns(before) != columns(newer):
        raise UsageError(f"the table has {columns(before)}; for {columns(newer)} give another --table")
    releases = (
        replace(old, python=old.python or new.python) for old, new in zip(before.releases, newer.releases, strict=True)
    )
    traps, operations = rows(before.traps, newer.traps), rows(before.operations, newer.operations)
    return replace(newer, releases=tuple(releases), traps=traps, operations=operations)


def rows_of(
    found: Mapping[int, Mapping[str, Mapping[str, tuple[str, str, str]]]], releases: int, dead: frozenset[int]
) -> tuple[AtlasRow, ...]:
    """The rows from what was run.

    found   release -> trap -> operator -> (kind, got, expected)
    dead    releases without results
    """
    rows: list[AtlasRow] = []
    for name in sorted({name for of in found.values() for name in of}):
        ran = sorted(k for k, of in found.items() if name in of)
        shared: dict[str, AtlasRow] = {}
        for operator in dict.fromkeys(operator for k in ran for operator in found[k][name]):
            cells = {k: found[k][name].get(operator, ("r", "", "")) for k in ran}
            outcomes = "".join(_letter({k: cell[0] for k, cell in cells.items()}, k, dead) for k in range(releases))
            evidence = {kind: (got, want) for kind, got, want in reversed(cells.values()) if kind in FAULTS}
            row = shared.get(outcomes, AtlasRow(name, (), outcomes, evidence))
            shared[outcomes] = replace(row, operators=(*row.operators, operator))
        rows += shared.values()
    return tuple(rows)


def _letter(kinds: Mapping[int, str], release: int, dead: frozenset[int]) -> str:
    if release in kinds:
        return kinds[release].upper()
    if release in dead:
        return NONE
    before = max((k for k in kinds if k < release), default=None)
    after = min((k for k in kinds if k > release), default=None)
    if before is None or after is None:
        return "q"
    left, right = kinds[before], kinds[after]
    return left if left == right or (left not in FAULTS and right not in FAULTS) else "q"
