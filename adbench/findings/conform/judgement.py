"""Judging an operation's derivatives at a point by the oracle, and staying silent where no library could do better.

Silent are: points where the function is infinite or undefined; derivatives that do not exist, are infinite or unknown;
results below the normal range (true underflow); derivatives where the value itself is wrong; and digits that the point
itself does not hold, because a neighbouring float64 point has another derivative (conditioning).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined, point
from adbench.findings.conform.operation_worker import OF_SLOPE, THIRD, case_of
from adbench.findings.conform.places import Floats, Place
from adbench.findings.operations.operation import Operation
from adbench.model import tree
from adbench.model.settings import PROCESSOR
from adbench.oracle.compute import reference
from adbench.oracle.evidence import DOUBLE, MOST_DIGITS, ROUNDINGS, SINGLE, EntryEvidence, Precision
from adbench.oracle.leaves import DIRECTION, Point
from adbench.oracle.operators import along
from adbench.oracle.second_order import hvp_reference
from adbench.oracle.series.namespace import lift_deadlines
from adbench.oracle.subject import Effort, Subject

Kind = Literal["nan", "wrong", "digits", "raises", "crashes", "hangs"]
KINDS: Mapping[Kind, str] = {
    "nan": "NaN or infinite where the truth is finite",
    "wrong": "no correct digit",
    "digits": "digits are lost",
    "raises": "raises an exception",
    "crashes": "the process dies",
    "hangs": "no answer in time",
}
FAILURES: tuple[Kind, ...] = ("raises", "crashes", "hangs")
ENOUGH_DIGITS: Mapping[Precision, float] = {DOUBLE: 12.0, SINGLE: 3.3}
"""A result with more correct digits is no fault: libraries compute special functions to a few units less."""

OF_MATRICES_DIGITS = 10.0
"""The limit for matrices, where digits are also counted in the largest entry: algorithms bound errors of the norm."""

EFFORT = Effort(max_seconds=2.0, max_directions=1)
FAILS = ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError, IndexError
"""How a definition refuses a point."""

FEW_DIGITS = 6.0
"""Where the value has fewer correct digits, for whatever reason, its derivatives are no separate faults."""

NEIGHBOURS = 5
ULPS = 2.0
"""Neighbouring points differ from the given one by up to this many units in the last place."""

SPREADS = 4.0
"""An error of up to this many times the change between neighbouring points counts as conditioning."""


HELD = 1e-3
"""A matrix is nearly singular where results of its neighbours differ by more than this, relative to the largest."""


@dataclass(frozen=True)
class Fault:
    """A wrong derivative of an operation.

    digits    correct ones of the worst number
    point     the arguments by name; kind_of_point: "special", "random", "range", "shape"
    entry     which number: "x[2]"
    active    the arguments that are differentiated; vector: v of J v and H v, one for each of these
    program   that shows the fault, if it was read from a file
    """

    operation: str
    library: str
    operator: str
    kind: Kind
    digits: float
    point: Mapping[str, Any]
    kind_of_point: str
    entry: str
    got: str
    expected: str
    active: tuple[str, ...] = ()
    vector: tuple[Any, ...] = ()
    thread: str = ""
    precision: str = "float64"
    device: str = PROCESSOR
    program: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it new in comparison with a baseline."""
        return self.library, self.operation, self.operator, self.kind


@dataclass(frozen=True)
class Judged:
    """The verdict on one operator at one point.

    digits     correct ones of its worst number; None: nothing could be judged
    measured   the same, also if conditioning or rounding excuses the error
    """

    operator: str
    digits: float | None
    fault: Fault | None = None
    measured: float = MOST_DIGITS


