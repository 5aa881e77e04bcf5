"""The formats of reports: names, suffixes, and how to write one. `adbench report` and `adbench check` share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from adbench.model.record import Run


@dataclass(frozen=True)
class Format:
    """suffixes: the ends of file names that choose it; folder: whether it is a folder of files."""

    suffixes: tuple[str, ...]
    folder: bool = False


FORMATS: Mapping[str, Format] = {
    "html": Format((".html", ".htm")),
    "md": Format((".md",)),
    "csv": Format((".csv",)),
    "junit": Format((".xml",)),
    "sarif": Format((".sarif", ".sarif.json")),
    "codequality": Format((".codequality.json",)),
    "bencher": Format((".bmf.json",)),
    "google-benchmark": Format((".gbench.json",)),
    "asv": Format((".asv",), folder=True),
    "json": Format((".json",)),  # last, because other formats end in .json too
}


def format_of(output: Path) -> str | None:
    """The name of the format that the end of a file's name chooses; None for no known one."""
    fits = (name for name, form in FORMATS.items() if output.name.lower().endswith(form.suffixes))
    return next(fits, None)


def suffixes() -> str:
    """All suffixes, in words."""
    return ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)


def text_of(run: Run, name: str) -> str:
    """The run in a format that is one file. Reports on stderr what the format cannot hold."""
    text: str = _module(name).render(run)
    _report_left_out(run, name)
    return text


def write(run: Run, name: str, output: Path) -> None:
    """Write the run in this format to a file, or into the folder of a format that is one.

    Raises BadOutput if it cannot be written. Reports on stderr what the format cannot hold.
    """
    from adbench.model.atomic_file import write_whole
    from adbench.model.errors import BadOutput

    if not FORMATS[name].folder:
        write_whole(output, text_of(run, name))
        return
    files: dict[Path, str] = _module(name).files(run, output)
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadOutput(f"{path.parent}: cannot be made: {error.strerror}; choose another folder") from error
        write_whole(path, text)
    _report_left_out(run, name)


def _module(name: str) -> ModuleType:
    """The module with `render(run)`, or with `files(run, folder)` if the format is a folder."""
    if name == "html":  # alone: it draws, and needs the extra `plots`
        from adbench.reports.html import page

        return page
    from adbench.reports.formats import (
        asv,
        bencher,
        code_quality,
        google_benchmark,
        junit,
        markdown,
        run_data,
        sarif,
        spreadsheet,
    )

    return {
        "md": markdown,
        "csv": spreadsheet,
        "junit": junit,
        "sarif": sarif,
        "codequality": code_quality,
        "bencher": bencher,
        "google-benchmark": google_benchmark,
        "asv": asv,
        "json": run_data,
    }[name]


def _report_left_out(run: Run, name: str) -> None:
    left_out = getattr(_module(name), "left_out", None)
    if left_out is not None and (sentence := left_out(run)):
        click.echo(f"adbench: {name}: {sentence}", err=True)
