"""Launches: fresh processes, all resident, in which each group's cells take turns under the clock.

Only the worker whose turn it is runs; all are on the same processors. A cell that is lost in a launch is not tried
again, and the others go on.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adbench.catalog.discovery import Catalog
from adbench.execution.parallel import room, side_by_side
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.workers.pool import Pool, about, reproduce
from adbench.execution.workers.process import Start, WorkerProcess
from adbench.execution.workers.randomisation import WorkerKey, layout, turns
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure import machine
from adbench.measure.clock import Round, WarmUp
from adbench.measure.machine.disturbance import usable_cpus
from adbench.model.events import Event, Started, Timed
from adbench.model.record import Group, Job, Launch, Launched, Record, Summary, group_of
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings
from adbench.oracle import Verdict

ROUNDING = (
    1e-6  # by which two right results may differ, relative to the sizes summed: far more than another order of sums
)


@dataclass
class Cell:
    """A cell in a launch: whose worker, what preparing it told, its rounds so far; `lost` once something went wrong."""

    record: Record
    key: WorkerKey
    told: dict[str, Any] = field(default_factory=dict)
    warm_up: WarmUp | None = None
    calls: int = 1
    rounds: list[Round] = field(default_factory=list)
    lost: Record | None = None

    def wants_more(self, settings: Settings) -> bool:
        """Whether it takes part in the next round."""
        return self.lost is None and sum(r.ns for r in self.rounds) < settings.cell_ns


@dataclass(frozen=True)
class Timing:
    """What all launches share; `cpus` are the processors that everything timed runs on."""

    supervisor: Supervisor
    catalog: Catalog
    settings: Settings
    failures: FailurePolicy
    cpus: tuple[int, ...]

    def launch(
        self, number: int, groups: Mapping[Group, Sequence[Record]], plan: Sequence[Job]
    ) -> Generator[Event, None, None]:
        """Time these groups of the plan in launch `number`: each some right records that differ in the backend only."""
        order = tuple(dict.fromkeys(map(group_of, plan)))
        environment = machine.thread_environment(self.settings.threads)
        made = layout(self.settings.seed, number, self._keys(job.backend for job in plan), len(order), environment)
        needed = {key for records in groups.values() for key in self._keys(r.job.backend for r in records)}
        starts = _apart([(key, start) for key, start in made.starts.items() if key in needed], self.settings.threads)

        def start(key: WorkerKey) -> Start:
            return starts.pop(key, None) or replace(made.starts[key], cpus=self.cpus)

        def settle(key: WorkerKey, worker: WorkerProcess) -> None:
            with contextlib.suppress(OSError):  # it is gone, as will be found when it is asked
                machine.pin(worker.pid, self.cpus)

        with Pool(self.supervisor, self.catalog, self.settings, start, settle) as pool:
            self._open(pool, starts, groups)
            for place in made.groups:
                if records := groups.get(order[place], ()):
                    yield Started(records[0].job, "time", number)
                    yield self._group(pool, number, records)

    def _open(self, pool: Pool, starts: Mapping[WorkerKey, Start], groups: Mapping[Group, Sequence[Record]]) -> None:
        """Start the workers in the layout's order, and let them import side by side. Who fails is found when asked."""
        job_of = {record.job.backend: record.job for records in groups.values() for record in records}

        def opening(key: WorkerKey) -> Iterator[None]:
            pool.open(key, job_of[key.backend])
            yield

        lanes = [opening(key) for key in tuple(starts)]
        for _ in side_by_side(lanes, room(self.settings.threads), self.supervisor.close):
            pass

    def _keys(self, backends: Iterable[str]) -> list[WorkerKey]:
        """The workers that these need: one for each, and the control."""
        found = [WorkerKey(backend) for backend in dict.fromkeys(backends)]
        return found + [
            WorkerKey(s.backend, control=True) for s in found if s.backend == self.settings.reference_backend
        ]

    def _group(self, pool: Pool, number: int, records: Sequence[Record]) -> Timed:
        """One group in one launch: prepare and warm up each cell, then rounds in turns."""
        by_backend = {record.job.backend: record for record in records}
        cells = [Cell(by_backend[key.backend], key) for key in self._keys(by_backend)]
        first = number % len(cells)  # so that not always the same is prepared first
        for cell in (*cells[first:], *cells[:first]):
            cell.lost = self.failures.skipped(cell.record.job) or self._make_ready(pool, cell)
        for turn in range(self.settings.rounds):
            for place in turns(len(cells), turn + number):
                cell = cells[place]
                if cell.wants_more(self.settings):
                    found = pool.ask(cell.key, cell.record.job, {"do": "epoch", "calls": cell.calls})
                    if isinstance(found, Record):
                        cell.lost = found
                    else:
                        cell.rounds.append(from_plain(found, Round))
        return self._told(pool, number, cells)

    def _make_ready(self, pool: Pool, cell: Cell) -> Record | None:
        """Prepare, call once, warm up, calibrate; the record of why not."""
        job = cell.record.job
        told = pool.ask(cell.key, job, about(self.catalog, job, "prepare", operator=job.operator))
        if isinstance(told, Record):
            return told
        allowed = rounding(cell.record.verdict, told["claimed"])
        fault = differs(cell.record.summary, from_plain(told["summary"], Summary), allowed)
        if fault is not None:
            return Record(job, "wrong", fault)
        asked = {name: getattr(self.settings, name) for name in ("warm_ns", "warm_at_most_ns", "epoch_ns")}
        found = pool.ask(cell.key, job, {"do": "warm_up", **asked})
        if isinstance(found, Record):
            return found
        cell.told, cell.warm_up, cell.calls = told, from_plain(found["warm_up"], WarmUp), found["calls"]
        return None

    def _told(self, pool: Pool, number: int, cells: Sequence[Cell]) -> Timed:
        """The launch of each cell; the record of each job of which a cell was lost, with what had been found before."""
        lost: dict[Job, Record] = {}
        for cell in cells:
            job, fault = cell.record.job, cell.lost
            if fault is not None and job not in lost:
                self.failures.note(fault)
                where = f"in launch {number + 1}" + " (the control)" * cell.key.control
                lost[job] = replace(
                    cell.record,
                    status=fault.status,
                    reason=f"{where}: {fault.reason}",
                    stderr=fault.stderr,
                    reproduce=reproduce(self.catalog, job),
                )
        launched = tuple(
            Launched(cell.record.job, self._launch_of(pool, number, cell), cell.key.control)
            for cell in cells
            if cell.record.job not in lost
        )
        return Timed(number, launched, tuple(lost.values()))

    def _launch_of(self, pool: Pool, number: int, cell: Cell) -> Launch:
        assert cell.warm_up is not None
        return Launch(
            number=number,
            import_seconds=pool.import_seconds(cell.key),
            prepare_seconds=cell.told["prepare_seconds"],
            phases=cell.told["phases"],
            first_call_seconds=cell.told["first_call_seconds"],
            warm_up_calls=cell.warm_up.calls,
            steady=cell.warm_up.steady,
            rounds=tuple(cell.rounds),
        )


