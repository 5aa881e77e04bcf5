"""A run as the table at the end of `adbench run`: the verdict and the time of each cell, then why cells have none.

Readable without colour: the sign carries the word. Where the backends do not fit side by side the table goes on below.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from adbench.model.record import Run

from ..content import formatting, ranking
from ..content import operator_support as operators
from ..content.cells import Cell, Cells
from ..content.footnotes import Notes
from ..content.formatting import OUTCOMES, Word
from .drawing import drawn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FASTEST = "★"
TIED = "☆"
UNBROKEN = "\u00a0"  # a space at which no line ends
MOST_REASONS = 20
MOST_ABREAST = 12  # backends; more of them, where they do not fit, are told case by case, the fastest first
LONGEST_REASON = 400

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
    "inconclusive": "yellow",
    "wrong": "bold red",
    "crashed": "red",
    "failed": "red",
    "timed_out": "red",
}


def table(run: Run, *, width: int | None = None, colour: bool = False) -> str:
    """The table as text that ends in a newline, no line longer than `width` (by default the terminal's)."""
    return drawn(lambda console: _print(console, run), width=width or shutil.get_terminal_size().columns, colour=colour)


def _print(console: Console, run: Run) -> None:
    cells = Cells(run)
    if not run.records:
        console.print("Nothing was measured: this run holds no record.")
        return
    console.print(_title(cells))
    if cells.timed:
        _print_floor(console, cells)
    texts = _texts(cells)
    if cells.subjects:
        blocks = list(_blocks(cells, texts, console.width))
        if len(blocks) > 1 and len(cells.backends) > MOST_ABREAST:
            _print_lists(console, cells, texts)
        else:
            for backends, widths, gap in blocks:
                console.print()
                _print_block(console, cells, texts, backends, widths, gap)
    if cells.traps:
        console.print()
        _print_traps(console, cells)
    console.print()
    _print_legend(console, cells)
    if len(cells.operators) > 2:
        console.print()
        _print_operators(console, cells)
    _print_reasons(console, cells, Notes(cells))


def _texts(cells: Cells) -> dict[tuple[str, int, str], Text]:
    """What stands in each cell: sign and time, or sign and word."""
    from rich.text import Text

    found: dict[tuple[str, int, str], Text] = {}
    for case, size in cells.places:
        race = ranking.race(cells, case, size)
        leaders = race.leaders if race and race.contested else ()
        leading = FASTEST if race and race.winner else TIED
        for cell in cells.row(case, size):
            sign = leading if cell in leaders else OUTCOMES[cell.word].sign
            style = "bold green" if sign == FASTEST else STYLES.get(cell.word, "")
            found[case, size, cell.job.backend] = Text(f"{sign} {_figure(cell, cells.timed)}", style)
    return found


def _print_floor(console: Console, cells: Cells) -> None:
    """What the ratios stand on: the control, the margin, the clock's own loop."""
    from rich.text import Text

    floor, run = cells.findings.floor, cells.findings.run
    style = ""
    if floor.reach is None:
        told = f"No noise floor: {formatting.short(floor.reason or 'nothing was measured twice', 120)}."
    else:
        told = f"Noise floor {formatting.percent(floor.reach)}, margin {formatting.percent(cells.findings.margin)}."
        if floor.noisy:
            style = "bold yellow"
            told = f"NOISY, nothing should be gated by this run. {told}"
    if run.loop_overhead_ns is not None:
        told += f" The clock's loop takes {formatting.seconds(run.loop_overhead_ns * 1e-9)} a call."
    for line in textwrap.wrap(told, console.width):  # which does not break at the narrow spaces within a figure
        console.print(Text(_plain(line), style))


def _print_lists(console: Console, cells: Cells, texts: dict[tuple[str, int, str], Text]) -> None:
    """For each case and size the backends, fastest first, as running text; those without a figure by their word."""
    from rich.text import Text

    for case, size in cells.places:
        console.print()
        console.print(
            Text(f"{formatting.short(case, console.width - 12)}, n = {_plain(formatting.count(size))}", "bold")
        )
        line, room = Text(), console.width
        for item in _items(cells, texts, case, size):
            item.truncate(console.width, overflow="ellipsis")
            if line and line.cell_len + 3 + item.cell_len > room:
                console.print(line)
                line = Text()
            line += Text("   ") + item if line else item
        console.print(line)


def _items(cells: Cells, texts: dict[tuple[str, int, str], Text], case: str, size: int) -> Iterator[Text]:
    from rich.text import Text

    row = cells.row(case, size)
    timed = [(cell.spread.median, cell) for cell in row if cell.spread]
    for _, cell in sorted(timed, key=lambda pair: (not pair[1].ranked, pair[0])):
        sign, _, figure = texts[case, size, cell.job.backend].plain.partition(" ")
        style = texts[case, size, cell.job.backend].style
        yield Text(f"{sign} {formatting.short(cell.job.backend, 24)} {figure}", style)
    for word in OUTCOMES:
        names = [formatting.short(cell.job.backend, 24) for cell in row if cell.word == word and not cell.spread]
        if names:
            label = SHORT_LABELS.get(word, OUTCOMES[word].label)
            first, *others = names
            yield Text(f"{OUTCOMES[word].sign} {label}: {first}", STYLES.get(word, ""))
            yield from (Text(name, STYLES.get(word, "")) for name in others)


def _title(cells: Cells) -> str:
    if not cells.timed:
        what = formatting.listed(cells.operators) if len(cells.operators) < 4 else f"{len(cells.operators)} operators"
        return f"Checked: {formatting.short(what, 60)}"
    operator = " or ".join(formatting.short(shown, 30).replace("_", " ") for shown in cells.shown)
    return f"Time per call of {_plain(operator)}, median over launches"


def _figure(cell: Cell, timed: bool) -> str:
    if cell.spread:
        return _plain(formatting.seconds(cell.spread.median))
    if cell.measured and timed:
        return formatting.MISSING
    return SHORT_LABELS.get(cell.word, OUTCOMES[cell.word].label)


def _blocks(
    cells: Cells, texts: dict[tuple[str, int, str], Text], width: int
) -> Iterator[tuple[Sequence[str], Sequence[int], int]]:
    """(backends, widths, gap) of tables that fit below each other, each with as many backends as fit side by side."""
    needed = {b: max(texts[case, size, b].cell_len for case, size in cells.places) for b in cells.backends}
    wanted = {b: max(needed[b], _longest_part(b)) for b in cells.backends}
    first = _size_width(cells)
    for widths, gap in ((wanted, 2), (needed, 1)):
        if first + sum(w + gap for w in widths.values()) <= width:
            yield cells.backends, list(widths.values()), gap
            return
    block: list[str] = []
    for backend in cells.backends:
        if block and first + sum(wanted[b] + 2 for b in (*block, backend)) > width:
            yield block, [wanted[b] for b in block], 2
            block = []
        block.append(backend)
    yield block, [min(wanted[b], max(1, width - first - 2)) for b in block], 2


def _print_block(
    console: Console,
    cells: Cells,
    texts: dict[tuple[str, int, str], Text],
    backends: Sequence[str],
    widths: Sequence[int],
    gap: int,
) -> None:
    """One table for each case under a common head: in rich no cell spans columns, as the name of a case must."""
    from rich.table import Table
    from rich.text import Text

    def lines() -> Table:
        found = Table(box=None, show_header=False, padding=(0, gap, 0, 0), pad_edge=False)
        for width in (_size_width(cells), *widths):
            found.add_column(justify="right", width=width, no_wrap=True, vertical="bottom")
        return found

    head = lines()
    head.add_row("n", *map(_head, backends, widths), style="bold")
    console.print(head)
    for case in cells.subjects:
        console.print(Text(formatting.short(case, console.width), "bold"))
        body = lines()
        for size in cells.sizes[case]:
            body.add_row(_plain(formatting.count(size)), *(texts[case, size, b] for b in backends))
        console.print(body)


def _print_traps(console: Console, cells: Cells) -> None:
    """Trap × backend, one sign each: there are many, and most words would be the same."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("trap", overflow="fold")
    for backend in cells.backends:
        table.add_column(Text(formatting.short(backend, 12)), justify="center", no_wrap=True)
    for trap in cells.traps:
        row = [cells.cell(trap, cells.sizes[trap][0], backend) for backend in cells.backends]
        signs = [Text(OUTCOMES[cell.word].sign, STYLES.get(cell.word, "")) for cell in row]
        table.add_row(Text(formatting.short(trap.removeprefix("trap_"), 40)), *signs)
    console.print(table)


def _head(backend: str, width: int) -> str:
    """A name over several lines, broken after underscores; what is still too long loses its middle."""
    lines: list[str] = []
    for part in _parts(backend):
        if lines and len(lines[-1]) + len(part) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return "\n".join(formatting.short(line, width) for line in lines[:3])


def _parts(backend: str) -> list[str]:
    name = formatting.short(backend, 40)
    return [part for part in name.replace("_", "_\n").replace("-", "-\n").split("\n") if part] or [" "]


def _longest_part(backend: str) -> int:
    return min(14, max(map(len, _parts(backend))))


def _size_width(cells: Cells) -> int:
    return max((len(formatting.count(size)) for _, size in cells.places), default=1)


def _print_operators(console: Console, cells: Cells) -> None:
    """Backend × operator: the library's own, made from others, or none; with a count where some cells have none."""
    from rich.table import Table
    from rich.text import Text

    found = operators.offers(cells)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("operator", overflow="fold")
    for backend in cells.backends:
        table.add_column(Text(formatting.short(backend, 24)), overflow="fold")
    for operator in (op for op in cells.operators if any(key[1] == op for key in found)):
        row = [Text(operator)]
        for backend in cells.backends:
            offer = found.get((backend, operator))
            row.append(Text(_offered(offer) if offer else ""))
        table.add_row(*row)
    console.print(table)


def _offered(offer: operators.Offer) -> str:
    if offer.how == "no":
        return f"{OUTCOMES['unsupported'].sign} no"
    some = "" if offer.right == offer.asked else f" ({offer.right} of {offer.asked})"
    return f"{offer.how}{some}"


def _print_legend(console: Console, cells: Cells) -> None:
    there = {cell.word for case in cells.cases for size in cells.sizes[case] for cell in cells.row(case, size)}
    races = [race for case, size in cells.places if (race := ranking.race(cells, case, size))]
    signs = [f"{FASTEST} right and fastest"] if any(race.winner for race in races) else []
    signs += [f"{TIED} right, not told from the fastest"] if any(len(race.leaders) > 1 for race in races) else []
    signs += [f"{outcome.sign} {outcome.label}" for word, outcome in OUTCOMES.items() if word in there]
    untimed = any(c.measured and not c.spread for backend in cells.backends for c in cells.column(backend))
    signs += [f"{formatting.MISSING} not timed"] if untimed and cells.timed else []
    legend = "   ".join(sign.replace(" ", UNBROKEN) for sign in signs)
    console.print("\n".join(_plain(line) for line in textwrap.wrap(legend, console.width)))


def _print_reasons(console: Console, cells: Cells, notes: Notes) -> None:
    """One entry for each distinct reason, graver ones first: who, why, where."""
    from rich.text import Text

    grouped: dict[tuple[Word, str], list[Cell]] = {}
    known = 0
    for note in notes.failures:
        if note.word == "known":  # by the dozen, and no news
            known += len(note.cells)
            continue
        grouped.setdefault((note.word, note.reason), []).extend(note.cells)
    if grouped or known:
        console.print()
    for (word, reason), group in list(grouped.items())[:MOST_REASONS]:
        who = formatting.listed(formatting.short(b, 30) for b in dict.fromkeys(cell.job.backend for cell in group))
        sign = OUTCOMES[word].sign
        where = _where(group, cells.shown if cells.timed else ())
        line = f"{sign} {who}: {formatting.short(reason, LONGEST_REASON)} [{where}]"
        lines = textwrap.wrap(line, console.width, subsequent_indent="  ", break_on_hyphens=False)
        text = Text(_plain("\n".join(lines)))
        text.stylize(STYLES.get(word, ""), 0, len(sign))
        console.print(text)
        again = next((cell.record.reproduce for cell in group if cell.record and cell.record.reproduce), None)
        if again and OUTCOMES[word].bad:
            # Not broken into lines: it is there to be copied.
            console.print(Text(f"  again: {again}", "dim"), soft_wrap=True)
    if known:
        what = "fault is as it is known to be" if known == 1 else "faults are as they are known to be"
        console.print(f"{OUTCOMES['known'].sign} {known} {what}; --json has the reasons.")
    if len(grouped) > MOST_REASONS:
        console.print(f"… and {len(grouped) - MOST_REASONS} more reasons; the page lists all of them.")


def _where(group: Sequence[Cell], shown: Sequence[str]) -> str:
    """One place by name, more as a count; the operators where they are not those that the table shows."""
    places = dict.fromkeys((cell.job.case, cell.job.size) for cell in group)
    operators = dict.fromkeys(cell.job.operator for cell in group)
    case, size = next(iter(places))
    where = f"{formatting.short(case, 30)}, n = {formatting.count(size)}" if len(places) == 1 else ""
    what = "" if operators.keys() & set(shown) else f" of {formatting.short(formatting.listed(operators), 40)}"
    return (where or formatting.plural(len(places), "cell")) + what


def _plain(text: str) -> str:
    """Ordinary spaces: not every terminal's font has the narrow one, and people search for what they see."""
    return text.replace("\u202f", " ").replace(UNBROKEN, " ")
