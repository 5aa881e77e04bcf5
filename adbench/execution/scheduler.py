"""Runs a plan: first every job is checked, then what is right is timed, launch by launch, then it is weighed.

`run` is a generator of events; who iterates it draws the bar and writes the journal. Nothing calls back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from time import monotonic

from adbench.catalog.discovery import Catalog
from adbench.execution.parallel import room, side_by_side
from adbench.execution.phases.check_phase import check
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.phases.memory_phase import jobs_to_measure, measure_memory
from adbench.execution.phases.time_phase import Timing, groups_to_time
from adbench.execution.planning.budget import fit
from adbench.execution.planning.costs import Costs
from adbench.execution.planning.estimate import Estimate
from adbench.execution.planning.plan import Plan, sizes_by_case
from adbench.execution.workers.pool import References, plain_start
from adbench.execution.workers.process import WorkerLost
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure import machine
from adbench.model.events import Checked, Event, Learned, MemoryMeasured, Timed
from adbench.model.record import Group, Job, Record, group_of
from adbench.model.settings import PREFERRED_REFERENCE, Settings
from adbench.results.journal import Progress

CHECK_SHARE = 0.5  # of a budget: what is not checked then is left out
MEMORY_SHARE = 1.2  # of a budget: what is not weighed then is left out


@dataclass
class Runner:
    """What a run has from its beginning to its end; `progress` and `costs` are what is known of it so far."""

    supervisor: Supervisor
    plan: Plan
    catalog: Catalog
    settings: Settings
    progress: Progress
    costs: Costs = field(default_factory=Costs)
    started: float = field(default_factory=monotonic)

    def events(self) -> Generator[Event, None, None]:
        """Do what of the plan is not in `progress` yet; each event is entered there before it is told."""
        for phase in (self._check, self._fit, self._prepare_to_time, self._time, self._measure_memory):
            for event in phase():
                enter(event, self.progress)
                if isinstance(event, Checked):
                    self._learn(event)
                yield event

    def _learn(self, event: Checked) -> None:
        """Remember what a check cost."""
        job = event.record.job
        if event.cost is not None:
            self.costs.learn(job, event.cost)
        if event.seconds is not None:
            self.costs.learn_check(job, event.seconds)
        if event.open_seconds is not None:
            self.costs.learn_opening(job.backend, event.open_seconds)

    def _check(self) -> Iterator[Event]:
        """What is not checked yet, a lane for each backend; where time is short, the smallest sizes first."""
        left = [job for job in self.plan.jobs if job not in self.progress.records]
        if self.settings.budget_seconds is not None:
            sizes = sizes_by_case(self.plan.jobs)
            left.sort(key=lambda job: (sizes[job.case].index(job.size), job.operator == "value"))
        before = tuple(self.progress.records.values())
        with References(self.supervisor, self.catalog, self.settings) as references:
            lanes = [
                check(
                    *(self.supervisor, references, self.catalog, self.settings),
                    [job for job in left if job.backend == name],
                    [record for record in before if record.job.backend == name],
                    self._over(CHECK_SHARE),
                )
                for name in dict.fromkeys(job.backend for job in left)
            ]
            yield from side_by_side(lanes, room(self.settings.threads), self.supervisor.close)

    def _fit(self) -> Iterator[Event]:
        """Where time is limited: leave out what does not fit, now that it is known what each cell takes."""
        budget = self.settings.budget_seconds
        if budget is None or not self.settings.time:
            return
        left_out = []
        if unchecked := [job for job in self.plan.jobs if job not in self.progress.records]:
            left_out.append(f"not checked: {_places(unchecked)}")
        right = [record.job for records in self._timed() for record in records]
        if right:
            estimate = Estimate(self.settings, self.costs, checked=right)
            fitted = fit(right, estimate, budget - self._spent())
            for job in set(right) - set(fitted.jobs):
                reason = f"right, but not timed: it does not fit into {budget:.0f} s"
                yield Checked(replace(self.progress.records[job], reason=reason))
            self.settings = fitted.settings
            left_out += fitted.left_out
        if left_out:
            yield self._leave_out(left_out)

    def _leave_out(self, texts: Sequence[str]) -> Learned:
        """The settings with what else is left out."""
        before = [self.settings.left_out] if self.settings.left_out else []
        self.settings = replace(self.settings, left_out="; ".join([*before, *texts]))
        return Learned({"settings": asdict(self.settings)})

    def _spent(self) -> float:
        return monotonic() - self.started

    def _over(self, share: float) -> Callable[[], bool]:
        """Whether more than this share of the budget is gone."""
        budget = self.settings.budget_seconds
        return lambda: budget is not None and self._spent() > share * budget

    def _prepare_to_time(self) -> Iterator[Event]:
        """What is learned once, when it is known what is to be timed."""
        if not self.settings.time or not any(map(self._left, range(self.settings.launches))):
            return
        backends = dict.fromkeys(record.job.backend for records in self._timed() for record in records)
        pinned = {"measuring_cpus": ", ".join(map(str, self.cpus)) or None}
        yield Learned({"machine": self.progress.head.run.machine | pinned})
        if self.progress.head.run.reference_backend is None:
            first = PREFERRED_REFERENCE if PREFERRED_REFERENCE in backends else next(iter(backends))
            yield Learned({"reference_backend": self.settings.reference_backend or first})
        if self.progress.head.run.loop_overhead_ns is None:
            yield Learned({"loop_overhead_ns": self._loop_overhead_ns()})

    def _time(self) -> Iterator[Event]:
        if not self.settings.time:
            return
        timing = Timing(
            self.supervisor,
            self.catalog,
            replace(self.settings, reference_backend=self.progress.head.run.reference_backend),
            FailurePolicy(self.progress.records.values()),
            self.cpus,
        )
        for number in range(self.settings.launches):
            if left := self._left(number):
                begun = self._spent()
                yield from timing.launch(number, left, self.plan.jobs)
                budget, rest = self.settings.budget_seconds, self.settings.launches - number - 1
                if budget is not None and rest and 2 * self._spent() - begun > budget:
                    self.settings = replace(self.settings, launches=number + 1)
                    yield self._leave_out([f"launches: {number + 1} in the place of {number + 1 + rest}"])
                    return

    def _measure_memory(self) -> Iterator[Event]:
        """What is right and not weighed yet, a lane for each backend."""
        if not self.settings.memory:
            return
        right = [record.job for records in self._timed() for record in records]
        wanted = set(jobs_to_measure(right, self.settings))
        left = [job for job in self.plan.jobs if job in wanted and job not in self.progress.memories]
        lanes = [
            measure_memory(
                *(self.supervisor, self.catalog, self.settings),
                [job for job in left if job.backend == name],
                self._over(MEMORY_SHARE),
            )
            for name in dict.fromkeys(job.backend for job in left)
        ]
        yield from side_by_side(lanes, room(self.settings.threads), self.supervisor.close)
        if unmeasured := [job for job in left if job not in self.progress.memories]:
            yield self._leave_out([f"not weighed: {_places(unmeasured)}"])

    def _left(self, number: int) -> dict[Group, list[Record]]:
        """The groups that are not timed yet in launch `number`."""
        groups = {group_of(records[0].job): records for records in self._timed()}
        return {group: records for group, records in groups.items() if (number, group) not in self.progress.groups}

    def _timed(self) -> Iterable[list[Record]]:
        """The groups of records that are worth timing: right, and no trap."""
        jobs = (job for job in self.plan.jobs if not self.catalog.cases[job.case].is_trap)
        return groups_to_time(self.progress.records[job] for job in jobs if job in self.progress.records).values()

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """The processors that everything timed runs on: chosen once, and none where the system cannot pin."""
        return machine.measuring_cpus(self.settings.threads) if hasattr(os, "sched_setaffinity") else ()

    def _loop_overhead_ns(self) -> float | None:
        """In a process started as those that are timed; None where it cannot be had."""
        start = replace(plain_start(self.settings), cpus=self.cpus)
        try:
            worker = self.supervisor.start(start)
            try:
                return float(worker.ask({"do": "overhead"}, self.settings.timeout_seconds)["value"])
            finally:
                self.supervisor.end(worker)
        except (WorkerLost, KeyError):
            return None


def _places(jobs: Iterable[Job]) -> str:
    """Cases with their sizes, in words."""
    return ", ".join(f"{case} at {', '.join(map(str, of))}" for case, of in sizes_by_case(jobs).items())


def enter(event: Event, progress: Progress) -> None:
    """Write an event into what is known of the run."""
    match event:
        case Checked(record):
            progress.records[record.job] = record
        case Timed(number, cells, lost):
            for cell in cells:
                progress.launches.setdefault((cell.job, cell.control), {})[number] = cell.launch
            progress.records |= {record.job: record for record in lost}
            progress.groups |= {(number, group_of(cell.job)) for cell in cells}
            progress.groups |= {(number, group_of(record.job)) for record in lost}
        case MemoryMeasured(job, memory):
            progress.memories[job] = memory
        case Learned(facts):
            progress.head = replace(progress.head, run=replace(progress.head.run, **facts))
