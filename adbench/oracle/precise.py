"""The strongest reference: the case's source on power series over balls, with the noise of float64."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import optree

from adbench.oracle.evidence import DOUBLE, Precision
from adbench.oracle.leaves import FloatArray, Point, is_symmetric
from adbench.oracle.reference import Known, Row
from adbench.oracle.series import triangles
from adbench.oracle.series.ball import Insufficient
from adbench.oracle.series.evaluation import Curve, Evaluations, Move, NotTold, many_entries, one_entry
from adbench.oracle.series.namespace import TooSlow, lift_deadlines
from adbench.oracle.series.noise import noises
from adbench.oracle.series.truth import Truth
from adbench.oracle.subject import Effort, ExaminedNumbers, Subject, chosen_entries

Examined = TypeVar("Examined")

METHOD = "power series over balls"
NOISE = "the same series with random roundings"
NO_NOISE = ""

FEWEST_DRAWS = 4
"""If time is short. Four draws underestimate the noise twentyfold once in 1e5 times, three once in 6,000."""

NOISY_COST = 3.5
"""Time of an evaluation with random roundings, in plain evaluations."""

SLOW = 0.1
"""An evaluation over this many seconds is not repeated for timing."""

OVERDUE = 3.0
"""Computation stops after this multiple of the planned time, since the plan is based on one evaluation.

Time is the thread's CPU time, so a busy machine makes a reference slower but not weaker.
"""

MOST_PER_SECOND = 20_000
"""Numbers in the arguments for each planned second: thirty evaluations take at least 3 µs each for a number."""

TOO_LONG = "the function takes too long on power series"


class NotPrecise(Exception):
    """The source does not run on series, or not within the time limit; the message is the reason."""


class TooLongOnSeries(NotPrecise):
    """The source runs on series, but takes too long."""


def too_long(total: int, max_entries: int, enough: int = 0) -> str:
    """The reason, with the advice to check fewer entries if there are more than are examined one by one.

    enough   with so many entries the time is enough, if an evaluation's is in proportion to them; 0 if unknown
    """
    if total <= max_entries:
        return TOO_LONG
    round_number = enough // 10 ** (len(str(enough)) - 1) * 10 ** (len(str(enough)) - 1)
    fewer = f"at most {round_number:,}" if round_number else "fewer"
    return f"{TOO_LONG} with {total:,} entries; check {fewer} for a proof"


@dataclass(frozen=True)
class ExaminationPlan:
    """The number of entries and directions that fit into the time, and the draws of the noise."""

    entries: int
    directions: int
    draws: int


def plan(
    total: int, evaluations: float, max_entries: int, max_directions: int, draws: int = DOUBLE.draws
) -> ExaminationPlan:
    """The plan that fits into the time of this many evaluations; raises NotPrecise if there is too little."""
    each = 1 + NOISY_COST * draws
    if total <= max_entries and (1 + total) * each <= evaluations:
        return ExaminationPlan(total, 0, draws)
    if draws > FEWEST_DRAWS:
        return plan(total, evaluations, max_entries, max_directions, max(FEWEST_DRAWS, draws // 2))
    directions = max_directions
    while True:
        entries = min(total, max_entries, int(evaluations / each - 1 - directions))
        if entries >= min(total, 4) or directions <= 1:
            break
        directions -= 1
    if entries < 1:
        raise TooLongOnSeries(too_long(total, max_entries, int(total * evaluations / (3 * each))))
    # Powers of two, so that a slightly slower machine takes the same sample.
    few = 1 << (entries.bit_length() - 1) if entries < min(total, max_entries) else entries
    return ExaminationPlan(few, directions, draws)


@dataclass(frozen=True)
class SeriesExamination:
    """A subject's numbers on series, and the time for them."""

    subject: Subject
    effort: Effort
    truth: Truth
    seconds: float

    @property
    def point(self) -> Point:
        """Where."""
        return self.subject.point

    @property
    def affordable(self) -> float:
        """Evaluations that fit into the time."""
        return self.effort.max_seconds / self.seconds

    def planned(self) -> ExaminationPlan:
        """What fits."""
        total, directions = sum(self.point.sizes), self.effort.directions_of(self.subject.shape)
        return plan(total, self.affordable, self.effort.max_entries, directions, self.effort.precision.draws)

    def rows(self, planned: ExaminationPlan, along: Move | None = None) -> list[Row]:
        """For each number the row of its value and derivatives; with ``along``, of its derivative along that move."""
        point, seed = self.point, self.effort.seed
        chosen = chosen_entries(point.sizes, planned.entries, seed)
        sample = [(k, index) for k, indices in enumerate(chosen) for index in indices]
        units = [unit(point, *place, self.effort.precision) for place in sample]
        units += [(many_entries(point.steps(seed, number)), 1.0) for number in range(planned.directions)]
        if along is None:
            wanted = [(Curve(()), 1.0), *((Curve.straight(move), step) for move, step in units)]
        else:
            wanted = [(Curve.straight(along), 1.0), *((Curve.mixed(move, along), step) for move, step in units)]
        known = self.known(wanted, planned.draws)
        rows = [point.row(seed, of_number[0], chosen, of_number[1:]) for of_number in zip(*known, strict=True)]
        return [self.named(row, planned.draws) for row in rows]

    def named(self, row: Row, draws: int) -> Row:
        """The row with its method; proved if all of its numbers are known."""
        count, noise = self.truth.evaluations.count, NOISE if draws else NO_NOISE
        proved = not any(math.isnan(known.size) for known in (row.value, *row.derivatives))
        return replace(row, method=METHOD, evaluations=count, noise=noise, proved=proved)

    def known(self, wanted: Sequence[tuple[Curve, float]], draws: int) -> list[list[Known]]:
        """For each curve the derivative along it over its scale, for each number."""
        settled = [self.truth.derivatives(*pair) for pair in wanted]
        if not draws:
            return [[one.known for one in of_curve] for of_curve in settled]
        along = list(zip(wanted, settled, strict=True))
        deviations = noises(self.truth.evaluations, along, draws, self.effort.seed, self.effort.precision)
        return [
            [replace(one.known, noise=noise) if math.isfinite(one.known.size) else one.known for one, noise in pairs]
            for pairs in (zip(*both, strict=True) for both in zip(settled, deviations, strict=True))
        ]


