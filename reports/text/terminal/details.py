"""The details of a run: the verdict and the time of each cell, the operators, and the reason for each gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adbench.doctor.findings import in_words
from adbench.model.record import grouped
from adbench.results.scaling import limits

from ...content import formatting, operator_support, ranking
from ...content.cells import Cell, Cells
from ...content.footnotes import Footnotes
from ...content.formatting import OUTCOMES, Word
from ...content.traps import reasons
from ..marks import (
    FASTEST,
    MEANINGS,
    OWN_MEANS,
    SHORT_LABELS,
    STYLES,
    head,
    label,
    legend,
    longest_part,
    mark,
    marked,
    plain,
    wrapped,
)
from .faults import again

LONGEST_REASON = 400

Texts = dict[tuple[str, int, str], Text]  # (case, size, backend) -> the text of a cell


def parts(cells: Cells, width: int) -> Iterator[RenderableType]:
    """What to print, from top to bottom."""
    yield _title(cells)
    if cells.timed:
        yield _floor(cells, width)
    if cells.subjects:
        texts = _texts(cells)
        columns = _columns(cells, texts, width)
        yield from _lists(cells, texts, width) if columns is None else _side_by_side(cells, texts, *columns, width)
        yield from _limits(cells, width)
    if cells.traps:
        yield ""
        yield _traps(cells)
    proved, compared = cells.proved
    if proved:
        yield ""
        yield f"Compared with proved values: {proved} of {formatting.plural(compared, 'result')}."
    yield ""
    yield _legend(cells, width)
    if len(cells.operators) > 2 and cells.subjects:
        yield ""
        yield _operators(cells)
    yield from _reasons(cells, width)


def _texts(cells: Cells) -> Texts:
    """The text of each cell: sign and time, or sign and word."""
    found: Texts = {}
    for case, size in cells.places:
        race = ranking.race(cells, case, size)
        for cell in cells.row(case, size):
            sign = mark(race, cell) or cell.sign
            style = "bold green" if sign == FASTEST else STYLES.get(cell.word, "")
            found[case, size, cell.job.backend] = Text(_entry(sign, cell, cells.timed), style)
    return found


def _floor(cells: Cells, width: int) -> Text:
    """The noise floor and the margin, which the ratios rest on, and the time of the clock's own loop."""
    floor, run = cells.findings.floor, cells.findings.run
    if floor.reach is None:
        line = f"No noise floor: {formatting.short(floor.reason or 'nothing was measured twice', 120)}."
    else:
        line = f"Noise floor {formatting.percent(floor.reach)}, margin {formatting.percent(cells.findings.margin)}."
    if floor.noisy:
        line = f"NOISY: too noisy for pass/fail decisions. {line}"
    if run.loop_overhead_ns is not None:
        line += f" The clock's loop takes {formatting.seconds(run.loop_overhead_ns * 1e-9)} a call."
    return Text(wrapped(line, width, ""), "bold yellow" if floor.noisy else "")


def _limits(cells: Cells, width: int) -> Iterator[Text]:
    """For each case at its largest size, what shares of the copy rate and the arithmetic rate each backend reaches."""
    for device, rates in cells.findings.run.rates.items():
        yield Text(wrapped(plain(f"{formatting.short(device, 40)}: {in_words(rates)}"), width, "  "))
    for case in cells.subjects:
        size, parts, most = cells.sizes[case][-1], [], 0.0
        for cell in cells.row(case, size):
            found = limits(cell.record, cells.findings.run) if cell.record else None
            if cell.record and found and found.copy.value is not None:
                most = max(most, cell.record.least_bytes or 0.0)
                operations = found.arithmetic.value
                more = f" ({formatting.percent(operations)} of arithmetic)" if operations else ""
                parts.append(f"{formatting.short(cell.job.backend, 24)} {formatting.percent(found.copy.value)}{more}")
        if parts:
            moves = f"{formatting.short(case, 40)}, n = {formatting.count(size)}, moves at least"
            line = f"{moves} {formatting.byte_size(most)}: share of the copy rate {', '.join(parts)}"
            yield Text(wrapped(plain(line), width, "  "))


