"""Wrong results, crashes and failures, which every output starts with: what, where, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.text import Text

from adbench.model.record import grouped

from ...content import formatting
from ...content.cells import Cell, Cells
from ...content.footnotes import Footnotes
from ...content.formatting import OUTCOMES, Word
from ..marks import STYLES, wrapped

MOST_FAULTS = 5
LONGEST_REASON = 300
QUOTE = '"'
ACTIVE = set('"$`\\!')
"""What a shell obeys within double quotes, which are the easier ones to read around Python's single quotes."""


def faults(cells: Cells, width: int) -> Iterator[Text]:
    """The first of each kind on each backend, graver ones first, then a blank line; nothing where all is well."""
    notes = (note for of_count in cells.every_count for note in Footnotes(of_count).failures)
    bad = [cell for note in notes if OUTCOMES[note.word].bad for cell in note.cells]
    groups = grouped(bad, lambda cell: (cell.word, cell.job.backend))
    for (word, backend), group in list(groups.items())[:MOST_FAULTS]:
        yield from _fault(word, backend, group, width)
    if len(groups) > MOST_FAULTS:
        yield Text(wrapped(f"… and {len(groups) - MOST_FAULTS} more kinds of failure", width))
    if groups:
        yield Text()


def again(cell: Cell) -> str:
    """A shell's line that repeats the check of a cell; empty where the file does not have it."""
    line = formatting.visible((cell.record.reproduce if cell.record else None) or "")
    return f"python -c {shlex.quote(line) if set(line) & ACTIVE else QUOTE + line + QUOTE}" if line else ""


def _fault(word: Word, backend: str, group: Sequence[Cell], width: int) -> Iterator[Text]:
    first = group[0]
    job, sign = first.job, OUTCOMES[word].sign
    where = f"{formatting.short(job.case, 30)} n = {formatting.count(job.size)} {formatting.short(job.operator, 24)}"
    what = f"{sign} {OUTCOMES[word].label}: {formatting.short(backend, 30)}, {where}"
    line = Text(wrapped(f"{what}: {formatting.short(first.reason or '', LONGEST_REASON)}", width))
    line.stylize(STYLES.get(word, "red"), 0, len(sign) + 1 + len(OUTCOMES[word].label))
    yield line
    if command := again(first):
        yield Text(f"  reproduce: {command}", "dim", no_wrap=True)  # one line, however long: users copy it
    if len(group) > 1:
        cases = len({cell.job.case for cell in group})
        others = formatting.plural(len(group) - 1, "more result")
        yield Text(wrapped(f"  and {others}" + (f", in {cases} cases" if cases > 1 else ""), width), "dim")
