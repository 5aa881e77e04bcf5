"""The contents of each figure: points, spreads, and gaps with their reasons. plots.py draws them.

A wrong result is not drawn. One that is not exact or not certain is drawn as not ranked: hollow, on loose dots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from adbench.results.scaling import Quantity

from ..content import formatting
from ..content.cells import Cell, Cells, known
from ..content.formatting import OUTCOMES
from . import plots
from .plots import Panel, Point, Series

Line = tuple[str, str, Quantity]
"""What a panel's lines are: its label in words, the operator, the quantity."""

MEMORY_METHODS: tuple[tuple[Quantity, str], ...] = (
    ("allocated_peak_bytes", "Allocated peak"),
    ("resident_peak_bytes", "Resident peak"),
    ("python_peak_bytes", "Python-visible peak"),
)
SHOWN_OPERATORS = ("value", "gradient")

MOST_FIGURES = 40
"""Of each kind on one page: a figure takes twenty milliseconds or more, and nobody looks at hundreds."""

MOST_LINES = 1500
"""Of each kind on one page, for the same reason: forty backends make forty lines in each panel."""


@dataclass(frozen=True)
class Key:
    """One entry of a legend: a backend, and the number that picks its colour, marker and dashes.

    ranked: whether any of its points is; hollow: whether any of its points is not. `slopes`: the fitted growth of its
    line in each panel, in words, or the reason why it is missing.
    """

    backend: str
    number: int
    ranked: bool
    hollow: bool
    slopes: tuple[Slope, ...] = ()


@dataclass(frozen=True)
class Slope:
    """The growth of one line: "n^1.00 (0.98–1.02)", or a dash with the reason; `label` says of what."""

    label: str
    text: str
    reason: str | None = None
    constant: str = ""
    misfit: str = ""


@dataclass(frozen=True)
class CaseFigure:
    """Panels of one case side by side on the same axes, their legend, and a sentence for each thing left out."""

    case: str
    number: int
    svgs: tuple[str, ...]
    keys: tuple[Key, ...]
    left_out: tuple[str, ...]


def time_figures(cells: Cells) -> list[CaseFigure]:
    """Seconds per call against n, one figure for each case, one panel for each operator."""
    operators = [op for op in SHOWN_OPERATORS if op in cells.operators] or list(cells.operators)

    def figure(number: int, case: str) -> CaseFigure | None:
        series = [series_of(cells, case, partial(time_point, cells, op)) for op in operators]
        panels = [Panel(f"t{number}-{k}", _title(op), "seconds", series[k]) for k, op in enumerate(operators)]
        lines: list[Line] = [(formatting.short(op, 30).replace("_", " "), op, "seconds") for op in operators]
        return _figure(cells, number, panels, lines, shared=True)

    return _all(cells, figure)


def memory_figures(cells: Cells) -> list[CaseFigure]:
    """Bytes of one call against n, for the cases with at least two sizes, one panel for each method."""

    def figure(number: int, case: str) -> CaseFigure | None:
        if len(cells.sizes[case]) < 2:
            return None
        panels = [
            Panel(f"m{number}-{method}", title, "bytes", series_of(cells, case, partial(memory_point, method)))
            for method, title in MEMORY_METHODS
        ]
        lines: list[Line] = [(title.lower(), cells.operator_of(case), method) for method, title in MEMORY_METHODS]
        return _figure(cells, number, panels, lines, shared=False)

    return _all(cells, figure)


def memory_bytes(cell: Cell, method: str) -> tuple[float | None, str | None]:
    """(bytes, reason) by one method; a missing figure has a reason."""
    if not cell.measured:
        return None, None  # the cell's own reason says it
    memory = cell.record.memory if cell.record else None
    if memory is None:
        return None, "its memory was not measured"
    return known(getattr(memory, method))


def _title(operator: str) -> str:
    """In ASCII: a file may hold any name for an operator, and the font that measures the title has not every letter."""
    name = formatting.short(operator, 30).replace("_", " ")
    return f"{name[:1].upper()}{name[1:]}, time per call".encode("ascii", "backslashreplace").decode()


def time_point(cells: Cells, operator: str, cell: Cell) -> Point | None:
    """The time of that operator at the cell's place; None where it has none, or any operator is wrong."""
    single = cells.single(replace(cell.job, operator=operator))
    if single.spread is None or cell.word == "wrong":
        return None
    spread = single.spread
    return Point(cell.job.size, spread.median, spread.low, spread.high, single.ranked)


