"""A run as Markdown, for a pull request or an issue: the main sentences, and the tables folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adbench.model.record import Run

from ..content import ablations, formatting, ranking
from ..content.cells import Cells
from ..content.footnotes import Footnotes
from ..content.formatting import OUTCOMES
from ..content.headline import Headline, headline

MOST_ROWS = 200  # GitHub takes 65 536 characters
MOST_FOOTNOTES = 40
_ACTIVE = str.maketrans({c: f"&#{ord(c)};" for c in "&<>|*_`[]()#@~\\!$:"})
"""Characters that are markup, a table's edge, a mention or a link: written as references, which are only text."""


def render(run: Run) -> str:
    """The text, which ends in a newline."""
    cells = Cells(run)
    found = headline(cells)
    if not run.records:
        return "### adbench: nothing was measured\n"
    lines = [f"### {_title(found)}", "", *(f"* {line}" for line in _facts(cells, found)), ""]
    lines += _leads(cells, found)
    lines += _folded("Every cell", _table(cells))
    footnotes = Footnotes(cells)
    lines += _folded("What each idea in the reference engine is worth", _ablations(cells, footnotes))
    lines += _folded("Failures and reasons", list(_footnotes(footnotes)))
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: str, most: int = 60) -> str:
    """A name or a reason that cannot be markup."""
    return formatting.short(text, most).translate(_ACTIVE)


def _title(found: Headline) -> str:
    wrong = sum(len(failure.cells) for failure in found.failures if failure.word == "wrong")
    broken = sum(len(failure.cells) for failure in found.failures if failure.word != "wrong")
    parts = [f"{OUTCOMES['wrong'].sign} {formatting.plural(wrong, 'cell')} wrong"] if wrong else ["no cell wrong"]
    parts += [f"{broken} failing"] if broken else []
    noisy = [", noisy session"] if found.floor.noisy else []
    return f"adbench: {', '.join(parts)}, {formatting.plural(found.total, 'cell')} for each backend{''.join(noisy)}"


def _facts(cells: Cells, found: Headline) -> Iterator[str]:
    for number, backends in found.right:
        yield f"right on {number} of {found.total}: {formatting.listed(map(escaped, backends), most=12)}"
    proved, compared = cells.proved
    if proved:
        yield f"compared with proved values: {proved} of {formatting.plural(compared, 'result')}"
    for win in found.wins:
        behind = f"; the next takes {formatting.times(win.least)}" if win.least else ""
        behind += f" to {formatting.times(win.most)} its time" if win.most and win.most != win.least else ""
        where = f"{escaped(win.backend)} on {win.cases} of {found.contested}"
        yield f"fastest right {escaped(' or '.join(cells.shown))}: {where}{behind}"
    if found.ties:
        yield f"not told apart at the top: {formatting.plural(found.ties, 'case')}"
    for backend, cases in found.growing_costs.items():
        yield f"the price of a gradient grows with n: {escaped(backend)} on {formatting.listed(map(escaped, cases))}"
    if found.floor.reach is None:
        yield f"no noise floor: {escaped(found.floor.reason or 'nothing was measured twice', 160)}"
    else:
        noisy = "; **noisy: nothing should be gated by this run**" if found.floor.noisy else ""
        yield f"noise floor {formatting.percent(found.floor.reach)}, margin {formatting.percent(found.margin)}{noisy}"


def _leads(cells: Cells, found: Headline) -> list[str]:
    if not found.leads:
        return []
    lines = [
        f"| case | n | fastest right {escaped(' or '.join(cells.shown))} | per call | next |",
        "|---|--:|---|--:|---|",
    ]
    for race in found.leads[:MOST_ROWS]:
        names = formatting.listed([escaped(cell.job.backend) for cell in race.leaders], most=4)
        who = f"**{names}**" if race.winner else names if not race.contested else f"not told apart: {names}"
        first = race.leaders[0].spread
        behind = race.behind.interval if race.behind else None
        then = f"{escaped(race.next.job.backend)} {formatting.times(behind) if behind else ''}" if race.next else ""
        time = formatting.seconds(first.median) if first else formatting.MISSING
        lines.append(f"| {escaped(race.case)} | {formatting.count(race.size)} | {who} | {time} | {then} |")
    return [*lines, *_more(len(found.leads), MOST_ROWS)]


def _table(cells: Cells) -> list[str]:
    """A line for each cell that came out at all: longer than wide, so that forty backends are no failure."""
    rows = []
    for case, size in cells.places:
        race = ranking.race(cells, case, size)
        for cell in cells.row(case, size):
            if cell.word == "not_run":
                continue
            pair = ranking.pair(cells, cell, race.leaders[0]) if race and cell.ranked else None
            factor = formatting.times(pair.interval) if pair and pair.interval else ""
            time = formatting.seconds(cell.spread.median) if cell.spread else formatting.MISSING
            word = f"{OUTCOMES[cell.word].sign} {cell.label}"
            who = f"{escaped(case)} | {formatting.count(size)} | {escaped(cell.job.backend)}"
            rows.append(f"| {who} | {word} | {time} | {factor} |")
    if not rows:
        return []
    head = ["| case | n | backend | | per call | in times of the fastest |", "|---|--:|---|---|--:|---|"]
    return [*head, *rows[:MOST_ROWS], *_more(len(rows), MOST_ROWS)]


def _ablations(cells: Cells, footnotes: Footnotes) -> list[str]:
    rows = ablations.rows(cells, footnotes)
    if not rows:
        return []
    lines = ["| idea | instead of | case | n | time without / with | memory |", "|---|---|---|--:|--:|--:|"]
    for row in rows[:MOST_ROWS]:
        case = f"{escaped(row.case)} | {formatting.count(row.size)}"
        lines.append(f"| {row.title} | {row.instead_of} | {case} | {row.ratio} | {row.memory or formatting.MISSING} |")
    return [*lines, *_more(len(rows), MOST_ROWS)]


def _footnotes(footnotes: Footnotes) -> Iterator[str]:
    for note in footnotes.failures[:MOST_FOOTNOTES]:
        cells = formatting.plural(len(note.cells), "cell")
        word = f"{OUTCOMES[note.word].sign} {note.label}"
        yield f"* {word}, {escaped(note.backend)} on {cells}: {escaped(note.reason, 300)}"
    yield from _more(len(footnotes.failures), MOST_FOOTNOTES)


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"] if lines else []


def _more(there: int, shown: int) -> list[str]:
    return ["", f"… and {there - shown} more; the page has all of them."] if there > shown else []
