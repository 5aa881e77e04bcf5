"""`adbench list` for people: rows of plain data as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..content import formatting
from .drawing import printed

Row = Mapping[str, Any]

WIDEST = (28, 12)
"""Columns of a name and of its sizes or version; a longer one moves the rest of its line."""


def listing(rows: Sequence[Row], *, width: int, colour: bool, is_long: bool = False) -> str:
    """The rows of `adbench.catalog.inventory.rows`: a line for each, cut where the terminal is narrow.

    Backends that are not there come last, each with what makes it available.

    is_long   whole summaries, and of a case its formula, operators, tags and suites, over as many lines as they need
    """
    return printed([_table(rows)] if is_long else _lines(rows, width), width=width, colour=colour)


def _lines(rows: Sequence[Row], width: int) -> Iterator[Text]:
    there = [row for row in rows if not _is_absent(row)]
    texts = [(*_titles(rows), "what it is"), *((row["name"], _fact(row), row["summary"]) for row in there)]
    absent = [
        (row["name"], row["install"] or f"set ${row['home']} to its folder", "") for row in rows if _is_absent(row)
    ]
    heads = [0, len(texts) + 1]
    if absent:
        texts += [("", "", ""), ("not installed", "how to install it; --long says what each is", ""), *absent]
    first, second = (min(max(len(text[k]) for text in texts), most) for k, most in enumerate(WIDEST))
    for k, (name, fact, summary) in enumerate(texts):
        line = Text(f"{name:{first}}  {fact:{second}}  {summary}".rstrip(), "bold" if k in heads else "")
        line.truncate(width, overflow="ellipsis")
        yield line


def _is_absent(row: Row) -> bool:
    """Whether it is a backend whose library is missing."""
    return bool(row.get("install") or (row.get("home") and not row["version"]))


def _table(rows: Sequence[Row]) -> Table:
    """The rows in columns, the last of which wraps."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in _titles(rows):
        table.add_column(title, overflow="fold")
    table.add_column("what it is", ratio=1, overflow="fold")
    for row in rows:
        table.add_row(Text(row["name"]), Text(_fact(row)), _case(row) if "sizes" in row else Text(row["summary"]))
    return table


def markdown(rows: Sequence[Row]) -> str:
    """The same rows as a Markdown table."""
    lines = [f"| {' | '.join((*_titles(rows), 'description'))} |", "|---|---|---|"]
    for row in rows:
        summary = formatting.visible(row["summary"]).replace("|", "\\|")
        lines.append(f"| `{row['name']}` | {_fact(row)} | {summary} |")
    return "\n".join(lines) + "\n"


def _titles(rows: Sequence[Row]) -> tuple[str, str]:
    return ("case", "sizes") if rows and "sizes" in rows[0] else ("backend", "version")


def _fact(row: Row) -> str:
    """The sizes of a case, the version of a backend."""
    if "sizes" not in row:
        return _version_or_command(row)
    sizes = row["sizes"]
    return f"{sizes[0]} … {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])


def _case(row: Row) -> Text:
    """What a case is, its formula, and what it is measured and selected by; of a trap only the first."""
    text = Text(row["summary"])
    if "trap" in row["tags"]:
        return text
    for line in row["formula"].splitlines():
        text.append(f"\n  {line}")
    text.append(f"\n{', '.join(row['operators'])} in {', '.join(row['wrt'])}", style="dim")
    for title, words in (("tags", row["tags"]), ("suites", row["suites"])):
        if words:
            text.append(f"; {title}: {', '.join(words)}", style="dim")
    return text


def _version_or_command(row: Row) -> str:
    """The command that installs a backend; if installed its version, or the variable that names its folder.

    adbench's own engine needs libraries but has no version of its own.
    """
    version = None if row.get("role") == "own engine" else row["version"]
    home = f"${row['home']}" if row.get("home") else None
    return row["install"] or version or home or ("built in" if row["builtin"] else "your file")
