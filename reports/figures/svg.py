"""Turns the SVG that matplotlib writes into a part of a page.

Three things must change. A page may hold many figures, so ids get a prefix, and unused ids go. The
page's policy forbids style attributes, so they become plain attributes. And a figure must be readable on light and on
dark paper, so that every colour becomes `currentColor`: the style sheet says which, by the class of the group.
"""

from __future__ import annotations

import re
from itertools import count
from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
GROUP, DEFINITIONS, METADATA, STYLE = (f"{{{SVG}}}{tag}" for tag in ("g", "defs", "metadata", "style"))

CLASS = "class:"
"""An artist whose gid begins so becomes a group of the class that follows."""

KEPT = {
    "fill",
    "fill-opacity",
    "opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
}
COLOURS = {"fill", "stroke"}
NUMBER = re.compile(r"-?\d+\.\d+")


def embedded(text: str, key: str, title: str, description: str) -> str:
    """The SVG as an element for a page: ids begin with `key`, title and description are for those who cannot see it."""
    root = ElementTree.fromstring(text)
    _rename_ids(root, key)
    _kept(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"class": "plot", "role": "img", "aria-labelledby": f"{key}-title {key}-desc"}
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        label = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{key}-{tag}"})
        label.text = words
        root.insert(place, label)
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _kept(element: ElementTree.Element) -> list[ElementTree.Element]:
    """What is left of an element: itself with fewer attributes, or of a group that says nothing its children.

    Nothing is left of empty groups, of white space between elements, and of turns by nothing. Two decimals are a
    hundredth of a point: half the size of the page at no visible cost.
    """
    children = [kept for child in element for kept in _kept(child)]
    if element.tag in (METADATA, STYLE) or (element.tag in (GROUP, DEFINITIONS) and not children):
        return []
    attributes = element.attrib
    for rule in attributes.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in rule.partition(":"))
        if name in KEPT:
            attributes[name] = "currentColor" if name in COLOURS and value != "none" else value
    for name in attributes.keys() & {"d", "x", "y", "transform", "viewBox"}:
        attributes[name] = NUMBER.sub(_shorter, attributes[name]).replace("  ", " ").strip()
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if element.tag == GROUP and not attributes:
        return children
    element[:] = children
    element.text = element.text if element.text and element.text.strip() else None
    element.tail = None
    return [element]


def _rename_ids(root: ElementTree.Element, key: str) -> None:
    """Numbers the ids that are referred to; an id that asks to be a class becomes one; the others go.

    matplotlib derives ids from contents, so that equal markers in two figures of one page would share an id.
    """
    used = {element.attrib[HREF].removeprefix("#") for element in root.iter() if HREF in element.attrib}
    numbers = count(1)
    new: dict[str, str] = {}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old is None:
            continue
        if old.startswith(CLASS):
            element.attrib["class"] = old.removeprefix(CLASS)
        elif old in used:
            new[old] = f"{key}-{next(numbers)}"
            element.attrib["id"] = new[old]
    for element in root.iter():
        if HREF in element.attrib:
            element.attrib["href"] = f"#{new[element.attrib.pop(HREF).removeprefix('#')]}"


def _shorter(match: re.Match[str]) -> str:
    """Four digits: a tenth of a unit is a hundredth of a line's width, and markers are drawn in units near 0."""
    number = float(match.group())
    return f"{number:.{1 if abs(number) >= 10 else 2}f}".rstrip("0").rstrip(".")
