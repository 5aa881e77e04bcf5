"""Evidence: a backend's number, its reference, the tolerance between them, and the word for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from adbench.oracle.reference import UNIT_ROUNDOFF, Known

Word = Literal["right", "wrong", "verified", "blind", "inconclusive", "approximate"]
"""Words of compared numbers and verdicts (`adbench.oracle.verdict`); only older files have "inconclusive"."""

BADNESS: Mapping[Word, int] = {"right": 0, "approximate": 0, "verified": 1, "inconclusive": 1, "blind": 2, "wrong": 3}

BARS = 25.0
SIGMAS = 20.0
MOST_WIDER = 10.0
"""A measured spread multiplies a bound by this at most: it costs one digit, and a program in float32 stays wrong."""


@dataclass(frozen=True)
class ErrorSpread:
    """Standard deviations of rounding errors.

    by_place   of compared numbers; `other`: of all others
    most       it multiplies a bound by this at most
    within     the beginning of the places by which they are known
    """

    by_place: Mapping[str, float]
    other: float = 0.0
    most: float = MOST_WIDER
    within: str = ""


ROUNDINGS = 8.0
RESOLVED = 0.5e-9
AGREED = 1e-12
"""The relative error of a number that agrees with its reference, at the point and at its neighbours."""
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
SMALLEST_NORMAL = float(np.finfo(np.float64).smallest_normal)
MOST_DIGITS = 17.0
"""Of a number that equals its reference."""
FLOAT64_DIGITS = 15.9
"""The most digits that two different numbers of float64 have in common."""
MOST_SHOWN = 10  # entries in a table, or in the record of a user's function


@dataclass(frozen=True)
class Precision:
    """The arithmetic of a result.

    unit: its unit roundoff; resolved: relative bounds below this decide; smallest, largest: its smallest normal
    number, and its largest; inside: the unit roundoff of sums and of library functions, which libraries compute in
    float32 for types of 16 bits; sigmas, roundings: how many standard deviations of the noise, and how many units of
    roundoff of the number itself, are tolerated; draws: the samples from which the noise is estimated. Types of 16 bits
    cannot spare the digits that few samples cost.
    """

    name: str
    unit: float = UNIT_ROUNDOFF
    resolved: float = RESOLVED
    smallest: float = SMALLEST_NORMAL
    largest: float = float(np.finfo(np.float64).max)
    inside: float = UNIT_ROUNDOFF
    sigmas: float = SIGMAS
    roundings: float = ROUNDINGS
    draws: int = 6

    @property
    def bits(self) -> int:
        """Of its significand, with the hidden one."""
        return 1 - math.frexp(self.unit)[1]

    @property
    def rounding(self) -> float:
        """The tolerated relative error of the rounding of a number."""
        return self.roundings * self.unit

    @property
    def floor(self) -> float:
        """The absolute error of tiny numbers: libraries may flush those below the normal ones, but of float16 none."""
        return self.smallest if self.smallest < 1e-30 else ROUNDINGS * self.ulp(0.0)

    def ulp(self, x: float) -> float:
        """The distance of neighbouring numbers at x: a unit in the last place; at least the smallest number's."""
        size = min(max(abs(x), self.smallest), self.largest)
        return math.ldexp(2.0 * self.unit, math.frexp(size)[1] - 1)

    def ulps(self, x: Any) -> Any:
        """The same at every number of an array."""
        sizes = np.clip(np.abs(x), self.smallest, self.largest)
        return np.ldexp(2.0 * self.unit, np.frexp(sizes)[1] - 1)

    def nearest(self, x: float) -> float:
        """The number of this arithmetic nearest to a float64, ties to even; an infinity beyond the largest."""
        if self.unit == UNIT_ROUNDOFF or not math.isfinite(x):
            return x
        step = self.ulp(x)
        rounded = round(x / step) * step  # a power of two: both are exact
        return rounded if abs(rounded) <= self.largest else math.copysign(math.inf, x)

    def rounded(self, x: Any) -> Any:
        """The same for every number of an array."""
        if self.unit == UNIT_ROUNDOFF:
            return x
        steps = self.ulps(x)
        rounded = np.rint(x / steps) * steps
        return np.where(np.abs(rounded) > self.largest, np.copysign(np.inf, x), rounded)


