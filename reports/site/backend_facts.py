"""The facts on the page of a backend: its operators, its bugs, its speed relative to others."""

from __future__ import annotations

from dataclasses import dataclass

from ..content import formatting, operator_support, standings
from ..content.cells import Cell
from ..content.footnotes import Footnote, Footnotes
from ..content.formatting import OUTCOMES, Word
from ..content.operator_support import Offer
from ..content.ranking import Place
from ..content.traps.trap_map import Bug, TrapMap
from .archive import Archive, Race


@dataclass(frozen=True)
class Speed:
    """A case on a machine: the backend's time relative to the fastest correct one in the same run.

    slowdown   None where the backend is not ranked; `text` in words, with its interval where there is one
    of         how many backends are ranked
    """

    race: Race
    cell: Cell
    slowdown: float | None
    text: str
    place: Place
    of: int
    fastest: str


@dataclass(frozen=True)
class BackendFacts:
    """A backend over all runs.

    words      outcome -> number of its results, traps left out
    offers     its operators in these runs
    bugs       family of traps -> its wrong results there
    failures   reasons of wrong and failing results, gravest first; `others`: unsupported and skipped ones
    """

    backend: str
    words: dict[Word, int]
    offers: list[Offer]
    bugs: dict[str, list[Bug]]
    speeds: list[Speed]
    failures: list[Footnote]
    others: list[Footnote]


def facts(archive: Archive, backend: str, traps: TrapMap | None, footnotes: Footnotes) -> BackendFacts:
    """Everything about a backend."""
    cells = archive.merged
    own = [cell.word for cell in cells.column(backend)]
    offers = operator_support.offers(cells)
    bugs = {
        family: [bug for of in lists if backend in of.backends for bug in of.bugs]
        for family, lists in (traps.lists.items() if traps else ())
    }
    own_notes = (note for note in footnotes.failures if note.backend == backend)
    # `bugs` has those about traps alone
    mine = [note for note in own_notes if any(cell.job.case not in cells.traps for cell in note.cells)]
    return BackendFacts(
        backend=backend,
        words={word: own.count(word) for word in OUTCOMES if word in own},
        offers=[offer for (name, _), offer in offers.items() if name == backend],
        bugs={family: found for family, found in bugs.items() if found},
        speeds=[_speed(race, backend) for race in archive.races.values() if backend in race.stored.cells.backends],
        failures=[note for note in mine if OUTCOMES[note.word].bad or note.word == "known"],
        others=[note for note in mine if not OUTCOMES[note.word].bad and note.word != "known"],
    )


def _speed(race: Race, backend: str) -> Speed:
    cells, lead = race.stored.cells, race.lead
    cell = cells.cell(lead.case, lead.size, backend)
    slowdown = standings.slowdown(lead, cell)
    first = lead.leaders[0]
    text = formatting.MISSING if slowdown is None else formatting.slowdown(slowdown)
    if interval := lead.interval(cell):
        text = formatting.times(interval)
    return Speed(race, cell, slowdown, text, lead.place(cell), len(lead.ranked), first.job.backend)
