"""Fits a plan into a time: it leaves out first what a reader misses least, and reports everything it leaves out.

In this order, until it fits: memory in one process for each backend and method; the largest sizes (of a quick run the
smallest, because it bounds its calls, and shows real sizes), of the most expensive case first; values of cases with
derivatives; memory; launches, down to the fewest that allow an interval; whole cases, the most expensive first.
Backends stay: the user wants to compare them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from adbench.execution.planning.estimate import Estimate
from adbench.execution.planning.plan import sizes_by_case
from adbench.model.record import Job
from adbench.model.settings import Settings

FEWEST_LAUNCHES = 6  # the exact signed-rank interval covers 95 % from 1 - 2 / 2^6 on


@dataclass(frozen=True)
class Fit:
    """The rest of the plan, its settings and duration, what was left out, in words, and whether it fits."""

    jobs: tuple[Job, ...]
    settings: Settings
    seconds: float
    left_out: tuple[str, ...]
    fits: bool


@dataclass
class _Fitting:
    jobs: list[Job]
    estimate: Estimate
    traps: frozenset[str]
    left_out: list[str] = field(default_factory=list)
    sizes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    cases: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.estimate.of(self.jobs, self.traps).total

    def drop(self, case: str, size: int | None = None) -> None:
        self.jobs = [job for job in self.jobs if job.case != case or size not in (None, job.size)]

    def change(self, text: str, **changes: object) -> None:
        self.estimate = self.estimate.after(**changes)
        self.left_out.append(text)


def fit(jobs: Sequence[Job], estimate: Estimate, seconds: float, traps: frozenset[str] = frozenset()) -> Fit:
    """The jobs and settings that are expected to take at most `seconds`, or the smallest possible ones."""
    state = _Fitting(list(jobs), estimate, traps)
    for step in (_share_processes, _drop_sizes, _drop_values, _drop_memory, _drop_launches, _drop_cases):
        if state.seconds <= seconds:
            break
        step(state, seconds)
    takes = state.seconds
    return Fit(tuple(state.jobs), state.estimate.settings, takes, tuple(_in_words(state)), fits=takes <= seconds)


def _share_processes(state: _Fitting, seconds: float) -> None:
    settings = state.estimate.settings
    if settings.memory and not settings.weigh_all_in_one:
        state.change("memory: one process for each backend and method measures all cases", weigh_all_in_one=True)


def _drop_sizes(state: _Fitting, seconds: float) -> None:
    at = 0 if state.estimate.settings.quick else -1
    while state.seconds > seconds:
        last = {case: sizes[at] for case, sizes in sizes_by_case(state.jobs).items() if len(sizes) > 1}
        if not last:
            return
        dear: dict[str, float] = dict.fromkeys(last, 0.0)
        for job in state.jobs:
            if job.size == last.get(job.case):
                dear[job.case] += _alone(state.estimate, job)
        case = max(dear, key=lambda name: dear[name])
        state.sizes[case].append(last[case])
        state.drop(case, last[case])


def _drop_values(state: _Fitting, seconds: float) -> None:
    more = {job.case for job in state.jobs if job.operator != "value"}
    if any(job.operator == "value" and job.case in more for job in state.jobs):
        state.jobs = [job for job in state.jobs if job.operator != "value" or job.case not in more]
        state.left_out.append("values: derivatives are measured alone")


def _drop_memory(state: _Fitting, seconds: float) -> None:
    if state.estimate.settings.memory:
        state.left_out = [text for text in state.left_out if not text.startswith("memory")]
        state.change("memory: it is not measured", memory=False)


def _drop_launches(state: _Fitting, seconds: float) -> None:
    before = state.estimate.settings.launches
    while state.seconds > seconds and state.estimate.settings.launches > FEWEST_LAUNCHES:
        state.estimate = state.estimate.after(launches=state.estimate.settings.launches - 1)
    if (now := state.estimate.settings.launches) < before:
        state.left_out.append(f"launches: {now} instead of {before}")


def _drop_cases(state: _Fitting, seconds: float) -> None:
    while state.seconds > seconds:
        dear: dict[str, float] = defaultdict(float)
        for job in state.jobs:
            dear[job.case] += _alone(state.estimate, job)
        if len(dear) < 2:
            return
        case = max(dear, key=lambda name: dear[name])
        state.cases.append(case)
        state.drop(case)


def _alone(estimate: Estimate, job: Job) -> float:
    settings = estimate.settings
    return estimate.check(job) + settings.launches * estimate.launch(job) + estimate.memory(job)


def _in_words(state: _Fitting) -> list[str]:
    """Everything that was left out, by name."""
    sizes = [
        f"{case} at {', '.join(map(str, sorted(gone)))}"
        for case, gone in state.sizes.items()
        if case not in state.cases
    ]
    texts = [f"sizes: {'; '.join(sizes)}"] if sizes else []
    return [*texts, *state.left_out, *([f"cases: {', '.join(state.cases)}"] if state.cases else [])]
