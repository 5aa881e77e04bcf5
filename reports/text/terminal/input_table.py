"""The result of `adbench conform --every-input` in the terminal: a row for each function at fault, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from adbench.findings.every_input.input_judgement import InputFault
from adbench.findings.every_input.input_sweep import InputSweep
from adbench.model.settings import on_device

from ...content import formatting
from ..drawing import printed

MOST_SHOWN = 60
MOST_WRITTEN_OUT = 1e6
"""Larger errors in ulp have an exponent."""
SHORT = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "torch_compile": "compile",
    "value": "f",
    "gradient": "f′",
    "not finite": "inf",
}
TITLES = ("function", "library", "type", "of", "ulp", "at x", ">1", ">100", "reason")


def row_of(fault: InputFault) -> tuple[str, ...]:
    """The cells of a row, also of the page."""
    digits = ".0f" if fault.ulp < MOST_WRITTEN_OUT else ".1e"
    ulp = "not finite" if fault.ulp == float("inf") else f"{fault.ulp:{digits}}"
    return (
        fault.function, fault.library, fault.type, fault.order, ulp, f"{fault.x:.4g}",
        str(fault.over_1), str(fault.over_100), fault.reason,
    )  # fmt: skip


def text(found: InputSweep, *, width: int, colour: bool) -> str:
    """The summary, and the table."""
    parts: list[Any] = [summary(found)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in TITLES:
        right = title in ("ulp", "at x", ">1", ">100")
        table.add_column(title, justify="right" if right else "left", no_wrap=title == "function", overflow="ellipsis")
    for fault in found.faults[:MOST_SHOWN]:
        function, *cells = row_of(fault)
        table.add_row(formatting.short(function, 20), *(SHORT.get(cell, cell) for cell in cells))
    if found.faults:
        parts += [Text(""), table]
    if len(found.faults) > MOST_SHOWN:
        parts.append(Text(f"\n{len(found.faults) - MOST_SHOWN} more: write the page with -o FILE"))
    return printed(parts, width=width, colour=colour)


def summary(found: InputSweep) -> Text:
    """What was examined, in one sentence for each library."""
    lines = []
    for library, version in found.libraries.items():
        rows: Sequence[InputFault] = [fault for fault in found.faults if fault.library == library]
        names = len({fault.function for fault in rows})
        refused = len({name for name, of, _, _ in found.refused if of == library})
        without = f", {refused} refused" if refused else ""
        of_all = formatting.plural(found.functions, "function")
        lines.append(f"{on_device(library, found.device)} {version}: {names} of {of_all} at fault{without}")
    lines.append(
        f"{found.judged:,} results in {' and '.join(found.types)}, {found.seconds:.0f} s; balls proved "
        f"{found.proved:,}" + (f"; {found.unknown:,} are not judged: float64 loses digits there" * bool(found.unknown))
    )
    if found.unfinished:
        lines.append(f"interrupted: {found.unfinished} parts were not examined")
    return Text("\n".join(lines))
