"""Fits a plan into a time: it leaves out first what a reader misses least, and reports everything it leaves out.

In this order, until it fits: memory in one process for each backend and method; the largest sizes (of a quick run the
smallest, because it bounds its calls, and shows real sizes), of the most expensive case first; values of cases with
derivatives; memory; launches, down to the fewest that allow an interval; whole cases, the most expensive first.
Backends stay: the user wants to compare them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from adbench.execution.planning.estimate import Estimate
from adbench.execution.planning.plan import sizes_by_case
from adbench.model.record import Job
from adbench.model.settings import Settings

FEWEST_LAUNCHES = 6  # the exact signed-rank interval covers 95 % from 1 - 2 / 2^6 on


@dataclass
class Fit:
    """A plan that is cut, step by step, until it is expected to take at most `most` seconds.

    traps                 the cases that are only checked
    sizes, cases, other   what was left out: sizes by case, whole cases, and the rest in words
    """

    jobs: tuple[Job, ...]
    estimate: Estimate
    most: float
    traps: frozenset[str]
    sizes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    cases: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        """How it measures."""
        return self.estimate.settings

    @property
    def seconds(self) -> float:
        """The expected duration."""
        return self.estimate.of(self.jobs, self.traps).total

    @property
    def fits(self) -> bool:
        """Whether it takes at most `most` seconds."""
        return self.seconds <= self.most

    @property
    def left_out(self) -> tuple[str, ...]:
        """Everything that was left out, in words."""
        gone = {case: ", ".join(map(str, sorted(sizes))) for case, sizes in self.sizes.items()}
        sizes = "; ".join(f"{case} at {of_case}" for case, of_case in gone.items() if case not in self.cases)
        first, last = [f"sizes: {sizes}"] * bool(sizes), [f"cases: {', '.join(self.cases)}"] * bool(self.cases)
        return (*first, *self.other, *last)

    def drop(self, case: str, size: int | None = None) -> None:
        """Leave out a case, or one of its sizes."""
        self.jobs = tuple(job for job in self.jobs if job.case != case or size not in (None, job.size))

    def change(self, text: str, **changes: object) -> None:
        """Change settings; the text says which."""
        self.estimate = self.estimate.after(**changes)
        self.other.append(text)

    def dearest(self, jobs: Iterable[Job]) -> str:
        """The case whose jobs among these take longest, each by itself."""
        dear: dict[str, float] = defaultdict(float)
        for job in jobs:
            launches = self.settings.launches * self.estimate.launch(job)
            dear[job.case] += self.estimate.check(job) + launches + self.estimate.memory(job)
        return max(dear, key=lambda case: dear[case])


def fit(jobs: Sequence[Job], estimate: Estimate, seconds: float, traps: frozenset[str] = frozenset()) -> Fit:
    """The jobs and settings that are expected to take at most `seconds`, or the smallest possible ones."""
    fitted = Fit(tuple(jobs), estimate, seconds, traps)
    for step in (_share_processes, _drop_sizes, _drop_values, _drop_memory, _drop_launches, _drop_cases):
        if not fitted.fits:
            step(fitted)
    return fitted


def _share_processes(rest: Fit) -> None:
    if rest.settings.memory and not rest.settings.weigh_all_in_one:
        rest.change("memory: one process for each backend and method measures all cases", weigh_all_in_one=True)


def _drop_sizes(rest: Fit) -> None:
    at = 0 if rest.settings.quick else -1
    while not rest.fits:
        last = {case: sizes[at] for case, sizes in sizes_by_case(rest.jobs).items() if len(sizes) > 1}
        if not last:
            return
        case = rest.dearest(job for job in rest.jobs if job.size == last.get(job.case))
        rest.sizes[case].append(last[case])
        rest.drop(case, last[case])


def _drop_values(rest: Fit) -> None:
    more = {job.case for job in rest.jobs if job.operator != "value"}
    derivatives = tuple(job for job in rest.jobs if job.operator != "value" or job.case not in more)
    if len(derivatives) < len(rest.jobs):
        rest.jobs = derivatives
        rest.other.append("values: derivatives are measured alone")


def _drop_memory(rest: Fit) -> None:
    if rest.settings.memory:
        rest.other = [text for text in rest.other if not text.startswith("memory")]
        rest.change("memory: it is not measured", memory=False)


def _drop_launches(rest: Fit) -> None:
    before = rest.settings.launches
    while not rest.fits and rest.settings.launches > FEWEST_LAUNCHES:
        rest.estimate = rest.estimate.after(launches=rest.settings.launches - 1)
    if rest.settings.launches < before:
        rest.other.append(f"launches: {rest.settings.launches} instead of {before}")


def _drop_cases(rest: Fit) -> None:
    while not rest.fits and len({job.case for job in rest.jobs}) > 1:
        rest.cases.append(rest.dearest(rest.jobs))
        rest.drop(rest.cases[-1])
