"""The contents of each figure: points, spreads, and gaps with their reasons. plots.py draws them.

A wrong result is not drawn. One that is not exact or not certain is drawn as not ranked: hollow, on loose dots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from adbench.measure.growth import Growth
from adbench.model.record import ON_PROCESSOR
from adbench.results.scaling import Quantity

from ..content import formatting
from ..content.cells import Cell, Cells, known
from ..content.formatting import OUTCOMES
from . import dots, plots
from .looks import Look, look
from .plots import DataPoint, Panel, Series, Unit

DEVICE_PEAK: Quantity = "device_peak_bytes"
MEMORY_METHODS: tuple[tuple[Quantity, str], ...] = (
    (DEVICE_PEAK, "Device peak"),
    ("allocated_peak_bytes", "Allocated peak"),
    ("resident_peak_bytes", "Resident peak"),
    ("python_peak_bytes", "Python-visible peak"),
)
SHOWN_OPERATORS = ("value", "gradient")

MOST_SERIES = 8
"""Of a drawn panel, the first in the order of the page: nobody reads forty lines. The page's script adds the others."""

MOST_NAME = 18  # characters, next to a row of dots

MOST_FIGURES = 60
"""On one page: each takes twenty milliseconds or more, and nobody looks at hundreds."""


@dataclass(frozen=True)
class Key:
    """One entry of a legend: a backend, its look, and whether any of its points is ranked, and any is not.

    slopes: the label and the unit of each fitted panel, and the growth of its line there.
    """

    backend: str
    look: Look
    ranked: bool
    hollow: bool
    slopes: tuple[tuple[str, str, Growth | None], ...] = ()


@dataclass(frozen=True)
class CaseFigure:
    """What the page shows of a case: the small chart, the other charts, their legend, and what is left out of them."""

    svg: str
    more: tuple[str, ...]
    keys: tuple[Key, ...]
    left_out: tuple[str, ...]
    charts: tuple[Panel, ...]
    sizes: tuple[int, ...]

    @property
    def in_legend(self) -> set[int]:
        """The backends whose lines the small chart has, by their numbers; a chart of one size has their names."""
        return {series.number for series in drawn(self.charts[0]).series if len(self.sizes) > 1}

    @property
    def data(self) -> dict[str, object]:
        """What the page's script draws: for each chart its series, for each of these a point at each size, or 0."""
        charts = [
            {
                "title": chart.title,
                "bytes": chart.quantity == "bytes",
                "series": [[s.number, [_numbers(point) for point in s.points]] for s in chart.series],
            }
            for chart in self.charts
        ]
        return {"sizes": self.sizes, "charts": charts}


def case_figures(cells: Cells, *, small: bool) -> dict[int, CaseFigure]:
    """The charts of each case, by its number; nothing for a case without any figure. `small`: draw the first only."""
    found: dict[int, CaseFigure] = {}
    with plots.style():
        for number, case in enumerate(cells.subjects):
            charts = charts_of(cells, number)
            if not charts or len(found) == MOST_FIGURES:
                continue
            sizes = sizes_of(cells, case)
            svgs = [draw(drawn(chart), sizes) for chart in (charts[:1] if small else charts)]
            gaps = tuple(left_out(cells, case, charts))
            keys = tuple(_keys(cells, case, charts))
            found[number] = CaseFigure(svgs[0], tuple(svgs[1:]), keys, gaps, charts, tuple(sizes))
    return found


def drawn(panel: Panel) -> Panel:
    """The panel with as many series as one can read."""
    return replace(panel, series=panel.series[:MOST_SERIES])


def charts_of(cells: Cells, number: int) -> tuple[Panel, ...]:
    """The charts of a case against n that have points: the time of its operator, of others, memory, preparation."""
    case = cells.subjects[number]
    name, lead = formatting.short(case, 40), cells.operator_of(case)
    found: list[Panel] = []

    def add(title: str, label: str, operator: str, quantity: Quantity | None, point: PointOf) -> bool:
        unit: Unit = "bytes" if quantity and quantity.endswith("_bytes") else "seconds"
        if series := series_of(cells, case, point):
            found.append(Panel(f"c{number}-{len(found)}", title, unit, series, name, label, operator, quantity))
        return bool(series)

    for operator in dict.fromkeys((lead, *(op for op in SHOWN_OPERATORS if op in cells.operators))):
        what = formatting.short(operator, 30).replace("_", " ")
        add(
            _ascii(f"{what[:1].upper()}{what[1:]}: time per call"),
            f"time of {what}",
            operator,
            "seconds",
            partial(time_point, cells, operator),
        )
    for method, title in MEMORY_METHODS:
        what = f"Memory of a call, {title.lower()}"
        if add(what, title.lower(), lead, method, partial(memory_point, method)) and method != DEVICE_PEAK:
            break  # a run on the processor and on a device has two
    add("Preparation: time until the first result", "preparation", lead, None, preparation_point)
    return tuple(found)


PointOf = Callable[[Cell], DataPoint | None]


