"""Where rounding loses digits: the operation of a source after which its noise is largest, relative to its value.

The source runs once exactly and several times with random roundings (`adbench.oracle.series.noisy`), along the curve of
the number that rounding hides most. Every operation has the errors of its operands and of its result. An operation
whose result has far fewer digits than its operands, as a difference of almost equal numbers, is suspected. It is named
if the number gets its digits back once that operation has its exact result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from adbench.oracle.precise import NotPrecise, SeriesExamination, on_series, unit
from adbench.oracle.reference import Known, Reference
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, Ball, Insufficient, arithmetic
from adbench.oracle.series.evaluation import Curve
from adbench.oracle.series.noisy import noisy_type, spread
from adbench.oracle.series.number import Real, ball_of
from adbench.oracle.series.truth import COMPARING
from adbench.oracle.subject import Effort, Subject

DRAWS = 4
GROWTH = 8.0
"""An operation that loses less than this factor of the digits of its operands is not suspected."""

REPAIRED = 0.5
"""Exact results of the named operations leave at most this share of the noise."""

MOST_OPERATIONS = 50_000
MOST_NAMED, MOST_SUSPECTED = 2, 6

SIGNS = {"__add__": "+", "__radd__": "+", "__sub__": "-", "__rsub__": "-", "__mul__": "*", "__rmul__": "*",
         "__truediv__": "/", "__rtruediv__": "/", "__pow__": "**", "__rpow__": "**"}  # fmt: skip
SUMS = ("+", "-", "sum")

Place = Callable[[], str]
Operation = tuple[str, tuple[Ball, ...], Ball]
"""Its name, operands and result."""


class TooMany(Exception):
    """The source has too many operations."""


@dataclass
class Log:
    """The operations of one run, in order.

    exact    operation -> its exact result, which replaces that of this run
    wanted   the operations whose place is noted
    """

    exact: Mapping[int, Ball] = field(default_factory=dict)
    wanted: Iterable[int] = ()
    place: Place = str
    operations: list[Operation] = field(default_factory=list)
    places: dict[int, str] = field(default_factory=dict)
    is_inside: bool = False

    def note(self, name: str, operands: tuple[Ball, ...], compute: Callable[[], Ball]) -> Ball:
        """The result of an operation; those inside it are not noted."""
        if self.is_inside:
            return compute()
        self.is_inside = True
        try:
            result = compute()
        finally:
            self.is_inside = False
        number = len(self.operations)
        if number == MOST_OPERATIONS:
            raise TooMany
        self.operations.append((name, operands, result))
        if number in self.wanted:
            self.places[number] = self.place()
        return self.exact.get(number, result)


@functools.cache
def _logging(base: Any) -> Any:
    """The number type that also notes its operations in its `log`."""
    made: Any = None

    def method(name: str) -> Callable[..., Any]:
        called = getattr(base, name)

        def noted(self: Any, other: Any) -> Any:
            right = ball_of(other)
            if right is None:
                return called(self, other)
            operands = (right, self.ball) if name.startswith("__r") else (self.ball, right)
            return made(made.log.note(SIGNS[name], operands, lambda: called(self, other).ball))

        return noted

    def computed(cls: Any, name: str, function: Callable[..., Ball], *operands: Ball) -> Ball:
        inner = super(made, cls).computed
        return cls.log.note("-" if name == "centred" else name, operands, lambda: inner(name, function, *operands))

    def folded(name: str, called: str) -> Any:
        def fold(cls: Any, terms: Sequence[Ball]) -> Ball:
            inner = getattr(super(made, cls), called)
            return cls.log.note(name, tuple(map(ball.ball, terms)), lambda: inner(terms))

        return classmethod(fold)

    methods = {name: method(name) for name in SIGNS}
    classes = {"computed": classmethod(computed), "total": folded("sum", "total"), "product": folded("prod", "product")}
    made = type(f"Logging{base.__name__}", (base,), {"__slots__": (), "log": Log(), **methods, **classes})
    return made


Run = Callable[..., tuple[Log, Any]]
"""run(number type, **parts of the log) -> the operations of one run, and the coefficient."""


@dataclass(frozen=True)
class Suspect:
    """The operations of one name at one place, the largest loss of digits as a factor, and that operation in words."""

    place: str
    numbers: tuple[int, ...]
    growth: float
    worst: str


def lost_at(subject: Subject, effort: Effort, known: Reference, place: Place) -> tuple[str, ...]:
    """The places where the digits of the most hidden derivative go, each with its operation.

    place   place() -> the line of the source that runs now

    Empty if no operation by itself is to blame.
    """
    chosen = _most_hidden(known)
    if chosen is None:
        return ()
    which, leaf, index = chosen

    def examine(examination: SeriesExamination) -> tuple[str, ...]:
        curve = Curve.straight(unit(subject.point, leaf, index, effort.precision)[0])
        settled = examination.truth.derivatives(curve)[which]
        evaluated, along = settled.evaluated, curve.mirrored if settled.mirrored else curve
        if evaluated is None:
            return ()
        how = Arithmetic(bits=max(evaluated.how.bits, 192), guess=1)

        def run(base: Any, **parts: Any) -> tuple[Log, Any]:
            log, kind = Log(place=place, **parts), _logging(base)
            kind.log = log
            try:
                logged = examination.truth.evaluations.followed(along, evaluated.path, how, kind)
            finally:
                kind.log = Log()
            return log, logged.coefficients[which]

        with suppress(Insufficient, TooMany):
            return _named(run, effort, along.power * evaluated.path.root)
        return ()

    try:
        return on_series(subject, effort, examine)
    except NotPrecise:
        return ()


def _most_hidden(known: Reference) -> tuple[int, int, int] | None:
    """The derivative with the largest relative noise: which output, its leaf and flat index."""

    def hidden(one: Known) -> float:
        return one.noise / one.size if 0 < one.size < math.inf and one.noise >= 0 else 0.0

    numbers = []
    for which, (_, row) in enumerate(known.outputs):
        for leaf, part in enumerate(row.leaves):
            numbers += [(hidden(entry.derivative), which, leaf, entry.index) for entry in part.entries]
    most, *place = max(numbers, default=(0.0, 0, 0, 0))
    return (place[0], place[1], place[2]) if most > 0 else None


def _named(run: Run, effort: Effort, power: int) -> tuple[str, ...]:
    """The operations to blame for the noise of the coefficient of t^power, with their places."""

    def noisy(results: Mapping[int, Ball]) -> list[tuple[Log, Any]]:
        return [run(noisy_type(effort.seed, draw, effort.precision), exact=results) for draw in range(DRAWS)]

    (exact, truth), runs = run(Real), noisy({})
    if any(len(log.operations) != len(exact.operations) for log, _ in runs):
        return ()  # random roundings change a branch
    suspects = _suspects(run, effort.precision.unit, power, exact, [log for log, _ in runs])
    noise, named, repaired = _noise(truth, runs), list[Suspect](), dict[int, Ball]()
    left = noise
    while suspects and len(named) < MOST_NAMED and noise and not left <= REPAIRED * noise:
        tried = []
        for suspect in suspects:
            results = repaired | {number: exact.operations[number][2] for number in suspect.numbers}
            tried.append((_noise(truth, noisy(results)), suspect))
        least = min(share for share, _ in tried)
        # Exact results of later operations help as much, but the largest loss is the cause.
        near = 1.05 * least + 0.2 * max(0.0, left - least)
        left, chosen = max((pair for pair in tried if pair[0] <= near), key=lambda pair: pair[1].growth)
        repaired |= {number: exact.operations[number][2] for number in chosen.numbers}
        named.append(chosen)
        suspects.remove(chosen)
    if not left <= REPAIRED * noise:
        return ()
    return tuple(f"{one.place}: {one.worst}" for one in named)


def _noise(truth: Any, runs: Sequence[tuple[Log, Any]]) -> float:
    with arithmetic(COMPARING):
        return spread([_apart(value, truth) for _, value in runs])


def _apart(a: Any, b: Any) -> float:
    """The distance of two coefficients; infinite if one is no number."""
    if a is None or b is None or isinstance(a, float) or isinstance(b, float):
        return math.inf
    return abs(float((a - b).mid() if hasattr(a - b, "mid") else a - b))


def _suspects(run: Run, roundoff: float, power: int, exact: Log, noisy: Sequence[Log]) -> list[Suspect]:
    """The places whose operations lose digits, the largest loss first."""
    growth = dict[int, tuple[float, int]]()
    with arithmetic(COMPARING):
        for number, operation in enumerate(exact.operations):
            runs = [log.operations[number] for log in noisy]
            most = max((_growth(operation, runs, k, roundoff), k) for k in {0, power})
            if most[0] >= GROWTH:
                growth[number] = most
    log, _ = run(Real, wanted=growth.keys())
    by_place: dict[tuple[str, str], list[int]] = {}
    for number in growth:
        if log.places[number]:
            by_place.setdefault((log.places[number], exact.operations[number][0]), []).append(number)
    suspects = []
    for (place, _), numbers in by_place.items():
        shown = [number for number in numbers if math.isfinite(growth[number][0])] or numbers  # not x - x = 0
        worst = max(shown, key=growth.__getitem__)
        lost, k = growth[worst]
        suspects.append(Suspect(place, tuple(numbers), lost, _in_words(exact.operations[worst], k)))
    return sorted(suspects, key=lambda one: one.growth, reverse=True)[:MOST_SUSPECTED]


def _growth(operation: Operation, runs: Sequence[Operation], power: int, roundoff: float) -> float:
    """The relative error of a coefficient of the result over that of the operands."""
    name, operands, result = operation

    def error(part: Ball, others: Sequence[Ball], k: int) -> float:
        here = _coefficient(part, k)
        return spread([_apart(_coefficient(other, k), here) for other in others])

    lost, size = error(result, [run[2] for run in runs], power), _size(result, power)
    if not lost or not math.isfinite(lost):
        return 0.0
    errors = [(part, [run[1][slot] for run in runs]) for slot, part in enumerate(operands)]
    if name in SUMS:
        wrong, largest = math.hypot(*(error(*pair, power) for pair in errors)), max(_size(p, power) for p in operands)
        before = wrong / largest if largest else math.inf
    else:
        sizes = [(error(*pair, k), _size(pair[0], k)) for pair in errors for k in {0, power}]
        before = max((wrong / here if here else math.inf for wrong, here in sizes if wrong), default=0.0)
    relative = lost / size if size else math.inf
    return relative / max(before, roundoff) if math.isfinite(before) else 0.0


def _coefficient(value: Ball, k: int) -> Any:
    if isinstance(value, ball.Special):
        return None
    if ball.is_series(value):
        return value[k] if k < value.prec else None
    return ball.ZERO if k else value


def _size(value: Ball, k: int) -> float:
    found = _coefficient(value, k)
    return 0.0 if found is None else abs(float(found))


def _in_words(operation: Operation, power: int) -> str:
    """The operation with its numbers: "1000020 - 1000020 = 6.68e-05"."""
    name, operands, result = operation
    left = f"{_number(result, power):.3g}"

    def written(k: int) -> str:
        numbers = [f"{_number(part, k):.7g}" for part in operands]
        return f" {name} ".join(numbers) if name in SIGNS.values() else f"{name}({', '.join(numbers)})"

    if name == "sum":
        largest = max(_size(part, power) for part in operands)
        sentence = f"a sum of {len(operands)} terms up to {largest:.7g} is {left}"
    elif not power or name in SUMS:
        sentence = f"{written(power)} = {left}"
    else:
        return f"the derivative of {written(0)}"
    return f"in the derivative, {sentence}" if power else sentence


def _number(value: Ball, k: int) -> float:
    found = _coefficient(value, k)
    return math.nan if found is None else float(found)
