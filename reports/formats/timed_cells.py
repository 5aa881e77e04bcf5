"""The timed cells of a run, for formats that hold figures only, and the number of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from adbench.model.record import Run
from adbench.results.comparison_inputs import name_of

from ..content.cells import Cell, cell_of
from ..content.formatting import OUTCOMES, plural


def timed_cells(run: Run) -> Iterator[tuple[str, Cell]]:
    """The name and the outcome of each cell with a time, in the order of the run: never of a wrong one.

    The name is that of `adbench compare`: case[size]-backend-operator.
    """
    for record in run.records:
        cell = cell_of(record)
        if cell.spread is not None:
            yield text_of(name_of(record.job)), cell


def left_out(run: Run) -> str | None:
    """How many cells a format without a place for reasons leaves out: "2 cells without a time left out: 1 wrong, …"."""
    words = Counter(cell.word for cell in map(cell_of, run.records) if cell.spread is None)
    if not words:
        return None
    counts = ", ".join(f"{count} {OUTCOMES[word].label}" for word, count in words.items())
    return f"{plural(words.total(), 'cell')} without a time left out: {counts}"


def text_of(text: str) -> str:
    """The text without lone surrogates, which UTF-8 and JSON cannot hold."""
    return text.encode("utf-8", "replace").decode()
