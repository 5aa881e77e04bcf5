"""The outcome of each cell: the words, times and reasons that every report shows, decided in one place.

A cell is a case at a size on a backend. It is judged by all its operators and shown with the time of one of them, the
run's leading operator: the gradient where the run has it. A case that was not asked for that or that nobody has it for,
as one whose value is an array, is shown with the operator that leads of the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from adbench.model import record as model
from adbench.model.operator import DEFINITIONS, RELATIONS, batch_points
from adbench.model.record import Figure, Job, Record, Run, Time, grouped
from adbench.model.settings import Role

from .formatting import OUTCOMES, Word, listed, plural, short
from .run_findings import Findings

NOT_TIMED = "checked, but not timed in this run"
LEADING_OPERATORS = tuple(one.name for one in sorted(DEFINITIONS.values(), key=lambda one: one.lead) if one.lead)


@dataclass(frozen=True)
class Spread:
    """Seconds per call: the median and both quartiles over launches."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """One outcome. `reason` is a sentence for every word but "right"; `spread` is None where no time is to be shown."""

    job: Job
    word: Word
    reason: str | None = None
    spread: Spread | None = None
    record: Record | None = None

    @property
    def ranked(self) -> bool:
        """Only right and timed cells are compared in speed."""
        return self.word == "right" and self.spread is not None

    @property
    def measured(self) -> bool:
        """Whether reports show figures of this cell; those of a wrong result are left out."""
        return model.OUTCOMES[self.word].is_measured

    @property
    def why_untimed(self) -> str:
        """Why its figures lack the time; "" if they have it, or if there are no figures at all."""
        if self.spread or not self.measured:
            return ""
        reason = (self.record and self.record.reason) or ""
        return reason.removeprefix("not timed: ") if "not timed: " in reason else NOT_TIMED

    @property
    def digits(self) -> int | None:
        """How many digits are verified, fewer than nine; None for other words."""
        verdict = self.record.verdict if self.record and self.word == "verified" else None
        return verdict.whole_digits if verdict else None

    @property
    def label(self) -> str:
        """The word's label, or the number of digits: "6 digits"."""
        return OUTCOMES[self.word].label if self.digits is None else plural(self.digits, "digit")

    @property
    def sign(self) -> str:
        """The word's sign, with the number of digits: "~6"."""
        return OUTCOMES[self.word].sign + ("" if self.digits is None else str(self.digits))

    @property
    def seconds(self) -> float | None:
        """The median time of a call; None where no time is to be shown."""
        return self.spread.median if self.spread else None

    @property
    def time(self) -> Time | None:
        """The phases, if reports show figures of this cell."""
        return self.record.time if self.record and self.measured and self.spread else None


