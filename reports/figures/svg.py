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
    _drop(root, {f"{{{SVG}}}metadata", f"{{{SVG}}}style"})
    _rename_ids(root, key)
    for element in root.iter():
        _style_to_attributes(element)
        _round(element)
        _trim(element)
    _drop_empty(root)
    _unwrap(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"class": "plot", "role": "img", "aria-labelledby": f"{key}-title {key}-desc"}
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        label = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{key}-{tag}"})
        label.text = words
        root.insert(place, label)
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _drop(root: ElementTree.Element, tags: set[str]) -> None:
    for parent in root.iter():
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _drop_empty(parent: ElementTree.Element) -> None:
    """Groups and definitions in which nothing is left."""
    for child in list(parent):
        _drop_empty(child)
        if child.tag in {f"{{{SVG}}}g", f"{{{SVG}}}defs"} and len(child) == 0:
            parent.remove(child)


def _unwrap(parent: ElementTree.Element) -> None:
    """Puts the children of groups that say nothing in the places of these groups: a tenth of the elements is left."""
    for child in list(parent):
        _unwrap(child)
        if child.tag == f"{{{SVG}}}g" and not child.attrib:
            place = list(parent).index(child)
            parent[place : place + 1] = list(child)


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


def _style_to_attributes(element: ElementTree.Element) -> None:
    style = element.attrib.pop("style", None)
    if style is None:
        return
    for rule in style.split(";"):
        name, _, value = (part.strip() for part in rule.partition(":"))
        if name in COLOURS and value != "none":
            value = "currentColor"
        if name in KEPT:
            element.attrib[name] = value


def _trim(element: ElementTree.Element) -> None:
    """White space between elements, and turns by nothing."""
    element.text = element.text if element.text and element.text.strip() else None
    element.tail = None
    if element.attrib.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]


def _round(element: ElementTree.Element) -> None:
    """Two decimals are a hundredth of a point: half the size of the page at no visible cost."""
    for name in ("d", "x", "y", "transform", "viewBox"):
        if name in element.attrib:
            element.attrib[name] = NUMBER.sub(_shorter, element.attrib[name]).replace("  ", " ").strip()


def _shorter(match: re.Match[str]) -> str:
    """Four digits: a tenth of a unit is a hundredth of a line's width, and markers are drawn in units near 0."""
    number = float(match.group())
    return f"{number:.{1 if abs(number) >= 10 else 2}f}".rstrip("0").rstrip(".")