def unit(point: Point, leaf: int, index: int, form: Precision = DOUBLE) -> tuple[Move, float]:
    """The move of one entry, and its length: a power of two, so that float64 does not overflow.

    The power is at most |x|, and 1 for entries above one and for zero. In arithmetics of a smaller range it is 1, as in
    libraries, since a derivative may be too small for them.
    """
    if form is not DOUBLE:
        return one_entry(point, leaf, index, 1.0), 1.0
    x = float(point.leaves[leaf].values.flat[index])
    exponent = math.frexp(x)[1] - 1 if x != 0 and math.isfinite(x) else 0
    step = math.ldexp(1.0, max(-1022, min(0, exponent)))
    return one_entry(point, leaf, index, step), step


def examination(subject: Subject, effort: Effort) -> SeriesExamination:
    """Evaluate the source on series. Raises TooSlow, or any exception of the source."""
    assert subject.text is not None
    arguments: Any = subject.point.args
    affordable = MOST_PER_SECOND * effort.max_seconds
    if sum(map(np.size, optree.tree_leaves(arguments))) > affordable:
        raise TooLongOnSeries(too_long(sum(subject.point.sizes), effort.max_entries, int(affordable / 20)))
    deadline = time.thread_time() + OVERDUE * effort.max_seconds
    evaluations = Evaluations(subject.text, subject.point, deadline, ExaminedNumbers(subject.shape, effort).exact)
    truth = Truth(evaluations)
    along = Curve.straight(many_entries(subject.point.steps(effort.seed, 0)))
    started = ended = time.thread_time()
    with contextlib.suppress(Insufficient):
        for _ in range(2):  # the first one also makes constants
            started = time.thread_time()
            evaluations.along(along)
            ended = time.thread_time()
            if ended - started > SLOW:
                break
    return SeriesExamination(subject, effort, truth, max(1e-6, ended - started))


