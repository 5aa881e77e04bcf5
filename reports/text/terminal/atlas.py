"""`adbench atlas`: the faults of each release, and which version to use."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from adbench.atlas import advice
from adbench.atlas.table import NONE, Atlas, AtlasRow
from adbench.model.record import grouped

from ...content import formatting
from ..drawing import printed

STYLES = {"N": "red", "W": "red", "E": "red", "C": "red", "n": "yellow", "w": "yellow", "e": "yellow", "c": "yellow"}
LEGEND = (
    "Capital letters: the gradient fails; small ones: only second derivatives do. N: NaN, W: a wrong number, E: an "
    "exception, C: a crash, ·: right, ∅: unsupported, ?: not decided, -: no result."
)
MOST_NAMED = 12  # traps of an upgrade, in a line
PREFIX = "trap_"


def text(atlas: Atlas, width: int, colour: bool = False) -> str:
    """The table, what each upgrade repairs and breaks, and the line that says which version to use."""
    columns = advice.columns(atlas)
    marks = {name: [_mark(rows, release) for release, _ in columns] for name, rows in _by_name(atlas)}
    first = max((len(_short(name)) for name in marks), default=0) + 2
    step = 2 if first + 2 * len(columns) <= width else 1
    lines: list[Text] = [Text(line) for line in _staircase(atlas, columns, first, step, width)]
    for name, row in marks.items():
        line = Text(f"{_short(name):{first}}")
        for mark in row:
            line.append(f"{mark:{step}}", STYLES.get(mark, ""))
        lines.append(line)
    lines += [Text(), *map(Text, textwrap.wrap(LEGEND, width)), Text()]
    lines += [Text(line) for line in _about(atlas, width)]
    lines += [Text(line) for line in textwrap.wrap(which(atlas), width, subsequent_indent="  ")]
    return printed(lines, width=width, colour=colour)


def which(atlas: Atlas) -> str:
    """Which version to use, in one line."""
    order = advice.ranking(atlas)
    if not order:
        return f"Which version of {atlas.library}? None of these releases could be run."
    parts = [f"{formatting.listed(names)} ({first} + {second})" for (first, second), names in order]
    about = "Fewest faults first (wrong gradients + traps where only second derivatives are wrong)"
    return f"Which version of {atlas.library}? {about}: {'; '.join(parts)}."


def data(atlas: Atlas) -> dict[str, Any]:
    """Everything, for other programs."""
    return {
        "library": atlas.library,
        "backend": atlas.backend,
        "made": atlas.made,
        "releases": [
            {"name": one.name, "python": one.python, "reason": one.reason, "faults": advice.faults(atlas, k)}
            for k, one in enumerate(atlas.releases)
        ],
        "rows": [
            {"name": row.name, "operators": row.operators, "outcomes": row.outcomes, "evidence": dict(row.evidence)}
            for row in atlas.rows
        ],
        "ranking": [{"faults": count, "releases": names} for count, names in advice.ranking(atlas)],
        "upgrades": [
            {
                "before": one.before,
                "after": one.after,
                "repaired": [[row.name, *row.operators] for row in one.repaired],
                "broken": [[row.name, *row.operators] for row in one.broken],
            }
            for one in advice.upgrades(atlas)
        ],
    }


def _by_name(atlas: Atlas) -> list[tuple[str, list[AtlasRow]]]:
    """The traps that fail in some release, with their rows; changed ones come first."""
    found = grouped(atlas.rows, lambda row: row.name)
    failing = [(name, rows) for name, rows in found.items() if any(row.ever_faulty for row in rows)]
    return sorted(failing, key=lambda pair: (not any(list(row.changes()) for row in pair[1]), pair[0]))


def _mark(rows: Sequence[AtlasRow], release: int) -> str:
    """The fault of the gradient as a capital letter, else that of another operator as a small one."""
    faulty = sorted((row for row in rows if row.is_faulty(release)), key=lambda row: "gradient" not in row.operators)
    if faulty:
        kind = faulty[0].kind(release)
        return kind.upper() if "gradient" in faulty[0].operators else kind
    rest = {row.kind(release) for row in rows}
    return "·" if "r" in rest else "-" if rest == {NONE} else "∅" if rest == {"u"} else "?"


def _staircase(atlas: Atlas, columns: Sequence[tuple[int, int]], first: int, step: int, width: int) -> Iterator[str]:
    """The headings, one line each; a vertical line leads from a heading to its column."""
    for place, (low, high) in enumerate(columns):
        names = atlas.releases[low].name, atlas.releases[high].name
        heading = names[0] if low == high else f"{names[0]} to {names[1]}"
        bars = " " * first + "".join(f"{'│':{step}}" for _ in range(place))
        room = width - len(bars) - 2
        if len(heading) > room:  # to the left of its column
            free = " " * max(first - 2 - len(heading), 0) + heading + "  "
            yield free[:first] + bars[first:] + "┐" if len(free) <= first else bars + heading
        else:
            yield f"{bars}┌ {heading}"


def _about(atlas: Atlas, width: int) -> Iterator[str]:
    """Releases without results, and upgrades."""
    for release in atlas.releases:
        if release.reason:
            yield from textwrap.wrap(f"{release.name}: {release.reason}", width, subsequent_indent="  ")
    for one in advice.upgrades(atlas):
        for verb, rows in (("repairs", one.repaired), ("breaks", one.broken)):
            if rows:
                said = f"{one.before} → {one.after} {verb} {formatting.listed(_named(rows), most=MOST_NAMED)}"
                yield from textwrap.wrap(said, width, subsequent_indent="  ")


def _named(rows: Sequence[AtlasRow]) -> list[str]:
    """The traps, with their order where the gradient is not among the operators."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.name, []).extend(row.operators)
    return [_short(name) + ("" if "gradient" in of else " (second order)") for name, of in sorted(found.items())]


def _short(name: str) -> str:
    return name.removeprefix(PREFIX)
