"""The result of `adbench audit` in the terminal: a line for each gradient test, weak ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from adbench.audit.audited import MISSED, NOT_APPLICABLE, NOT_TRIED, NOTICED, AuditedTest, ranked, sentences
from adbench.audit.spoils import SPOILS

from ...content import formatting
from ..drawing import printed

MARKS = {NOTICED: "✓", MISSED: "✗", NOT_APPLICABLE: "·", NOT_TRIED: "?"}
LEGEND = "✓ the test fails with the spoiled gradient, ✗ it passes, · no number changed, ? not tried (runs spent)"


def text(tests: Sequence[AuditedTest], *, width: int, colour: bool, most: int | None = 40) -> str:
    """Sentences, then a line for each test, with its tolerances if it passes with an error of 10 %.

    most   lines of the table; None for all
    """
    return printed(_parts(tests, most), width=width, colour=colour)


def _parts(tests: Sequence[AuditedTest], most: int | None) -> Iterator[Table | Text]:
    for sentence in sentences(tests):
        yield Text(sentence)
    judged = ranked(tests)
    if judged:
        yield Text()
        yield _table(judged[:most])
        yield Text(LEGEND)
        if most is not None and len(judged) > most:
            yield Text(f"{len(judged) - most} more notice at least as much; --report FILE has all.")
    for test in tests:
        if test.set_aside:
            yield Text(f"{formatting.visible(test.test)}: set aside, {test.set_aside}")


def _table(tests: Sequence[AuditedTest]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("test", overflow="fold")
    for spoil in SPOILS:
        table.add_column(spoil.label, justify="center", no_wrap=True)
    for test in tests:
        name = Text(formatting.visible(test.test))
        if "ten_percent" in test.missed and test.tolerances:
            name.append(f"\n  {formatting.visible(formatting.listed(test.tolerances, most=3))}", style="dim")
        marks = (MARKS[test.answers.get(spoil.name, NOT_TRIED)] for spoil in SPOILS)
        table.add_row(name, *marks)
    return table