def _lists(cells: Cells, texts: Texts, width: int) -> Iterator[Text]:
    """For each case and size the backends, fastest first, as running text; those without a figure by their word."""
    for case, size in cells.places:
        yield Text()
        yield Text(formatting.short(f"{case}, n = {plain(formatting.count(size))}", width), "bold")
        line = Text()
        for item in _items(cells, texts, case, size):
            item.truncate(width, overflow="ellipsis")
            if line and line.cell_len + 3 + item.cell_len > width:
                yield line
                line = Text()
            line += Text("   ") + item if line else item
        yield line


def _items(cells: Cells, texts: Texts, case: str, size: int) -> Iterator[Text]:
    row = cells.row(case, size)
    timed = [(cell.spread.median, cell) for cell in row if cell.spread]
    for _, cell in sorted(timed, key=lambda pair: (not pair[1].ranked, pair[0])):
        text = texts[case, size, cell.job.backend]
        sign, _, figure = text.plain.partition(" ")
        name = marked(cells, formatting.short(cell.job.backend, 24))
        yield Text(f"{sign} {name} {figure}", text.style)
    for word in OUTCOMES:
        names = [_named(cell) for cell in row if cell.word == word and not cell.spread]
        if names:
            names[0] = f"{OUTCOMES[word].sign} {label(word)}: {names[0]}"
        yield from (Text(name, STYLES.get(word, "")) for name in names)


def _named(cell: Cell) -> str:
    digits = "" if cell.digits is None else f" ({cell.label})"
    return formatting.short(cell.job.backend, 24) + digits


def _title(cells: Cells) -> str:
    if not cells.timed:
        return f"Checked: {cells.asked}"
    operator = " or ".join(formatting.short(shown, 30).replace("_", " ") for shown in cells.shown)
    return f"Time per call of {plain(operator)}, median over launches"


def _entry(sign: str, cell: Cell, timed: bool) -> str:
    if cell.spread:
        return f"{sign} {plain(formatting.seconds(cell.spread.median))}"
    if cell.measured and timed:
        return f"{sign} {formatting.MISSING}"
    return f"{OUTCOMES[cell.word].sign} {SHORT_LABELS.get(cell.word, cell.label)}"


def _columns(cells: Cells, texts: Texts, width: int) -> tuple[list[int], int] | None:
    """The width of each backend's column and the gap between columns; None if they do not fit side by side."""
    needed = [max(texts[case, size, b].cell_len for case, size in cells.places) for b in cells.backends]
    wanted = [max(n, longest_part(marked(cells, b))) for n, b in zip(needed, cells.backends, strict=True)]
    layouts = ((wanted, 2), (needed, 1))
    return next((one for one in layouts if _size_width(cells) + sum(w + one[1] for w in one[0]) <= width), None)


def _side_by_side(cells: Cells, texts: Texts, widths: Sequence[int], gap: int, width: int) -> Iterator[RenderableType]:
    """One table for each case under a common head: in rich no cell spans columns, as the name of a case must."""

    def lines() -> Table:
        found = Table(box=None, show_header=False, padding=(0, gap, 0, 0), pad_edge=False)
        for column in (_size_width(cells), *widths):
            found.add_column(justify="right", width=column, no_wrap=True, vertical="bottom")
        return found

    top = lines()
    top.add_row("n", *map(head, (marked(cells, backend) for backend in cells.backends), widths), style="bold")
    yield from ("", top)
    for case in cells.subjects:
        yield Text(formatting.short(case, width), "bold")
        body = lines()
        for size in cells.sizes[case]:
            body.add_row(plain(formatting.count(size)), *(texts[case, size, b] for b in cells.backends))
        yield body


def _traps(cells: Cells) -> Table:
    """Trap × backend, one sign each: there are many, and most words would be the same."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("trap", overflow="fold")
    for backend in cells.backends:
        table.add_column(Text(formatting.short(backend, 12)), justify="center", no_wrap=True)
    for trap in cells.traps:
        row = cells.row(trap, cells.sizes[trap][0])
        signs = [Text(cell.sign, STYLES.get(cell.word, "")) for cell in row]
        table.add_row(Text(formatting.short(trap.removeprefix("trap_"), 40)), *signs)
    return table


def _size_width(cells: Cells) -> int:
    return max((len(formatting.count(size)) for _, size in cells.places), default=1)


def _operators(cells: Cells) -> Table:
    """Backend × operator: the library's own, made from others, or none; with a count where some cells have none."""
    found = operator_support.offers(cells)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("operator", overflow="fold")
    for backend in cells.backends:
        table.add_column(Text(formatting.short(backend, 24)), overflow="fold")
    for operator in (op for op in cells.operators if any(key[1] == op for key in found)):
        offers = [found.get((backend, operator)) for backend in cells.backends]
        table.add_row(Text(operator), *(Text(_offered(offer) if offer else "") for offer in offers))
    return table


