"""The time phase: launches of fresh resident processes, in which the cells of each group alternate under the clock.

Only the worker whose turn it is runs; all share the same processors. A cell that is lost in a launch is not tried
again, and the others continue. After the last round of a launch, results of timed calls are judged: one at the case's
inputs, one at perturbed inputs, and both again with exchanged contents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from adbench.execution.parallel import in_parallel, room
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.planning.costs import Costs
from adbench.execution.workers.background import Background, in_words
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer, Start
from adbench.execution.workers.randomisation import WorkerKey, randomise, turns
from adbench.execution.workers.resident_worker import References, ResidentWorker
from adbench.measure import machine
from adbench.measure.clock import WarmUp
from adbench.measure.machine.disturbance import usable_cpus
from adbench.measure.readings import Round
from adbench.model.events import Event, Started, Timed
from adbench.model.record import Group, Job, Launch, Launched, Record, Summary, group_of, grouped
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings
from adbench.oracle.verdict import Verdict

ROUNDING = 1e-6
"""The allowed difference of two correct results, relative to the summed magnitudes: far above summation order."""


@dataclass
class TimedCell:
    """A cell in a launch: its worker, its preparation, its rounds so far; `lost` if something went wrong.

    beside   seconds beside its preparation and its calls
    """

    record: Record
    key: WorkerKey
    worker: ResidentWorker
    prepared: dict[str, Any] = field(default_factory=dict)
    warm_up: WarmUp | None = None
    calls: int = 1
    rounds: list[Round] = field(default_factory=list)
    lost: Record | None = None
    beside: float = 0.0

    def wants_more(self, settings: Settings) -> bool:
        """Whether it takes part in the next round."""
        return self.lost is None and sum(r.ns for r in self.rounds) < settings.cell_ns

    def attempt(self, step: Callable[[TimedCell], None]) -> None:
        """Take a step; if the worker gives no answer, the cell is lost."""
        try:
            step(self)
        except NoAnswer as no:
            self.lost = no.record(self.record.job)

    def launch(self, number: int, background: float | None = None) -> Launch:
        """All measurements of the cell; `background`: what its worker used outside its turns."""
        assert self.warm_up is not None
        return Launch(
            number=number,
            import_seconds=self.worker.import_seconds,
            prepare_seconds=self.prepared["prepare_seconds"],
            phases=self.prepared["phases"],
            first_call_seconds=self.prepared["first_call_seconds"],
            warm_up_calls=self.warm_up.calls,
            steady=self.warm_up.steady,
            rounds=tuple(self.rounds),
            background=background,
        )


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
        environment = self.context.environment()
        drawn = randomise(settings.seed, number, self._keys(plan), len(order), environment)
        needed = {key for records in groups.values() for key in self._keys(record.job for record in records)}
        starts = _apart([(key, start) for key, start in drawn.starts.items() if key in needed], settings.threads)
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
        found = list(dict.fromkeys(map(_key, jobs)))
        return found + [replace(key, control=True) for key in found if key == WorkerKey(self.reference_backend or "")]

    @property
    def _at_once(self) -> int:
        """How many workers prepare at a time."""
        return room(self.context.settings.threads) if self.context.settings.quick else 1

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
        cells = [TimedCell(of_key[replace(key, control=False)], key, workers[key]) for key in keys]
        first = number % len(cells)  # so that the first one varies
        self._make_ready([*cells[first:], *cells[:first]], background)
        for turn in range(self.context.settings.rounds):
            for place in turns(len(cells), turn + number):
                if cells[place].wants_more(self.context.settings):
                    _take_turn(cells[place], background, _take_round)
        for cell in cells:
            if cell.lost is None:
                cell.attempt(self._judge)
            if cell.lost is None and not cell.record.job.threads:
                self.costs.learn_beside(cell.record.job, cell.beside)
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
                cell.attempt(self._prepare)
            if cell.lost is None:
                _take_turn(cell, background, self._warm_up)

    def _prepare_in_parallel(self, cells: Sequence[TimedCell]) -> None:
        """Prepare these cells on all processors, then move their workers back to the measuring ones."""

        def preparing(cell: TimedCell) -> Generator[None, None, None]:
            cell.worker.move(usable_cpus())
            cell.attempt(self._prepare)
            yield

        for _ in in_parallel(map(preparing, cells), self.context):
            pass
        for cell in cells:
            cell.worker.move(self._cpus_of(cell.key))

    def _prepare(self, cell: TimedCell) -> None:
        """Prepare and call once; the result must be the checked one."""
        job = cell.record.job
        rotate = self.references.near(job)[0] is not None
        begun = monotonic()
        cell.prepared = cell.worker.ask(self.context.prepare_request(job, rotate=rotate))
        clocked = cell.prepared["prepare_seconds"] + cell.prepared["first_call_seconds"]
        cell.beside = max(0.0, monotonic() - begun - clocked) / self._at_once
        allowed = rounding(cell.record.verdict, cell.prepared["claimed"])
        fault = differs(cell.record.summary, from_plain(cell.prepared["summary"], Summary), allowed)
        if fault is not None:
            cell.lost = Record(job, "wrong", fault)

    def _warm_up(self, cell: TimedCell) -> None:
        """Warm up, and find out how many calls make an epoch."""
        asked = {name: getattr(self.context.settings, name) for name in ("warm_ns", "warm_at_most_ns", "epoch_ns")}
        found = cell.worker.ask({"do": "warm_up", **asked})
        cell.warm_up, cell.calls = from_plain(found["warm_up"], WarmUp), found["calls"]

    def _judge(self, cell: TimedCell) -> None:
        """Judge results of timed calls. A backend may detect a check; it cannot detect which round is judged."""
        job = cell.record.job
        near, _ = self.references.near(job)
        known = [self.references.of(job), *([] if near is None else [near])]
        begun = monotonic()
        fault = cell.worker.ask(self.context.request(job, "judge", operator=job.operator, references=known))
        cell.beside += monotonic() - begun
        if fault is not None:
            cell.lost = Record(job, "wrong", fault)

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


def _take_turn(cell: TimedCell, background: Background, step: Callable[[TimedCell], None]) -> None:
    """Take a step while the others wait. A round in which they do not is flagged."""
    before = len(cell.rounds)
    with background.turn(cell.worker) as meanwhile:
        cell.attempt(step)
    if meanwhile and len(cell.rounds) > before:
        last = cell.rounds[-1]
        reasons = [last.disturbed, in_words(meanwhile)]
        cell.rounds[-1] = replace(last, disturbed="; ".join(filter(None, reasons)))


def _take_round(cell: TimedCell) -> None:
    cell.rounds.append(from_plain(cell.worker.ask({"do": "epoch", "calls": cell.calls}), Round))


def groups_to_time(records: Iterable[Record]) -> dict[Group, list[Record]]:
    """The records to time, in groups that differ only in the backend."""
    return grouped((record for record in records if record.may_be_timed), lambda record: group_of(record.job))


def rounding(verdict: Verdict | None, claimed_relative_error: float | None) -> float:
    """The allowed difference between results of two processes, relative to the summed magnitudes.

    It is larger if the method claims less, or if fewer digits can be resolved, because both amplify rounding.
    """
    allowed = max(ROUNDING, 10 * (claimed_relative_error or 0.0))
    if verdict is None or verdict.word not in ("verified", "blind", "inconclusive"):
        return allowed
    return max(allowed, 10.0 ** (1 - verdict.worst.digits_resolvable)) if verdict.worst is not None else math.inf


def differs(checked: Summary | None, now: Summary, allowed: float = ROUNDING) -> str | None:
    """Why a result differs from the checked one of another process; None if they agree up to rounding."""
    if checked is None or (checked.count == now.count and _close(checked, now, allowed)):
        return None
    was, here = (f"{s.count} with the sum {s.total!r} and the sum of sizes {s.magnitude!r}" for s in (checked, now))
    return f"differs between processes: the checked result had {was} numbers, this one {here}"


def _close(a: Summary, b: Summary, allowed: float) -> bool:
    pairs = (a.total, b.total), (a.magnitude, b.magnitude)
    scale = max(a.magnitude, b.magnitude)
    return all(x == y or (math.isfinite(scale) and abs(x - y) <= allowed * scale) for x, y in pairs)


def _apart(starts: Sequence[tuple[WorkerKey, Start]], own_threads: int) -> dict[WorkerKey, Start]:
    """The starts of workers with their numbers of threads: each on separate processors if there are enough, so that
    imports run in parallel."""
    usable, found = usable_cpus(), {}
    for i, (key, start) in enumerate(starts):
        threads = key.threads or own_threads
        first = i % max(1, len(usable) // threads) * threads
        environment = {**start.environment, **machine.thread_environment(threads)}
        found[key] = replace(start, environment=environment, cpus=usable[first:][:threads])
    return found
