"""The SVG elements of a figure, a part of a page.

The page's policy forbids style attributes, so that all are plain ones. A figure must be readable on light and on dark
paper, so that every colour is `currentColor`: the style sheet says which, by the class of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

Position = tuple[float, float]
INK = {"stroke": "currentColor"}


class Drawing:
    """A figure; its ids begin with `key`, and title and description are for those who cannot see it."""

    def __init__(self, width: float, height: float, key: str, title: str, description: str) -> None:
        about = {"class": "plot", "role": "img", "aria-labelledby": f"{key}-title {key}-desc"}
        box = f"0 0 {_number(width)} {_number(height)}"
        self._root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box, **about})
        for tag, words in (("title", title), ("desc", description)):
            SubElement(self._root, tag, {"id": f"{key}-{tag}"}).text = words
        self._key = key
        self._markers: dict[tuple[str, bool], str] = {}  # shape, and whether it is filled -> its id

    def __str__(self) -> str:
        return ElementTree.tostring(self._root, encoding="unicode")

    def group(self, name: str) -> Element:
        """A new group of this class."""
        return SubElement(self._root, "g", {"class": name})

    def text(self, x: float, y: float, anchor: str, words: str, group: str = "") -> None:
        """A text whose `anchor` is at x: "start", "middle" or "end"; in a group of its own if that has a name."""
        place = {"x": _number(x), "y": _number(y), "text-anchor": anchor}
        SubElement(self.group(group) if group else self._root, "text", place).text = words

    def segments(self, ends: Iterable[tuple[Position, Position]], width: float, group: str) -> None:
        """Straight lines in one path: a path for each would make half of the elements of a page."""
        path = " ".join(_line(pair) for pair in ends)
        SubElement(self.group(group), "path", {"d": path, "fill": "none", **INK, "stroke-width": f"{width:g}"})

    def area(self, corners: Sequence[Position], group: str) -> None:
        """A polygon that lets what is behind it through."""
        SubElement(self.group(group), "path", {"d": f"{_line(corners)} z", "fill": "currentColor", "opacity": "0.1"})

    def curve(self, group: Element, points: Sequence[Position], width: float, dashes: Sequence[float]) -> None:
        """A line through the points; `dashes`: the lengths of dashes and gaps, in widths of the line."""
        pattern = ",".join(f"{length * width:g}" for length in dashes)
        dashed = {"stroke-dasharray": pattern, "stroke-dashoffset": "0"} if dashes else {}
        ends = {} if dashes else {"stroke-linecap": "square"}
        style = {"fill": "none", **dashed, **INK, "stroke-width": f"{width:g}", **ends}
        SubElement(group, "path", {"d": _line(points), **style})

    def markers(self, group: Element, points: Iterable[Position], corners: Sequence[Position], *, filled: bool) -> None:
        """A polygon at each point, hollow if not filled; the same one is defined once in a figure."""
        edge = {} if filled else {**INK, "stroke-width": "1.1"}
        shape = f"{_line(corners)} z"
        if (shape, filled) not in self._markers:
            self._markers[shape, filled] = name = f"{self._key}-{len(self._markers) + 1}"
            SubElement(SubElement(group, "defs"), "path", {"d": shape, "id": name, **edge})
        inside = {"fill": "currentColor"} if filled else {"fill-opacity": "0"}
        for x, y in points:
            place = {"x": _number(x), "y": _number(y), "href": f"#{self._markers[shape, filled]}"}
            SubElement(group, "use", place | inside | edge)


def _line(points: Iterable[Position]) -> str:
    return "M " + " L ".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """A tenth of a point from 10 on, which is enough for a line, else a hundredth: markers are drawn around 0."""
    value = round(value, 6)  # without the rounding errors of products
    return f"{round(value, 1 if abs(value) >= 10 else 2) + 0.0:.2f}".rstrip("0").rstrip(".")
