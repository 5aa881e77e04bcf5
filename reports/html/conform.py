"""The page of `adbench conform`: operations by libraries, coloured by the worst digits, each with its faults."""

from __future__ import annotations

from dataclasses import dataclass

from adbench.findings.conform.conformance import Conformance, ConformanceCell
from adbench.findings.conform.fault_script import script
from adbench.findings.conform.judgement import KINDS, Fault
from adbench.version import __version__

from ..content import formatting
from . import page

STEPS = ((12.0, "d0"), (8.0, "d1"), (4.0, "d2"), (1.0, "d3"), (-1.0, "d4"))
"""The least worst digits of each colour."""

WIDTH, HEIGHT = 320.0, 90.0
LOWEST, HIGHEST = -310, 310
"""The exponents of the curve."""


@dataclass(frozen=True)
class ConformSquare:
    """A cell of the table: its text, its colour, and the anchor of its faults."""

    text: str
    colour: str
    anchor: str
    title: str


@dataclass(frozen=True)
class OperationRow:
    """An operation: one square for each library."""

    name: str
    family: str
    squares: tuple[ConformSquare, ...]


@dataclass(frozen=True)
class Detail:
    """The faults of an operation on a library, each with its program, and the curves of digits over exponents."""

    cell: ConformanceCell
    anchor: str
    faults: tuple[tuple[Fault, str, str], ...]
    curves: tuple[tuple[int, str], ...]


def render(found: Conformance, home: str = "") -> str:
    """The page; `home` is the address of the site that it belongs to, "" for none."""
    from markupsafe import Markup

    libraries = list(found.libraries)
    by_operation: dict[str, dict[str, ConformanceCell]] = {}
    for cell in found.cells:
        by_operation.setdefault(cell.operation, {})[cell.library] = cell
    lines = [
        OperationRow(name, next(iter(cells.values())).family, tuple(_square(cells[library]) for library in libraries))
        for name, cells in by_operation.items()
    ]
    style, program = page.style("conform.css"), page.asset("tables.js")
    context = {
        "found": found,
        "home": home,
        "libraries": [(name, found.libraries[name], *_counts(found, name)) for name in libraries],
        "lines": lines,
        "details": [_detail(cell) for cell in found.cells if cell.faults],
        "kinds": KINDS,
        "version": __version__,
        "width": WIDTH,
        "height": HEIGHT,
        "style": Markup(style),
        "script": Markup(program),
        "policy": page.policy(style, program),
    }
    return page.environment().get_template("conform.html").render(context)


def _counts(found: Conformance, library: str) -> tuple[int, int, int]:
    """The operations examined, those with a fault, and the judged results."""
    cells = [cell for cell in found.cells if cell.library == library and cell.checked]
    return len(cells), sum(bool(cell.faults) for cell in cells), sum(cell.checked for cell in cells)


def _square(cell: ConformanceCell) -> ConformSquare:
    anchor = f"{cell.library}-{cell.operation}" if cell.faults else ""
    if cell.worst is None:
        reason = next(iter(cell.refused.values()), "no point could be judged")
        return ConformSquare(formatting.MISSING, "none", "", formatting.short(reason, 200))
    if not cell.faults:
        return ConformSquare("right", "d0", "", f"{cell.checked} results")
    kinds = list(dict.fromkeys(fault.kind for fault in cell.faults))
    text = f"{cell.worst:.0f} digits" if kinds == ["digits"] else "NaN" if "nan" in kinds else kinds[0]
    colour = next(name for least, name in STEPS if cell.worst >= least)
    orders = ", ".join(dict.fromkeys(fault.operator for fault in cell.faults))
    return ConformSquare(text, colour, anchor, formatting.short(orders, 200))


def _detail(cell: ConformanceCell) -> Detail:
    faults = tuple((fault, _point(fault), fault.program or script(fault, cell.own)) for fault in cell.faults)
    curves = tuple((order, points) for order in (0, 1, 2) if (points := _curve(cell, order)))
    return Detail(cell, f"{cell.library}-{cell.operation}", faults, curves)


def _point(fault: Fault) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in fault.point.items())


def _curve(cell: ConformanceCell, order: int) -> str:
    """The points of a polyline: correct digits of this order over the exponent of |x|."""
    found = sorted((k, digits) for (of, k), digits in cell.digits.items() if of == order)
    return " ".join(f"{_x(k):.1f},{HEIGHT - 5 - digits / 17 * (HEIGHT - 10):.1f}" for k, digits in found)


def _x(exponent: int) -> float:
    return 5 + (exponent - LOWEST) / (HIGHEST - LOWEST) * (WIDTH - 10)
