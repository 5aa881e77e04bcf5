"""Write docs/reference/cases.md from the files of the cases: python -m scripts.cases_page"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from adbench.catalog import inventory
from adbench.catalog.discovery import catalog

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cases.md"
Row = Mapping[str, Any]

HEAD = """# Cases

This page lists the built-in cases. A case is one function with its inputs at every size, its source and, if there is a
closed form, its hand-written gradient. The [table](#properties) has one row per case, and the sections below give the
function and its source. The last section lists the [traps](#traps).

`python -m scripts.cases_page` makes this page from the files in `cases/`.
"""


def page() -> str:
    """docs/reference/cases.md."""
    rows = inventory.rows("cases", catalog())
    traps = [row for row in rows if "trap" in row["tags"]]
    others = [row for row in rows if "trap" not in row["tags"]]
    files = groupby(sorted(others, key=lambda row: (os.path.basename(row["file"]), row["name"])), key=_file)
    parts = [HEAD, _suites(others), _properties(others), *(_section(name, list(family)) for name, family in files)]
    if traps:
        parts.append(_traps(traps))
    return _titles_once("\n".join(parts))


TITLE = re.compile(r'(\(\d{4}\)),\s+("[^"]+")')


def _titles_once(text: str) -> str:
    """The text with each source's title only where it first appears."""
    seen: set[str] = set()

    def shown(found: re.Match[str]) -> str:
        title = " ".join(found[2].split())
        if title in seen:
            return found[1]
        seen.add(title)
        return found[0]

    changed = ((part, TITLE.sub(shown, part)) for part in text.split("\n\n"))
    return "\n\n".join(after if before == after else textwrap.fill(after, 120) for before, after in changed)


def _file(row: Row) -> str:
    return str(os.path.basename(row["file"])).removesuffix(".py")


def _suites(rows: Sequence[Row]) -> str:
    names = sorted({suite for row in rows for suite in row["suites"]})
    lines = [
        "## Suites",
        "",
        "`adbench run --suite NAME` selects a suite. `ablations` compares the reference engine with variants of",
        "itself, `quick` samples all kinds, `machine-learning` and `finance` have workloads of these fields, and",
        "`science` those of physics, statistics and control. The others are published comparisons ([their figures and",
        "ours](published.md)).",
        "",
        "| `--suite` | cases |",
        "|---|---|",
    ]
    for name in names:
        members = ", ".join(f"`{row['name']}`" for row in rows if name in row["suites"])
        lines.append(f"| `{name}` | {members} |")
    lines += ["| `traps` | the traps at the end of this page: checked, never timed |", "| `all` | all of them |", ""]
    return "\n".join(lines)


def _properties(rows: Sequence[Row]) -> str:
    lines = [
        "## Properties",
        "",
        "Each row gives the active inputs (*in*), the sizes of a run with `-c` (*any*: other sizes), the operators",
        "(empty: value and gradient), and the tags.",
        "",
        "| case | in | sizes | operators | tags |",
        "|---|---|---|---|---|",
    ]
    shared: dict[str, list[str]] = {}
    for row in rows:
        operators = "" if row["operators"] == ["value", "gradient"] else ", ".join(row["operators"])
        facts = (", ".join(row["wrt"]), _sizes(row), operators, ", ".join(row["tags"]))
        shared.setdefault(" | ".join(facts), []).append(f"`{row['name']}`")
    lines += [f"| {', '.join(names)} | {facts} |" for facts, names in shared.items()]
    without = ", ".join(f"`{row['name']}`" for row in rows if not row["by_hand"])
    lines += ["", f"These have no hand-written gradient: {without}."]
    return "\n".join([*lines, ""])


def _section(name: str, family: Sequence[Row]) -> str:
    lines = [f"## {name.replace('_', ' ').capitalize()}", ""]
    if len(family) == 1:
        lines += [family[0]["summary"], ""]
    return "\n".join([*lines, *_prose(family[0]["about"]), ""])


def _prose(about: str) -> list[str]:
    """A docstring as Markdown: indented lines become code, other lines escape * and <."""
    return [
        line if line.startswith("    ") else line.replace("*", r"\*").replace("<", r"\<") for line in about.splitlines()
    ]


def _sizes(row: Row) -> str:
    sizes = row["sizes"]
    geometric = len(sizes) > 3 and all(n * sizes[1] == after * sizes[0] for n, after in pairwise(sizes))
    shown = [f"{n:,}".replace(",", " ") for n in sizes]
    own = ", ".join([*shown[:2], "…", shown[-1]] if geometric else shown)
    if len(row["sizes"]) == 1:
        return own
    limits = [f"from {row['least']}"] * (row["least"] > 1) + [f"to {row['most']}"] * (row["most"] is not None)
    return f"{own} (any {' '.join(limits)})" if limits else own


def _traps(rows: Sequence[Row]) -> str:
    lines = [
        "## Traps",
        "",
        "Small functions at one point that some libraries get wrong. The correct derivative follows →.",
        "",
    ]
    shared: dict[str, list[str]] = {}
    for row in rows:  # trap_broadcast_add, "add of shapes …" and its like share a line
        what = row["name"].removeprefix("trap_broadcast_")
        said = row["summary"].replace(f"{what} of shapes", "this operation of shapes")
        shared.setdefault(said, []).append(f"`{row['name']}`")
    lines += [f"* {', '.join(names)}: {said}" for said, names in shared.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
