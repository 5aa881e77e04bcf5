"""One case of a run on a user's matplotlib axes: a line for each backend, drawn as on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adbench.model.errors import UnknownName, UsageError
from adbench.model.record import Run
from adbench.optional import library

from ..content import formatting
from ..content.cells import NOT_TIMED, Cell, Cells
from . import looks, panels, plots
from .plots import DataPoint, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHAT: dict[str, str] = {"time": "time per call", **{method: title.lower() for method, title in panels.MEMORY_METHODS}}
MOST_NAME = 40  # characters
MOST_LEFT_OUT = 6  # lines of the legend


def plot(run: Run, case: str, axes: Axes | None, operator: str | None, what: str) -> Axes:
    """Draw the figures of a case against its sizes, both axes logarithmic; returns the axes.

    axes       the user's; None for a new figure of pyplot
    operator   None for the page's operator of this case
    what       "time"; "memory" for the first method that has figures; or the name of one method

    Results that are right are joined by a line. Others are hollow. Backends without figures are in the legend, with
    their outcome. Raises UsageError (also as UnknownName) if there is nothing to draw.
    """
    cells = Cells(run)
    panel = _panel(cells, case, operator or cells.operator_of(case), what)
    own = axes is None
    if axes is None:
        axes = library("matplotlib.pyplot", "a plot").figure(layout="constrained").add_subplot()
    sizes = [size for size in cells.sizes[case] if size > 0]
    plots.set_scales(axes, panel, sizes, plots.y_limits(panels.values_of(panel)))
    axes.grid(axis="y", linewidth=0.7, alpha=0.5)
    axes.set_title(panel.title, parse_math=False)
    axes.set_xlabel("n")
    axes.set_ylabel(f"{panel.quantity} per call")
    _draw(axes, panel, cells, list(panels.left_out(cells, case, [panel])), outside=own)
    return axes


def _panel(cells: Cells, case: str, operator: str, what: str) -> Panel:
    """The lines of that quantity. Raises UsageError if no backend has one."""
    quantities = [method for method, _ in panels.MEMORY_METHODS] if what == "memory" else [what]
    if not set(quantities) <= set(WHAT):
        raise UnknownName("quantity to plot", what, ("memory", *WHAT))
    if operator not in cells.operators:
        raise UnknownName("measured operator", operator, cells.operators)
    for quantity in quantities:

        def point(cell: Cell, method: str = quantity) -> DataPoint | None:
            if method == "time":
                return panels.time_point(cells, operator, cell)
            single = cells.single(replace(cell.job, operator=operator))
            return None if cell.word == "wrong" else panels.memory_point(method, single)

        series = panels.series_of(cells, case, point)
        if series:
            title = f"{formatting.short(case, MOST_NAME)}: {WHAT[quantity]} of {formatting.short(operator, 30)}"
            return Panel("plot", title, "seconds" if quantity == "time" else "bytes", series)
    raise UsageError(f"{case}: there is no {what} of {operator} to plot: {_why(cells, case, operator, what)}")


def _why(cells: Cells, case: str, operator: str, what: str) -> str:
    """The reason of the first cell that has one."""
    for job in (cell.job for size in cells.sizes[case] for cell in cells.row(case, size)):
        single = cells.single(replace(job, operator=operator))
        if not single.measured:
            return f"{job.backend}: {single.reason}"
    return NOT_TIMED if what == "time" else "its memory was not measured"


def _draw(axes: Axes, panel: Panel, cells: Cells, left_out: list[str], *, outside: bool) -> None:
    """The lines and their legend, which also says what is left out; `outside` puts it to the right of the axes."""
    from matplotlib.lines import Line2D

    handles, labels = [], []
    for series in panel.series:
        lines = plots.draw_series(axes, series, looks.COLOURS[series.look.colour][0], clip=True)
        some = [point.ranked for point in series.there]
        note = "" if all(some) else " (hollow: not ranked)" if any(some) else " (not ranked)"
        handles.append(lines[0])
        labels.append(formatting.short(cells.backends[series.number], MOST_NAME) + note)
    if len(left_out) > MOST_LEFT_OUT:
        left_out = [*left_out[: MOST_LEFT_OUT - 1], f"and {len(left_out) - MOST_LEFT_OUT + 1} more without a figure"]
    handles += [Line2D([], [], linestyle="none") for _ in left_out]
    labels += [formatting.short(f"not drawn: {text}", 2 * MOST_NAME) for text in left_out]
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "best"}
    # matplotlib leaves a label out that begins with an underscore.
    labels = [f"\N{ZERO WIDTH SPACE}{label}" if label.startswith("_") else label for label in labels]
    for text in axes.legend(handles, labels, fontsize="small", frameon=False, **place).get_texts():
        text.set_parse_math(False)
