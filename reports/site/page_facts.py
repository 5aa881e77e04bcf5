"""The facts on the pages of a backend, of a case and of same bits, as the templates name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adbench.findings.same_bits.bits_matrix import BitsMatrix
from adbench.findings.same_bits.same_bits import BitRow

from ..content import formatting, operator_support, ranking, sections, standings
from ..content.answer.in_words import fastest_in_words
from ..content.footnotes import Footnotes
from ..content.formatting import OUTCOMES
from ..content.sections import TableEntry
from ..content.traps.trap_map import TrapMap
from ..figures import panels
from .archive import Archive, Race, Stored

KINDS = {name: name for name in ("repeat", "process", "threads", "batch", "padding")} | {"chunks": "halves"}
LEVELS = (0.0, 4.0, 100.0)
"""Distances in ulp from which the colour is darker."""


def of_backend(archive: Archive, backend: str, traps: TrapMap | None, footnotes: Footnotes) -> dict[str, Any]:
    """A backend over all runs.

    words      outcome -> number of its results, traps left out
    offers     its operators in these runs
    bugs       family of traps -> its wrong results there
    speeds     its races
    failures   reasons of wrong and failing results, gravest first; `others`: unsupported and skipped ones
    """
    cells = archive.merged
    own = [cell.word for cell in cells.column(backend)]
    bugs = {
        family: [bug for of in lists if backend in of.backends for bug in of.bugs]
        for family, lists in (traps.lists.items() if traps else ())
    }
    own_notes = (note for note in footnotes.failures if note.backend == backend)
    # `bugs` has those about traps alone
    notes = [note for note in own_notes if any(cell.job.case not in cells.traps for cell in note.cells)]
    failures = [note for note in notes if OUTCOMES[note.word].bad or note.word == "known"]
    return {
        "backend": backend,
        "words": {word: own.count(word) for word in OUTCOMES if word in own},
        "offers": [offer for (name, _), offer in operator_support.offers(cells).items() if name == backend],
        "bugs": {family: found for family, found in bugs.items() if found},
        "speeds": [_speed(race, backend) for race in archive.races.values() if backend in race.stored.cells.backends],
        "failures": failures,
        "others": [note for note in notes if note not in failures],
    }


def _speed(race: Race, backend: str) -> dict[str, Any]:
    """A backend in the race of a case on a machine; its slowdown, None if it is not ranked, and that in words."""
    lead = race.lead
    cell = race.stored.cells.cell(lead.case, lead.size, backend)
    slowdown = standings.slowdown(lead, cell)
    text = formatting.MISSING if slowdown is None else formatting.slowdown(slowdown)
    if interval := lead.interval(cell):
        text = formatting.times(interval)
    return {"race": race, "cell": cell, "slowdown": slowdown, "text": text}


def of_case(archive: Archive, case: str) -> dict[str, Any]:
    """A case over all runs, with what is known on each machine; draws its curves, inside `plots.style()`.

    `source` is "" for a case that this adbench does not have; `file` names it.
    """
    known = archive.catalog.cases.get(case)
    file = Path(known.file) if known else None
    machines = []
    for machine, stored in archive.machines.items():
        having = [one for one in stored if case in one.cells.subjects]
        if having:
            race = archive.races.get((machine, case))
            chosen = race.stored if race else having[0]
            machines.append(_on_machine(chosen, case, [one for one in having if one is not chosen]))
    return {
        "case": case,
        "summary": archive.merged.findings.run.cases.get(case, ""),
        "family": archive.family(case),
        "file": file.name if file else "",
        "source": file.read_text(encoding="utf-8") if file else "",
        "machines": machines,
    }


def _on_machine(stored: Stored, case: str, others: Sequence[Stored]) -> dict[str, Any]:
    """A case in the run that decides on a machine.

    number    of the case in the page of its run
    svgs      the curves; `drawn`: the backends of their legend; `title`: what they show
    rows      (backend, one entry for each size), the fastest at the largest common size first
    notes     the reasons of results that are not right
    others    further runs of the machine that have the case
    """
    cells, sizes = stored.cells, panels.sizes_of(stored.cells, case)
    number = cells.subjects.index(case)
    charts = enumerate(panels.charts_of(cells, number))
    drawn = [replace(panels.drawn(chart), key=f"m{stored.machine}-{k}") for k, chart in charts]
    shown = {series.number for panel in drawn for series in panel.series}
    footnotes = Footnotes(cells)
    return {
        "stored": stored,
        "number": number,
        "svgs": [panels.draw(panel, sizes) for panel in drawn],
        "drawn": [backend for k, backend in enumerate(cells.backends) if k in shown and len(sizes) > 1],
        "title": fastest_in_words(cells, case),
        "sizes": cells.sizes[case],
        "rows": _rows(stored, case, footnotes),
        "notes": [note for note in footnotes.all if any(cell.job.case == case for cell in note.cells)],
        "others": others,
    }


def _rows(stored: Stored, case: str, footnotes: Footnotes) -> list[tuple[str, list[TableEntry]]]:
    """A row for each backend, from the table of the run's page, whose rows are sizes."""
    cells, race = stored.cells, ranking.lead(stored.cells, case)
    sizes = list(sections.verdict_rows(cells, footnotes, case))
    rows = [(name, [_unnumbered(row.entries[k]) for row in sizes]) for k, name in enumerate(cells.backends)]
    ranked = [cell.job.backend for cell in race.ranked] if race else []
    return sorted(rows, key=lambda row: ranked.index(row[0]) if row[0] in ranked else len(ranked))


def _unnumbered(entry: TableEntry) -> TableEntry:
    """Without links to reasons, which are numbered in the page of the run."""
    others = tuple((operator, other, None) for operator, other, _ in entry.others)
    return replace(entry, note=None, missing=None, others=others)


def of_same_bits(bits: BitsMatrix) -> dict[str, Any]:
    """A square for each operation, library and kind of repetition, and the sentences about differences."""
    rows = {(cell.function, cell.backend): {row.kind: row for row in cell.rows} for cell in bits.cells}
    names = dict.fromkeys([*(cell.function for cell in bits.cells), *(name for name, _, _ in bits.refused)])
    squares = {
        name: [_bits_square(rows.get((name, library), {}).get(kind)) for library in bits.libraries for kind in KINDS]
        for name in names
    }
    found = {
        library: [
            (cell.function, " ".join(str(row).split()))
            for cell in bits.cells
            if cell.backend == library
            for row in cell.rows
            if row.difference
        ]
        for library in bits.libraries
    }
    return {"bits": bits, "kinds": KINDS, "operations": squares, "differences": found, "heading": "Same bits"}


def _bits_square(row: BitRow | None) -> tuple[str, int]:
    """The text of a square, and its colour from 0 (same bits) to 4."""
    if row is None or row.reason:
        return "–", 0
    if row.difference is None:
        return "=", 0
    ulp = row.difference.ulp
    return f"{ulp:.0f}" if ulp < 1e4 else f"{ulp:.0e}", 1 + sum(ulp > level for level in LEVELS)
