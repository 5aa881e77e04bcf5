"""How long the rest of a run will take: the estimate of what is left, corrected by how the estimate did so far."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from adbench.execution.phases.memory_phase import jobs_to_measure
from adbench.execution.phases.time_phase import groups_to_time
from adbench.execution.planning.costs import Costs
from adbench.execution.planning.estimate import Estimate
from adbench.model.events import Checked, Event, Learned, MemoryMeasured, Phase, Started, Timed
from adbench.model.record import Group, Job, group_of
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings
from adbench.results.journal import Progress

TRUST_SECONDS = 5.0  # of measured time before a phase's own pace counts as much as the expected one
PHASES: tuple[Phase, ...] = ("check", "time", "memory")


class Forecast:
    """Follows a run's events. `total` is what it was expected to take at first, `remaining` what it still may."""

    def __init__(
        self, jobs: Iterable[Job], settings: Settings, costs: Costs, progress: Progress, idle: frozenset[str]
    ) -> None:
        """`idle`: backends that are not installed, whose jobs take no time."""
        self._jobs, self._settings, self._costs, self._progress = tuple(jobs), settings, costs, progress
        self._idle = idle
        self._left: dict[Phase, dict[object, float]] = {}
        self._done = dict.fromkeys(PHASES, 0.0)
        self._spent = dict.fromkeys(PHASES, 0.0)
        self._phase: Phase = "check"
        self._last = monotonic()
        self._plan()
        self.total = sum(sum(units.values()) for units in self._left.values())

    @property
    def remaining(self) -> float:
        """Seconds that the rest is expected to take, at the pace so far."""
        return sum(sum(self._left[phase].values()) * self._pace(phase) for phase in PHASES)

    def begin(self) -> None:
        """The clock starts now."""
        self._last = monotonic()

    def note(self, event: Event) -> None:
        """Take an event off what is left; its time counts for its phase."""
        now = monotonic()
        self._spent[self._phase] += now - self._last
        self._last = now
        match event:
            case Started(_, phase):
                if phase != self._phase:
                    self._phase = phase
                    self._plan()  # with what checking told about costs
            case Checked(record):
                self._take("check", [record.job])
            case Timed(number, cells, lost):
                jobs = [*(cell.job for cell in cells), *(record.job for record in lost)]
                self._take("time", [number, (number, group_of(jobs[0]))])
            case MemoryMeasured(job, _):
                self._take("memory", [job])
            case Learned(facts):
                if "settings" in facts:
                    self._settings = from_plain(facts["settings"], Settings)
                self._plan()

    def _take(self, phase: Phase, units: Iterable[object]) -> None:
        self._done[phase] += sum(self._left[phase].pop(unit, 0.0) for unit in units)

    def _pace(self, phase: Phase) -> float:
        """Measured seconds for each expected one: of this phase as far as it got, else of all."""
        done, spent = sum(self._done.values()), sum(self._spent.values())
        overall = (spent + TRUST_SECONDS) / (done + TRUST_SECONDS)
        return (self._spent[phase] + TRUST_SECONDS * overall) / (self._done[phase] + TRUST_SECONDS)

    def _plan(self) -> None:
        """What is left, in units that events take away one by one."""
        progress = self._progress
        estimate = Estimate(self._settings, self._costs, progress.records, self._idle)
        traps = frozenset(progress.head.run.traps)
        unchecked = [job for job in self._jobs if job not in progress.records]
        all_checks = estimate.of(unchecked, frozenset(job.case for job in unchecked)).check
        share = all_checks / len(unchecked) if unchecked else 0.0
        self._left = {"check": dict.fromkeys(unchecked, share), "time": {}, "memory": {}}
        if not self._settings.time:
            return
        groups = self._groups(traps)
        for number in range(self._settings.launches):
            left = [group for group in groups if (number, group) not in progress.groups]
            self._left["time"] |= {(number, g): sum(map(estimate.launch, groups[g])) for g in left}
            if left:
                self._left["time"][number] = estimate.imports([job for group in left for job in groups[group]])
        wanted = jobs_to_measure([job for jobs in groups.values() for job in jobs], self._settings)
        left_to_measure = [job for job in wanted if job not in progress.memories]
        processes = estimate.memory_processes(left_to_measure) / max(1, len(left_to_measure))
        self._left["memory"] = {job: (estimate.memory(job) + processes) / estimate.lanes for job in left_to_measure}

    def _groups(self, traps: frozenset[str]) -> dict[Group, list[Job]]:
        """What will be timed: what is right, or not checked yet."""
        records, found = self._progress.records, dict[Group, list[Job]]()
        right = {record.job for group in groups_to_time(records.values()).values() for record in group}
        for job in self._jobs:
            if job.case not in traps and job.backend not in self._idle and (job in right or job not in records):
                found.setdefault(group_of(job), []).append(job)
        return found
