"""The first screen in the terminal: errors, a line for each case, a summary, the page, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...content import formatting, standings
from ...content.cells import Cells
from ...content.formatting import OUTCOMES, Word
from ...content.heat_map import CaseLine, case_lines
from ...content.traps import reasons
from ..marks import (
    FASTEST,
    MEANINGS,
    NONE,
    OWN_MEANS,
    STYLES,
    TIED,
    entry,
    head,
    label,
    legend,
    longest_part,
    marked,
    plain,
    wrapped,
)
from .ending import Ending, commands
from .summary import sentences

ABOUT = 15  # columns of a summary line's subject
NARROW = 40  # columns; in fewer, the entries of a case follow its name as text


class Column(NamedTuple):
    """A column of the table: its head, and one text with a style for each line."""

    head: str
    texts: Sequence[Text]
    width: int
    left: bool = False


class Layout(NamedTuple):
    """How much room to give: the gap between columns, the widest case and head, and whether memory has a column."""

    gap: int
    case: int
    head: int
    memory: bool


LAYOUTS = (Layout(2, 24, 14, True), Layout(1, 20, 8, True), Layout(1, 18, 8, False))
"""From roomy to tight; the first in which the backends need the fewest tables counts."""


def parts(cells: Cells, width: int) -> Iterator[RenderableType]:
    """What to print, from top to bottom."""
    yield from _races(cells, width) if cells.timed and cells.subjects else _checked(cells, width)
    yield Text()
    for sentence in sentences(cells):
        yield _line(sentence.about, sentence.text, width)
    known = [] if cells.timed else [*reasons.lines(cells, width, more="--details")]
    yield from map(Text, ["", *known] if known else [])


def end(cells: Cells, width: int, ending: Ending) -> Iterator[Text]:
    """Where the page is, the command that prints the details, and what to type next."""
    yield Text()
    if ending.page:
        yield _command("Page", str(ending.page))
    if ending.more:
        yield _command("Details", ending.more)
    for about, (command, good_for) in zip(("Next", ""), commands(cells, ending), strict=True):
        line = f"{command}  # {good_for}"
        yield _command(about, line if ABOUT + len(line) <= width else command)
    run = cells.findings.run
    if run.settings.get("quick") and cells.timed:
        yield _line(
            "Compare", "a quick run is too short for a decision by adbench compare; measure both runs by", width
        )
        yield _command("", f"adbench run{ending.options(run, '-c', '-b', '-n')}")


def _line(about: str, text: str, width: int) -> Text:
    """A line of the summary. Where the terminal is narrow, what it is about is a part of the sentence."""
    prefix, indent = (f"{about:<{ABOUT}}", " " * ABOUT) if width >= 2 * NARROW - ABOUT else (f"{about}: ", "  ")
    line = Text(wrapped(prefix.replace(" ", "\u00a0") + text, width, indent))
    line.stylize("bold", 0, len(about))
    return line


def _command(about: str, command: str) -> Text:
    line = Text(f"{about:<{ABOUT}}{formatting.visible(command)}", no_wrap=True)
    line.stylize("bold", 0, len(about))
    return line


def _races(cells: Cells, width: int) -> Iterator[RenderableType]:
    """A line for each case: slowdowns by backend, then the time and memory of the fastest."""
    operator = " or ".join(formatting.short(shown, 30).replace("_", " ") for shown in cells.shown)
    (lines, _), backends = case_lines(cells), standings.arranged(cells).backends
    layouts = [(layout, _tables(cells, lines, backends, width, layout)) for layout in LAYOUTS]
    layout, tables = min(layouts, key=lambda pair: len(pair[1]))  # backends that do not fit go below
    memory = " and memory" if layout.memory and any(line.bytes is not None for line in lines) else ""
    figures = f", and its time{memory}" if width >= NARROW else ""
    yield Text(wrapped(f"Slowdown of the {operator} relative to the fastest{figures}", width), "bold")
    if width < NARROW:
        yield from _stacked(cells, lines, backends, width)
    else:
        for number, table in enumerate(tables):
            yield from [Text()] if number else []
            between = [_column(cells, lines, backend, layout) for backend in table]
            yield _table(_around(lines, layout, between, is_first=not number), layout.gap)
    signs = list(_meanings(lines, backends))
    if signs := signs + ([OWN_MEANS] if any(marked(cells, backend) != backend for backend in backends) else []):
        yield legend(signs, width)


def _meanings(lines: Sequence[CaseLine], shown: Sequence[str]) -> Iterator[str]:
    """Of the signs that occur."""
    entries = {entry(line.race, line.cells[backend]) for line in lines for backend in shown}
    for sign in (FASTEST, TIED):
        if any(text.startswith(sign) for text in entries):
            yield f"{sign} {MEANINGS[sign]}"
    there = {line.cells[backend].word for line in lines for backend in shown} - {"right", "not_run"}
    yield from (formatting.legend(word) for word in OUTCOMES if word in there)
    if NONE in entries:
        yield f"{NONE} not measured"


def _tables(
    cells: Cells, lines: Sequence[CaseLine], backends: Sequence[str], width: int, layout: Layout
) -> list[list[str]]:
    """The backends of each table, in order; the first also has the figures of the fastest."""
    tables: list[list[str]] = []
    room = 0
    for backend in backends:
        needed = _column(cells, lines, backend, layout).width + layout.gap
        if needed > room or not tables:
            around = _around(lines, layout, [], is_first=not tables)
            room = width - sum(column.width + layout.gap for column in around) + layout.gap
            tables.append([])
        tables[-1].append(backend)
        room -= needed
    return tables


def _table(columns: Sequence[Column], gap: int) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        justify: Literal["left", "right"] = "left" if column.left else "right"
        table.add_column(Text(column.head), justify=justify, no_wrap=True, width=column.width, vertical="bottom")
    for row in zip(*(column.texts for column in columns), strict=True):
        table.add_row(*row)
    return table


def _around(lines: Sequence[CaseLine], layout: Layout, between: Sequence[Column], *, is_first: bool) -> list[Column]:
    """The columns of the backends between those of the case and, in the first table, those of the fastest."""
    before = [
        _plain_column("", [formatting.short(line.case, layout.case) for line in lines], left=True),
        _plain_column("n", [formatting.short_count(line.size) for line in lines]),
    ]
    if not is_first:
        return [*before, *between]
    times = [formatting.MISSING if line.seconds is None else formatting.seconds(line.seconds) for line in lines]
    peaks = [formatting.MISSING if line.bytes is None else formatting.byte_size(line.bytes) for line in lines]
    after = [_plain_column("its\ntime", times)] if set(times) != {formatting.MISSING} else []
    after += [_plain_column("its\nmemory", peaks)] if layout.memory and set(peaks) != {formatting.MISSING} else []
    return [*before, *between, *after]


def _plain_column(title: str, texts: Sequence[str], *, left: bool = False) -> Column:
    found = [Text(plain(text)) for text in texts]
    return Column(title, found, max(cell_len(text) for text in (*title.split("\n"), *texts)), left)


def _column(cells: Cells, lines: Sequence[CaseLine], backend: str, layout: Layout) -> Column:
    texts, name = [_entry(line, backend) for line in lines], marked(cells, backend)
    needed = max(max(text.cell_len for text in texts), longest_part(name, layout.head))
    return Column(head(name, needed), texts, needed)


def _entry(line: CaseLine, backend: str) -> Text:
    text, word = entry(line.race, line.cells[backend]), line.cells[backend].word
    return Text(text, "bold green" if text.startswith(FASTEST) else STYLES.get(word, "") if word != "right" else "")


def _stacked(cells: Cells, lines: Sequence[CaseLine], backends: Sequence[str], width: int) -> Iterator[Text]:
    """Where columns do not fit: the case, and below it its entries as running text."""
    for line in lines:
        yield Text(formatting.short(f"{line.case}, n = {plain(formatting.short_count(line.size))}", width), "bold")
        names = {backend: formatting.short(marked(cells, backend), 10) for backend in backends}
        entries = [f"{name} {entry(line.race, line.cells[backend])}" for backend, name in names.items()]
        yield Text(wrapped(", ".join(text.replace(" ", "\u00a0") for text in entries), width))


def _checked(cells: Cells, width: int) -> Iterator[RenderableType]:
    """A check: how many results of each backend came out with each word."""
    kinds = (cells.subjects, "case"), (cells.traps, "trap")
    where = [formatting.plural(len(found), one) for found, one in kinds if found]
    yield Text(wrapped(f"Checked {cells.asked} on {' and '.join(where)}", width), "bold")
    counts = cells.outcomes
    total = sum(counts.values(), Counter[Word]())
    words = [word for word in OUTCOMES if total[word]]
    bad = [word for word in OUTCOMES if OUTCOMES[word].bad]
    backends = sorted(counts, key=lambda b: (-sum(counts[b][word] for word in bad), -counts[b]["right"]))
    yield from _counted(counts, backends, words, width)


def _counted(
    counts: dict[str, Counter[Word]], backends: Sequence[str], words: Sequence[Word], width: int
) -> Iterator[RenderableType]:
    """A line for each backend, a column for each word; where that is too wide, the signs are explained below."""
    names = [formatting.short(backend, 24 if width >= 2 * NARROW else 8) for backend in backends]
    numbers = {w: [formatting.count(counts[b][w]) if counts[b][w] else NONE for b in backends] for w in words}

    def columns(heads: dict[Word, str]) -> list[Column]:
        return [_plain_column("", names, left=True), *(_plain_column(heads[w], numbers[w]) for w in words)]

    labelled = columns({w: f"{OUTCOMES[w].sign} {label(w)}" for w in words})
    if sum(column.width + 2 for column in labelled) - 2 <= width:
        yield _table(labelled, 2)
        return
    yield _table(columns({w: OUTCOMES[w].sign for w in words}), 1)
    yield legend([formatting.legend(word) for word in words], width)
