"""Why a cell has no figure, or one that does not count: numbered once, so that a table can point to the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .cells import Cell, Cells
from .formatting import OUTCOMES, Word

STDERR_CHARACTERS = 4000


@dataclass
class Note:
    """One reason of one backend, and everywhere it applies. `number` counts from 1 over the whole page."""

    number: int
    word: Word
    backend: str
    reason: str
    stderr: str | None
    cells: list[Cell] = field(default_factory=list)

    @property
    def reproduce(self) -> str | None:
        """One line that does the first of them again."""
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


class Notes:
    """All notes of a run, graver words first; and the reasons for missing figures, by letter of their own list."""

    def __init__(self, cells: Cells) -> None:
        grouped: dict[tuple[str, ...], list[Cell]] = {}
        weight = {word: place for place, word in enumerate(OUTCOMES)}
        noted = [cell for cell in cells.every_single() if cell.word != "right"]
        for cell in sorted(noted, key=lambda cell: weight[cell.word]):
            grouped.setdefault((cell.word, cell.job.backend, cell.reason or "", _stderr(cell) or ""), []).append(cell)
        self.all: list[Note] = []
        self._number: dict[object, int] = {}
        for number, group in enumerate(self._told(grouped.values()), start=1):
            first = group[0]
            self.all.append(Note(number, first.word, first.job.backend, first.reason or "", _stderr(first), group))
            self._number |= {cell.job: number for cell in group}
        self._missing: dict[str, int] = {}

    @staticmethod
    def _told(groups: Iterable[list[Cell]]) -> list[list[Cell]]:
        """What went wrong first, then what was not tried, then remarks on what was measured."""

        def order(group: list[Cell]) -> int:
            word = group[0].word
            return 0 if OUTCOMES[word].bad else 2 if group[0].measured else 1

        return sorted(groups, key=order)

    @property
    def failures(self) -> list[Note]:
        """Why cells have no figures."""
        return [note for note in self.all if not note.cells[0].measured]

    @property
    def remarks(self) -> list[Note]:
        """Why measured cells are not ranked."""
        return [note for note in self.all if note.cells[0].measured]

    def number(self, cell: Cell) -> int | None:
        """The note of a cell; None where there is nothing to explain."""
        return self._number.get(cell.job)

    def missing_number(self, reason: str) -> int:
        """The place, from 1, of a reason in the list of reasons for missing figures; added where it is new."""
        return self._missing.setdefault(reason, len(self._missing) + 1)

    @property
    def missing(self) -> list[str]:
        """The reasons for missing figures, in the order of their numbers."""
        return list(self._missing)


def _stderr(cell: Cell) -> str | None:
    """The end of what the process left, where it left anything."""
    text = (cell.record.stderr if cell.record else None) or ""
    text = text.strip("\n")
    if len(text) > STDERR_CHARACTERS:
        return f"… {text[-STDERR_CHARACTERS:]}"
    return text or None
