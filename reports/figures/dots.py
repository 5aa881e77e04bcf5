"""A case at one size as SVG text: a row for each backend, with its name, a marker, whiskers and its figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..content import formatting
from . import plots, svg
from .plots import Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, ABOVE, BELOW = 21.0, 30.0, 26.0  # points
LEFT, RIGHT = 0.35, 0.83  # of the width: the names end, the figures begin
MOST_TICKS = 4


def draw(panel: Panel, limits: tuple[float, float]) -> str:
    """The panel as an SVG element, the least figure at the top; `limits` bound the axis, both positive."""
    from matplotlib.figure import Figure

    rows = sorted(panel.series, key=lambda series: series.there[0].middle)
    height = ABOVE + ROW * len(rows) + BELOW
    figure = Figure(figsize=(plots.WIDTH, height / 72))
    axes = figure.add_axes((LEFT, BELOW / height, RIGHT - LEFT, ROW * len(rows) / height))
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    ticks = plots.ticks(*limits, most=MOST_TICKS)
    plots.set_ticks(axes.xaxis, ticks, [formatting.tick(value, panel.quantity) for value in ticks])
    plots.set_ticks(axes.yaxis, [], [])
    rules = [((at, -0.5), (at, len(rows) - 0.5)) for at in ticks]
    size = rows[0].there[0].size
    plots.strip(figure, axes, rules, f"{panel.title}, n = {formatting.count(size)}", 1 - 15 / height)
    for place, series in enumerate(rows):
        _draw_row(axes, place, series, panel)
    return plots.as_svg(figure, replace(panel, series=tuple(rows)))


def _draw_row(axes: Axes, place: int, series: Series, panel: Panel) -> None:
    point = series.there[0]
    name = plots.class_of(series, ranked=point.ranked)
    if point.low < point.high:
        plots.draw_segments(axes, [((point.low, place), (point.high, place))], 1.1, f"{name} spread")
    style = plots.marker_style(series.look, ranked=point.ranked)
    axes.plot([point.middle], [place], linestyle="none", clip_on=False, gid=name, **style)
    text = formatting.seconds if panel.quantity == "seconds" else formatting.byte_size
    across = axes.get_yaxis_transform()  # x as a share of the axes' width
    ends = (-LEFT / (RIGHT - LEFT), "left", series.name), ((1 - LEFT) / (RIGHT - LEFT), "right", text(point.middle))
    for x, side, words in ends:
        axes.text(
            x, place, words, transform=across, ha=side, va="center_baseline", parse_math=False, gid=f"{svg.CLASS}row"
        )
