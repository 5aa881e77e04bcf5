"""The runs of a site as one: the facts about each backend and case, the run that decides about speed, and the ranking.

Times are compared inside a run only. Of several runs of a case on one machine, the one with the most ranked backends
counts, and of these the newest. Correctness is that of the newest run that has the cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from adbench.catalog.discovery import Catalog
from adbench.model.backend import KnownBugs
from adbench.model.case import ONE_BY_ONE
from adbench.model.errors import UsageError
from adbench.model.record import Run, grouped

from ..content import formatting, ranking, standings
from ..content.cells import Cells
from ..content.formatting import OUTCOMES, Word
from ..content.ranking import Lead
from ..content.standings import Standing
from .addresses import machine_id, run_id

K = TypeVar("K")
V = TypeVar("V")
MOST_LABEL = 80

FAMILIES = (
    ("differential equations", {"ode"}),
    ("networks", {"network"}),
    ("Jacobians", {"array-valued"}),
    ("matrices", {"linear-algebra", "matrix"}),
    ("densities", {"density"}),
    ("loops of numbers", ONE_BY_ONE),
    ("arrays", {"vectorised", "elementwise", "random"}),
)
"""Name, and the tags of its cases. A case belongs to the first family that has one of its tags."""

OTHER = "other cases"
"""The family of cases that this adbench does not know, and of those without any of these tags."""


def family_of(tags: Iterable[str]) -> str:
    """The family of a case with these tags."""
    found = set(tags)
    return next((name for name, of in FAMILIES if found & of), OTHER)


@dataclass(frozen=True)
class Stored:
    """One run: `name` is its file, `cells` are arranged by the standings of the run."""

    name: str
    identity: str
    machine: str
    run: Run
    cells: Cells

    @property
    def label(self) -> str:
        """What its user calls it; "" if it has no label."""
        given = self.run.settings.get("label")
        return formatting.short(given, MOST_LABEL) if isinstance(given, str) else ""

    @property
    def noise(self) -> str:
        """Its noise floor."""
        reach = self.cells.findings.floor.reach
        return formatting.MISSING if reach is None else formatting.percent(reach)

    @property
    def words(self) -> list[tuple[Word, int]]:
        """How many of its cells have each outcome."""
        every = [cell.word for cell in self.cells.every_single()]
        return [(word, every.count(word)) for word in OUTCOMES if word in every]


@dataclass(frozen=True)
class Race:
    """The race that decides about a case on a machine, and its run."""

    stored: Stored
    lead: Lead


class Archive:
    """All runs of a site, the newest first."""

    def __init__(self, runs: Sequence[Stored], catalog: Catalog) -> None:
        self.runs = tuple(sorted(runs, key=lambda stored: stored.run.created, reverse=True))
        self.catalog = catalog

    @cached_property
    def merged(self) -> Cells:
        """The newest record of each cell, as if one run had made them: for correctness, never for speed."""
        oldest_first = [stored.run for stored in reversed(self.runs)]
        known = [run.known_bugs for run in oldest_first]
        bugs = KnownBugs(
            families=_united([of.families for of in known]),
            traps=_united([of.traps for of in known]),
            backends=_united([of.backends for of in known]),
        )
        whole = replace(
            self.runs[0].run,
            records=tuple(_united([{r.job: r for r in run.records} for run in oldest_first]).values()),
            threaded=(),
            traps=tuple(dict.fromkeys(trap for run in oldest_first for trap in run.traps)),
            cases=_united([run.cases for run in oldest_first]),
            versions=_united([run.versions for run in oldest_first]),
            roles={backend: run.role_of(backend) for run in oldest_first for backend in run.versions},
            known_bugs=bugs,
        )
        return Cells(whole)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """Every case that is no trap, by name."""
        return tuple(sorted(self.merged.subjects))

    @cached_property
    def machines(self) -> Mapping[str, tuple[Stored, ...]]:
        """Machine -> its runs, the newest first."""
        return {machine: tuple(of) for machine, of in grouped(self.runs, lambda stored: stored.machine).items()}

    @cached_property
    def races(self) -> Mapping[tuple[str, str], Race]:
        """(machine, case) -> the race that decides."""
        found: dict[tuple[str, str], Race] = {}
        for stored in self.runs:
            for lead in ranking.leads(stored.cells):
                key = stored.machine, lead.case
                if key not in found or len(lead.ranked) > len(found[key].lead.ranked):
                    found[key] = Race(stored, lead)
        return found

    @cached_property
    def _slowdowns(self) -> Mapping[str, list[dict[str, float]]]:
        """Family -> of each of its races with several backends: backend -> slowdown relative to the fastest."""
        contested = [(case, race) for (_, case), race in self.races.items() if race.lead.contested]
        found = grouped(contested, lambda pair: self.family(pair[0]))
        return {
            name: [standings.slowdowns(race.stored.cells, race.lead) for _, race in found[name]]
            for name in (*(name for name, _ in FAMILIES), OTHER)
            if name in found
        }

    @property
    def raced_families(self) -> list[tuple[str, int]]:
        """The families in the ranking, with their numbers of races."""
        return [(name, len(of)) for name, of in self._slowdowns.items()]

    @cached_property
    def standings(self) -> list[tuple[Standing, ...]]:
        """Each backend over the cases of all machines, the fastest first, then in each family.

        A backend without a correct and timed result comes last and has no slowdown.
        """
        by_family = self._slowdowns.values()
        every = standings.of_races(self.merged.backends, [of for races in by_family for of in races])
        return [(one, *(standings.standing(one.backend, of) for of in by_family)) for one in every]

    def family(self, case: str) -> str:
        """The family of a case; of a case that is not in the catalog it is unknown."""
        known = self.catalog.cases.get(case)
        return family_of(known.tags) if known else OTHER

    @cached_property
    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Family -> its cases, by name."""
        found = grouped(self.cases, self.family)
        return {
            family: tuple(found[family]) for family in sorted(found, key=lambda name: (name == OTHER, name.casefold()))
        }

    def versions(self, backend: str) -> list[tuple[str, list[Stored]]]:
        """(version, its runs) of a backend, the newest first; "" for a version that no file tells."""
        having = [stored for stored in self.runs if backend in stored.run.versions]
        return list(grouped(having, lambda stored: stored.run.library_version(backend) or "").items())


def archive(runs: Sequence[tuple[str, Run]], catalog: Catalog) -> Archive:
    """The archive of (file, run). Raises UsageError without a run, or for two that have one address."""
    if not runs:
        raise UsageError("no run is among the files; pass the folder of a run, its run.json, or run.json.gz")
    found: dict[str, Stored] = {}
    for name, run in runs:
        identity = run_id(run)
        if identity in found:
            raise UsageError(
                f"{found[identity].name} and {name} are the same run, or began in the same second on like machines "
                f"({identity}); leave one out"
            )
        cells = standings.arranged(Cells(run))
        found[identity] = Stored(name, identity, machine_id(run), run, cells)
    return Archive(list(found.values()), catalog)


def _united(parts: Sequence[Mapping[K, V]]) -> dict[K, V]:
    """One mapping; later parts win."""
    found: dict[K, V] = {}
    for part in parts:
        found |= part
    return found
