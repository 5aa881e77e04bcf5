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


@dataclass
class Costs:
    """Imports by backend; cells, and the seconds of their checks, by case, backend, operator and then size.

    beside    seconds of a cell in a launch beside its preparation and its calls: inputs, summaries, judging
    untimed   sizes at which a check found nothing that can be timed: unsupported, wrong, failed
    """

    imports: dict[str, float] = field(default_factory=dict)
    cells: dict[Cell, dict[int, CellSeconds]] = field(default_factory=dict)
    checks: dict[Cell, dict[int, float]] = field(default_factory=dict)
    beside: dict[Cell, dict[int, float]] = field(default_factory=dict)
    untimed: dict[Cell, set[int]] = field(default_factory=dict)
    _usual: dict[str, float | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _seen: set[tuple[str, int]] = field(default_factory=set, init=False, repr=False, compare=False)  # case and size

    def __post_init__(self) -> None:
        self._seen = {(key[0], size) for of in (self.cells, self.checks) for key in of for size in of[key]}

    def of_import(self, backend: str) -> float:
        """Seconds to import a backend."""
        return self.imports.get(backend, IMPORT_SECONDS)

    def of(self, job: Job) -> CellSeconds:
        """A job's cost: as it was, or of the nearest size in proportion, or of any cell."""
        sizes = self.cells.get((job.case, job.backend, job.operator))
        if not sizes:
            return UNKNOWN
        near = min(sizes, key=lambda n: abs(n - job.size))
        known, ratio = sizes[near], job.size / near
        return known if ratio == 1 else replace(known, first_call=known.first_call * ratio, call=known.call * ratio)

    def is_untimed(self, job: Job) -> bool:
        """Whether the job cannot be timed, as far as known: at its size, or at all checked sizes of its cell."""
        cell = job.case, job.backend, job.operator
        untimed = self.untimed.get(cell, set())
        checked = self.cells.get(cell, {}).keys() | self.checks.get(cell, {}).keys()
        return job.size in untimed or (bool(untimed) and checked <= untimed)

    def of_check(self, job: Job) -> float | None:
        """Seconds of a job's check: as it was, or of the nearest size, or the backend's median; else None."""
        sizes = self.checks.get((job.case, job.backend, job.operator))
        if sizes:
            return sizes[min(sizes, key=lambda n: abs(n - job.size))]
        if job.backend not in self._usual:
            theirs = [max(sizes.values()) for key, sizes in self.checks.items() if key[1] == job.backend]
            self._usual[job.backend] = median(theirs) if theirs else None
        return self._usual[job.backend]

    def by_size(self, job: Job, *, whole_checks: bool) -> dict[int, float]:
        """Size -> seconds of a call of the job's cell, or of its whole check, as far as known."""
        cell = job.case, job.backend, job.operator
        if whole_checks:
            return self.checks.get(cell, {})
        return {size: cost.call for size, cost in self.cells.get(cell, {}).items()}

    def of_beside(self, job: Job) -> float:
        """Seconds of a job in a launch beside its preparation and its calls: as it was, or of the nearest size."""
        sizes = self.beside.get((job.case, job.backend, job.operator))
        if sizes:
            return sizes[min(sizes, key=lambda n: abs(n - job.size))]
        call = self.of(job).call  # two more are judged, of which a slow one takes longer than the verdict
        return BESIDE_SECONDS + min(2 * call, max(call, 0.2))

    def knows(self, case: str, size: int) -> bool:
        """Whether the case has been run or checked at this size: its references are then in the cache."""
        return (case, size) in self._seen

    def note(self, event: Event) -> None:
        """Remember the costs that a check reports."""
        if isinstance(event, Checked) and not event.record.job.threads:
            job = event.record.job
            if event.cost is not None:
                self.learn(job, event.cost)
            sizes = self.untimed.setdefault((job.case, job.backend, job.operator), set())
            if event.record.status == "skipped" or event.record.may_be_timed or event.cost is not None:
                sizes.discard(job.size)
            else:
                sizes.add(job.size)
            if event.seconds is not None:
                self.learn_check(job, event.seconds)
            if event.open_seconds is not None:
                self.learn_opening(job.backend, event.open_seconds)

    def learn(self, job: Job, cost: CellSeconds) -> None:
        """Remember what a job cost; a later figure replaces it."""
        self.cells.setdefault((job.case, job.backend, job.operator), {})[job.size] = cost
        self._seen.add((job.case, job.size))

    def learn_check(self, job: Job, seconds: float) -> None:
        """Remember what a job's check took; a later figure replaces it."""
        self.checks.setdefault((job.case, job.backend, job.operator), {})[job.size] = seconds
        self._seen.add((job.case, job.size))
        self._usual.pop(job.backend, None)

    def learn_beside(self, job: Job, seconds: float) -> None:
        """Remember what a job took in a launch beside its preparation and its calls; a later figure replaces it."""
        self.beside.setdefault((job.case, job.backend, job.operator), {})[job.size] = seconds

    def learn_opening(self, backend: str, seconds: float) -> None:
        """Remember what starting a worker took, of which the import is what is not the start of any process."""
        self.imports[backend] = max(0.0, seconds - START_SECONDS)

    def learn_run(self, run: Run) -> None:
        """Remember what the cells of a run cost."""
        for record in run.records:
            if record.time is not None:
                time = record.time
                reused = [launch.prepare_seconds for launch in time.launches if launch.reuses_programs]
                again = median(reused) if reused else None
                figures = time.prepare_seconds, time.first_call_seconds, time.seconds_per_call, again
                self.learn(record.job, CellSeconds(*figures))


def read(folder: Path, machine: dict[str, Any]) -> Costs:
    """What is kept in the folder for this machine; nothing where that cannot be read, or is of another one."""
    path = folder / FILE
    try:
        data = json.loads(path.read_bytes()) if path.stat().st_size <= MOST_BYTES else {}
        if data.get("machine") != fingerprint(machine):
            return Costs()
        cells = from_plain(data["cells"], list[tuple[Job, CellSeconds]])
        checks = from_plain(data.get("checks", []), list[tuple[Job, float]])
        beside = from_plain(data.get("beside", []), list[tuple[Job, float]])
        untimed = from_plain(data.get("untimed", []), list[Job])
        costs = Costs(from_plain(data["imports"], dict[str, float]))
    except (OSError, ValueError, KeyError, AttributeError, RecursionError):
        return Costs()
    for job, cost in cells:
        costs.learn(job, cost)
    for job, seconds in checks:
        costs.learn_check(job, seconds)
    for job, seconds in beside:
        costs.learn_beside(job, seconds)
    for job in untimed:
        costs.untimed.setdefault((job.case, job.backend, job.operator), set()).add(job.size)
    return costs


def keep(folder: Path, machine: dict[str, Any], costs: Costs) -> None:
    """Keep them for the next plan. Where the folder cannot be written, nothing is kept."""
    data = {
        "machine": fingerprint(machine),
        "imports": costs.imports,
        "cells": to_plain(_by_job(costs.cells)),
        "checks": to_plain(_by_job(costs.checks)),
        "beside": to_plain(_by_job(costs.beside)),
        "untimed": to_plain([Job(key[0], size, *key[1:]) for key, of in costs.untimed.items() for size in sorted(of)]),
    }
    with contextlib.suppress(OSError, BadOutput):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FILE, json.dumps(data))


def _by_job(known: dict[Cell, dict[int, Any]]) -> list[tuple[Job, Any]]:
    return [(Job(key[0], size, *key[1:]), it) for key, sizes in known.items() for size, it in sizes.items()]


def backends_of(jobs: Iterable[Job]) -> tuple[str, ...]:
    """The backends of these jobs, in their order, once for each number of threads."""
    return tuple(backend for backend, _ in dict.fromkeys((job.backend, job.threads) for job in jobs))
