"""The page of `adbench conform --every-input`: the table, and for each function pictures of ulp against input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from adbench.findings.every_input.input_judgement import LIMIT, ORDERS, REASONS, InputCurve
from adbench.findings.every_input.input_sweep import InputSweep
from adbench.model.record import grouped

from ..content import formatting
from ..text.terminal import input_table as shown
from . import page

WIDTH, HEIGHT = 320.0, 90.0
LOWEST, HIGHEST = 0.25, 1e9
"""Of the picture's logarithmic axis, in ulp; not finite is the highest."""
LINES = {LIMIT: f"{LIMIT:g} ulp", 1e3: "10³", 1e6: "10⁶", HIGHEST: "not finite"}


def render(found: InputSweep, home: str = "") -> str:
    """The page, complete in itself; `home` is the address of its site, "" for none."""
    rows = [
        {"number": k, "fault": fault, "cells": shown.row_of(fault), "curves": curves(fault.curve)}
        for k, fault in enumerate(found.faults)
    ]
    right = [
        {
            "name": name,
            "whose": "; ".join(_libraries(found, of_one)),
            "curves": [line for one in of_one for line in curves(one.curve)],
        }
        for name, of_one in grouped(found.right, lambda one: one.function).items()
    ]
    refused = grouped(found.refused, lambda one: (*one[:2], one[3]))
    return page.rendered(
        "every_input.html", ["conform.css"], ["tables.js"],
        title=f"Every input of {' and '.join(found.types)}: {formatting.plural(found.functions, 'function')}",
        summary=shown.summary(found).plain.splitlines(), rows=rows, titles=shown.TITLES, reasons=REASONS,
        limit=f"{LIMIT:g}", home=home, lines=[(f"{_height(ulp):.1f}", text) for ulp, text in LINES.items()],
        right=right, refused=[(*key, " and ".join(row[2] for row in of_one)) for key, of_one in refused.items()],
    )  # fmt: skip


def _libraries(found: InputSweep, of_one: Sequence[InputCurve]) -> Iterator[str]:
    """The libraries, and which results of each if it is not all of them."""
    for library, some in grouped(of_one, lambda one: one.library).items():
        which = ", ".join(f"{shown.SHORT[one.order]} in {one.type}" for one in some)
        yield library if len(some) == len(found.types) * len(ORDERS) else f"{library} ({which})"


def curves(curve: Sequence[float]) -> list[str]:
    """The points of polylines, one for each stretch of inputs that were judged."""
    lines: list[list[tuple[str, str]]] = [[]]
    for k, ulp in enumerate(curve):
        if ulp < 0:
            lines.append([])
            continue
        line, y = lines[-1], f"{_height(ulp):.1f}"
        if len(line) > 1 and line[-1][1] == line[-2][1] == y:
            line.pop()  # in the middle of a straight part
        line.append((f"{5 + k / (len(curve) - 1) * (WIDTH - 10):.1f}", y))
    return [" ".join(map(",".join, line)) for line in lines if line]


def _height(ulp: float) -> float:
    share = math.log(max(ulp, LOWEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return HEIGHT - 5 - share * (HEIGHT - 10)
