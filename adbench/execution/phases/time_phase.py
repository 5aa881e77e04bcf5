"""The time phase: launches of fresh resident processes, in which the cells of each group alternate under the clock.

Only the worker whose turn it is runs; all share the same processors. A cell that is lost in a launch is not tried
again, and the others continue. The steps of a cell are in timing_protocol.py.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from adbench.execution.parallel import in_parallel, room
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.phases.timing_protocol import TimedCell
from adbench.execution.planning.costs import Costs
from adbench.execution.workers.background import Background
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer, WorkerStart
from adbench.execution.workers.randomisation import WorkerKey, randomise, turns
from adbench.execution.workers.resident_worker import References, ResidentWorker
from adbench.measure.machine.processors import usable_cpus
from adbench.model.events import Event, Started, Timed
from adbench.model.record import Group, Job, Launched, Record, group_of, grouped


@dataclass(frozen=True)
class TimePhase:
    """The shared state of all launches; `cpus` has the processors for timing with each number of threads, and `costs`
    learns what cells take beside their calls."""

    context: Context
    references: References
    reference_backend: str | None
    failures: FailurePolicy
    cpus: Mapping[int, tuple[int, ...]]
    costs: Costs

    def launch(
        self, number: int, groups: Mapping[Group, Sequence[Record]], plan: Sequence[Job]
    ) -> Generator[Event, None, None]:
        """Time these groups of the plan in launch `number`; the records of each differ only in the backend."""
        settings = self.context.settings
        order = tuple(dict.fromkeys(map(group_of, plan)))
        drawn = randomise(settings.seed, number, self._keys(plan), len(order))
        needed = {key for records in groups.values() for key in self._keys(record.job for record in records)}
        starts = self._apart([(key, start) for key, start in drawn.starts.items() if key in needed], number)
        with ExitStack() as stack:
            workers = {
                key: stack.enter_context(ResidentWorker(self.context, key.backend, start, self._cpus_of(key)))
                for key, start in starts.items()
            }
            self._open(workers.values())
            background = Background(workers.values())
            for place in drawn.groups:
                if records := groups.get(order[place], ()):
                    yield Started(records[0].job, "time", number)
                    yield self._group(workers, background, number, records)

    def _open(self, workers: Iterable[ResidentWorker]) -> None:
        """Start the workers in this order, and let them import in parallel. Failures appear at the first request."""

        def opening(worker: ResidentWorker) -> Generator[None, None, None]:
            with suppress(NoAnswer):
                worker.open()
            yield

        for _ in in_parallel(map(opening, workers), self.context):
            pass

    def _keys(self, jobs: Iterable[Job]) -> list[WorkerKey]:
        """The workers that these jobs need: one for each backend and number of threads, and the control."""
        keys = list(dict.fromkeys(map(_key, jobs)))
        return keys + [replace(key, control=True) for key in keys if key == WorkerKey(self.reference_backend or "")]

    def _apart(self, starts: Sequence[tuple[WorkerKey, WorkerStart]], number: int) -> dict[WorkerKey, WorkerStart]:
        """The starts of workers with their numbers of threads and their devices: each on separate processors if there
        are enough, so that imports run in parallel.

        Compiling for a device takes seconds: a library does so in its first launch only, and then loads its programs;
        the control always loads them. It stays a process, because it measures by how much processes differ.
        """
        usable, placed = usable_cpus(), {}
        for i, (key, start) in enumerate(starts):
            threads = key.threads or self.context.settings.threads
            first = i % max(1, len(usable) // threads) * threads
            environment = {**self.context.environment(threads, key.backend), **start.environment}
            if (number or key.control) and self.context.is_on_device(key.backend):
                environment |= self.context.programs
            placed[key] = replace(start, environment=environment, cpus=usable[first:][:threads])
        return placed

    def _cpus_of(self, key: WorkerKey) -> tuple[int, ...]:
        return self.cpus[key.threads or self.context.settings.threads]

    def _group(
        self,
        workers: Mapping[WorkerKey, ResidentWorker],
        background: Background,
        number: int,
        records: Sequence[Record],
    ) -> Timed:
        """One group in one launch: prepare and warm up each cell, then rounds in turns."""
        of_key = {_key(record.job): record for record in records}
        keys = self._keys(record.job for record in records)
        cells = [
            TimedCell(self.context, self.references, of_key[replace(key, control=False)], key, workers[key])
            for key in keys
        ]
        first = number % len(cells)  # so that the first one varies
        self._make_ready([*cells[first:], *cells[:first]], background)
        for turn in range(self.context.settings.rounds):
            for place in turns(len(cells), turn + number):
                if cells[place].wants_more:
                    cells[place].take_turn(background, cells[place].round)
        at_once = room(self.context.settings.threads) if self.context.settings.quick else 1  # prepare at a time
        for cell in cells:
            if cell.lost is None:
                cell.attempt(cell.judge)
            if cell.lost is None and not cell.record.job.threads:
                self.costs.learn(cell.record.job, beside=cell.beside / at_once)
        lost = self._lost(number, cells)
        launched = (
            Launched(cell.record.job, cell.launch(number, background.shares.get(cell.worker)), cell.key.control)
            for cell in cells
            if cell.record.job not in lost
        )
        return Timed(number, tuple(launched), tuple(lost.values()))

    def _make_ready(self, cells: Sequence[TimedCell], background: Background) -> None:
        """Prepare, call once, warm up. A quick run prepares in parallel, as all runs import."""
        for cell in cells:
            cell.lost = self.failures.skipped(cell.record.job)
        if self.context.settings.quick:
            self._prepare_in_parallel([cell for cell in cells if cell.lost is None])
        for cell in cells:
            if cell.lost is None and not cell.prepared:
                cell.attempt(cell.prepare)
            if cell.lost is None:
                cell.take_turn(background, cell.warm_up)

    def _prepare_in_parallel(self, cells: Sequence[TimedCell]) -> None:
        """Prepare these cells on all processors, then move their workers back to the measuring ones."""

        def preparing(cell: TimedCell) -> Generator[None, None, None]:
            cell.worker.move(usable_cpus())
            cell.attempt(cell.prepare)
            yield

        for _ in in_parallel(map(preparing, cells), self.context):
            pass
        for cell in cells:
            cell.worker.move(self._cpus_of(cell.key))

    def _lost(self, number: int, cells: Sequence[TimedCell]) -> dict[Job, Record]:
        """The record of each job that lost a cell, with its earlier verdict."""
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
                    reproduce=self.context.reproduce(job),
                )
        return lost


def _key(job: Job) -> WorkerKey:
    return WorkerKey(job.backend, threads=job.threads)


def groups_to_time(records: Iterable[Record]) -> dict[Group, list[Record]]:
    """The records to time, in groups that differ only in the backend."""
    return grouped((record for record in records if record.may_be_timed), lambda record: group_of(record.job))
