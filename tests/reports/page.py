"""Reads a page back as a browser would: elements with their attributes, their text and where they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}


@dataclass
class Element:
    """An element of the page; `text` is all text below it, in order."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def words(self) -> str:
        """The text with runs of white space as one plain space."""
        return " ".join(self.text.split())

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """The elements below with this tag and these attributes; `class_` asks for one of the classes."""
        found = []
        for child in self.children:
            fits = not tag or child.tag == tag
            for name, value in wanted.items():
                if name == "class_":
                    fits = fits and value in child.classes
                else:
                    fits = fits and child.attributes.get(name) == value
            found += [child] * fits + child.all(tag, **wanted)
        return found

    def one(self, tag: str = "", **wanted: str) -> Element:
        found = self.all(tag, **wanted)
        assert len(found) == 1, f"{len(found)} elements {tag} {wanted}"
        return found[0]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.here = Element("", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(element)
        if tag not in VOID:
            self.here = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.here.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.here))

    def handle_endtag(self, tag: str) -> None:
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        above: Element | None = self.here
        while above is not None:
            above.pieces.append(data)
            above = above.parent


def read(html: str) -> Element:
    """The page as a tree; fails where an element is not closed in order."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.here is reader.root, f"<{reader.here.tag}> is never closed"
    return reader.root


def figures(html: str) -> list[str]:
    """The plots, as SVG text."""
    return re.findall(r'<svg [^>]*class="plot".*?</svg>', html, flags=re.S)


def cell(page: Element, kind: str, case: str, size: str, backend: str) -> Element:
    """The cell of a grid (`kind` is its label) in the line of a case and a size, below a backend's head."""
    table = page.one("div", **{"aria-label": kind}).one("table")
    heads = [head.words for head in table.one("thead").all("th")]
    for row in table.one("tbody").all("tr"):
        name, place = row.one("th", scope="row"), row.all("td")[0]
        if name.words == case and place.text.replace("\u202f", "") == size:
            return row.all("td")[heads.index(backend) - 1]
    raise AssertionError(f"no line {case} {size}")
