"""How long a plan takes: a model of the scheduler, with the costs of cells from earlier runs.

    check     for each job: prepare, first call, verdict; references once for each case and size; workers in parallel
    time      launches × (imports + for each cell: prepare, first call, warm-up, rounds × epoch, and all beside these)
    memory    for each job and method: prepare, first call, warming call, measured calls, all slower; and the processes

Beside its calls a launch reads inputs, sums up results and judges them; where calls are short, that takes as long.
Nothing in it is fitted: the counts are those of the scheduler, the constants below were measured once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from adbench.execution.parallel import room
from adbench.execution.phases.failure_policy import PREPARING, expected
from adbench.execution.phases.memory_phase import jobs_to_measure
from adbench.execution.phases.shared_jobs import WORTH_A_WORKER
from adbench.execution.planning.costs import START_SECONDS, Costs, backends_of
from adbench.measure.instructions import SLOWER
from adbench.model.record import Job, grouped
from adbench.model.settings import PREFERRED_REFERENCE, PROCESSOR, Settings, backend_and_device

JUDGE_SECONDS = 0.02
ASK_SECONDS = 0.003  # a request and its answer, and the collection before an epoch
REFERENCE_SECONDS = 0.5  # one that is not in the cache, unless its time limit is shorter
MEMORY_SLOWS_DOWN = 2.0  # each method, by about so much
COUNTED_BLOCKS, COUNTED_SECONDS = 12, 0.002  # of calls under Callgrind, each at least about so long outside of it
UNDECIDED = {4: 0.6, 5: 0.4, 6: 0.3}  # after so many launches: shares of a default run's time
RATES_SECONDS = 1.0  # how fast the processor or a started device copies and multiplies
WARM_UP_ROUNDS = 5  # two that find out how many calls make a round, and three that agree


@dataclass(frozen=True)
class ExpectedSeconds:
    """What is expected, by phase."""

    check: float = 0.0
    time: float = 0.0
    memory: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.check + self.time + self.memory

    def __add__(self, other: ExpectedSeconds) -> ExpectedSeconds:
        return ExpectedSeconds(self.check + other.check, self.time + other.time, self.memory + other.memory)


class Estimate:
    """The model for one set of settings.

    checked   jobs that are checked already
    missing   backends whose library is not installed: their jobs take no time
    large     seconds of the references at large sizes: (case, size) -> seconds (plan.seconds_of_large_references)
    workers   that run in parallel while no clock runs
    """

    def __init__(
        self,
        settings: Settings,
        costs: Costs,
        checked: Iterable[Job] = (),
        missing: Iterable[str] = (),
        large: Mapping[tuple[str, int], float] = {},
    ) -> None:
        self.settings, self.costs, self._large = settings, costs, large
        self._checked, self.missing = frozenset(checked), frozenset(missing)
        self._cost, self._is_known_untimed = cache(costs.of), cache(costs.is_untimed)  # it asks for a job many times
        self.workers = room(settings.threads)
        self._reference = settings.reference_backend or PREFERRED_REFERENCE

    def of(self, jobs: Sequence[Job], traps: frozenset[str] = frozenset()) -> ExpectedSeconds:
        """All of these jobs; the cases named in `traps` are only checked."""
        jobs = [job for job in jobs if job.backend not in self.missing]
        timed = [job for job in jobs if job.case not in traps]
        by_worker = grouped((job for job in jobs if job not in self._checked), lambda job: (job.backend, job.threads))
        check = self._shared(map(self._checks, by_worker.values())) + self.references(jobs)
        if not self.settings.time:
            return ExpectedSeconds(check)
        self.choose_control(timed)
        launch = self.imports(timed) + sum(map(self.launch, timed))
        time = launch * sum(map(self.undecided, range(self.settings.launches))) + self.once(timed)
        return ExpectedSeconds(check, time, self.memory_phase(jobs_to_measure(timed, self.settings)))

    def choose_control(self, timed: Iterable[Job]) -> None:
        """Take as the control the preferred backend if these jobs time it, else their first."""
        backends = self._timed_backends(timed)
        if backends and self._reference not in backends:
            self._reference = backends[0]

    def once(self, timed: Sequence[Job]) -> float:
        """What only the first launch takes: measuring the rates of the processor and of each device, the latter by the
        first of its backends, and compiling."""
        by_device = grouped(self._timed_backends(timed), lambda name: backend_and_device(name)[1])
        rates = sum(
            RATES_SECONDS + (device != PROCESSOR) * (START_SECONDS + self.costs.of_import(names[0]))
            for device, names in by_device.items()
        )
        return rates + sum(map(self._compiling, timed))

    def _timed_backends(self, jobs: Iterable[Job]) -> tuple[str, ...]:
        return backends_of(job for job in jobs if not self._is_untimed(job))

    def memory_phase(self, jobs: Sequence[Job]) -> float:
        """Measuring the memory of these jobs."""
        by_backend = grouped(jobs, lambda job: job.backend).values()
        return self._shared(sum(map(self.memory, of)) + self._memory_processes(of) for of in by_backend)

    def _checks(self, jobs: Sequence[Job]) -> float:
        """The checks of one backend: others help where they take far longer than opening a worker, case by case."""
        opening = START_SECONDS + self.costs.of_import(jobs[0].backend)
        by_case = [sum(map(self.check, of)) for of in grouped(jobs, lambda job: job.case).values()]
        whole = sum(by_case)
        return opening + max(*by_case, whole / self.workers, min(whole, WORTH_A_WORKER * opening))

    def _shared(self, tasks: Iterable[float]) -> float:
        """Tasks that the workers share take at least as long as the longest of them."""
        each = list(tasks)
        return max(*each, sum(each) / self.workers) if each else 0.0

    def by(self, jobs: Sequence[Job], traps: frozenset[str], field: str) -> dict[str, ExpectedSeconds]:
        """What the jobs of each case or each backend take by themselves, imports and processes not included."""
        totals: dict[str, ExpectedSeconds] = {}
        self.choose_control(job for job in jobs if job.case not in traps)
        measured = set(jobs_to_measure(jobs, self.settings))
        launches = sum(map(self.undecided, range(self.settings.launches)))
        for job in (job for job in jobs if job.backend not in self.missing):
            one = ExpectedSeconds(self.check(job) / self.workers)
            if job.case not in traps and self.settings.time:
                memory = self.memory(job) / self.workers if job in measured else 0.0
                one += ExpectedSeconds(0.0, launches * self.launch(job) + self._compiling(job), memory)
            name = getattr(job, field)
            totals[name] = totals.get(name, ExpectedSeconds()) + one
        return totals

    def undecided(self, number: int) -> float:
        """The share of the work in launch `number` that earlier launches leave to do."""
        if not self.settings.stop_early:
            return 1.0
        looked = [share for after, share in UNDECIDED.items() if after <= number]
        return min(looked, default=1.0)

    def check(self, job: Job) -> float:
        """One job's check, by itself."""
        if job in self._checked or job.backend in self.missing:
            return 0.0
        known, cost, longest = self.costs.of_check(job), self._cost(job), self.settings.longest_call_seconds
        limited = expected(self.costs.by_size(job, whole_checks=not self.settings.time), job.size)
        if longest is not None and limited is not None and limited > longest:
            return 0.0  # it is skipped; one that only its own call shows to be too slow is checked, and not timed
        return cost.prepare + cost.first_call + cost.call + JUDGE_SECONDS if known is None else known

    def references(self, jobs: Sequence[Job]) -> float:
        """The references of cases at sizes that are not checked yet: one process computes them all."""
        places = {(job.case, job.size, job.seed) for job in jobs if job not in self._checked}
        limit = min(REFERENCE_SECONDS, self.settings.reference_seconds)
        return sum(
            JUDGE_SECONDS if self.costs.knows(case, size) else self._large.get((case, size), limit)
            for case, size, _ in places
        )

    def launch(self, job: Job) -> float:
        """One job in one launch, with its control where it has one."""
        if self._is_untimed(job):
            return 0.0
        cost, s = self._cost(job), self.settings
        epoch, most = s.epoch_ns * 1e-9, s.warm_at_most_ns * 1e-9
        round_ = max(epoch, cost.call)
        warm = min(max(min(WARM_UP_ROUNDS * round_, s.warm_ns * 1e-9), 3 * cost.call), most + cost.call)
        rounds = min(s.rounds, -(-s.cell_ns * 1e-9 // round_))
        preparing = (cost.preparing_again + cost.first_call) / (self.workers if s.quick else 1)
        kinds = 1 + _is_on_device(job)  # of rounds: that wait for each result, and for the last one
        once = preparing + warm + kinds * rounds * (round_ + ASK_SECONDS) + 2 * ASK_SECONDS + self.costs.of_beside(job)
        return once * (2 if job.backend == self._reference and not job.threads else 1)  # with the control

    def _compiling(self, job: Job) -> float:
        """What the first launch takes longer than others, which load its programs, as its control does."""
        cost = self._cost(job)
        return 0.0 if self._is_untimed(job) else cost.prepare - cost.preparing_again

    def imports(self, jobs: Sequence[Job]) -> float:
        """Starting the workers of one launch."""
        backends = backends_of(jobs)
        control = [self._reference] if self._reference in backends else []
        return self._shared(START_SECONDS + self.costs.of_import(name) for name in (*backends, *control))

    def memory(self, job: Job) -> float:
        """One job by all methods, and the count of its instructions, the processes not included."""
        if self._is_untimed(job):
            return 0.0
        cost, calls = self._cost(job), 1 + self.settings.weighings
        once = cost.preparing_again + cost.first_call + ASK_SECONDS
        counting = once + COUNTED_BLOCKS * max(COUNTED_SECONDS, cost.call)
        slower = 1.0 if _is_on_device(job) else self._methods * MEMORY_SLOWS_DOWN
        return (
            self.settings.memory * slower * (once + calls * cost.call)
            + (self.settings.instructions is not None) * SLOWER * counting
        )

    def _memory_processes(self, jobs: Sequence[Job]) -> float:
        """Starting the processes that measure the memory of these jobs, and count their instructions."""
        pairs = {(job.backend, "" if self.settings.weigh_all_in_one else job.case): job for job in jobs}
        measuring = sum(
            (START_SECONDS + self.costs.of_import(job.backend)) * (1 if _is_on_device(job) else self._methods)
            for job in pairs.values()
        )
        counting = sum(START_SECONDS + self.costs.of_import(backend) for backend in backends_of(jobs))
        return self.settings.memory * measuring + (self.settings.instructions is not None) * SLOWER * counting

    def _is_untimed(self, job: Job) -> bool:
        """Whether there is nothing to time, or the check will find it too slow."""
        if job.backend in self.missing or self._is_known_untimed(job):
            return True
        longest, cost = self.settings.longest_call_seconds, self._cost(job)
        return longest is not None and (cost.call > longest or cost.prepare + cost.first_call > PREPARING * longest)

    @property
    def _methods(self) -> int:
        return 1 if self.settings.weigh_by_one_method else 2  # of three: `figures` leaves one out

    def after(self, **changes: object) -> Estimate:
        """This estimate for other settings."""
        settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        return Estimate(settings, self.costs, self._checked, self.missing, self._large)

    def of_rest(self, checked: Iterable[Job]) -> Estimate:
        """This estimate after these checks."""
        return Estimate(self.settings, self.costs, checked, self.missing, self._large)


def _is_on_device(job: Job) -> bool:
    return backend_and_device(job.backend)[1] != PROCESSOR
