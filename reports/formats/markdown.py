"""A run as Markdown, for a pull request, an issue or a job's summary: the terminal's sentences, and folded tables.

A check, which times nothing, is shown as counts of results for each backend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adbench.model.record import Run

from ..content import formatting, ranking, standings
from ..content.cells import Cells
from ..content.footnotes import Footnote, Footnotes
from ..content.formatting import OUTCOMES, Word
from ..content.headline import headline
from ..content.heat_map import case_lines
from ..text.marks import UNBROKEN, entry
from ..text.terminal.summary import sentences

MOST_ROWS = 200  # GitHub takes 65 536 characters
MOST_COLUMNS = 12
MOST_FAULTS = 5
MOST_FOOTNOTES = 40
LEFT_OUT = ("Install", "Threads")  # sentences for a terminal
_ACTIVE = str.maketrans({c: f"&#{ord(c)};" for c in "&<>|*_`[]()#@~\\!$:"})
"""Characters that are markup, a table's edge, a mention or a link: written as references, which are only text."""


def render(run: Run) -> str:
    """The text, which ends in a newline."""
    cells = Cells(run)
    if not run.records:
        return "\n".join(["### adbench: nothing was measured", "", *_incomplete(run)]).rstrip() + "\n"
    footnotes = Footnotes(cells)
    if not cells.timed:
        return _checked(run, cells, footnotes)
    faults = [note for note in footnotes.failures if OUTCOMES[note.word].bad]
    lines = [f"### {_title(cells)}", "", *_incomplete(run)]
    lines += [*_footnotes(faults, MOST_FAULTS), ""] if faults else []
    facts = [f"{one.about}: {one.text}".translate(_ACTIVE) for one in sentences(cells) if one.about not in LEFT_OUT]
    lines += [*(f"* {fact.replace(UNBROKEN, ' ').replace('&#58; ', ': ')}" for fact in facts), ""]
    lines += _overview(cells)
    lines += _folded("Every cell", _table(cells))
    lines += _folded("Failures and reasons", _footnotes(footnotes.failures))
    return "\n".join(lines).rstrip() + "\n"


def _checked(run: Run, cells: Cells, footnotes: Footnotes) -> str:
    """A check: how many results of each backend came out with each word, and every failure with its place."""
    counts = cells.outcomes
    total = sum(counts.values(), Counter[Word]())
    words = [word for word in OUTCOMES if total[word]]
    bad = [f"{OUTCOMES[word].sign} {total[word]} {OUTCOMES[word].label}" for word in words if OUTCOMES[word].bad]
    proved, compared = cells.proved
    head = ["backend", *(f"{OUTCOMES[word].sign} {OUTCOMES[word].label}" for word in words)]
    rows = [[escaped(b), *(str(counts[b][word] or "") for word in words)] for b in counts]
    said = ", ".join(bad) or ("none wrong, but not everything was checked" if run.unjudged else "none wrong")
    lines = [f"### adbench: {formatting.plural(total.total(), 'result')}, {said}", ""]
    lines += [*_incomplete(run), *_table_of(head, rows), ""]
    lines += [f"* compared with proved values: {proved} of {formatting.plural(compared, 'result')}"] if compared else []
    lines += _failures([note for note in footnotes.failures if OUTCOMES[note.word].bad])
    others = [note for note in footnotes.failures if not OUTCOMES[note.word].bad]
    lines += _folded("Other reasons", _footnotes(others))
    return "\n".join(lines).rstrip() + "\n"


def _failures(notes: Sequence[Footnote]) -> list[str]:
    """A row for each wrong or failing result, with its place."""
    rows = [
        [
            f"{OUTCOMES[cell.word].sign} {cell.label}",
            *(escaped(cell.job.case), formatting.count(cell.job.size), escaped(cell.job.operator)),
            *(escaped(cell.job.backend), escaped(note.reason, 300)),
        ]
        for note in notes
        for cell in note.cells
    ]
    if not rows:
        return []
    head = ["", "case", "n", "operator", "backend", "reason"]
    return ["", *_table_of(head, rows[:MOST_ROWS]), *_more(len(rows), MOST_ROWS)]


