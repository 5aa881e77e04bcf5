"""The page of `adbench conform --every-input`: the table, and for each fault a picture of ulp against input."""

from __future__ import annotations

import math

from adbench.findings.every_input.input_judgement import LIMIT, REASONS, InputFault
from adbench.findings.every_input.input_sweep import InputSweep

from ..content import formatting
from ..text.terminal import input_table as shown
from . import page

WIDTH, HEIGHT = 320.0, 90.0
LOWEST, HIGHEST = 0.25, 1e9
"""Of the picture's logarithmic axis, in ulp; not finite is the highest."""


def render(found: InputSweep, home: str = "") -> str:
    """The page, complete in itself; `home` is the address of its site, "" for none."""
    rows = [
        {"number": k, "fault": fault, "cells": shown.row_of(fault), "curves": curves(fault)}
        for k, fault in enumerate(found.faults)
    ]
    return page.rendered(
        "every_input.html", ["conform.css"], ["tables.js"],
        title=f"Every input of {' and '.join(found.types)}: {formatting.plural(found.functions, 'function')}",
        summary=shown.summary(found).plain.splitlines(), rows=rows, titles=shown.TITLES, reasons=REASONS,
        limit=f"{LIMIT:g}", home=home,
    )  # fmt: skip


def curves(fault: InputFault) -> list[str]:
    """The points of polylines, one for each stretch of inputs that were judged."""
    lines: list[list[str]] = [[]]
    for k, ulp in enumerate(fault.curve):
        if ulp < 0:
            lines.append([])
            continue
        x = 5 + k / (len(fault.curve) - 1) * (WIDTH - 10)
        height = math.log(max(ulp, LOWEST) / LOWEST) / math.log(HIGHEST / LOWEST)
        lines[-1].append(f"{x:.1f},{HEIGHT - 5 - height * (HEIGHT - 10):.1f}")
    return [" ".join(line) for line in lines if line]