def groups_to_time(records: Iterable[Record]) -> dict[Group, list[Record]]:
    """The records that are to be timed, those together that differ in the backend only."""
    found: dict[Group, list[Record]] = {}
    for record in records:
        if record.status == "ok" and record.summary is not None and record.reason is None:
            found.setdefault(group_of(record.job), []).append(record)
    return found


def rounding(verdict: Verdict | None, claimed_relative_error: float | None) -> float:
    """By how much two processes may differ, relative to the sizes summed.

    More where a method claims no better, or where less can be resolved: there the last bit of a sum that was taken in
    another order is blown up.
    """
    allowed = max(ROUNDING, 10 * (claimed_relative_error or 0.0))
    if verdict is None or verdict.word != "inconclusive":
        return allowed
    return max(allowed, 10.0 ** (1 - verdict.worst.digits_resolvable)) if verdict.worst is not None else math.inf


def differs(checked: Summary | None, now: Summary, allowed: float = ROUNDING) -> str | None:
    """Why a result is not the one that was checked in another process; None where it is, but for rounding."""
    if checked is None or (checked.count == now.count and _close(checked, now, allowed)):
        return None
    was, here = (f"{s.count} with the sum {s.total!r} and the sum of sizes {s.magnitude!r}" for s in (checked, now))
    return f"differs from process to process: of its numbers there were {was} where it was checked, {here} here"


def _close(a: Summary, b: Summary, allowed: float) -> bool:
    pairs = (a.total, b.total), (a.magnitude, b.magnitude)
    scale = max(a.magnitude, b.magnitude)
    return all(x == y or (math.isfinite(scale) and abs(x - y) <= allowed * scale) for x, y in pairs)


def _apart(starts: Sequence[tuple[WorkerKey, Start]], threads: int) -> dict[WorkerKey, Start]:
    """How workers start: each on processors of its own as far as they reach, so that imports go side by side."""
    usable = usable_cpus()
    places = max(1, len(usable) // threads)
    return {
        key: replace(start, cpus=usable[(i % places) * threads :][:threads]) for i, (key, start) in enumerate(starts)
    }