def memory_point(method: str, cell: Cell) -> Point | None:
    """A point; None for no figure and for nothing at all, which a logarithmic axis cannot show."""
    found, _ = memory_bytes(cell, method)
    return Point(cell.job.size, found, found, found, cell.word == "right") if found and found > 0 else None


def series_of(cells: Cells, case: str, point: Callable[[Cell], Point | None]) -> tuple[Series, ...]:
    """A line for each backend that has a point; None where one is missing, so that no line bridges the gap."""
    found: list[Series] = []
    for number, backend in enumerate(cells.backends):
        points = tuple(point(cells.cell(case, size, backend)) for size in cells.sizes[case] if size > 0)
        if any(points):
            found.append(Series(number, points))
    return tuple(found)


def _figure(
    cells: Cells, number: int, panels: Sequence[Panel], lines: Sequence[Line], *, shared: bool
) -> CaseFigure | None:
    """Draws the panels, on a `shared` y axis where their figures may be compared; None where nothing is to be drawn."""
    case = cells.subjects[number]
    fitted = [line for line, panel in zip(lines, panels, strict=True) if panel.series]
    drawn = [panel for panel in panels if panel.series]
    if not drawn:
        return None
    sizes = [size for size in cells.sizes[case] if size > 0]
    every = [x for panel in drawn for x in values_of(panel)]
    svgs = [plots.draw(panel, sizes, plots.y_limits(every if shared else values_of(panel))) for panel in drawn]
    how = sorted({(series.number, point.ranked) for p in drawn for series in p.series for point in series.there})
    there = dict.fromkeys(number for number, _ in how)
    keys = tuple(
        Key(name, k, (k, True) in how, (k, False) in how, tuple(_slope(cells, case, name, line) for line in fitted))
        for k, name in ((k, cells.backends[k]) for k in there)
    )
    return CaseFigure(case, number, tuple(svgs), keys, tuple(left_out(cells, case, panels)))


def _slope(cells: Cells, case: str, backend: str, line: Line) -> Slope:
    label, operator, quantity = line
    found = cells.findings.growth(case, backend, operator, quantity)
    if found is None or found.exponent is None:
        return Slope(label, formatting.MISSING, (found.reason if found else None) or "there are no figures to fit")
    constant = ""
    if found.constant:
        constant = formatting.seconds(found.constant) if quantity == "seconds" else formatting.byte_size(found.constant)
    misfit = formatting.percent(found.misfit) if found.misfit is not None else ""
    return Slope(label, formatting.power(found.exponent), None, constant, misfit)


def values_of(panel: Panel) -> list[float]:
    """Everything that the y axis has to reach, above 0."""
    points = [point for series in panel.series for point in series.there]
    return [x for point in points for x in (point.middle, point.low, point.high) if x > 0]


def left_out(cells: Cells, case: str, panels: Sequence[Panel]) -> Iterator[str]:
    """The gaps of the figure: cells that were not measured, by word; then the points that one panel lacks."""
    columns = {backend: [cells.cell(case, size, backend) for size in cells.sizes[case]] for backend in cells.backends}
    for backend, column in columns.items():
        for word in dict.fromkeys(cell.word for cell in column if not cell.measured):
            gone = [cell.job.size for cell in column if cell.word == word]
            yield f"{_place(backend, gone, len(column))}: {OUTCOMES[word].label}"
    for panel in panels:
        drawn = {(series.number, point.size) for series in panel.series for point in series.there}
        lacking = []
        for number, (backend, column) in enumerate(columns.items()):
            gone = [cell.job.size for cell in column if cell.measured and (number, cell.job.size) not in drawn]
            lacking += [_place(backend, gone, len(column))] * bool(gone)
        if lacking:
            yield f"no figure above 0 in “{panel.title}”: {', '.join(lacking)}"


def _place(backend: str, sizes: Sequence[int], of: int) -> str:
    name = formatting.short(backend, 40)
    return name if len(sizes) == of else f"{name} at {formatting.sizes(sizes)}"


def _all(cells: Cells, figure: Callable[[int, str], CaseFigure | None]) -> list[CaseFigure]:
    """A figure for each case that has one, until there are enough."""
    found: list[CaseFigure] = []
    with plots.style():
        for number, case in enumerate(cells.subjects):
            if len(found) == MOST_FIGURES or sum(len(f.keys) * len(f.svgs) for f in found) > MOST_LINES:
                break
            drawn = figure(number, case)
            found += [drawn] if drawn else []
    return found