class Cells:
    """Every cell of a run, by name. Cases and backends keep the order of the run; sizes ascend.

    subjects   the cases that are there to be measured; the others are `traps`, there to be got wrong
    """

    def __init__(self, run: Run) -> None:
        self._by_job: dict[Job, Cell] = {}
        self._rows: dict[tuple[str, int], tuple[Cell, ...]] = {}
        for record in run.records:
            cell = cell_of(record)
            there = self._by_job.get(cell.job)
            # The graver of two records of one job counts: a later success must not hide a wrong derivative.
            if there is None or _gravity(there) <= _gravity(cell):
                self._by_job[cell.job] = cell
        self.cases = tuple(dict.fromkeys(job.case for job in self._by_job))
        self.traps = tuple(case for case in self.cases if case in set(run.traps))
        self.subjects = tuple(case for case in self.cases if case not in set(run.traps))
        self.findings = Findings(run)
        self.backends = tuple(dict.fromkeys(job.backend for job in self._by_job))
        self.operators = tuple(dict.fromkeys(job.operator for job in self._by_job))
        otherwise = max(self.operators, key=batch_points, default="gradient")  # the first, or the largest batch
        self.operator = next((op for op in LEADING_OPERATORS if op in self.operators), otherwise)

    def arranged(self, backends: Iterable[str]) -> Cells:
        """The same cells with the backends in that order."""
        found = copy(self)
        found.backends, found._rows = tuple(backends), {}
        vars(found).pop("threaded", None)
        return found

    def is_own(self, backend: str) -> bool:
        """Whether it is adbench's own engine, which every report marks."""
        return self.findings.run.role_of(backend) == "own engine"

    def of_role(self, *roles: Role) -> Cells:
        """The same cells with only the backends of these roles."""
        return self.arranged(name for name in self.backends if self.findings.run.role_of(name) in roles)

    @property
    def without_own(self) -> Cells:
        """The same cells without adbench's own engine, if there is another backend."""
        others = self.of_role("library", "comparison")
        return others if others.backends else self

    @cached_property
    def threaded(self) -> dict[int, Cells]:
        """Further number of threads -> the cells with it, in their own comparison."""
        run = self.findings.run
        shown = (record for record in run.threaded if record.job.backend in self.backends)
        found = grouped(shown, lambda record: record.job.threads)
        own = {n: tuple(replace(r, job=replace(r.job, threads=0)) for r in records) for n, records in found.items()}
        return {n: Cells(replace(run, records=records, threaded=())) for n, records in sorted(own.items())}

    @property
    def every_count(self) -> tuple[Cells, ...]:
        """These cells and those of each further number of threads: for failures, never for speed."""
        return self, *self.threaded.values()

    @cached_property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """case -> its sizes in this run, ascending."""
        found: dict[str, set[int]] = {case: set() for case in self.cases}
        for job in self._by_job:
            found[job.case].add(job.size)
        return {case: tuple(sorted(numbers)) for case, numbers in found.items()}

    @cached_property
    def _leading(self) -> dict[str, str]:
        """case -> the operator that it is shown with."""
        there: dict[str, dict[str, bool]] = {case: {} for case in self.cases}
        for job, cell in self._by_job.items():
            asked = there[job.case]
            asked[job.operator] = asked.get(job.operator, False) or cell.word != "unsupported"
        found = {}
        for case, asked in there.items():
            answered = [operator for operator, somebody_has_it in asked.items() if somebody_has_it] or list(asked)
            found[case] = next((op for op in (self.operator, *LEADING_OPERATORS) if op in answered), answered[0])
        return found

    def operator_of(self, case: str) -> str:
        """The operator that a case is shown with: the run's, where anybody has it for the case."""
        return self._leading.get(case, self.operator)

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The operators that the cases are shown with, the run's own first."""
        return tuple(dict.fromkeys((self.operator, *map(self.operator_of, self.subjects))))

    @property
    def places(self) -> Iterator[tuple[str, int]]:
        """Every case at every size: the rows of a table. Traps have a separate table."""
        return ((case, size) for case in self.subjects for size in self.sizes[case])

    @property
    def total(self) -> int:
        """How many cells each backend could be right on."""
        return sum(len(self.sizes[case]) for case in self.subjects)

    @property
    def asked(self) -> str:
        """The names of the operators, or their number. Relations between calls do not count."""
        names = [name for name in self.operators if name != RELATIONS]
        return short(listed(names), 60) if len(names) < 4 else plural(len(names), "operator")

    @property
    def relations(self) -> tuple[int, int]:
        """(held, all): relations between calls of the operators of each backend."""
        found = [c.record.relations for c in self.every_single() if c.record is not None and c.record.relations]
        held = sum(relations.held for relations in found)
        return held, held + sum(len(relations.broken) + len(relations.repeats) for relations in found)

    @property
    def proved(self) -> tuple[int, int]:
        """How many results were compared with proved values, and how many were compared at all."""
        verdicts = [cell.record.verdict for cell in self.every_single() if cell.record and cell.record.verdict]
        return sum(verdict.proved for verdict in verdicts), len(verdicts)

    @cached_property
    def timed(self) -> bool:
        """Whether anything was timed: a check times nothing."""
        return any(cell.record is not None and cell.record.time is not None for cell in self._by_job.values())

    @property
    def declined(self) -> list[tuple[str, str, str]]:
        """(backend, relation, reason) for each relation between calls that a backend's file says it cannot keep."""
        records = [cell.record for cell in self.every_single() if cell.record and cell.record.relations]
        said = {(r.job.backend, *pair) for r in records if r.relations for pair in r.relations.declined.items()}
        return sorted(said)

    def single(self, job: Job) -> Cell:
        """The outcome of one operator alone."""
        return self._by_job.get(job) or Cell(job, "not_run", "not part of this run")

    def cell(self, case: str, size: int, backend: str) -> Cell:
        """The outcome of the leading operator, but wrong where any operator is wrong there.

        A backend whose value is wrong is not ranked for the speed of its gradient.
        """
        lead = self.single(Job(case, size, backend, self.operator_of(case)))
        for operator in self.operators:
            other = self.single(replace(lead.job, operator=operator))
            if other.word == "wrong" and lead.word != "wrong":
                return replace(other, reason=f"{operator}: {other.reason}", spread=None)
        return lead

    def row(self, case: str, size: int) -> tuple[Cell, ...]:
        """The cells of every backend at one place."""
        if (case, size) not in self._rows:
            self._rows[case, size] = tuple(self.cell(case, size, backend) for backend in self.backends)
        return self._rows[case, size]

    def column(self, backend: str) -> tuple[Cell, ...]:
        """The cells of one backend, at every place."""
        return tuple(self.cell(case, size, backend) for case, size in self.places)

    @property
    def outcomes(self) -> dict[str, Counter[Word]]:
        """How many results of each backend, operator by operator, came out with each word."""
        found: dict[str, Counter[Word]] = {backend: Counter() for backend in self.backends}
        for cell in self.every_single():
            found[cell.job.backend][cell.word] += 1
        return found

    def every_single(self) -> Iterable[Cell]:
        """The outcome of each job of these backends, operator by operator, in the order of the run."""
        return [cell for job, cell in self._by_job.items() if job.backend in self.backends]