@dataclass
class OperationReferences:
    """The references of an operation at a place, or None."""

    operation: Operation
    place: Place
    at: CasePoint
    known: PointReferences | None

    @property
    def precision(self) -> Precision:
        """The arithmetic of the results."""
        return SINGLE if self.at.single else DOUBLE

    @cached_property
    def of_slope(self) -> OperationReferences | None:
        """The references of the derivative as a function, for the third order.

        Nobody knows how rounding affects a derivative of a derivative: conditioning alone excuses errors.
        """
        if self.operation.slope is None:
            return None
        references = truth_at(self.operation.slope, self.place, self.at.single)
        if references.known is None or references.known.hvp is None:
            return references
        rows = tuple(
            (k, row.with_derivatives(lambda one, *_: replace(one, noise=0.0)))
            for k, row in references.known.hvp.outputs
        )
        return replace(
            references, known=PointReferences(references.known.first, replace(references.known.hvp, outputs=rows))
        )

    @property
    def enough_digits(self) -> float:
        """A result with more correct digits is no fault."""
        if self.at.single:
            return ENOUGH_DIGITS[self.precision]
        if self.operation.is_slope:
            return FEW_DIGITS
        return OF_MATRICES_DIGITS if self.operation.is_of_matrices else ENOUGH_DIGITS[self.precision]

    @cached_property
    def is_differentiable(self) -> bool:
        """Whether the derivative along v is the sum of the partial ones, which a median of ties has without it."""
        assert self.known is not None
        v = self.at.direction(DIRECTION)

        def along_v(xp: Any, t: Any) -> Any:
            args = list(self.at.args)
            for position, part in zip(self.at.wrt, v, strict=True):
                args[position] = xp.asarray(args[position]) + t * xp.asarray(part)
            return self.at.text(xp, *args)

        line = Point((0.0,), (0,), ("t",))
        try:
            with np.errstate(all="ignore"):
                proved = reference(Subject(lambda *_: math.nan, line, along_v), EFFORT).scalar
        except FAILS:
            return True
        (entry,) = proved.leaves[0].entries
        row, there = self.known.first.scalar, entry.derivative
        known, lengths = along(row, DIRECTION), [np.abs(np.ravel(part)) for part in tree.leaves(v)]
        sizes = [np.array([one.derivative.size for one in leaf.entries]) for leaf in row.leaves]
        terms = sum(float(np.dot(size, length)) for size, length in zip(sizes, lengths, strict=True))
        below = DOUBLE.smallest * sum(float(length.sum()) for length in lengths)
        room = 1e-9 * terms + below + known.bar + there.bar
        return not there.size < math.inf or (
            abs(known.lower - there.lower) <= room and abs(known.upper - there.upper) <= room
        )

    @cached_property
    def is_nearly_singular(self) -> bool:
        """Whether arrays of neighbouring points have very different results: infinity or an exception is then right."""
        assert self.known is not None
        if self.operation.is_elementwise:
            return False
        here = self._scaled(self.known)
        size = float(np.max(np.abs(here)))
        return any(float(np.max(np.abs(here - self._scaled(near)))) > HELD * size for near in self.neighbours)

    def _scaled(self, known: PointReferences) -> Floats:
        """The value, first derivatives and H v, each times the power of |x| that makes it a change of the value."""
        leaves = tree.leaves([self.at.args[k] for k in self.at.wrt])
        v = tree.leaves(self.at.direction(DIRECTION))
        size, length = (max(float(np.max(np.abs(x), initial=0.0)) for x in many) for many in (leaves, v))
        first = known.first.scalar
        second = [] if known.hvp is None else known.hvp.scalar.derivatives
        with np.errstate(all="ignore"):
            every = [
                np.array([first.value.lower]),
                np.array([one.lower for one in first.derivatives]) * size,
                np.array([one.lower for one in second]) * size * (size / length if length else 0.0),
            ]
        return np.asarray(np.nan_to_num(np.concatenate(every), posinf=0.0, neginf=0.0))

    @cached_property
    def neighbours(self) -> list[PointReferences]:
        """The references at neighbouring points."""
        rng = np.random.default_rng(0)
        neighbours: list[PointReferences] = []
        for _ in range(3 * NEIGHBOURS):
            if len(neighbours) == NEIGHBOURS:
                break
            moved = _moved(self.place, rng, 2.0 * ULPS * self.precision.unit)
            near = truth_at(self.operation, replace(self.place, arguments=moved), self.at.single)
            if near.known is not None and near.scales == self.scales:
                neighbours.append(near.known)
        return neighbours

    @property
    def scales(self) -> list[float]:
        """The lengths of v, which jump where a number passes a power of two: there J v differs for another reason."""
        return [leaf.scale for leaf in self.at.arguments.leaves]

    def result(self, answer: Mapping[str, Any]) -> Any:
        """The numbers of a library's answer, in its type."""
        result, type_ = answer["value"], np.float32 if self.at.single else np.float64
        with np.errstate(all="ignore"):
            if isinstance(result, tuple | list):
                return tuple(np.asarray(part, dtype=type_) for part in result)
            return np.asarray(result, dtype=type_)

    def fault(
        self, library: str, operator: str, kind: Kind, digits: float, got: str, expected: str, entry: str
    ) -> Fault:
        """A wrong number of a library here, in the entry with this place."""
        inputs = {name: np.asarray(value).tolist() for name, value in self.place.inputs.items()}
        active = tuple(self.at.names[k] for k in self.at.wrt)
        vector = tuple(np.asarray(part).tolist() for part in tree.leaves(self.at.vector(operator)))
        entry = "" if entry in ("the value", "J v") else entry
        more = (library, operator, kind, digits, inputs, self.place.kind, entry, got, expected, active, vector)
        return Fault(self.operation.name, *more, precision=self.precision.name)


