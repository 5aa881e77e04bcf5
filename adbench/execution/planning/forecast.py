"""How long the rest of a run will take: the estimate of the rest, corrected by how good the estimate was so far."""

from __future__ import annotations

from time import monotonic

from adbench.execution.phases.memory_phase import jobs_to_measure
from adbench.execution.planning.estimate import Estimate
from adbench.model.events import Decided, Event, Learned, Phase, Started, Unit
from adbench.model.record import Group, Job, group_of, grouped
from adbench.model.run_progress import Progress
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings

TRUST_SECONDS = 5.0  # of measured time before a phase's own pace counts as much as the expected one
PHASES: tuple[Phase, ...] = ("check", "time", "memory")


class Forecast:
    """Follows a run's events. `total` is its expected duration at first, `remaining` that of the rest."""

    def __init__(self, estimate: Estimate, progress: Progress) -> None:
        self._estimate, self._progress = estimate, progress
        self._done = dict.fromkeys(PHASES, 0.0)
        self._spent = dict.fromkeys(PHASES, 0.0)
        self._phase: Phase = "check"
        self._last = monotonic()
        self._plan()
        self.total = sum(self._left.values())

    @property
    def remaining(self) -> float:
        """Seconds that the rest is expected to take, at the pace so far."""
        return sum(max(0.0, self._rest[phase]) * self._pace(phase) for phase in PHASES)

    def begin(self) -> None:
        """The clock starts now."""
        self._last = monotonic()

    def note(self, event: Event) -> None:
        """Take the work that an event completes off the rest; its time counts for its phase."""
        now = monotonic()
        self._spent[self._phase] += now - self._last
        self._last = now
        for unit in event.done:
            seconds = self._left.pop(unit, 0.0)
            self._done[unit[0]] += seconds
            self._rest[unit[0]] -= seconds
        if not self._left:
            self._rest.update(dict.fromkeys(PHASES, 0.0))  # the subtractions left their rounding errors
        if isinstance(event, Started) and event.phase != self._phase:
            self._phase = event.phase
            self._plan()  # with the costs that the checks reported
        elif isinstance(event, Learned | Decided):
            if isinstance(event, Learned) and "settings" in event.facts:
                self._estimate = self._estimate.after(**vars(from_plain(event.facts["settings"], Settings)))
            self._plan()

    def _pace(self, phase: Phase) -> float:
        """Measured seconds per expected second: of this phase as far as it got, else of all."""
        done, spent = sum(self._done.values()), sum(self._spent.values())
        overall = (spent + TRUST_SECONDS) / (done + TRUST_SECONDS)
        return (self._spent[phase] + TRUST_SECONDS * overall) / (self._done[phase] + TRUST_SECONDS)

    def _plan(self) -> None:
        self._left = self._planned()
        self._rest = dict.fromkeys(PHASES, 0.0)  # sums of `_left`: the bar asks after each of thousands of jobs
        for (phase, _), seconds in self._left.items():
            self._rest[phase] += seconds

    def _planned(self) -> dict[Unit, float]:
        """What is left, in units that events complete one by one."""
        progress = self._progress
        estimate = self._estimate.of_rest(progress.records)
        unchecked = progress.unchecked
        all_checks = estimate.of(unchecked, frozenset(job.case for job in unchecked)).check
        planned: dict[Unit, float] = {("check", job): all_checks / len(unchecked) for job in unchecked}
        if not estimate.settings.time:
            return planned
        groups, decided = self._groups(), progress.decided
        estimate.choose_control(job for jobs in groups.values() for job in jobs)
        now = estimate.undecided(max(progress.looks, default=0))
        for number in range(estimate.settings.launches):
            left = {
                group: [job for job in jobs if job not in decided]
                for group, jobs in groups.items()
                if (number, group) not in progress.groups and group not in decided
            }
            share = min(1.0, estimate.undecided(number) / now)
            planned |= {("time", (number, g)): share * sum(map(estimate.launch, left[g])) for g in left}
            if left:
                jobs = [job for jobs in left.values() for job in jobs]
                planned["time", number] = share * estimate.imports(jobs) + (0.0 if number else estimate.once(jobs))
        wanted = jobs_to_measure([job for jobs in groups.values() for job in jobs], estimate.settings)
        unmeasured = [job for job in wanted if job not in progress.memories]
        each = estimate.memory_phase(unmeasured) / max(1, len(unmeasured))
        return planned | {("memory", job): each for job in unmeasured}

    def _groups(self) -> dict[Group, list[Job]]:
        """The jobs that will be timed: allowed ones and unchecked ones."""
        head, records = self._progress.head, self._progress.records
        there = (
            job for job in head.plan if job.case not in head.run.traps and job.backend not in self._estimate.missing
        )
        return grouped((job for job in there if job not in records or records[job].may_be_timed), group_of)
