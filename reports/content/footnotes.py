"""Numbered reasons why a cell has no figure, or one that does not count; tables refer to them."""

from __future__ import annotations

from dataclasses import dataclass

from adbench.model.record import grouped

from .cells import Cell, Cells
from .formatting import OUTCOMES, Word

STDERR_CHARACTERS = 4000


@dataclass
class Footnote:
    """One reason of one backend, and all cells it applies to. `number` counts from 1 over the whole page."""

    number: int
    word: Word
    backend: str
    reason: str
    stderr: str | None
    cells: list[Cell]

    @property
    def label(self) -> str:
        """That of its cells."""
        return self.cells[0].label

    @property
    def reproduce(self) -> str | None:
        """The command that reproduces the first of them."""
        return next((c.record.reproduce for c in self.cells if c.record and c.record.reproduce), None)

    @property
    def places(self) -> list[tuple[str, list[int], list[str]]]:
        """(case, sizes, operators) for each case it applies to."""
        cases = dict.fromkeys(cell.job.case for cell in self.cells)
        found = []
        for case in cases:
            jobs = [cell.job for cell in self.cells if cell.job.case == case]
            found.append((case, sorted({j.size for j in jobs}), list(dict.fromkeys(j.operator for j in jobs))))
        return found


class Footnotes:
    """All footnotes of a run: failures first, then cells that were not tried, then remarks on measured cells.

    The reasons for missing figures are a separate list.
    """

    def __init__(self, cells: Cells) -> None:
        groups = grouped(
            (cell for cell in cells.every_single() if cell.word != "right"),
            lambda cell: (cell.word, cell.job.backend, cell.reason or "", _stderr(cell)),
        )
        ordered = sorted(groups.items(), key=lambda item: _weight(item[1][0]))
        self.all = [Footnote(number, *about, group) for number, (about, group) in enumerate(ordered, start=1)]
        self._number = {cell.job: note.number for note in self.all for cell in note.cells}
        self._missing: dict[str, int] = {}

    @property
    def failures(self) -> list[Footnote]:
        """Why cells have no figures."""
        return [note for note in self.all if not note.cells[0].measured]

    @property
    def remarks(self) -> list[Footnote]:
        """Why measured cells are not ranked."""
        return [note for note in self.all if note.cells[0].measured]

    def number(self, cell: Cell) -> int | None:
        """The footnote of a cell; None if there is nothing to explain."""
        return self._number.get(cell.job)

    def missing_number(self, reason: str) -> int:
        """The number, from 1, of a reason for a missing figure; a new reason gets the next one."""
        return self._missing.setdefault(reason, len(self._missing) + 1)

    def untimed_number(self, cell: Cell) -> int | None:
        """The number of the reason why a right cell has no time; None if it has one."""
        return self.missing_number(f"{cell.job.backend}: {cell.why_untimed}") if cell.why_untimed else None

    @property
    def missing(self) -> list[str]:
        """The reasons for missing figures, in the order of their numbers."""
        return list(self._missing)


def _weight(cell: Cell) -> tuple[int, int]:
    """Failures come first, then cells that were not tried, then remarks on measured cells; graver words first."""
    return 0 if OUTCOMES[cell.word].bad else 2 if cell.measured else 1, list(OUTCOMES).index(cell.word)


def _stderr(cell: Cell) -> str | None:
    """The end of the process's stderr; None if it is empty."""
    text = (cell.record.stderr if cell.record else None) or ""
    text = text.strip("\n")
    if len(text) > STDERR_CHARACTERS:
        return f"… {text[-STDERR_CHARACTERS:]}"
    return text or None
