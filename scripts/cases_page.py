"""Writes docs/cases.md from what the cases' files say: python -m scripts.cases_page"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from adbench.catalog import inventory
from adbench.catalog.discovery import catalog

PAGE = Path(__file__).parents[1] / "docs" / "cases.md"
Row = Mapping[str, Any]

HEAD = """# Cases

This page lists every case: a function, its inputs at every size, its source and, if there is a closed form, its
gradient by hand. Each suite below is a published comparison, which you can compare with [our
measurements](published.md). The suite `ablations` compares the reference engine with itself, without one of its ideas.

`python -m scripts.cases_page` writes this page from the files in `cases/`; a test asserts that it is current.
"""


def page() -> str:
    """The page of the built-in cases."""
    rows = inventory.rows("cases", catalog())
    traps = [row for row in rows if "trap" in row["tags"]]
    others = [row for row in rows if "trap" not in row["tags"]]
    files = groupby(sorted(others, key=lambda row: (os.path.basename(row["file"]), row["name"])), key=_file)
    parts = [HEAD, _suites(others), *(_section(name, list(family)) for name, family in files)]
    if traps:
        parts.append(_traps(traps))
    return "\n".join(parts)


def _file(row: Row) -> str:
    return str(os.path.basename(row["file"])).removesuffix(".py")


def _suites(rows: Sequence[Row]) -> str:
    names = sorted({suite for row in rows for suite in row["suites"]})
    lines = ["## Suites", "", "| `--suite` | cases |", "|---|---|"]
    for name in names:
        members = ", ".join(f"`{row['name']}`" for row in rows if name in row["suites"])
        lines.append(f"| `{name}` | {members} |")
    lines += ["| `traps` | those at the end of this page: checked, never timed |", "| `all` | all of them |", ""]
    return "\n".join(lines)


def _section(name: str, family: Sequence[Row]) -> str:
    lines = [f"## {name.replace('_', ' ').capitalize()}", ""]
    if len(family) == 1:
        lines += [family[0]["summary"], ""]
    lines += [*_prose(family[0]["about"]), ""]
    lines += ["| case | in | sizes | operators | by hand | tags |", "|---|---|---|---|---|---|"]
    for row in family:
        facts = (
            f"`{row['name']}`",
            ", ".join(row["wrt"]),
            _sizes(row),
            ", ".join(row["operators"]),
            "yes" if row["by_hand"] else "",
            ", ".join(row["tags"]),
        )
        lines.append(f"| {' | '.join(facts)} |")
    return "\n".join([*lines, ""])


def _prose(about: str) -> list[str]:
    """A docstring as Markdown: indented lines are a block of code there too; stars and bars are meant as they are."""
    return [
        line if line.startswith("    ") else line.replace("*", r"\*").replace("<", r"\<") for line in about.splitlines()
    ]


def _sizes(row: Row) -> str:
    own = ", ".join(f"{n:,}".replace(",", " ") for n in row["sizes"])
    if len(row["sizes"]) == 1:
        return own
    limits = [f"from {row['least']}"] * (row["least"] > 1) + [f"to {row['most']}"] * (row["most"] is not None)
    return f"{own} (any {' '.join(limits)})" if limits else own


def _traps(rows: Sequence[Row]) -> str:
    lines = [
        "## Traps",
        "",
        "Small functions at one point that some library gets wrong.",
        "",
        "| case | trap |",
        "|---|---|",
    ]
    lines += [f"| `{row['name']}` | {row['summary'].replace('|', chr(92) + '|')} |" for row in rows]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
