"""The costs of cells in earlier runs on this machine: seconds to import, check, prepare, call. Only plans use them.

The user's cache keeps them from run to run; they may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from adbench.measure.machine import fingerprint
from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadOutput
from adbench.model.events import CellSeconds, Checked, Event
from adbench.model.record import Job, Run
from adbench.model.serialization import from_plain, to_plain

FILE = "costs.json"
MOST_BYTES = 64 * 2**20
START_SECONDS = 0.3  # a process, Python, numpy and the harness
IMPORT_SECONDS = 0.5  # of a library that nobody has imported here yet: numpy's takes 0.1 s, torch's 2 s
UNKNOWN = CellSeconds(prepare=0.02, first_call=0.01, call=1e-3)  # of a cell of which nothing is known
BESIDE_SECONDS = 0.02  # of a cell in a launch of which nothing is known

Cell = tuple[str, str, str]
"""(case, backend, operator): measured at several sizes."""


@dataclass(frozen=True)
class CellCost:
    """What is known of a cell at a size.

    seconds   to prepare and to call it
    check     seconds of its check
    beside    seconds in a launch beside its preparation and its calls: inputs, summaries, judging
    untimed   whether its check found nothing that can be timed: unsupported, wrong, failed
    """

    seconds: CellSeconds | None = None
    check: float | None = None
    beside: float | None = None
    untimed: bool = False

    @property
    def is_seen(self) -> bool:
        """Whether the cell has been run or checked."""
        return self.seconds is not None or self.check is not None


@dataclass
class Costs:
    """Imports by backend; known costs by case, backend, operator and then size."""

    imports: dict[str, float] = field(default_factory=dict)
    cells: dict[Cell, dict[int, CellCost]] = field(default_factory=dict)
    _usual: dict[str, float | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _seen: set[tuple[str, int]] = field(default_factory=set, init=False, repr=False, compare=False)  # case and size

    def of_import(self, backend: str) -> float:
        """Seconds to import a backend."""
        return self.imports.get(backend, IMPORT_SECONDS)

    def of(self, job: Job) -> CellSeconds:
        """A job's cost: as it was, or of the nearest size in proportion, or of any cell."""
        known: CellSeconds | None
        size, known = self._nearest(job, "seconds")
        if known is None:
            return UNKNOWN
        ratio = job.size / size
        return known if ratio == 1 else replace(known, first_call=known.first_call * ratio, call=known.call * ratio)

    def is_untimed(self, job: Job) -> bool:
        """Whether the job cannot be timed, as far as known: at its size, or at all checked sizes of its cell."""
        sizes = self.cells.get(_cell(job), {})
        untimed = {size for size, known in sizes.items() if known.untimed}
        return job.size in untimed or (bool(untimed) and untimed.issuperset(n for n in sizes if sizes[n].is_seen))

    def of_check(self, job: Job) -> float | None:
        """Seconds of a job's check: as it was, or of the nearest size, or the backend's median; else None."""
        known: float | None = self._nearest(job, "check")[1]
        if known is not None:
            return known
        if job.backend not in self._usual:
            every = (self._known(cell, "check").values() for cell in self.cells if cell[1] == job.backend)
            theirs = [max(checks) for checks in every if checks]
            self._usual[job.backend] = median(theirs) if theirs else None
        return self._usual[job.backend]

    def by_size(self, job: Job, *, whole_checks: bool) -> dict[int, float]:
        """Size -> seconds of a call of the job's cell, or of its whole check, as far as known."""
        if whole_checks:
            return self._known(_cell(job), "check")
        return {size: cost.call for size, cost in self._known(_cell(job), "seconds").items()}

    def of_beside(self, job: Job) -> float:
        """Seconds of a job in a launch beside its preparation and its calls: as it was, or of the nearest size."""
        known: float | None = self._nearest(job, "beside")[1]
        if known is not None:
            return known
        call = self.of(job).call  # two more are judged, of which a slow one takes longer than the verdict
        return BESIDE_SECONDS + min(2 * call, max(call, 0.2))

    def knows(self, case: str, size: int) -> bool:
        """Whether the case has been run or checked at this size: its references are then in the cache."""
        return (case, size) in self._seen

    def note(self, event: Event) -> None:
        """Remember the costs that a check reports."""
        if isinstance(event, Checked) and not event.record.job.threads:
            job, facts = event.record.job, {"seconds": event.cost, "check": event.seconds}
            can_be_timed = event.record.status == "skipped" or event.record.may_be_timed or event.cost is not None
            self.learn(job, untimed=not can_be_timed, **{name: it for name, it in facts.items() if it is not None})
            if event.open_seconds is not None:  # also the start of any process
                self.imports[job.backend] = max(0.0, event.open_seconds - START_SECONDS)

    def learn(self, job: Job, **facts: Any) -> None:
        """Remember these fields of the job's `CellCost`; later figures replace earlier ones."""
        sizes = self.cells.setdefault(_cell(job), {})
        sizes[job.size] = replace(sizes.get(job.size, CellCost()), **facts)
        if sizes[job.size].is_seen:
            self._seen.add((job.case, job.size))
        if "check" in facts:
            self._usual.pop(job.backend, None)

    def learn_run(self, run: Run) -> None:
        """Remember what the cells of a run cost."""
        for record in run.records:
            if record.time is not None:
                time = record.time
                reused = [launch.prepare_seconds for launch in time.launches if launch.reuses_programs]
                again = median(reused) if reused else None
                figures = time.prepare_seconds, time.first_call_seconds, time.seconds_per_call, again
                self.learn(record.job, seconds=CellSeconds(*figures))

    def _known(self, cell: Cell, what: str) -> dict[int, Any]:
        """Size -> this field, where it is known."""
        sizes = self.cells.get(cell, {})
        return {size: value for size, known in sizes.items() if (value := getattr(known, what)) is not None}

    def _nearest(self, job: Job, what: str) -> tuple[int, Any]:
        """The nearest size at which this field of the job's cell is known, and its value; None if it is nowhere."""
        known = self._known(_cell(job), what)
        return min(known.items(), key=lambda one: abs(one[0] - job.size), default=(job.size, None))


def _cell(job: Job) -> Cell:
    return job.case, job.backend, job.operator


def read(folder: Path, machine: dict[str, Any]) -> Costs:
    """What is kept in the folder for this machine; nothing where that cannot be read, or is of another one."""
    path = folder / FILE
    try:
        data = json.loads(path.read_bytes()) if path.stat().st_size <= MOST_BYTES else {}
        if data.get("machine") != fingerprint(machine):
            return Costs()
        costs = Costs(from_plain(data["imports"], dict[str, float]))
        for job, known in from_plain(data["cells"], list[tuple[Job, CellCost]]):
            costs.learn(job, **vars(known))
    except (OSError, ValueError, KeyError, AttributeError, RecursionError):
        return Costs()
    return costs


def keep(folder: Path, machine: dict[str, Any], costs: Costs) -> None:
    """Keep them for the next plan. Where the folder cannot be written, nothing is kept."""
    cells = [(Job(key[0], size, *key[1:]), known) for key, of in costs.cells.items() for size, known in of.items()]
    data = {"machine": fingerprint(machine), "imports": costs.imports, "cells": to_plain(cells)}
    with contextlib.suppress(OSError, BadOutput):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FILE, json.dumps(data))


def backends_of(jobs: Iterable[Job]) -> tuple[str, ...]:
    """The backends of these jobs, in their order, once for each number of threads."""
    return tuple(backend for backend, _ in dict.fromkeys((job.backend, job.threads) for job in jobs))
