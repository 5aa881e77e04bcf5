"""The eager and the compiled form of libraries in the terminal: digits and ulp of each, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from adbench.findings.variants.first_difference import in_ulp
from adbench.findings.variants.forms import FORMS, WORDS, WORTH_DIGITS, FormResult, FormsOfCase
from adbench.model.settings import on_device
from adbench.oracle.evidence import in_digits

from ...content import formatting
from ..drawing import printed

MOST_SHOWN = 30


def text(forms: Sequence[FormsOfCase], versions: Mapping[str, str | None], *, width: int, colour: bool) -> str:
    """A table for each case where the forms differ, with sentences; the other cases are counted."""
    several = len(forms) > 1
    shown = [one for one in forms if not several or abs(one.widest[1]) >= WORTH_DIGITS or not one.widest[0]]
    shown.sort(key=lambda one: -abs(one.widest[1]))
    parts: list[Any] = []
    for one in shown[:MOST_SHOWN]:
        version = versions.get(on_device(FORMS[one.library][0], one.device)) or ""
        size = f", n = {one.size}" if one.size and several else ""
        library = " ".join(filter(None, (on_device(one.library, one.device), version)))
        parts.append(Text(f"{one.case} by {library}{size}", style="bold"))
        parts += [_table(one), Text(one.sentence)]
        parts += [Text(str(one.first))] if one.first else []
        parts += [Text(f"wrote {one.script}")] if one.script else []
        parts.append(Text(""))
    if len(shown) > MOST_SHOWN:
        parts.append(Text(f"{len(shown) - MOST_SHOWN} more: --json has all"))
    if several:
        same = len(forms) - len(shown)
        parts.append(Text(f"{formatting.plural(same, 'case')} of {len(forms)} equally close in both forms, to a digit"))
    return printed(parts, width=width, colour=colour)


def _table(one: FormsOfCase) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for word, backend in zip(WORDS, FORMS[one.library], strict=True):
        table.add_column(f"{word} ({backend})", justify="right")
        table.add_column("worst error", justify="right")
    for name, pair in one.results.items():
        table.add_row(name, *(cell for result in pair for cell in _cells(result)))
    return table


def _cells(result: FormResult) -> tuple[str, str]:
    digits = "–" if result.digits is None else in_digits(result.digits)
    return f"{digits} digits" if digits.strip("–exact") else digits, "–" if result.ulp is None else in_ulp(result.ulp)