def truth_at(operation: Operation, place: Place, single: bool = False) -> OperationReferences:
    """The references, proved; none where the value is infinite or undefined, or the definition cannot be evaluated.

    single   whether results are float32
    """
    at = point(case_of(operation, place), 1, 0, single=single)
    subject = Subject(lambda *_: math.nan, at.arguments, at.text)
    try:
        with np.errstate(all="ignore"):
            first = reference(subject, EFFORT)
            if not (first.scalar.proved and math.isfinite(first.scalar.value.size)):
                return OperationReferences(operation, place, at, None)
            return OperationReferences(
                operation, place, at, PointReferences(first, hvp_reference(subject, first.scalar, EFFORT))
            )
    except FAILS:
        return OperationReferences(operation, place, at, None)
    finally:
        lift_deadlines()


def _moved(place: Place, rng: np.random.Generator, change: float) -> tuple[Any, ...]:
    """The arguments, each number changed by at most this, relative to it."""
    arguments = []
    for argument in place.arguments:
        array = np.asarray(argument, dtype=np.float64)
        with np.errstate(all="ignore"):
            new = array * (1.0 + rng.uniform(-change, change, array.shape))
        arguments.append(new if array.ndim else float(new))
    return tuple(arguments)


def judged(truth: OperationReferences, library: str, answers: Mapping[str, Any]) -> list[Judged]:
    """The verdicts on every operator's answer at a point."""
    if truth.known is None:
        return []
    lower = {operator: answer for operator, answer in answers.items() if operator != THIRD}
    judgements = [_judged(truth, truth.known, library, operator, answer) for operator, answer in lower.items()]
    if THIRD in answers and all(one.fault is None for one in judgements):
        judgements.append(_third(truth, library, answers[THIRD]))
    value = next((one for one in judgements if one.operator == "value"), None)
    if value is not None and (value.fault is not None or value.measured < FEW_DIGITS or "raises" in answers["value"]):
        return [one for one in judgements if one.operator == "value" or one.fault is None]
    return judgements


def _third(truth: OperationReferences, library: str, answer: Mapping[str, Any]) -> Judged:
    """The verdict on the third derivative, where those below it are right."""
    slope = truth.of_slope
    if slope is None or slope.known is None:
        return Judged(THIRD, None)
    judgement = _judged(slope, slope.known, library, OF_SLOPE, answer)
    return replace(judgement, operator=THIRD, fault=judgement.fault and replace(judgement.fault, operator=THIRD))