def cell_of(record: Record) -> Cell:
    """The outcome of a record: its status, then its verdict, then what was timed."""
    word, reason = outcome(record)
    cell = Cell(replace(record.job, seed=0), word, reason, None, record)  # the points of a cell are one cell
    return replace(cell, spread=spread(record.time)) if cell.measured else cell


def outcome(record: Record) -> tuple[Word, str | None]:
    """(word, reason) of a record's outcome; no reason for "right"."""
    word, verdict = record.outcome.word, record.verdict
    if word == "right":
        return word, None
    if verdict is not None and record.outcome.is_measured:
        return word, verdict.sentence
    if word == "unchecked":
        return word, record.reason or "no verdict was recorded"
    sentence = verdict.sentence if verdict is not None and word == "wrong" else None
    return word, record.reason or sentence or "no reason was recorded"


def spread(time: Time | None) -> Spread | None:
    """The time per call; None without rounds, or below the clock's resolution."""
    if time is None or not time.launches or not all(launch.rounds for launch in time.launches):
        return None
    if any(r.calls <= 0 for launch in time.launches for r in launch.rounds):
        return None
    median, (low, high) = time.seconds_per_call, time.quartiles
    return Spread(median, low, high) if 0 < median < math.inf else None


def known(figure: Figure) -> tuple[float | None, str | None]:
    """(value, reason): a figure that is not a finite number counts as missing, for that reason."""
    if figure.value is None:
        return None, figure.reason or "no reason was recorded"
    if not math.isfinite(figure.value):
        return None, f"the measured figure is {figure.value}"
    return figure.value, None


def _gravity(cell: Cell) -> int:
    """How bad the cell's word is: greatest for "wrong", 0 for words that are no failure."""
    failures = [word for word, outcome in OUTCOMES.items() if outcome.bad]
    return len(failures) - failures.index(cell.word) if cell.word in failures else 0
