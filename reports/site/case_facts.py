"""The facts on the page of a case: its source, and on each machine its curves and its table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..content import ranking, sections
from ..content.answer.in_words import fastest_in_words
from ..content.cells import Cells
from ..content.footnotes import Footnote, Footnotes
from ..content.ranking import Lead
from ..content.sections import TableEntry
from ..figures import panels
from .archive import Archive, Stored


@dataclass(frozen=True)
class OnMachine:
    """A case in the run that decides on a machine.

    number    of the case in the page of its run
    svgs      the curves; `drawn`: the backends of their legend; `title`: what they show
    rows      (backend, one entry for each size), the fastest at the largest common size first
    notes     the reasons of results that are not right
    others    further runs of the machine that have the case
    """

    stored: Stored
    number: int
    svgs: list[str]
    drawn: list[str]
    title: str
    sizes: tuple[int, ...]
    rows: list[tuple[str, list[TableEntry]]]
    notes: list[Footnote]
    others: list[Stored]


@dataclass(frozen=True)
class CaseFacts:
    """A case over all runs. `source` is "" for a case that this adbench does not have; `file` names it."""

    case: str
    summary: str
    family: str
    file: str
    source: str
    machines: list[OnMachine]


def facts(archive: Archive, case: str) -> CaseFacts:
    """Everything about a case; draws its curves, inside `plots.style()`."""
    known = archive.catalog.cases.get(case)
    file = Path(known.file) if known else None
    summary = archive.merged.findings.run.cases.get(case, "")
    machines = []
    for machine, stored in archive.machines.items():
        having = [one for one in stored if case in one.cells.subjects]
        if having:
            race = archive.races.get((machine, case))
            chosen = race.stored if race else having[0]
            machines.append(_on_machine(chosen, case, [one for one in having if one is not chosen]))
    return CaseFacts(
        case=case,
        summary=summary,
        family=archive.family(case),
        file=file.name if file else "",
        source=file.read_text(encoding="utf-8") if file else "",
        machines=machines,
    )


def _on_machine(stored: Stored, case: str, others: list[Stored]) -> OnMachine:
    cells = stored.cells
    number = cells.subjects.index(case)
    charts = panels.charts_of(cells, number)
    sizes = panels.sizes_of(cells, case)
    drawn = [replace(chart.drawn, key=f"m{stored.machine}-{k}") for k, chart in enumerate(charts)]
    shown = {series.number for panel in drawn for series in panel.series}
    footnotes = Footnotes(cells)
    notes = [note for note in footnotes.all if any(cell.job.case == case for cell in note.cells)]
    race = ranking.lead(cells, case)
    return OnMachine(
        stored=stored,
        number=number,
        svgs=[panels.draw(panel, sizes) for panel in drawn],
        drawn=[backend for k, backend in enumerate(cells.backends) if k in shown and len(sizes) > 1],
        title=fastest_in_words(cells, case),
        sizes=cells.sizes[case],
        rows=_rows(cells, case, footnotes, race),
        notes=notes,
        others=others,
    )


def _rows(cells: Cells, case: str, footnotes: Footnotes, race: Lead | None) -> list[tuple[str, list[TableEntry]]]:
    """A row for each backend, from the table of the run's page, whose rows are sizes."""
    sizes = list(sections.verdict_rows(cells, footnotes, case))
    columns = [[_unnumbered(row.entries[k]) for row in sizes] for k in range(len(cells.backends))]
    rows = list(zip(cells.backends, columns, strict=True))
    ranked = [cell.job.backend for cell in race.ranked] if race else []
    return sorted(rows, key=lambda row: ranked.index(row[0]) if row[0] in ranked else len(ranked))


def _unnumbered(entry: TableEntry) -> TableEntry:
    """Without links to reasons, which are numbered in the page of the run."""
    others = tuple((operator, other, None) for operator, other, _ in entry.others)
    return replace(entry, note=None, missing=None, others=others)