DOUBLE = Precision("float64")
SHARPER = (10.0, 4.0, 12)
"""`sigmas`, `roundings` and `draws` for 16 bits: one error in three million is beyond 10 deviations of 12 samples."""
SINGLE = Precision("float32", 2.0**-24, 1e-4, 2.0**-126, (2.0 - 2.0**-23) * 2.0**127, 2.0**-24)
HALF = Precision("float16", 2.0**-11, 0.05, 2.0**-14, (2.0 - 2.0**-10) * 2.0**15, 2.0**-24, *SHARPER)
BRAIN = Precision("bfloat16", 2.0**-8, 0.25, 2.0**-126, (2.0 - 2.0**-7) * 2.0**127, 2.0**-24, *SHARPER)
PRECISIONS: Mapping[str, Precision] = {one.name: one for one in (DOUBLE, SINGLE, HALF, BRAIN)}
"""By name. The unit roundoff is 2**-p for a significand of p bits, with the hidden one: 53, 24, 11, 8."""


def lowest(*of: Precision) -> Precision:
    """The arithmetic that rounds most."""
    return max(of, key=lambda one: one.unit)


Value = TypeVar("Value")


@contextmanager
def within(variable: ContextVar[Any], value: Value) -> Iterator[Value]:
    """Inside the block a context variable has this value, which the block gets; afterwards it has the old one again."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


_PRECISION: ContextVar[Precision] = ContextVar("precision", default=DOUBLE)


def precision() -> Precision:
    """The arithmetic by which numbers are currently judged."""
    return _PRECISION.get()


def judging_in(chosen: Precision) -> AbstractContextManager[Precision]:
    """Judge numbers by this arithmetic's noise in the block."""
    return within(_PRECISION, chosen)


def in_digits(digits: float) -> str:
    """A number of correct or resolvable digits: "5.2", or "exact"; at most the 15.9 that a float64 has."""
    return "exact" if digits >= MOST_DIGITS else f"{min(digits, FLOAT64_DIGITS):.1f}"


@dataclass(frozen=True)
class EntryEvidence:
    """One compared number. ``expected`` is the correct value nearest to ``got``, ``interval`` all correct values.

    where: "the value", the path of a leaf, or the direction over all entries; index: the index in the leaf.
    bound: tau. digits_correct, digits_resolvable: decimal digits, 0 to 17. kind: of the reference (`Known`).
    """

    where: str
    index: tuple[int, ...]
    got: float
    expected: float
    interval: tuple[float, float]
    bound: float
    word: Word
    digits_correct: float
    digits_resolvable: float
    kind: str = "smooth"

    @property
    def place(self) -> str:
        """The entry as an index expression: ``params[0]['w'][2, 3]``."""
        return _indexed(self.where, self.index)

    @property
    def truth(self) -> str:
        """What was expected, in words where it is not one number."""
        if math.isnan(self.expected):
            return "a finite number" if self.interval[0] == -math.inf else "an unknown number"
        if self.interval[0] < self.interval[1]:
            return f"any value in [{self.interval[0]!r}, {self.interval[1]!r}]"
        return repr(self.expected)

    def __str__(self) -> str:
        weaker = "; computed by differences" if self.kind == "unsure" else ""
        correct = in_digits(self.digits_correct)
        digits = "exact" if correct == "exact" else f"{correct} digits correct"
        resolvable = min(self.digits_resolvable, FLOAT64_DIGITS)
        return f"{self.place}: got {self.got!r}, expected {self.truth} ({digits}, {resolvable:.1f} resolvable{weaker})"


def compare(
    where: str,
    index: tuple[int, ...],
    got: float,
    known: Known,
    zero_scale: float,
    extra: float = 0.0,
    least_scale: float = 0.0,
) -> EntryEvidence:
    """Compare an entry and return its evidence.

    extra        widens the bound
    zero_scale   the scale of a true zero
    least_scale  the least scale, for a sum whose terms cancel
    """

    def evidence(expected: float, bound: float, word: Word, correct: float, resolvable: float) -> EntryEvidence:
        interval = (known.lower, known.upper)
        return EntryEvidence(where, index, got, expected, interval, bound, word, correct, resolvable, known.kind)

    if math.isnan(known.size) or math.isnan(known.bar) or math.isnan(known.noise):
        return evidence(math.nan, math.nan, "blind", 0.0, 0.0)
    expected, size, by = known.nearest(got), known.size, precision()
    # The noise is known for float64; other arithmetics scale it by the ratio of their unit roundoffs. Differences have
    # no noise: the roundings of the function in float64 are in their bar, which scales instead.
    ratio = by.unit / UNIT_ROUNDOFF
    bars = BARS * known.bar * (1.0 if known.noise else ratio)
    bound = bars + by.sigmas * known.noise * ratio + by.rounding * size + by.floor + extra
    if by.largest < size < math.inf:  # the arithmetic has no number of this size
        return evidence(expected, math.inf, "blind", 0.0, 0.0)
    if 0 < size <= bars and bars > by.resolved * zero_scale and not math.isnan(got):  # differences resolve nothing
        return evidence(expected, bound, "blind", 0.0, 0.0)
    if (
        by is not DOUBLE
        and math.isfinite(size)
        and not math.isfinite(got)
        and bound >= (max(size, least_scale) or zero_scale)
    ):
        return evidence(expected, bound, "blind", 0.0, 0.0)  # rounding hides all digits: a divisor may be zero
    if math.isinf(size) or not math.isfinite(got):
        same = got == expected
        return evidence(expected, bound, "right" if same else "wrong", MOST_DIGITS if same else 0.0, MOST_DIGITS)
    error, scale = abs(got - expected), max(size, least_scale) or zero_scale
    word: Word = "wrong" if error > bound else _resolved(bound, scale)
    return evidence(expected, bound, word, _digits(error, scale), _digits(bound, scale))