def shown_memory(cells: Sequence[Cell]) -> tuple[str, Callable[[Cell], float | None]]:
    """The memory that tables show next to the times of these cells, in words, and the bytes of each: on a device the
    device's peak, of the others the figure by the first method that any of them has."""
    others = [cell for cell in cells if not is_on_device(cell)]
    every = (method for method, _ in MEMORY_METHODS[1:] if any(memory_bytes(cell, method)[0] for cell in others))
    of_others = next(every, MEMORY_METHODS[1][0])

    def shown(cell: Cell) -> float | None:
        return memory_bytes(cell, DEVICE_PEAK if is_on_device(cell) else of_others)[0]

    used = {DEVICE_PEAK if is_on_device(cell) else of_others for cell in cells if shown(cell)}
    return " or ".join(title.lower() for method, title in MEMORY_METHODS if method in used), shown


def is_on_device(cell: Cell) -> bool:
    """Whether another device than the processor computed it."""
    return cell.record is not None and cell.record.device is not None


def memory_bytes(cell: Cell, method: str) -> tuple[float | None, str | None]:
    """(bytes, reason) by one method; a missing figure has a reason, but for that of a device that nobody asked for."""
    if not cell.measured:
        return None, None  # the cell's own reason says it
    memory = cell.record.memory if cell.record else None
    if memory is None:
        return None, "its memory was not measured"
    figure = getattr(memory, method)
    return (None, None) if figure == ON_PROCESSOR else known(figure)


def time_point(cells: Cells, operator: str, cell: Cell) -> DataPoint | None:
    """The time of that operator at the cell's place; None where it has none, or any operator is wrong."""
    single = cells.single(replace(cell.job, operator=operator))
    if single.spread is None or cell.word == "wrong":
        return None
    spread = single.spread
    return DataPoint(cell.job.size, spread.median, spread.low, spread.high, single.ranked)


def memory_point(method: str, cell: Cell) -> DataPoint | None:
    """A point; None for no figure and for nothing at all, which a logarithmic axis cannot show."""
    found, _ = memory_bytes(cell, method)
    return DataPoint(cell.job.size, found, found, found, cell.word == "right") if found and found > 0 else None


def preparation_point(cell: Cell) -> DataPoint | None:
    """What the first result takes: tracing, compiling and whatever else the backend does once, and the first call."""
    if cell.time is None:
        return None
    seconds = cell.time.prepare_seconds + cell.time.first_call_seconds
    return DataPoint(cell.job.size, seconds, seconds, seconds, cell.ranked) if seconds > 0 else None


def series_of(cells: Cells, case: str, point: PointOf) -> tuple[Series, ...]:
    """A line for each backend that has a point; None where one is missing, so that no line bridges the gap."""
    found: list[Series] = []
    for number, backend in enumerate(cells.backends):
        points = tuple(point(cells.cell(case, size, backend)) for size in sizes_of(cells, case))
        if any(points):
            name = formatting.short(_ascii(formatting.visible(backend)), MOST_NAME)
            found.append(Series(number, look(backend), points, name))
    return tuple(found)


def sizes_of(cells: Cells, case: str) -> list[int]:
    """The places on the x axis: a logarithmic one has no 0."""
    return [size for size in cells.sizes[case] if size > 0]


def values_of(panel: Panel) -> list[float]:
    """Everything that the y axis has to reach, above 0."""
    points = [point for series in panel.series for point in series.there]
    return [x for point in points for x in (point.middle, point.low, point.high) if x > 0]


def left_out(cells: Cells, case: str, panels: Sequence[Panel]) -> Iterator[str]:
    """The gaps of the figure: cells without a measurement, by word; then points that a single panel lacks."""
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


def draw(panel: Panel, sizes: Sequence[int]) -> str:
    """The panel as an element for a page, inside `plots.style()`."""
    limits = plots.y_limits(values_of(panel))
    return plots.draw(panel, sizes, limits) if len(sizes) > 1 else dots.draw(panel, limits)


def _keys(cells: Cells, case: str, charts: Sequence[Panel]) -> Iterator[Key]:
    """Of each backend that has a point in any chart."""
    growth = cells.findings.growth
    every = [(series.number, p.ranked) for chart in charts for series in chart.series for p in series.there]
    there = set(every)
    for number in sorted({number for number, _ in every}):
        backend = cells.backends[number]
        slopes = tuple((c.label, c.quantity, growth(case, backend, c.operator, c.fit)) for c in charts if c.fit)
        yield Key(backend, look(backend), (number, True) in there, (number, False) in there, slopes)


def _numbers(point: DataPoint | None) -> list[float] | int:
    if point is None:
        return 0
    spread = [] if point.low == point.middle == point.high else [point.low, point.high]
    return [float(f"{x:.4g}") for x in (point.middle, *spread)] + ([] if point.ranked else [0.0])


def _ascii(name: str) -> str:
    """In ASCII: a file may hold any name for an operator, and the font that measures the title has not every letter."""
    return name.encode("ascii", "backslashreplace").decode()


def _place(backend: str, sizes: Sequence[int], of: int) -> str:
    name = formatting.short(backend, 40)
    return name if len(sizes) == of else f"{name} at {formatting.sizes(sizes)}"
