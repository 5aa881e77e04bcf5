"""Signs, styles and wrapped lines that the overview and the details share."""

from __future__ import annotations

import textwrap

from rich.text import Text

from ..content import formatting, standings
from ..content.cells import Cell, Cells
from ..content.formatting import OUTCOMES, Word
from ..content.ranking import Lead

FASTEST = "★"
TIED = "☆"
MEANINGS = {FASTEST: "correct and significantly fastest", TIED: "correct, tied for fastest"}
OWN_MEANS = f"{formatting.OWN} adbench's own engine; --without-own ranks without it"
UNBROKEN = "\u00a0"  # a space at which no line ends
NONE = "–"  # not part of the run, or not timed

SHORT_LABELS: dict[Word, str] = {
    "timed_out": "timeout",
    "unsupported": "unsupp.",
    "inconclusive": "unsure",
    "approximate": "approx.",
}
"""Where the page's label is too long for a column."""

STYLES: dict[Word, str] = {
    "right": "green",
    "approximate": "yellow",
    "verified": "yellow",
    "blind": "dim",
    "inconclusive": "yellow",
    "wrong": "bold red",
    "crashed": "red",
    "failed": "red",
    "timed_out": "red",
}


def mark(race: Lead | None, cell: Cell) -> str:
    """★ or ☆ for a cell that leads a race with others; empty for every other."""
    return {"fastest": FASTEST, "tie": TIED, "": ""}[race.place(cell)] if race else ""


def entry(race: Lead | None, cell: Cell) -> str:
    """A cell in the line of its case: its sign and its slowdown relative to the fastest correct one.

    Of an approximate or unverified result too: its time is a fact, even if it is not ranked.
    """
    if cell.word == "not_run" or (cell.measured and cell.spread is None):
        return NONE
    first, contested = (race.leaders[0].spread, race.contested) if race else (None, False)
    sign = mark(race, cell) or ("" if cell.ranked and contested else cell.sign)
    if first is None or cell.spread is None or (cell.ranked and not contested):
        return sign
    ranked = standings.slowdown(race, cell)
    slowdown = formatting.slowdown(cell.spread.median / first.median if ranked is None else ranked)
    return f"{sign} {slowdown}".strip()


def marked(cells: Cells, backend: str) -> str:
    """A backend's name, after its mark if it is adbench's own engine."""
    return formatting.OWN + backend if cells.is_own(backend) else backend


def label(word: Word) -> str:
    """A word in at most 9 columns."""
    return SHORT_LABELS.get(word, OUTCOMES[word].label)


def wrapped(line: str, width: int, indent: str = "  ") -> str:
    """The line, with its further lines indented; textwrap does not break at the narrow spaces within a figure."""
    return plain("\n".join(textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)))


def legend(signs: list[str], width: int) -> Text:
    """Signs and their meanings; no line ends within one."""
    line = "   ".join(sign.replace(" ", UNBROKEN) for sign in signs)
    return Text(wrapped(line, width, ""))


def plain(text: str) -> str:
    """Ordinary spaces: not every terminal's font has the narrow one, and people search for what they see."""
    return text.replace("\u202f", " ").replace(UNBROKEN, " ")


def head(name: str, width: int) -> str:
    """A name over several lines, broken after underscores; a part that is too long loses its middle."""
    lines: list[str] = []
    for part in _pieces(name):
        if lines and len(lines[-1]) + len(part) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return "\n".join(formatting.short(line, width) for line in lines[:3])


def longest_part(name: str, most: int = 14) -> int:
    """The width that the longest part of a name needs in a head."""
    return min(most, max(map(len, _pieces(name))))


def _pieces(name: str) -> list[str]:
    shown = formatting.short(name, 40)
    return [part for part in shown.replace("_", "_\n").replace("-", "-\n").split("\n") if part] or [" "]