def _table_of(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def _incomplete(run: Run) -> list[str]:
    """What an interruption left unchecked, and what was judged nowhere."""
    faults = [*([run.interruption] if run.interruption else []), *(escaped(text, 500) for text in run.unjudged)]
    return [line for fault in faults for line in (f"**{fault}**", "")]


def escaped(text: str, most: int = 60) -> str:
    """A name or a reason that cannot be markup."""
    return formatting.short(text, most).translate(_ACTIVE)


def _title(cells: Cells) -> str:
    found = headline(cells)
    wrong = sum(score.words["wrong"] for score in found.scores)
    parts = [f"{OUTCOMES['wrong'].sign} {formatting.plural(wrong, 'cell')} wrong"] if wrong else ["no cell wrong"]
    parts += [f"{found.broken} failing"] if found.broken else []
    return f"adbench: {', '.join(parts)}, {formatting.plural(cells.total, 'cell')} for each backend"


def _overview(cells: Cells) -> list[str]:
    """A line for each case, a column for each of the best ranked backends, as in the terminal."""
    (lines, _), order = case_lines(cells), standings.arranged(cells).backends
    if not cells.timed or not lines:
        return []
    names = order[:MOST_COLUMNS]
    head = ["case", "n", *map(escaped, names), "its time", "its memory"]
    rows = [
        [
            *(escaped(line.case), formatting.short_count(line.size)),
            *(entry(line.race, line.cells[name]) for name in names),
            formatting.MISSING if line.seconds is None else formatting.seconds(line.seconds),
            formatting.MISSING if line.bytes is None else formatting.byte_size(line.bytes),
        ]
        for line in lines[:MOST_ROWS]
    ]
    table = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    left = len(order) - len(names)
    return [
        f"Slowdown of the {escaped(' or '.join(cells.shown))} relative to the fastest, and its time and memory:",
        "",
        *(f"| {' | '.join(row)} |" for row in table),
        *_more(len(lines), MOST_ROWS),
        *(["", f"{formatting.plural(left, 'slower backend')}: see every cell below."] if left > 0 else []),
    ]


def _table(cells: Cells) -> list[str]:
    """A line for each cell that came out at all: longer than wide, so that forty backends are no failure."""
    rows = []
    for case, size in cells.places:
        race = ranking.race(cells, case, size)
        for cell in cells.row(case, size):
            if cell.word == "not_run":
                continue
            interval = race.interval(cell) if race else None
            factor = formatting.times(interval) if interval else ""
            time = formatting.seconds(cell.spread.median) if cell.spread else formatting.MISSING
            word = f"{OUTCOMES[cell.word].sign} {cell.label}"
            who = f"{escaped(case)} | {formatting.count(size)} | {escaped(cell.job.backend)}"
            rows.append(f"| {who} | {word} | {time} | {factor} |")
    if not rows:
        return []
    head = ["| case | n | backend | | per call | slowdown |", "|---|--:|---|---|--:|---|"]
    return [*head, *rows[:MOST_ROWS], *_more(len(rows), MOST_ROWS)]


def _footnotes(notes: Sequence[Footnote], most: int = MOST_FOOTNOTES) -> list[str]:
    lines = []
    for note in notes[:most]:
        who = f"{OUTCOMES[note.word].sign} {note.label}, {escaped(note.backend)}"
        lines.append(f"* {who} on {formatting.plural(len(note.cells), 'cell')}: {escaped(note.reason, 300)}")
    return [*lines, *_more(len(notes), most)]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"] if lines else []


def _more(there: int, shown: int) -> list[str]:
    return ["", f"… and {there - shown} more; the page has all of them."] if there > shown else []
