"""Log–log plots as SVG text. panels.py decides the contents, dots.py draws what has one size.

The same panel gives the same bytes. Colours come from the page's style sheet, by class: `s0`, `s1`, … for series (see
looks.py), `grid-lines` for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from ..content import formatting
from .looks import Look
from .svg import Drawing, Position

WIDTH, HEIGHT = 403.2, 252.0  # points; the page scales the figure to its column
LEFT, RIGHT, TOP, BOTTOM = 54.432, 395.136, 30.24, 219.24  # of the axes
APART = 5.0  # between a label and its axis
ASCENT, MIDDLE = 7.6, 3.8  # from the top and from the middle of a line of text down to the foot of its letters
HALF_LETTER = 0.0125  # of the x axis, in the largest type that a page shows a figure in
MARKER_RADIUS = 3.1
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1, 1.2), (5, 1.5, 1, 1.5))
LOOSE = (1.5, 3.0)  # between points that are not ranked


def _polygon(corners: int, turn: float, radius: float, inner: float = 1.0) -> tuple[tuple[float, float], ...]:
    """Corners around 0, the first at `turn` (in turns, from the right); every second one at `inner` of the radius."""
    angles = [2 * math.pi * (k / corners + turn) for k in range(corners)]
    radii = [radius * (inner if k % 2 else 1.0) for k in range(corners)]
    return tuple((round(r * math.cos(a), 3), round(r * math.sin(a), 3)) for r, a in zip(radii, angles, strict=True))


MARKERS = (
    _polygon(24, 0, 1.0),  # circle
    _polygon(4, 1 / 8, 1.25),  # square
    _polygon(3, 1 / 4, 1.35),  # triangle, up
    _polygon(4, 0, 1.3),  # diamond
    _polygon(3, 3 / 4, 1.35),  # triangle, down
    _polygon(10, 1 / 4, 1.5, 0.45),  # star
    _polygon(6, 0, 1.1),  # hexagon
    _polygon(8, 0, 1.5, 0.4),  # four-pointed star
)
"""The shapes of looks.py, as corners: the legend and the script of the page draw the same ones."""


@dataclass(frozen=True)
class DataPoint:
    """A figure at a size, with its spread. Not `ranked`: drawn hollow and not joined by a plain line."""

    size: int
    middle: float
    low: float
    high: float
    ranked: bool = True


@dataclass(frozen=True)
class Series:
    """The points of one backend, None where a size has none.

    number   its place among the backends of the page
    name     in ASCII: the font that measures texts has not every letter
    """

    number: int
    look: Look
    points: tuple[DataPoint | None, ...]
    name: str = ""

    @property
    def there(self) -> tuple[DataPoint, ...]:
        """The points that there are."""
        return tuple(point for point in self.points if point is not None)


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `key` begins every id in it; `case` is the function that it is about."""

    key: str
    title: str
    quantity: Literal["seconds", "bytes"]
    series: tuple[Series, ...]
    case: str = ""

    @property
    def in_words(self) -> str:
        """Its content, for those who cannot see it: "tape 1.00 µs at n = 1 to 100 µs at n = 100; jax …"."""
        as_text = formatting.seconds if self.quantity == "seconds" else formatting.byte_size
        lines = []
        for series in self.series:
            ends = dict.fromkeys((series.there[0], series.there[-1]))
            text = " to ".join(f"{as_text(point.middle)} at n = {formatting.count(point.size)}" for point in ends)
            lines.append(f"{series.name} {text}{'' if all(p.ranked for p in series.there) else ', in part not ranked'}")
        return f"{'; '.join(lines)}."

    def drawing(self, height: float) -> Drawing:
        """An empty figure for it."""
        title = f"{self.case}. {self.title}" if self.case else self.title
        return Drawing(WIDTH, height, self.key, title, self.in_words)


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis from `low`, at `first` in the figure, to `high`, at `last`."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """The place of a value."""
        return self.first + (self.last - self.first) * math.log(value / self.low) / math.log(self.high / self.low)


def draw(panel: Panel, sizes: Sequence[int], limits: tuple[float, float]) -> str:
    """The panel as an SVG element. `sizes` are the places on the x axis; `limits` bound the y axis, both positive."""
    drawing, pad = panel.drawing(HEIGHT), max(1.15, (max(sizes) / min(sizes)) ** 0.04)
    across = LogAxis(min(sizes) / pad, max(sizes) * pad, LEFT, RIGHT)
    up = LogAxis(*limits, BOTTOM, TOP)
    for n, label in x_ticks(sizes):
        drawing.text(across.at(n), BOTTOM + APART + ASCENT, "middle", label)
    heights = {value: up.at(value) for value in ticks(*limits)}
    for value, height in heights.items():
        drawing.text(LEFT - APART, height + MIDDLE, "end", formatting.tick(value, panel.quantity))
    stretches = [  # a line bridges neither a gap nor the border between ranked and other points
        (series, [point for point in points if point is not None])
        for series in panel.series
        for ranked, points in groupby(series.points, key=lambda point: point and point.ranked)
        if ranked is not None
    ]
    for series, points in stretches:
        low, high = ([(across.at(p.size), up.at(getattr(p, end))) for p in points] for end in ("low", "high"))
        if low != high:
            drawing.area([*low, *high[::-1]], f"{class_of(series, points[0])} band")
    drawing.segments([((LEFT, y), (RIGHT, y)) for y in heights.values()], 0.7, "grid-lines")
    for series, points in stretches:
        _draw_stretch(drawing, series, points, across, up)
    drawing.text(RIGHT, HEIGHT - 7.245, "end", "n", "axis-name")
    drawing.text(0, 11.34, "start", panel.title, "heading")
    return str(drawing)


def _draw_stretch(drawing: Drawing, series: Series, points: Sequence[DataPoint], across: LogAxis, up: LogAxis) -> None:
    """Whiskers for the spread, a line and filled markers if ranked; hollow markers on dots if not."""
    name, ranked = class_of(series, points[0]), points[0].ranked
    spread = [((across.at(p.size), up.at(p.low)), (across.at(p.size), up.at(p.high))) for p in points]
    if any(low != high for low, high in spread):
        drawing.segments(spread, 1.1, f"{name} spread")
    group, line = drawing.group(name), [(across.at(point.size), up.at(point.middle)) for point in points]
    drawing.curve(group, line, *((1.6, DASHES[series.look.dashes]) if ranked else (1.1, LOOSE)))
    drawing.markers(group, line, marker(series.look), filled=ranked)


def y_limits(values: Sequence[float]) -> tuple[float, float]:
    """Round numbers around the values, at least a decade apart, so that small differences do not look large."""
    low, high = _round_down(min(values)), _round_up(max(values))
    while high / low < 9.99:
        low, high = _round_down(low * 0.99), _round_up(high * 1.01) if high / low * 2 < 9.99 else high
    return low, high


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """1, 2, 5 of each decade where these are few, else powers of ten, thinned out to `most`."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
    fine = [tick for tick in every if low * 0.999 <= tick <= high * 1.001]
    if (len(fine) <= most and last - first < 2) or first == last:
        return fine
    return [10.0**k for k in range(first, last + 1, -(-(last - first) // (most - 1)))]


def x_ticks(sizes: Sequence[int]) -> list[tuple[float, str]]:
    """The sizes themselves where they are few and their labels apart; powers of ten where they are not."""
    places = [(n, _size_label(n)) for n in sorted(set(sizes))]
    span = math.log10(places[-1][0] / places[0][0]) or 1.0
    if all(
        math.log10(b / a) / span > HALF_LETTER * len(left + right + "  ") for (a, left), (b, right) in pairwise(places)
    ):
        return [*places]
    first, last = math.ceil(math.log10(places[0][0])), math.floor(math.log10(places[-1][0]))
    if first >= last:
        return [places[0], places[-1]]
    step = -(-(last - first) // 7) or 1
    return [(10.0**k, formatting.power_of_ten(k)) for k in range(first, last + 1, step)]


def class_of(series: Series, point: DataPoint) -> str:
    """The class that has the colour of the series."""
    return f"series s{series.look.colour} {'ranked' if point.ranked else 'unranked'}"


def marker(look: Look) -> list[Position]:
    """The corners of a marker around 0, in points; down is positive."""
    return [(MARKER_RADIUS * x, -MARKER_RADIUS * y) for x, y in MARKERS[look.marker]]


def _size_label(n: int) -> str:
    exponent = len(str(n)) - 1
    return formatting.power_of_ten(exponent) if n == 10**exponent and n >= 10**4 else formatting.count(n)


def _round_down(value: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is no larger."""
    decade = 10.0 ** math.floor(math.log10(value))
    return max((m * decade for m in (1, 2, 5) if m * decade <= value * (1 + 1e-9)), default=decade / 2)


def _round_up(value: float) -> float:
    """The smallest of 1, 2, 5, 10 times a power of ten that is no smaller."""
    decade = 10.0 ** math.floor(math.log10(value))
    return min((m * decade for m in (1, 2, 5, 10) if m * decade >= value * (1 - 1e-9)), default=decade * 10)