def _offered(offer: operator_support.Offer) -> str:
    if offer.how == "no":
        return f"{OUTCOMES['unsupported'].sign} no"
    some = "" if offer.right == offer.asked else f" ({offer.right} of {offer.asked})"
    return f"{offer.how}{some}"


def _legend(cells: Cells, width: int) -> Text:
    there = {cell.word for case in cells.cases for size in cells.sizes[case] for cell in cells.row(case, size)}
    races = [race for case, size in cells.places if (race := ranking.race(cells, case, size))]
    marks = {mark(race, cell) for race in races for cell in race.leaders}
    signs = [f"{sign} {meaning}" for sign, meaning in MEANINGS.items() if sign in marks]
    signs += [formatting.legend(word) for word in OUTCOMES if word in there]
    untimed = any(c.measured and not c.spread for backend in cells.backends for c in cells.column(backend))
    signs += [f"{formatting.MISSING} not timed"] if untimed and cells.timed else []
    signs += [OWN_MEANS] if any(marked(cells, backend) != backend for backend in cells.backends) else []
    return legend(signs, width)


def _reasons(cells: Cells, width: int) -> Iterator[Text]:
    """One entry for each distinct reason, graver ones first: who, why, where."""
    notes = [note for of_count in cells.every_count for note in Footnotes(of_count).failures]
    others = [cell for note in notes if note.word != "known" for cell in note.cells]  # known bugs come by backend
    groups = grouped(others, lambda cell: (cell.word, cell.reason or ""))
    if notes or cells.declined:
        yield Text()
    for (word, reason), group in groups.items():
        yield _reason(word, reason, group, width, cells.shown if cells.timed else ())
        command = next(filter(None, map(again, group)), "")
        if command and OUTCOMES[word].bad:
            # One line, however long: users copy it.
            yield Text(f"  reproduce: {command}", "dim", no_wrap=True)
    untimed = [cell for cell in cells.every_single() if cells.timed and cell.why_untimed]
    for backend, group in grouped(untimed, lambda cell: cell.job.backend).items():
        more = f"; and {len(group) - 1} more" if len(group) > 1 else ""
        what = f"{formatting.MISSING} {formatting.short(backend, 30)}: {formatting.short(group[0].why_untimed, 200)}"
        yield Text(wrapped(f"{what} [{_where(group[:1], cells.shown)}{more}]", width))
    blind = [cell for of_count in cells.every_count for cell in of_count.every_single() if cell.word == "blind"]
    for reason, group in grouped(blind, lambda cell: (cell.reason or "").removeprefix("blind: ")).items():
        yield _reason("blind", reason, group, width, cells.shown if cells.timed else ())
    for backend, relation, reason in cells.declined:
        line = f"{OUTCOMES['unsupported'].sign} {formatting.short(backend, 30)}: {relation}: {reason} [relations]"
        yield Text(wrapped(line, width))
    yield from map(Text, reasons.lines(cells, width, details=True))


def _reason(word: Word, reason: str, group: Sequence[Cell], width: int, shown: Sequence[str]) -> Text:
    who = formatting.listed(formatting.short(b, 30) for b in dict.fromkeys(cell.job.backend for cell in group))
    sign = group[0].sign
    line = f"{sign} {who}: {formatting.short(reason, LONGEST_REASON)} [{_where(group, shown)}]"
    text = Text(wrapped(line, width))
    text.stylize(STYLES.get(word, ""), 0, len(sign))
    return text


def _where(group: Sequence[Cell], shown: Sequence[str]) -> str:
    """One place by name, several as a count; and the operators, unless the table shows them."""
    places = dict.fromkeys((cell.job.case, cell.job.size) for cell in group)
    operators = dict.fromkeys(cell.job.operator for cell in group)
    case, size = next(iter(places))
    where = f"{formatting.short(case, 30)}, n = {formatting.count(size)}" if len(places) == 1 else ""
    what = "" if operators.keys() & set(shown) else f" of {formatting.short(formatting.listed(operators), 40)}"
    return (where or formatting.plural(len(places), "cell")) + what
