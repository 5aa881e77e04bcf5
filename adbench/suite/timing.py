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

from adbench.measure import machine
from adbench.measure.clock import Round, WarmUp
from adbench.measure.disturbance import usable_cpus
from adbench.oracle import Verdict
from adbench.suite.catalog import Catalog
from adbench.suite.events import Event, Started, Timed
from adbench.suite.journal import Group, Launched, group_of
from adbench.suite.lanes import room, side_by_side
from adbench.suite.layout import Seat, layout, turns
from adbench.suite.nursery import Nursery
from adbench.suite.plain import from_plain
from adbench.suite.pool import Pool, about, reproduce
from adbench.suite.process import Start, WorkerProcess
from adbench.suite.record import Job, Launch, Record, Summary
from adbench.suite.settings import Settings
from adbench.suite.troubles import Troubles

ROUNDING = (
    1e-6  # by which two right results may differ, relative to the sizes summed: far more than another order of sums
)


@dataclass
class Cell:
    """A cell in a launch: whose worker, what preparing it told, its rounds so far; `lost` once something went wrong."""

    record: Record
    seat: Seat
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

    nursery: Nursery
    catalog: Catalog
    settings: Settings
    troubles: Troubles
    cpus: tuple[int, ...]

    def launch(
        self, number: int, groups: Mapping[Group, Sequence[Record]], plan: Sequence[Job]
    ) -> Generator[Event, None, None]:
        """Time these groups of the plan in launch `number`: each some right records that differ in the backend only."""
        order = tuple(dict.fromkeys(map(group_of, plan)))
        environment = machine.thread_environment(self.settings.threads)
        made = layout(self.settings.seed, number, self._seats(job.backend for job in plan), len(order), environment)
        needed = {seat for records in groups.values() for seat in self._seats(r.job.backend for r in records)}
        starts = _apart([(seat, start) for seat, start in made.starts.items() if seat in needed], self.settings.threads)

        def start(seat: Seat) -> Start:
            return starts.pop(seat, None) or replace(made.starts[seat], cpus=self.cpus)

        def settle(seat: Seat, worker: WorkerProcess) -> None:
            with contextlib.suppress(OSError):  # it is gone, as will be found when it is asked
                machine.pin(worker.pid, self.cpus)

        with Pool(self.nursery, self.catalog, self.settings, start, settle) as pool:
            self._open(pool, starts, groups)
            for place in made.groups:
                if records := groups.get(order[place], ()):
                    yield Started(records[0].job, "time", number)
                    yield self._group(pool, number, records)

    def _open(self, pool: Pool, starts: Mapping[Seat, Start], groups: Mapping[Group, Sequence[Record]]) -> None:
        """Start the workers in the layout's order, and let them import side by side. Who fails is found when asked."""
        job_of = {record.job.backend: record.job for records in groups.values() for record in records}

        def opening(seat: Seat) -> Iterator[None]:
            pool.open(seat, job_of[seat.backend])
            yield

        lanes = [opening(seat) for seat in tuple(starts)]
        for _ in side_by_side(lanes, room(self.settings.threads), self.nursery.close):
            pass

    def _seats(self, backends: Iterable[str]) -> list[Seat]:
        """The workers that these need: one for each, and the control."""
        found = [Seat(backend) for backend in dict.fromkeys(backends)]
        return found + [Seat(s.backend, control=True) for s in found if s.backend == self.settings.reference_backend]

    def _group(self, pool: Pool, number: int, records: Sequence[Record]) -> Timed:
        """One group in one launch: prepare and warm up each cell, then rounds in turns."""
        by_backend = {record.job.backend: record for record in records}
        cells = [Cell(by_backend[seat.backend], seat) for seat in self._seats(by_backend)]
        first = number % len(cells)  # so that not always the same is prepared first
        for cell in (*cells[first:], *cells[:first]):
            cell.lost = self.troubles.skipped(cell.record.job) or self._make_ready(pool, cell)
        for turn in range(self.settings.rounds):
            for place in turns(len(cells), turn + number):
                cell = cells[place]
                if cell.wants_more(self.settings):
                    found = pool.ask(cell.seat, cell.record.job, {"do": "epoch", "calls": cell.calls})
                    if isinstance(found, Record):
                        cell.lost = found
                    else:
                        cell.rounds.append(from_plain(found, Round))
        return self._told(pool, number, cells)

    def _make_ready(self, pool: Pool, cell: Cell) -> Record | None:
        """Prepare, call once, warm up, calibrate; the record of why not."""
        job = cell.record.job
        told = pool.ask(cell.seat, job, about(self.catalog, job, "prepare", operator=job.operator))
        if isinstance(told, Record):
            return told
        allowed = rounding(cell.record.verdict, told["claimed"])
        fault = differs(cell.record.summary, from_plain(told["summary"], Summary), allowed)
        if fault is not None:
            return Record(job, "wrong", fault)
        asked = {name: getattr(self.settings, name) for name in ("warm_ns", "warm_at_most_ns", "epoch_ns")}
        found = pool.ask(cell.seat, job, {"do": "warm_up", **asked})
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
                self.troubles.note(fault)
                where = f"in launch {number + 1}" + " (the control)" * cell.seat.control
                lost[job] = replace(
                    cell.record,
                    status=fault.status,
                    reason=f"{where}: {fault.reason}",
                    stderr=fault.stderr,
                    reproduce=reproduce(self.catalog, job),
                )
        launched = tuple(
            Launched(cell.record.job, self._launch_of(pool, number, cell), cell.seat.control)
            for cell in cells
            if cell.record.job not in lost
        )
        return Timed(number, launched, tuple(lost.values()))

    def _launch_of(self, pool: Pool, number: int, cell: Cell) -> Launch:
        assert cell.warm_up is not None
        return Launch(
            number=number,
            import_seconds=pool.import_seconds(cell.seat),
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


def _apart(starts: Sequence[tuple[Seat, Start]], threads: int) -> dict[Seat, Start]:
    """How workers start: each on processors of its own as far as they reach, so that imports go side by side."""
    usable = usable_cpus()
    places = max(1, len(usable) // threads)
    return {
        seat: replace(start, cpus=usable[(i % places) * threads :][:threads]) for i, (seat, start) in enumerate(starts)
    }