def widened(item: EntryEvidence, spread: ErrorSpread) -> EntryEvidence:
    """The evidence with the program's measured spread in its bound, and the word for that."""
    wider = precision().sigmas * spread.by_place.get(f"{spread.within}{item.place}", spread.other)
    if not (0 < item.bound < math.inf and wider > 0 and math.isfinite(item.got - item.expected)):
        return item
    bound = min(item.bound + wider, spread.most * item.bound)
    digits = max(0.0, item.digits_resolvable - math.log10(bound / item.bound))
    word = "wrong" if abs(item.got - item.expected) > bound else _resolved(10.0**-digits, 1.0)
    return replace(item, bound=bound, word=word, digits_resolvable=digits)


def agrees(item: EntryEvidence) -> bool:
    """Whether a number has twelve digits of its one reference number, or all that its size allows. A zero agrees with
    zero alone."""
    expected = item.expected
    if item.interval[0] != item.interval[1] or not math.isfinite(item.got) or item.word == "wrong":
        return False
    error = abs(item.got - expected)
    return error == 0 or (item.got != 0 and error <= max(AGREED * abs(expected), 2 * SMALLEST))


def confirmed(item: EntryEvidence, places: Collection[str]) -> EntryEvidence:
    """The evidence, right to `AGREED` if it is from one of these places."""
    if item.place not in places or item.word == "right":
        return item
    return replace(item, bound=AGREED * abs(item.expected), word="right", digits_resolvable=-math.log10(AGREED))


def _resolved(bound: float, scale: float) -> Word:
    """The word for a number of this size that is within its bound."""
    if bound < precision().resolved * scale:
        return "right"
    return "verified" if bound < scale else "blind"


def not_finite(where: str, index: tuple[int, ...], got: float) -> EntryEvidence:
    """A NaN or an infinity instead of a finite number outside the sample."""
    return EntryEvidence(where, index, got, math.nan, (-math.inf, math.inf), 0.0, "wrong", 0.0, 0.0)


def not_zero(where: str, index: tuple[int, ...], got: float) -> EntryEvidence:
    """A nonzero number instead of a structural zero."""
    return EntryEvidence(where, index, got, 0.0, (0.0, 0.0), 0.0, "wrong", 0.0, MOST_DIGITS)


def place_of(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index tuple of a flat index in an array of this shape."""
    return tuple(map(int, np.unravel_index(index, shape))) if shape else ()


def entry_name(path: str, index: int, shape: tuple[int, ...]) -> str:
    """An entry of an array, by its flat index, as an index expression: ``x[2, 3]``."""
    return _indexed(path, place_of(index, shape))


def _indexed(path: str, index: tuple[int, ...]) -> str:
    return path + (f"[{', '.join(map(str, index))}]" if index else "")


def _digits(error: float, size: float) -> float:
    """Significant decimal digits of a number of this size with this absolute error, limited to 0 .. 17."""
    if error == 0 or math.isinf(size):
        return MOST_DIGITS
    if size == 0 or error >= size:
        return 0.0
    return min(MOST_DIGITS, math.log10(size) - math.log10(error))


def worst(evidence: Sequence[EntryEvidence]) -> EntryEvidence | None:
    """The entry that decides: a wrong one furthest beyond its bound, else the least resolvable, else the least sure."""
    return max(evidence, key=_badness, default=None)


def worst_entries(evidence: Sequence[EntryEvidence]) -> list[EntryEvidence]:
    """The MOST_SHOWN worst of these numbers, in their order."""
    ranked = sorted(range(len(evidence)), key=lambda k: _badness(evidence[k]), reverse=True)
    return [evidence[k] for k in sorted(ranked[:MOST_SHOWN])]


def _badness(item: EntryEvidence) -> tuple[int, float]:
    error = abs(item.got - item.expected)
    ratio = error / item.bound if item.bound > 0 else math.inf
    grade = BADNESS[item.word]
    if item.word == "wrong":
        return grade, ratio if math.isfinite(ratio) else math.inf
    if grade:
        return grade, -item.digits_resolvable
    return grade, ratio if math.isfinite(ratio) else 0.0