def on_series(subject: Subject, effort: Effort, examine: Callable[[SeriesExamination], Examined]) -> Examined:
    """The result of ``examine``; raises NotPrecise with the reason if the source does not run on series."""
    if subject.text is None:
        raise NotPrecise("the function is a black box")
    try:
        return examine(examination(subject, effort))
    except TooSlow:
        raise TooLongOnSeries(too_long(sum(subject.point.sizes), effort.max_entries)) from None
    except NotPrecise:
        raise
    except (Insufficient, NotTold) as error:
        raise NotPrecise("power series cannot determine its value here at any precision") from error
    except Exception as error:  # the source may raise anything; differences take over
        first_line = (str(error).splitlines() or [""])[0]
        raise NotPrecise(f"the function does not run on power series: {type(error).__name__}: {first_line}") from error
    finally:
        lift_deadlines()  # the next computation uses the same namespaces


def by_values(subject: Subject, why: str) -> Subject:
    """The subject known by its values alone, because of `why`."""

    def refused(*_: object) -> object:
        raise NotPrecise(why)

    return replace(subject, text=refused)


def is_flat(subject: Subject, leaf: int, effort: Effort) -> bool:
    """Whether the value is provably constant, to first order, along a random direction of a leaf.

    Raises NotPrecise if the series cannot decide.
    """
    steps = [step if k == leaf else None for k, step in enumerate(subject.point.steps(effort.seed, 0))]

    def examine(examination: SeriesExamination) -> bool:
        known = [one.known for one in examination.truth.derivatives(Curve.straight(many_entries(steps)))]
        if any(math.isnan(one.size) for one in known):
            raise NotPrecise("the derivative is unknown")
        return not any(one.size or one.bar for one in known)

    return on_series(subject, effort, examine)


@dataclass(frozen=True)
class SymmetricReads:
    """The symmetric matrices of which a source reads one triangle.

    operations   their names: they meet only matrices that stay symmetric if the symmetric arguments do; none if only
                 values show what is read
    leaves       the symmetric arguments that enter one of them, so that a change of one triangle alone matters
    """

    operations: frozenset[str] = frozenset()
    leaves: frozenset[int] = frozenset()


def symmetric_reads(subject: Subject, effort: Effort) -> SymmetricReads:
    """What the source reads of the arguments that are exactly symmetric: arrays (…, n, n).

    Where it does not run on series in time, its values decide: they stay the same as the other triangle changes.
    """
    symmetric = [k for k, leaf in enumerate(subject.point.leaves) if is_symmetric(leaf.values)]
    if not symmetric:
        return SymmetricReads()
    steps = [subject.point.steps(effort.seed, number) for number in range(2)]
    held = [[_symmetric(v) if k in symmetric else v for k, v in enumerate(move)] for move in steps]

    def examine(examination: SeriesExamination) -> SymmetricReads:
        def met(first: Sequence[FloatArray | None], second: Sequence[FloatArray | None]) -> Mapping[str, bool]:
            with triangles.watching() as operations:
                examination.truth.evaluations.along(Curve.mixed(many_entries(first), many_entries(second)))
            return operations

        operations = {name for name, stays in met(*held).items() if stays}
        if not operations:
            return SymmetricReads()
        alone = {k: met(*([v if i == k else None for i, v in enumerate(move)] for move in steps)) for k in symmetric}
        leaves = {k for k, of_one in alone.items() if not all(of_one.get(name, True) for name in operations)}
        return SymmetricReads(frozenset(operations), frozenset(leaves)) if leaves else SymmetricReads()

    try:
        return on_series(subject, effort, examine)
    except NotPrecise:
        return SymmetricReads(leaves=frozenset(k for k in symmetric if _ignores_a_triangle(subject, k, steps[0][k])))


def _ignores_a_triangle(subject: Subject, leaf: int, step: FloatArray) -> bool:
    """Whether the values stay the same as one triangle of a leaf moves by a thousandth of this step."""

    def value(triangle: FloatArray) -> Any:
        moves = [1e-3 * triangle if k == leaf else None for k in range(len(subject.point.leaves))]
        return subject.plain(*subject.point.moved(moves))

    with contextlib.suppress(Exception), np.errstate(all="ignore"):  # of the source, elsewhere than at its point
        here = value(np.zeros_like(step))
        return any(np.array_equal(here, value(triangle)) for triangle in (np.triu(step, 1), np.tril(step, -1)))
    return False


def _symmetric(a: FloatArray) -> FloatArray:
    return (a + np.matrix_transpose(a)) / 2
