"""The formats of reports: names, suffixes, and how to write one. `adbench report` and `adbench check` share them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adbench.cli.support.console import say

if TYPE_CHECKING:
    from adbench.model.record import Run


FORMATS: Mapping[str, tuple[str, ...]] = {
    "html": (".html", ".htm"),
    "md": (".md",),
    "csv": (".csv",),
    "junit": (".xml",),
    "sarif": (".sarif", ".sarif.json"),
    "codequality": (".codequality.json",),
    "json": (".json",),  # last, because other formats end in .json too
}
"""Format -> the ends of file names that choose it."""


def format_of(output: Path) -> str | None:
    """The name of the format that the end of a file's name chooses; None for no known one."""
    fits = (name for name, ends in FORMATS.items() if output.name.lower().endswith(ends))
    return next(fits, None)


def suffixes() -> str:
    """All suffixes, in words."""
    return ", ".join(end for ends in FORMATS.values() for end in ends)


def text_of(run: Run, name: str) -> str:
    """The run in a format that is one file. Reports on stderr what the format cannot hold."""
    if name == "html":  # alone: it draws, and needs the extra `plots`
        from adbench.reports.html import page

        return page.render(run)
    from adbench.reports.formats import code_quality, junit, markdown, sarif, spreadsheet
    from adbench.results.store import dumps

    if name in ("sarif", "codequality") and (sentence := sarif.left_out(run)):
        say(f"{name}: {sentence}")
    render = {
        "md": markdown.render,
        "csv": spreadsheet.render,
        "junit": junit.render,
        "sarif": sarif.render,
        "codequality": code_quality.render,
        "json": dumps,
    }
    return render[name](run)


def write(run: Run, name: str, output: Path) -> None:
    """Write the run in this format to a file. Raises BadOutput if that fails. Reports what the format cannot hold."""
    from adbench.model.atomic_file import write_whole

    write_whole(output, text_of(run, name))
