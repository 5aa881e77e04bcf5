"""What the page of same bits shows: a square for each operation, library and kind of repetition."""

from __future__ import annotations

from typing import Any

from adbench.findings.same_bits.bits_matrix import BitsMatrix
from adbench.findings.same_bits.same_bits import BitRow

KINDS = {name: name for name in ("repeat", "process", "threads", "batch", "padding")} | {"chunks": "halves"}
LEVELS = (0.0, 4.0, 100.0)
"""Distances in ulp from which the colour is darker."""


def facts(bits: BitsMatrix) -> dict[str, Any]:
    """The names of the template."""
    rows = {(cell.function, cell.backend): {row.kind: row for row in cell.rows} for cell in bits.cells}
    names = dict.fromkeys([*(cell.function for cell in bits.cells), *(name for name, _, _ in bits.refused)])
    squares = {
        name: [_square(rows.get((name, library), {}).get(kind)) for library in bits.libraries for kind in KINDS]
        for name in names
    }
    found = {
        library: [
            (cell.function, " ".join(str(row).split()))
            for cell in bits.cells
            if cell.backend == library
            for row in cell.rows
            if row.difference
        ]
        for library in bits.libraries
    }
    return {"bits": bits, "kinds": KINDS, "operations": squares, "differences": found, "heading": "Same bits"}


def _square(row: BitRow | None) -> tuple[str, int]:
    """The text of a square, and its colour from 0 (same bits) to 4."""
    if row is None or row.reason:
        return "–", 0
    if row.difference is None:
        return "=", 0
    ulp = row.difference.ulp
    return f"{ulp:.0f}" if ulp < 1e4 else f"{ulp:.0e}", 1 + sum(ulp > level for level in LEVELS)
