"""Executes a plan: checks every job, times the correct ones launch by launch, then measures their memory.

`Scheduler.events` is a generator of events; its consumer draws the progress bar and writes the journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from time import monotonic

from adbench.execution.parallel import in_parallel, room
from adbench.execution.phases.check_phase import CheckPhase
from adbench.execution.phases.failure_policy import FailurePolicy
from adbench.execution.planning.costs import Costs
from adbench.execution.planning.plan import sizes_by_case
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.resident_worker import References, ResidentWorker
from adbench.measure import machine
from adbench.measure.readings import Rates
from adbench.model.case import ONE_BY_ONE
from adbench.model.events import Checked, Event, Learned
from adbench.model.record import Group, Job, Record, group_of, grouped
from adbench.model.run_progress import Progress, applied, assemble
from adbench.model.settings import PREFERRED_REFERENCE, PROCESSOR, Settings

CHECK_SHARE = 0.5  # of a budget; jobs unchecked by then are left out
COUNTED_OPERATIONS = 10**6  # of one evaluation, at most, where the operations of the gradient are counted
MEMORY_SHARE = 1.2  # of a budget; memory unmeasured by then is left out


Worker = tuple[str, int]
"""The backend and the number of threads (Job.threads) of a worker."""


@dataclass
class Scheduler:
    """A run from start to end; `progress` and `costs` are its state so far."""

    context: Context
    progress: Progress
    costs: Costs = field(default_factory=Costs)
    started: float = field(default_factory=monotonic)

    @cached_property
    def references(self) -> References:
        """The references of the cases, computed by the check and used again by launches."""
        return References(self.context)

    @property
    def settings(self) -> Settings:
        """The current settings; a budget may change them during the run."""
        return self.context.settings

    @property
    def plan(self) -> tuple[Job, ...]:
        """The planned jobs, in order."""
        return self.progress.head.plan

    def events(self) -> Generator[Event, None, None]:
        """Do the rest of the plan; each event is applied to `progress` before it is passed on."""
        for phase in (self._check, self._fit, self._prepare_to_time, self._time, self._measure_memory):
            for event in applied(phase(), self.progress):
                self.costs.note(event)
                yield event

    def _check(self) -> Iterator[Event]:
        """Check the remaining jobs, each backend in a thread; with a budget, the smallest sizes first.

        At the end, idle threads help with the backends that take longest.
        """
        left = self.progress.unchecked
        if self.settings.budget_seconds is not None:
            sizes = sizes_by_case(self.plan)
            left.sort(key=lambda job: (sizes[job.case].index(job.size), job.operator == "value"))
        before = grouped(self.progress.records.values(), lambda record: _worker(record.job))
        with self.references:
            enough, jobs_of = self._over(CHECK_SHARE), self._longest_first(grouped(left, _worker))
            checks = [
                CheckPhase(self.context, self.references, jobs, before.get(name, ()), enough, len(jobs_of) == 1)
                for name, jobs in jobs_of.items()
            ]
            helpers = (check.help() for _ in range(1, room(self.settings.threads)) for check in checks)
            yield from in_parallel(chain((check.check() for check in checks), helpers), self.context)

    def _longest_first(self, jobs_of: Mapping[Worker, list[Job]]) -> dict[Worker, list[Job]]:
        """The backends with the longest checks first, as far as known, so that short ones fill the processors."""

        def seconds(name: Worker) -> float:
            return sum(self.costs.of_check(job) or 0.0 for job in jobs_of[name])

        return {name: jobs_of[name] for name in sorted(jobs_of, key=seconds, reverse=True)}

    def _fit(self) -> Iterator[Event]:
        """With a budget, leave out cells that do not fit, now that their costs are known."""
        budget = self.settings.budget_seconds
        if budget is None or not self.settings.time:
            return
        from adbench.execution.planning.budget import fit
        from adbench.execution.planning.estimate import Estimate

        left_out = []
        if unchecked := self.progress.unchecked:
            left_out.append(f"not checked: {_places(unchecked)}")
        right = [record.job for records in self._timed() for record in records]
        if right:
            estimate = Estimate(self.settings, self.costs, checked=right)
            fitted = fit(right, estimate, budget - self._spent())
            for job in set(right) - set(fitted.jobs):
                reason = f"right, but not timed: it does not fit into {budget:.0f} s"
                yield Checked(replace(self.progress.records[job], reason=reason))
            self._change(fitted.settings)
            left_out += fitted.left_out
        if left_out:
            yield self._leave_out(left_out)

    def _leave_out(self, texts: Sequence[str]) -> Learned:
        """The settings with these texts added to `left_out`."""
        before = [self.settings.left_out] if self.settings.left_out else []
        self._change(replace(self.settings, left_out="; ".join([*before, *texts])))
        return Learned({"settings": asdict(self.settings)})

    def _change(self, settings: Settings) -> None:
        self.context = replace(self.context, settings=settings)

    def _spent(self) -> float:
        return monotonic() - self.started

    def _over(self, share: float) -> Callable[[], bool]:
        """Whether more than this share of the budget is spent."""
        budget = self.settings.budget_seconds
        return lambda: budget is not None and self._spent() > share * budget

    def _prepare_to_time(self) -> Iterator[Event]:
        """Determine facts for all launches, once the cells to time are known."""
        if not self.settings.time or not any(map(self._left, range(self.settings.launches))):
            return
        backends = dict.fromkeys(record.job.backend for records in self._timed() for record in records)
        own = self.cpus[self.settings.threads]
        pinned = {"measuring_cpus": ", ".join(map(str, own)) or None}
        yield Learned({"machine": self.progress.head.run.machine | pinned})
        if self.progress.head.run.reference_backend is None:
            first = PREFERRED_REFERENCE if PREFERRED_REFERENCE in backends else next(iter(backends))
            yield Learned({"reference_backend": self.settings.reference_backend or first})
        if self.progress.head.run.loop_overhead_ns is None:
            yield Learned({"loop_overhead_ns": self._loop_overhead_ns()})
        if not self.progress.head.run.rates:
            yield Learned({"rates": self._rates(backends), "gradient_operations": self._gradient_operations()})

    def _time(self) -> Iterator[Event]:
        """Run launches, as many as the budget allows."""
        if not self.settings.time:
            return
        from adbench.execution.phases.time_phase import TimePhase
        from adbench.execution.planning.stopping import decided

        failures = FailurePolicy(self.progress.records.values())
        reference = self.progress.head.run.reference_backend
        phase = TimePhase(self.context, self.references, reference, failures, self.cpus, self.costs)
        for number in range(self.settings.launches):
            if self._asks(number):
                yield decided(assemble(self.progress), number, self.settings.margin)
            if left := self._left(number):
                begun = self._spent()
                yield from phase.launch(number, left, self.plan)
                budget, rest = self.settings.budget_seconds, self.settings.launches - number - 1
                if budget is not None and rest and 2 * self._spent() - begun > budget:
                    self._change(replace(self.settings, launches=number + 1))
                    yield self._leave_out([f"launches: {number + 1} instead of {number + 1 + rest}"])
                    return

    def _asks(self, launches: int) -> bool:
        """Whether to find out what is decided after so many launches."""
        from adbench.measure.statistics import looks

        planned = looks(self.settings.launches) if self.settings.stop_early else {}
        return launches in planned and launches not in self.progress.looks

    def _measure_memory(self) -> Iterator[Event]:
        """Measure the memory of the timed cells, or count their instructions, each backend in a thread."""
        if not self.settings.memory and self.settings.instructions is None:
            return
        from adbench.execution.phases.memory_phase import jobs_to_measure, measure_memory

        right = [record.job for records in self._timed() for record in records]
        wanted = set(jobs_to_measure(right, self.settings))
        left = [job for job in self.plan if job in wanted and job not in self.progress.memories]
        enough = self._over(MEMORY_SHARE)
        jobs_of = grouped(left, lambda job: job.backend)
        tasks = (measure_memory(self.context, jobs, enough) for jobs in jobs_of.values())
        yield from in_parallel(tasks, self.context)
        if unmeasured := [job for job in left if job not in self.progress.memories]:
            yield self._leave_out([f"memory not measured: {_places(unmeasured)}"])

    def _left(self, number: int) -> dict[Group, list[Record]]:
        """The undecided records not yet timed in launch `number`, by group."""
        decided, done = self.progress.decided, self.progress.groups
        undecided = (record for records in self._timed() for record in records if record.job not in decided)
        by_group = grouped(undecided, lambda record: group_of(record.job))
        return {
            group: records
            for group, records in by_group.items()
            if (number, group) not in done and group not in decided
        }

    def _timed(self) -> Iterable[list[Record]]:
        """The groups of records to time, without traps."""
        from adbench.execution.phases.time_phase import groups_to_time

        jobs = (job for job in self.plan if not self.context.catalog.cases[job.case].is_trap)
        return groups_to_time(self.progress.records[job] for job in jobs if job in self.progress.records).values()

    @cached_property
    def cpus(self) -> dict[int, tuple[int, ...]]:
        """Number of threads -> the processors for timing, chosen once; none if the system cannot pin processes."""
        can_pin = hasattr(os, "sched_setaffinity")
        return {n: machine.measuring_cpus(n) if can_pin else () for n in self.settings.thread_counts}

    def _loop_overhead_ns(self) -> float | None:
        """The loop overhead, measured in a process that starts like timed ones; None if that fails."""
        start = replace(self.context.plain_start(), cpus=self.cpus[self.settings.threads])
        try:
            with self.context.supervisor.start(start) as worker:
                return float(worker.ask({"do": "overhead"}, self.settings.timeout_seconds))
        except NoAnswer:
            return None

    def _gradient_operations(self) -> dict[str, float]:
        """Of the timed gradients of array programs, counted at a small size of each case."""
        found, flops = dict[str, float](), self.progress.head.run.flops
        gradients = [r.job for records in self._timed() for r in records if r.job.operator == "gradient"]
        with ResidentWorker(self.context) as worker:
            for case, jobs in grouped((job for job in gradients if job.case in flops), lambda job: job.case).items():
                if ONE_BY_ONE.isdisjoint(self.context.catalog.cases[case].tags):
                    small = [job for job in jobs if flops[case][str(job.size)] <= COUNTED_OPERATIONS]
                    job = max(small or jobs[:1], key=lambda job: job.size)
                    with suppress(NoAnswer):
                        times = worker.ask(self.context.request(job, "operations"))
                        found |= {case: times} if times else {}
        return found

    def _rates(self, backends: Iterable[str]) -> dict[str, Rates]:
        """How fast each device copies and computes, by the first of the backends that gives an answer."""
        found = dict[str, Rates]()
        cpus = self.cpus[self.settings.threads]
        by_device = grouped(backends, lambda name: self.context.catalog.backends[name].device)
        for device, names in by_device.items():
            for backend in names if device != PROCESSOR else (None,):
                start = replace(self.context.plain_start(backend=backend), cpus=cpus)
                with suppress(NoAnswer), ResidentWorker(self.context, backend, start) as worker:
                    found[device] = worker.rates()
                    break
        return found


def _worker(job: Job) -> Worker:
    return job.backend, job.threads


def _places(jobs: Iterable[Job]) -> str:
    """Cases with their sizes, in words."""
    return ", ".join(f"{case} at {', '.join(map(str, of))}" for case, of in sizes_by_case(jobs).items())
