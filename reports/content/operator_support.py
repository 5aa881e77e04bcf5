"""Which operators each backend supports, from the run: native, made from others, or not at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from adbench.model.record import Record, grouped

from .cells import Cells

NATIVE = "native"


@dataclass(frozen=True)
class Offer:
    """One backend's operator: `how` is "native", "from …" or "no"; `right` of the `asked` cells were not wrong."""

    backend: str
    operator: str
    how: str
    right: int
    asked: int


def offers(cells: Cells) -> dict[tuple[str, str], Offer]:
    """(backend, operator) -> what it offers, where the run asked for it at all."""
    every = (cell.record for cell in cells.every_single() if cell.record is not None)
    records = (record for record in every if record.job.case not in cells.traps)  # a trap says nothing of what there is
    groups = grouped(records, lambda record: (record.job.backend, record.job.operator))
    return {key: _offer(*key, group) for key, group in groups.items()}


def _offer(backend: str, operator: str, records: list[Record]) -> Offer:
    answered = [record for record in records if record.outcome.is_measured or record.outcome.is_incorrect]
    # If both occur (a library without one rule), the more frequent one counts.
    ways = Counter(record.how for record in answered)
    how = ways.most_common(1)[0][0] if ways else "no"
    return Offer(backend, operator, how, sum(record.outcome.is_measured for record in records), len(records))
