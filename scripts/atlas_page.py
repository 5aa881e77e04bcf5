"""Write docs/reference/fault-atlas.md from the tables of adbench/atlas: python -m scripts.atlas_page"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from adbench.atlas import advice, dating
from adbench.atlas.table import FAULTS, KINDS, TABLES, Atlas, AtlasRow, read
from adbench.catalog.discovery import catalog
from adbench.execution.known_faults import KnownFault, described, file_of, read_file
from adbench.findings.operations import OPERATIONS
from adbench.model.case import THREAD
from adbench.model.operator import EVERY_OPERATOR, OF_SECOND_ORDER, definition
from adbench.reports.text.terminal.atlas import which

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "fault-atlas.md"
WIDTH = 130
"""Characters in a line of prose."""
SHORT = {"r": "✓", "n": "NaN", "w": "wrong", "e": "raises", "c": "crashes", "u": "∅", "q": "?", "-": "–"}
HEAD = """\
# Which release has which fault?

Each row is a trap, a small function at a point where some libraries are wrong. Each column is a release, or several
with equal results. A cell opens: it shows the function, the expected result, the library's result, and a thread.
`adbench atlas LIB --show` prints the same table, and `adbench atlas LIB` makes it
([how](../how-to/bisect-a-release.md#all-faults-of-all-releases)).

**✓** right, **NaN**, **wrong** number, **raises** an exception, **crashes**, **∅** unsupported, **?** not decided,
**–** no result. *H v* is a product of the Hessian and a vector. A few releases ran every trap. Where two of them
differ, the releases between them ran it too; elsewhere the result is inferred, as the cell says.

<style>
.atlas td, .atlas th { padding: 2px 6px; border: 1px solid #8884; vertical-align: top; font-size: 0.65rem; }
.atlas .r { background: #2e7d3233; } .atlas .n { background: #c6282855; } .atlas .w { background: #ef6c0055; }
.atlas .e { background: #ad145755; } .atlas .c { background: #4a148c55; } .atlas .u { background: #8883; }
.atlas summary { cursor: pointer; }
</style>
"""


def page() -> str:
    """The page: a section for each library."""
    files = sorted(TABLES.glob("*.json"))
    return HEAD + "".join(f"\n## {file.stem}\n\n{_section(read(file))}" for file in files)


def _section(atlas: Atlas) -> str:
    lines = textwrap.wrap(which(atlas), WIDTH)
    reasons = [f"* {one.name}: {one.reason}" for one in atlas.releases if one.reason]
    changes = [
        f"* **{one.before} → {one.after}** {verb} {_names(rows)}"
        for one in advice.upgrades(atlas)
        for verb, rows in (("repairs", one.repaired), ("breaks", one.broken))
        if rows
    ]
    lines += ["", *changes, *([""] if changes else []), *reasons, *([""] if reasons else [])]
    return "\n".join([*lines, *_table(atlas), ""])


def _names(rows: Sequence[AtlasRow]) -> str:
    return ", ".join(f"`{row.name}` ({_operators(row)})" for row in sorted(rows, key=lambda row: row.name))


def _operators(row: AtlasRow) -> str:
    """The operators in short: second derivatives together where all are there."""
    found = [name for name in row.operators if name not in OF_SECOND_ORDER]
    if set(row.operators) >= OF_SECOND_ORDER:
        return ", ".join([*found, "second derivatives"])
    second = sorted(OF_SECOND_ORDER & set(row.operators), key=EVERY_OPERATOR.index)
    return ", ".join([*found, *(definition(name).label for name in second)])


def _table(atlas: Atlas) -> Iterator[str]:
    columns = advice.columns(atlas)
    yield '<table class="atlas">'
    names = [(atlas.releases[low].name, atlas.releases[high].name) for low, high in columns]
    heads = "".join(f"<th>{a}</th>" if a == b else f"<th>{a} to {b}</th>" for a, b in names)
    yield f"<tr><th>trap</th>{heads}</tr>"
    path = file_of(atlas.library)
    faults = read_file(path).faults if path.is_file() else ()
    failing = [row for row in atlas.rows if row.ever_faulty]
    for row in sorted(failing, key=lambda row: (not list(row.changes()), row.name, row.operators)):
        yield f"<tr><th><code>{row.name.removeprefix('trap_')}</code> {_operators(row)}</th>"
        for kind, cells in _runs(row, columns):
            span = f' colspan="{len(cells)}"' if len(cells) > 1 else ""
            inside = SHORT[kind] if kind not in FAULTS else _details(atlas, row, kind, cells, faults)
            yield f'<td class="{kind}"{span} title="{KINDS[kind]}">{inside}</td>'
        yield "</tr>"
    yield "</table>"


def _runs(row: AtlasRow, columns: Sequence[tuple[int, int]]) -> list[tuple[str, list[tuple[int, int]]]]:
    """Neighbouring columns with the same outcome."""
    return [(kind, list(cells)) for kind, cells in groupby(columns, key=lambda column: row.kind(column[0]))]


def _details(
    atlas: Atlas, row: AtlasRow, kind: str, cells: Sequence[tuple[int, int]], faults: Sequence[KnownFault]
) -> str:
    """What a cell opens."""
    releases = range(cells[0][0], cells[-1][1] + 1)
    ran = [atlas.releases[k].name for k in releases if row.outcomes[k].isupper()]
    got, expected = row.evidence.get(kind, ("", ""))
    case = CASES.get(row.name)
    cited = next(iter(THREAD.findall(case.f.__doc__ or "")), "") if case else ""
    function = described(case).function if case else OPERATIONS[row.name].expression(atlas.library) or row.name
    parts = [
        function,
        f"expected {expected}" if expected else "",
        f"got {got}" if got else "",
        f"run with {', '.join(ran)}" + ("; others inferred" if len(ran) < len(releases) else "") if ran else "inferred",
        dating.thread_of(faults, row) or (f"as {cited}" if cited else ""),
    ]
    return f"<details><summary>{SHORT[kind]}</summary>{'<br>'.join(_escaped(part) for part in parts if part)}</details>"


def _escaped(text: str) -> str:
    return html.escape(text).replace("[", "&#91;")


CASES = catalog().cases

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
