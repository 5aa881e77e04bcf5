"""Log–log plots as SVG text, by matplotlib. panels.py decides the contents, dots.py draws what has one size.

The same panel gives the same bytes. Colours come from the page's style sheet, by class: `s0`, `s1`, … for series (see
looks.py), `grid-lines` for the rest.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Literal

from adbench.optional import library
from adbench.results.scaling import Quantity

from ..content import formatting
from . import svg
from .looks import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 5.6, 3.5  # inches of 72 points; the page scales the figure to its column
HALF_LETTER = 0.0125  # of the x axis, in the largest type that a page shows a figure in
MARKER_SIZE = 6.2
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
Segment = tuple[tuple[float, float], tuple[float, float]]
INK = "#123456"  # any colour but black, which matplotlib leaves unsaid: the page puts its own in its place
Unit = Literal["seconds", "bytes"]
LOOSE = (0, (1.5, 3))  # between points that are not ranked


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
    """One pair of axes. `key` begins every id in it; `case` is the function that it is about.

    label      what its lines are, in words: the `operator` and, if they are fitted, the quantity of the `fit`
    """

    key: str
    title: str
    quantity: Unit
    series: tuple[Series, ...]
    case: str = ""
    label: str = ""
    operator: str = ""
    fit: Quantity | None = None

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


@contextmanager
def style() -> Iterator[None]:
    """Our own settings, whatever the user's matplotlibrc says; entered once for all figures of a page."""
    matplotlib = library("matplotlib", "a plot")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.fonttype": "none",  # text stays text: it takes the page's font and colour
                "svg.hashsalt": "adbench",
                "font.size": 10,
                "axes.axisbelow": True,
                "path.simplify": False,
            }
        )
        yield


def draw(panel: Panel, sizes: Sequence[int], limits: tuple[float, float]) -> str:
    """The panel as an SVG element. `sizes` are the places on the x axis; `limits` bound the y axis, both positive."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_axes((0.135, 0.13, 0.845, 0.75))
    y = set_scales(axes, panel, sizes, limits)
    left, right = axes.get_xlim()
    strip(figure, axes, [((left, at), (right, at)) for at in y], panel.title, 0.955)
    axes.text(1.0, -0.135, "n", transform=axes.transAxes, ha="right", va="baseline", gid=f"{svg.CLASS}axis-name")
    for series in panel.series:
        draw_series(axes, series)
    return as_svg(figure, panel)


def as_svg(figure: Figure, panel: Panel) -> str:
    """The figure as a part of a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    title = f"{panel.case}. {panel.title}" if panel.case else panel.title
    return svg.embedded(buffer.getvalue(), panel.key, title, panel.in_words)


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


def set_scales(axes: Axes, panel: Panel, sizes: Sequence[int], limits: tuple[float, float]) -> list[float]:
    """Make both axes logarithmic, with our ticks; returns the ticks of the y axis."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    pad = max(1.15, (max(sizes) / min(sizes)) ** 0.04)
    axes.set_xlim(min(sizes) / pad, max(sizes) * pad)
    axes.set_ylim(*limits)
    x, y = x_ticks(sizes), ticks(*limits)
    set_ticks(axes.xaxis, [n for n, _ in x], [label for _, label in x])
    set_ticks(axes.yaxis, y, [formatting.tick(value, panel.quantity) for value in y])
    return y


def set_ticks(axis: Axis, at: Sequence[float], labels: Sequence[str]) -> None:
    """These ticks and no others."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(at))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())


def strip(figure: Figure, axes: Axes, rules: Sequence[Segment], title: str, height: float) -> None:
    """Leave grid lines instead of spines, paper and tick marks; the title begins at the left edge of the figure."""
    figure.patch.set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.patch.set_visible(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    draw_segments(axes, rules, 0.7, f"{svg.CLASS}grid-lines")
    figure.text(0, height, title, fontsize=10.5, parse_math=False, gid=f"{svg.CLASS}heading")


def draw_series(axes: Axes, series: Series) -> None:
    """A band and whiskers for the spread, a line and filled markers where ranked; hollow markers on dots where not."""
    look = series.look
    for ranked, group in groupby(series.points, key=lambda p: p and p.ranked):
        points = [point for point in group if point is not None]
        if not points:
            continue
        x = [p.size for p in points]
        name = class_of(series, ranked=bool(ranked))
        middle, low, high = ([getattr(p, f) for p in points] for f in ("middle", "low", "high"))
        if low != high:
            band = [*x, *x[::-1]], [*low, *high[::-1]]
            axes.fill(*band, alpha=0.1, linewidth=0, color=INK, clip_on=False, gid=f"{name} band")
            whiskers = [((p.size, p.low), (p.size, p.high)) for p in points]
            draw_segments(axes, whiskers, 1.1, f"{name} spread")
        axes.plot(
            x,
            middle,
            linestyle=DASHES[look.dashes] if ranked else LOOSE,
            linewidth=1.6 if ranked else 1.1,
            clip_on=False,
            gid=name,
            **marker_style(look, ranked=bool(ranked)),
        )


def class_of(series: Series, *, ranked: bool) -> str:
    """The gid that makes an artist a group of the class that has the colour of the series."""
    return f"{svg.CLASS}series s{series.look.colour} {'ranked' if ranked else 'unranked'}"


def marker_style(look: Look, *, ranked: bool) -> dict[str, Any]:
    """Filled if ranked, else hollow."""
    from matplotlib.path import Path

    corners = MARKERS[look.marker]
    return {
        "marker": Path([*corners, corners[0]], closed=True),  # without its last edge a hollow one would look broken
        "markersize": MARKER_SIZE * max(abs(c) for corner in corners for c in corner),  # matplotlib scales to this
        "color": INK,
        "markerfacecolor": INK if ranked else "none",
        "markeredgecolor": "none" if ranked else INK,
        "markeredgewidth": 0 if ranked else 1.1,
    }


def draw_segments(axes: Axes, segments: Sequence[Segment], width: float, name: str) -> None:
    """Straight lines in one path: a path for each would make half of the elements of a page."""
    x = [value for (a, _), (b, _) in segments for value in (a, b, math.nan)]
    y = [value for (_, a), (_, b) in segments for value in (a, b, math.nan)]
    axes.plot(x, y, linewidth=width, color=INK, clip_on=False, solid_capstyle="butt", gid=name)


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
