"""The page of `adbench conform`: a line for each operation of a library, the gravest first, each with its faults.

The command writes it as one file; the site has the same content between its own head and footer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from adbench.findings.conform.conformance import Conformance, ConformanceCell
from adbench.findings.conform.judgement import KINDS, Fault
from adbench.findings.conform.operation_worker import THIRD
from adbench.findings.scripts import of_fault
from adbench.model.operator import COMPOSITIONS

from ..content import formatting
from . import page

COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("value", ("value",)),
    ("gradient", ("gradient",)),
    ("J v", ("jvp",)),
    ("H v", tuple(COMPOSITIONS)),
    ("third order", (THIRD,)),
)
"""The title of each column, and its operators."""

GRAVITY = ("wrong", "nan", "digits", "crashes", "hangs", "raises")
"""Kinds of faults, the gravest first: a wrong number that looks right is worse than an error."""

STEPS = ((12.0, "d0"), (8.0, "d1"), (4.0, "d2"), (1.0, "d3"), (-1.0, "d4"))
"""The least worst digits of each colour."""

WIDTH, HEIGHT = 320.0, 90.0
LOWEST, HIGHEST = -310, 310
"""The exponents of the curve."""


class ConformSquare(NamedTuple):
    """A cell of the table: its text, its colour, the anchor of its faults, and what it is sorted by."""

    text: str
    colour: str
    anchor: str = ""
    title: str = ""
    gravity: int | None = None


def render(found: Conformance) -> str:
    """The page, complete in itself."""
    return page.rendered("conform.html", ["conform.css"], ["tables.js"], **facts(found))


def facts(found: Conformance) -> dict[str, Any]:
    """What the page shows, wherever it is."""
    libraries = list(found.libraries)
    cells = sorted(found.cells, key=_gravity)  # stable: equals keep the order of the operations
    asked = {fault.operator for fault in found.faults} | {name for cell in cells for name in cell.refused}
    columns = [(title, of) for title, of in COLUMNS if of != (THIRD,) or THIRD in asked]
    return {
        "found": found,
        "title": _title(found),
        "libraries": [(name, found.libraries[name], *_counts(found, name)) for name in libraries],
        "columns": [title for title, _ in columns],
        "lines": [(cell, [_square(cell, operators) for _, operators in columns]) for cell in cells],
        "details": [_detail(cell) for cell in cells if cell.faults],
        "kinds": KINDS,
        "width": WIDTH,
        "height": HEIGHT,
    }


def _title(found: Conformance) -> str:
    """ "autograd is at fault in 11 of 18 operations"; of several libraries only what was examined."""
    if len(found.libraries) == 1:
        (name,) = found.libraries
        examined, faulty, _ = _counts(found, name)
        every = formatting.plural(examined, "operation")
        return f"{formatting.short(name, 40)}{found.place} is at fault in {faulty} of {every}"
    operations = formatting.plural(len({cell.operation for cell in found.cells}), "operation")
    return f"Derivatives of {operations} by {formatting.short(formatting.listed(found.libraries), 80)}{found.place}"


def _counts(found: Conformance, library: str) -> tuple[int, int, int]:
    """The operations examined, those with a fault, and the judged results."""
    cells = [cell for cell in found.cells if cell.library == library and cell.checked]
    return len(cells), sum(bool(cell.faults) for cell in cells), sum(cell.checked for cell in cells)


def _fault_gravity(fault: Fault) -> tuple[int, float]:
    return GRAVITY.index(fault.kind), fault.digits


def _gravity(cell: ConformanceCell) -> tuple[int, float, int]:
    """The gravest first: by its worst fault, then by how many it has; then what is right, then what was not judged."""
    if cell.faults:
        return *min(map(_fault_gravity, cell.faults)), -len(cell.faults)
    return len(GRAVITY) + (not cell.checked), 0.0, 0


def _square(cell: ConformanceCell, operators: tuple[str, ...]) -> ConformSquare:
    faults = sorted((fault for fault in cell.faults if fault.operator in operators), key=_fault_gravity)
    if not faults:
        refused = [cell.refused[name] for name in operators if name in cell.refused]
        if not cell.checked or len(refused) == len(operators):
            return ConformSquare(
                formatting.MISSING, "none", title=formatting.short((refused or ["not judged"])[0], 200)
            )
        if operators == (THIRD,) or (operators != ("value",) and not cell.derivatives):
            return ConformSquare(formatting.MISSING, "none", title="no fault found, or not examined")
        return ConformSquare("right", "d0", gravity=len(GRAVITY) * 100)
    worst = faults[0]
    text = {"digits": f"{worst.digits:.0f} digits", "nan": "NaN"}.get(worst.kind, worst.kind)
    colour = next(name for least, name in STEPS if worst.digits >= least)
    order = round(100 * GRAVITY.index(worst.kind) + worst.digits)
    names = ", ".join(dict.fromkeys(fault.operator for fault in faults))
    return ConformSquare(text, colour, _anchor(cell), formatting.short(names, 200), order)


def _detail(cell: ConformanceCell) -> dict[str, Any]:
    """The faults of an operation on a library, each with its program, and the curves of digits over exponents."""
    faults = [(fault, _point(fault), fault.program or of_fault(fault, cell.own)) for fault in cell.faults]
    curves = [(order, points) for order in (0, 1, 2) if (points := _curve(cell, order))]
    return {"cell": cell, "anchor": _anchor(cell), "faults": faults, "curves": curves}


def _anchor(cell: ConformanceCell) -> str:
    return f"{cell.library}-{cell.operation}"


def _point(fault: Fault) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in fault.point.items())


def _curve(cell: ConformanceCell, order: int) -> str:
    """The points of a polyline: correct digits of this order over the exponent of |x|."""
    found = sorted((k, digits) for (of, k), digits in cell.digits.items() if of == order)
    return " ".join(f"{_x(k):.1f},{HEIGHT - 5 - digits / 17 * (HEIGHT - 10):.1f}" for k, digits in found)


def _x(exponent: int) -> float:
    return 5 + (exponent - LOWEST) / (HIGHEST - LOWEST) * (WIDTH - 10)
