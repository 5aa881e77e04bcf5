"""A case at one size as SVG text: a row for each backend, with its name, a marker, whiskers and its figure."""

from __future__ import annotations

from dataclasses import replace

from ..content import formatting
from . import plots
from .plots import LogAxis, Panel

ROW, ABOVE, BELOW = 21.0, 30.0, 26.0  # points
LEFT, RIGHT = 141.12, 334.656  # the names end, the figures begin
MOST_TICKS = 4


def draw(panel: Panel, limits: tuple[float, float]) -> str:
    """The panel as an SVG element, the least figure at the top; `limits` bound the axis, both positive."""
    rows = sorted(panel.series, key=lambda series: series.there[0].middle)
    bottom = ABOVE + ROW * len(rows)
    drawing = replace(panel, series=tuple(rows)).drawing(bottom + BELOW)
    axis, ticks = LogAxis(*limits, LEFT, RIGHT), plots.ticks(*limits, most=MOST_TICKS)
    for value in ticks:
        text = formatting.tick(value, panel.quantity)
        drawing.text(axis.at(value), bottom + plots.APART + plots.ASCENT, "middle", text)
    drawing.segments([((axis.at(value), ABOVE), (axis.at(value), bottom)) for value in ticks], 0.7, "grid-lines")
    heights = [ABOVE + ROW * (place + 0.5) for place in range(len(rows))]
    for y, series in zip(heights, rows, strict=True):
        point = series.there[0]
        name = plots.class_of(series, point)
        if point.low < point.high:
            drawing.segments([((axis.at(point.low), y), (axis.at(point.high), y))], 1.1, f"{name} spread")
        at = [(axis.at(point.middle), y)]
        drawing.markers(drawing.group(name), at, plots.marker(series.look), filled=point.ranked)
    shown = formatting.seconds if panel.quantity == "seconds" else formatting.byte_size
    for y, series in zip(heights, rows, strict=True):
        drawing.text(0, y + plots.MIDDLE, "start", series.name, "row")
        drawing.text(plots.WIDTH, y + plots.MIDDLE, "end", shown(series.there[0].middle), "row")
    size = formatting.count(rows[0].there[0].size)
    drawing.text(0, 15, "start", f"{panel.title}, n = {size}", "heading")
    return str(drawing)