def _judged(
    truth: OperationReferences, known: PointReferences, library: str, operator: str, answer: Mapping[str, Any]
) -> Judged:
    def fault(kind: Kind, digits: float, got: str, expected: str, entry: str) -> Judged:
        return Judged(operator, digits, truth.fault(library, operator, kind, digits, got, expected, entry))

    for failure in FAILURES:
        if failure in answer:
            if failure == "raises" and _may_raise(truth, known, operator):
                return Judged(operator, None)
            return fault(failure, 0.0, str(answer[failure]), _expected(truth, known, operator), "")
    if "value" not in answer:
        return Judged(operator, None)
    result = truth.result(answer)
    verdict, entries = examined(truth.at, operator, result, known, None)
    if not entries:
        return fault("wrong", 0.0, verdict.sentence, "", "") if verdict.word == "wrong" else Judged(operator, None)
    certain = [item for item in entries if math.isfinite(item.expected)]
    measured = min((item.digits_correct for item in certain), default=MOST_DIGITS)
    wrong = [item for item in certain if item.word == "wrong" and not _is_out_of_range(truth, operator, item)]
    lost = [item for item in wrong if not math.isfinite(item.got)]
    if wrong:
        spread = _spread(truth, operator, result, entries)
        finite = [item for item in wrong if math.isfinite(item.got) and not _is_small(truth, item, certain)]
        wrong = [item for item in finite if abs(item.got - item.expected) > SPREADS * spread[item.where, item.index]]
    wrong = [item for item in wrong if item.digits_correct < truth.enough_digits]
    if (lost and truth.is_nearly_singular) or ((lost or wrong) and not truth.is_differentiable):
        return Judged(operator, None, measured=measured)
    if lost and operator == "value" and truth.place.weights is not None and not truth.place.weights.all():
        return Judged(operator, None, measured=0.0)  # another result, with weight zero, may overflow: 0 · inf
    if worst := min(lost or wrong, key=lambda item: item.digits_correct, default=None):
        kind: Kind = "nan" if lost else "wrong" if worst.digits_correct < 1 else "digits"
        return fault(kind, worst.digits_correct, repr(worst.got), worst.truth, worst.place)
    sure = [item.digits_correct for item in certain if item.word in ("right", "wrong")]
    return Judged(operator, min(sure) if sure else None, measured=measured)


def _may_raise(truth: OperationReferences, known: PointReferences, operator: str) -> bool:
    """Whether an exception is no fault: another shape than usual, a derivative that does not exist, no inverse."""
    if operator == "value":
        return truth.place.kind == "shape" or truth.is_nearly_singular
    exists = all(math.isfinite(one.lower) for one in known.of(operator).scalar.derivatives)
    return not exists or truth.is_nearly_singular


def _is_small(truth: OperationReferences, item: EntryEvidence, every: Sequence[EntryEvidence]) -> bool:
    """Whether an error is far below the largest entry of the same matrix."""
    if not truth.operation.is_of_matrices:
        return False
    largest = max(abs(other.expected) for other in every if other.where == item.where)
    return bool(abs(item.got - item.expected) <= 10.0**-truth.enough_digits * largest)


def _is_out_of_range(truth: OperationReferences, operator: str, item: EntryEvidence) -> bool:
    """Whether a product with v is off only because a derivative itself overflows, or is below the normal range."""
    v = [np.abs(np.ravel(np.asarray(part, dtype=np.float64))) for part in tree.leaves(truth.at.vector(operator))]
    sizes = np.concatenate(v) if v else np.zeros(0)
    sizes = sizes[sizes > 0]
    if not sizes.size:
        return False
    by = truth.precision
    below = by.smallest * ROUNDINGS * float(sizes.sum())
    return abs(item.got - item.expected) <= below or abs(item.expected) / float(sizes.min()) > by.largest / ROUNDINGS


def _expected(truth: OperationReferences, known: PointReferences, operator: str) -> str:
    row = known.of(operator).scalar
    return repr(row.value.lower) if operator == "value" else repr([d.lower for d in row.derivatives[:3]])


def _spread(
    truth: OperationReferences, operator: str, result: Any, entries: Sequence[EntryEvidence]
) -> dict[Any, float]:
    """How much the true numbers differ between neighbouring points."""
    changes = dict.fromkeys(((item.where, item.index) for item in entries), 0.0)
    for known in truth.neighbours:
        for here, there in zip(entries, examined(truth.at, operator, result, known, None)[1], strict=False):
            change = abs(here.expected - there.expected)
            if math.isfinite(change):
                changes[here.where, here.index] = max(changes[here.where, here.index], change)
    return changes
