"""A run as one HTML page: complete in itself, no request to anywhere, the same bytes for the same run.

The page's policy (Content-Security-Policy in a meta element) allows its own style sheet and its own script, by hash,
and nothing else: what a hostile name might smuggle in would not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from adbench.suite.plain import to_plain
from adbench.suite.record import Run

from . import figures, panels, sections, wording
from .cells import Cells
from .notes import Notes

if TYPE_CHECKING:
    from jinja2 import Environment

NO_VERSION = f"{wording.MISSING} (no library behind it, or not installed)"
TEMPLATES = Path(__file__).with_name("templates")


def render(run: Run) -> str:
    """The page. Every valid Run has one: an empty one, one of failures only, one full of hostile names."""
    from markupsafe import Markup

    cells = Cells(run)
    notes = Notes(cells)
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    context = {
        "run": run,
        "cells": cells,
        "headline": sections.headline(cells),
        "verdicts": sections.verdict_table(run, cells, notes),
        "time_figures": panels.time_figures(cells),
        "memory": [
            (method, title, sections.memory_table(run, cells, notes, method)) for method, title in panels.MEMORY_METHODS
        ],
        "memory_figures": panels.memory_figures(cells),
        "phases": sections.phase_table(run, cells, notes, largest_only=True),
        "all_phases": sections.phase_table(run, cells, notes, largest_only=False),
        "notes": notes,
        "machine": [(name.replace("_", " "), fact(name, value)) for name, value in run.machine.items()],
        "versions": [(name, setting(value) if value else NO_VERSION) for name, value in run.versions.items()],
        "settings": [("seed", setting(run.seed))]
        + [(name.replace("_", " "), fact(name, value)) for name, value in run.settings.items() if name != "seed"],
        # Ours, not the run's: these three, and the figures, are the only texts that are not escaped.
        "style": Markup(style),
        "script": Markup(script),
        "data": Markup(embedded_json(run)),
        "policy": policy(style, script),
    }
    return _environment().get_template("page.html").render(context)


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy that allows exactly this style sheet and this script."""
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def embedded_json(run: Run) -> str:
    """The run as JSON that cannot end the element it stands in: `<`, `>` and `&` are written as escapes."""
    text = json.dumps(to_plain(run), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        # Long names may be broken after an underscore.
        "breakable": lambda text: Markup(escape(text).replace("_", Markup("_<wbr>"))),
        "count": wording.count,
        "plural": wording.plural,
        "ratio": wording.ratio,
        "seconds": wording.seconds,
        "short": wording.short,
        "sizes": wording.sizes,
        "visible": wording.visible,
        "lines": lambda text: wording.visible(text, keep="\n\t"),
        "setting": setting,
        "svg": Markup,
    }
    environment.globals |= {"OUTCOMES": wording.OUTCOMES, "MARKERS": figures.MARKERS, "COLOURS": figures.COLOURS}
    return environment


def fact(name: str, value: str | int | float | bool | None) -> str:
    """A setting or fact in the unit that its name ends in."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("_bytes"):
            return wording.byte_size(value)
        if name.endswith("_ns"):
            return wording.seconds(value * 1e-9)
        if name.endswith("_seconds"):
            return wording.seconds(value)
    return setting(value)


def setting(value: str | int | float | bool | None) -> str:
    """A setting or a fact of the machine as text; None is a dash, never 0."""
    if value is None:
        return wording.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return wording.count(value)
    return wording.visible(str(value))
