"""The rows of `adbench list`: plain data, printed by reports/text/inventory.py or as JSON."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import Catalog
from adbench.catalog.installed import command


def rows(kind: str, catalog: Catalog) -> list[dict[str, Any]]:
    """One dict for each case or backend, by name. Imports no backend."""
    return case_rows(catalog) if kind == "cases" else backend_rows(catalog)


def case_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """The properties of each case, without running it.

    formula and about are from the file's docstring: its first indented lines, and all below its first line. least and
    most are the sizes that it can be built at, by_hand says whether it has a gradient by hand, twin whether a C++
    implementation.
    """
    rows = []
    for name, case in sorted(catalog.cases.items()):
        source = catalog.case_sources[name]
        about = docstring(Path(source.path)).partition("\n")[2].strip("\n")
        rows.append(
            {
                "name": name,
                "sizes": list(case.sizes),
                "least": case.sizes[0] if len(case.sizes) == 1 else case.least,
                "most": case.sizes[0] if len(case.sizes) == 1 else case.most,
                "wrt": list(case.wrt),
                "operators": ["gradient"] if case.is_trap else list(case.operators),
                "tags": list(case.tags),
                "suites": ["traps"] if case.is_trap else list(case.suites),
                "by_hand": case.gradient is not None,
                "twin": case.twin is not None,
                "summary": source.summary,
                "formula": "" if case.is_trap else formula(about),
                "about": about,
                "file": source.path,
            }
        )
    return rows


def docstring(file: Path) -> str:
    """The docstring of a file, "" if it has none or is no Python."""
    try:
        return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    except (OSError, SyntaxError, ValueError):
        return ""


def formula(about: str) -> str:
    """The indented lines of a docstring up to the definition of f, without indentation and derivatives."""
    blocks: list[str] = []
    for block in about.split("\n\n"):
        if not block.startswith("    "):
            continue
        if block.lstrip().startswith("∂"):
            break
        blocks.append(textwrap.dedent(block))
        if "f(" in block:
            break
    return "\n".join(blocks)


def backend_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """name, version, role, command that installs what is missing, variable that names the user's copy, library of which
    it is a variant, whether a run has it without naming it, licence, summary and file of each backend."""
    return [
        {
            "name": name,
            "version": source.version,
            "role": source.role,
            "missing": [*source.missing_of_debian, *source.missing],
            "install": command(source.missing_of_debian, source.missing),
            "home": source.home,
            "variant_of": source.variant_of,
            "default": source.is_default,
            "licence": source.licence,
            "builtin": source.builtin,
            "summary": source.summary,
            "file": source.path,
        }
        for name, source in sorted(catalog.backends.items())
    ]
