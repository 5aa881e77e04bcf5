"""The verdict: is this derivative correct, entry by entry, as far as double precision can tell?

For every entry known to the oracle, with the reference g* (an interval at a kink), u = 2^-53:

    tau = 25 bar + 20 noise + 8 u |g*| + smallest normal number

    wrong      |g - g*| > tau, or NaN, or wrong shape or type
    right      tau < 0.5e-9 |g*|: an error in the ninth digit would have been seen
    verified   tau < |g*|: correct to the digits that tau leaves, fewer than nine
    blind      otherwise: zero would pass too, or nothing is known

A reference by differences whose own bar exceeds it resolves nothing: no number is wrong then, except NaN.

A result is as good as the worst number in it. Files of earlier versions have "inconclusive" for "verified" and "blind".

A backend that declares float32 is judged with u = 2^-24, 2^29 times the noise and 1e-4 instead of 0.5e-9; its sentences
begin with "in float32". A reference by differences has no noise, because its bar contains the roundings of float64;
float32 then allows 2^29 times the bar.

A library's own rounding errors, measured before its result is called wrong, widen tau tenfold at most, except at traps
(`adbench.execution.operators.rounding_spread`).

The noise can be pessimistic. Where it hides a number (blind), the number is right all the same if it agrees with its
proved reference to twelve digits, there and at three neighbouring points, whose references are proved again. A zero
agrees with zero alone.

Tolerances apply to each entry, not to the norm. A true zero has no digits; it counts as right if its tau is below
0.5e-9 of the largest entry.

Of large arguments a sample is compared entry by entry, and all entries in sums with random weights. The verdict gives
the largest error that another entry could have without being seen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.evidence import DOUBLE, EntryEvidence, Word, compare, not_finite, place_of, precision, worst
from adbench.oracle.leaves import LEAST_WEIGHT, direction_weights, weighted_sum
from adbench.oracle.reference import Row

RANDOM_WALK = 9.0
"""Allowed standard deviations of a sum of errors with random signs; the probability beyond is below 2 exp(-81/2)."""

Floats = NDArray[np.float64]
Arrays = Sequence[Floats]
Terms = tuple[Floats, Floats]
"""For an array that sums others: the largest sum of the terms' rounding errors in each entry, and the terms' length."""


@dataclass(frozen=True)
class Hidden:
    """The largest error that could hide in one entry, among entries that only sums compare.

    where       the array of these entries
    entries     their number
    error       absolute; infinite if no sum was compared
    of_largest  as a share of the array's largest entry
    of_median   as a share of the median of its nonzero entries
    """

    where: str
    entries: int
    error: float
    of_largest: float
    of_median: float

    def times(self, factor: float) -> Hidden:
        """This with its errors multiplied by a factor."""
        more = {name: factor * getattr(self, name) for name in ("error", "of_largest", "of_median")}
        return replace(self, **more)

    def __str__(self) -> str:
        if math.isinf(self.error):
            return f"{self.entries} entries of {self.where} were not compared"
        many = f"{self.entries} entries of {self.where} were compared in sums only"
        return f"{many}, where an error of {self.error:.2g} in one could hide ({self.of_largest:.2g} of the largest)"


@dataclass(frozen=True)
class UlpErrors:
    """The errors of the compared numbers, in units in the last place of the type in which they were judged.

    median     over all numbers whose correct value is not zero
    worst      the largest
    explained  the error that rounding explains in the worst number
    """

    median: float
    worst: float
    explained: float

    def __str__(self) -> str:
        worst = f"{self.worst:.2g} ulp, where rounding explains {self.explained:.2g}"
        return f"error: median {self.median:.2g} ulp, worst {worst}"


def ulp_errors(items: Sequence[EntryEvidence]) -> UlpErrors | None:
    """The errors of these numbers, judged in the current precision; None if all are unknown or zero.

    A true zero has no unit: a tiny error of it would be thousands of units.
    """
    known = [item for item in items if 0 < abs(item.expected) < math.inf and item.bound < math.inf]
    errors = [
        (math.inf if math.isnan(item.got) else abs(item.got - item.expected) / unit, item.bound / unit)
        for item in known
        for unit in (precision().ulp(item.expected),)
    ]
    return UlpErrors(median(error for error, _ in errors), *max(errors)) if errors else None


@dataclass(frozen=True)
class Verdict:
    """The word, one sentence for people, and the evidence.

    value: None if no value was given. worst: the entry that decided; None if the structure was wrong or there is no
    entry. checked, right, wrong, inconclusive: numbers of compared entries and directions by result. inconclusive
    counts entries verified to fewer than nine digits and blind ones; `blind` counts the latter. conventions: the
    derivative taken at each kink. method, reason: of the reference. digits: verified in every compared number; None if
    one is wrong. proved: the reference values were proved, not estimated. hidden: the largest error that could go
    unseen; None if every entry was compared. note: the convention by which the result is right, or "". ulp: the
    errors of numbers compared one by one.
    """

    word: Word
    sentence: str
    value: EntryEvidence | None
    worst: EntryEvidence | None
    checked: int
    right: int
    wrong: int
    inconclusive: int
    method: str
    reason: str
    conventions: tuple[EntryEvidence, ...] = ()
    blind: int = 0
    digits: float | None = None
    proved: bool = False
    hidden: Hidden | None = None
    note: str = ""
    ulp: UlpErrors | None = None

    def noted(self, note: str) -> Verdict:
        """The verdict with this note, also in its sentence."""
        return replace(self, sentence=f"{self.sentence}; {note}", note=note)

    @property
    def is_right(self) -> bool:
        """Whether it is correct, to as many digits as can be verified."""
        return self.word in ("right", "verified", "approximate")

    @property
    def whole_digits(self) -> int | None:
        """The number of digits to show for a result that is verified to fewer than nine; else None."""
        return None if self.word != "verified" or self.digits is None else whole_digits(self.digits)


@dataclass(frozen=True)
class ComparedPart:
    """The compared part of a result: one row of the reference, or one number of each output.

    value       the number of a scalar, if any
    entries     single derivatives, or the numbers of several outputs
    along       sums over all of them
    sum_size    the scale of an error in a sum: |g| |v|
    value_size  the scale of an error in the value, if larger than the value
    hiding      for each leaf the largest error of one entry that could hide; 0 if all are compared
    hidden      the same for the arrays of the result, if it is reported here
    """

    value: EntryEvidence | None = None
    entries: Sequence[EntryEvidence] = ()
    along: Sequence[EntryEvidence] = ()
    sum_size: float = 0.0
    value_size: float = 0.0
    hiding: Sequence[float] = ()
    hidden: Sequence[Hidden | None] = ()

    @property
    def evidence(self) -> list[EntryEvidence]:
        """All evidence except the value's."""
        return [*self.entries, *self.along]


def compared(
    arrays: Arrays, row: Row, terms: Sequence[Terms] = (), named: Callable[[str], str] | None = None
) -> ComparedPart:
    """A gradient, one array for each leaf, with the row.

    terms: for each leaf of a gradient that is a sum of gradients. named: maps an entry's place to its name, for a
    gradient that is one of several.
    """
    entries = _entries(arrays, terms, row) + _unsampled(arrays, row)
    finite = all(np.isfinite(array).all() for array in arrays)
    along = _directions(arrays, [rounding for rounding, _ in terms], row) if finite else []
    if named is not None:
        entries = [replace(item, where=named(item.place), index=()) for item in entries]
        along = [replace(item, where=named(item.where)) for item in along]
    # |<e, v>| <= |e| |v|, and |e| is a share of |g|
    longest = math.sqrt(sum(float(np.square(array).sum()) for array in arrays))
    of_direction = math.sqrt(sum(leaf.size * leaf.scale**2 for leaf in row.leaves))
    hiding = _hiding(row, entries, along, is_sum=bool(terms))
    return ComparedPart(None, entries, along, sum_size=longest * of_direction, hiding=hiding)


def unseen(sums: Sequence[EntryEvidence], scale: float = 1.0) -> float:
    """The largest error of one number that all these weighted sums would miss, with their weights times the scale."""
    errors = map(_room, sums)
    return min((error for error in errors if math.isfinite(error)), default=math.inf) / (LEAST_WEIGHT * scale)


def hidden(where: str, error: float, array: Floats, seen: int) -> Hidden | None:
    """The `Hidden` of an array of which `seen` entries were compared one by one; None if all were."""
    if error == 0 or array.size <= seen:
        return None
    sizes = np.abs(array[np.isfinite(array) & (array != 0)])
    median, largest = (float(np.median(sizes)), float(sizes.max())) if sizes.size else (0.0, 0.0)
    of_largest, of_median = (error / size if size else math.inf for size in (largest, median))
    return Hidden(where, array.size - seen, error, of_largest, of_median)


def _room(item: EntryEvidence) -> float:
    """The largest error of one term that does not make this number wrong."""
    return abs(item.got - item.expected) + item.bound


def _hiding(row: Row, entries: Sequence[EntryEvidence], along: Sequence[EntryEvidence], *, is_sum: bool) -> list[float]:
    """By leaf, the largest error that could hide in one entry. A sum also hides errors of its rows."""
    following, largest = iter(entries), []
    for leaf in row.leaves:
        compared = [_room(next(following)) for _ in leaf.entries]
        errors = [0.0 if len(leaf.entries) == leaf.size else unseen(along, leaf.scale)]
        errors += compared if is_sum else []
        worst_error = max(math.inf if math.isnan(error) else error for error in errors)
        largest.append(worst_error / LEAST_WEIGHT if is_sum else worst_error)
    return largest


def length(terms: Floats) -> float:
    """Their Euclidean length, which is about the size of their sum with random signs."""
    return math.sqrt(float(np.square(terms).sum()))


def added_up(errors: Floats) -> Any:
    """The largest plausible sum of errors multiplied by random weights; column by column for a matrix.

    The signs of the weights are independent of the errors, so the sum is a random walk and Hoeffding's inequality
    holds.
    """
    return walked(errors.sum(axis=0), np.square(errors).sum(axis=0))


def walked(total: Any, squares: Any) -> Any:
    """The largest plausible sum of errors with random weights, from their sum and that of their squares."""
    return np.minimum(total, RANDOM_WALK * np.sqrt(squares))


def conclude(comparisons: Sequence[ComparedPart], row: Row, claim: float | None = None) -> Verdict:
    """One verdict on all comparisons, each of which must be within the claim, if any. Method and reason are the
    row's."""
    evidence = deciding = [item for comparison in comparisons for item in comparison.evidence]
    value = next((comparison.value for comparison in comparisons if comparison.value is not None), None)
    words = [item.word for item in evidence]
    unseen_errors = [one for comparison in comparisons for one in comparison.hidden if one is not None]
    largest = max(unseen_errors, key=lambda one: one.of_largest, default=None)
    if claim is None:
        word, sentence = _exactly(value, evidence, row)
        if word == "wrong":
            from adbench.oracle.diagnosis.patterns import pattern  # not at the top: few results are wrong

            mistake = pattern(_in_question(value, comparisons), row.value.lower)
            sentence += f"; it looks like this: {mistake}" if mistake else ""
    elif faults := {k: fault for k, one in enumerate(comparisons) if (fault := _beyond(one, claim))}:
        deciding = [item for k in faults for item in comparisons[k].evidence]
        word, sentence = "wrong", next(iter(faults.values()))
        if len(comparisons) > 1 and "wrong" in words:
            sentence = _wrong(words, worst(deciding))
    else:
        error = _relative_error(comparisons[0])
        word, sentence = "approximate", f"within the claimed relative error of {claim:g} (it is {error:.3g})"
    everything = [*evidence, *([value] if value else [])]
    if everything and row.proved:
        sentence += "; the expected values are proved"
    if word != "wrong" and largest is not None:
        sentence += f"; {largest}"
    return Verdict(
        word=word,
        sentence=sentence,
        value=value,
        worst=worst(deciding),
        checked=len(words),
        right=words.count("right"),
        wrong=words.count("wrong"),
        inconclusive=words.count("verified") + words.count("blind"),
        method=row.method,
        reason=row.reason,
        conventions=tuple(item for item in evidence if item.interval[0] < item.interval[1]),
        blind=words.count("blind"),
        digits=None if word == "wrong" else min((item.digits_resolvable for item in everything), default=None),
        proved=row.proved,
        hidden=largest,
        ulp=ulp_errors([*([value] if value else []), *(one for each in comparisons for one in each.entries)]),
    )


def _in_question(value: EntryEvidence | None, comparisons: Sequence[ComparedPart]) -> list[EntryEvidence]:
    """The numbers that a mistake may explain: a wrong value, or else the derivatives one by one."""
    if value is not None and value.word == "wrong":
        return [value]
    return [item for comparison in comparisons for item in comparison.entries]


def _exactly(value: EntryEvidence | None, evidence: Sequence[EntryEvidence], row: Row) -> tuple[Word, str]:
    """The word and its sentence, by the digits that double precision resolves."""
    words = [item.word for item in evidence]
    if value is not None and value.word == "wrong":
        beside = ", though the gradient is correct" if words and "wrong" not in words else ""
        return "wrong", f"wrong{beside}: {value}"
    if "wrong" in words:
        return "wrong", _wrong(words, worst(evidence))
    everything = [*evidence, *([value] if value else [])]
    least = worst(everything)
    if least is None:
        return "right", "nothing to compare"
    if unknown := sum(math.isnan(item.bound) for item in everything):
        why = f" ({row.reason})" if row.reason else ""
        return "blind", f"blind: the reference is unknown for {unknown} of {len(everything)} numbers{why}"
    hidden_numbers = sum(item.word == least.word for item in everything)
    many = f"{hidden_numbers} of {len(everything)}"
    if least.word == "blind" and precision() is not DOUBLE and 2 * hidden_numbers <= len(everything):
        # In few bits rounding hides some numbers of nearly every correct result.
        return "verified", f"right as far as rounding shows: it hides {many} numbers, among them {least}"
    if least.word == "blind":
        return "blind", f"blind for {many} numbers: rounding hides the answer, and zero would pass too, as in {least}"
    if least.word == "verified":
        digits = digits_in_words(least.digits_resolvable)
        return "verified", f"verified to {digits}: {many} numbers cannot be verified to nine, the least is {least}"
    return "right", f"all {len(everything)} compared numbers are right; the least certain is {least}"


def whole_digits(digits: float) -> int:
    """The number of certain digits, to half a unit of the last: nine if the bound is 0.5e-9 of the number."""
    return max(0, math.floor(digits - math.log10(2)))


def digits_in_words(digits: float) -> str:
    """ "6 digits"."""
    whole = whole_digits(digits)
    return "less than one digit" if whole == 0 else f"{whole} digit{'s' if whole > 1 else ''}"


def _wrong(words: Sequence[Word], worst_of_all: EntryEvidence | None) -> str:
    return f"{words.count('wrong')} of {len(words)} wrong, the worst is {worst_of_all}"


def _beyond(comparison: ComparedPart, claim: float) -> str:
    """The part beyond the claim: the entries by their norm, each sum, the value; "" if none."""
    value = [comparison.value] if comparison.value is not None else []
    for item in (*value, *comparison.evidence):
        if item.word == "wrong" and not math.isfinite(item.got - item.expected):
            return f"beyond any claim: {item}"
    bounds = [item.bound for item in comparison.entries if math.isfinite(item.expected)]
    error, size = _norms(comparison)
    if error > claim * size + math.hypot(*bounds):
        relative, decisive = _relative_error(comparison), worst(comparison.entries)
        return f"the claimed relative error is {claim:g}, the actual one {relative:.3g}; the worst is {decisive}"
    sizes = [(item, comparison.sum_size) for item in comparison.along]
    sizes += [(item, max(abs(item.expected), comparison.value_size)) for item in value]
    for item, size in sizes:
        if abs(item.got - item.expected) > claim * size + item.bound:
            return f"beyond the claimed relative error of {claim:g}: {item}"
    return ""


def _norms(comparison: ComparedPart) -> tuple[float, float]:
    """The norms of the error and of the reference, over the known entries."""
    known = [item for item in comparison.entries if math.isfinite(item.expected)]
    return math.hypot(*(item.got - item.expected for item in known)), math.hypot(*(item.expected for item in known))


def _relative_error(comparison: ComparedPart) -> float:
    error, size = _norms(comparison)
    return error / (size or 1)


def _entries(arrays: Arrays, terms: Sequence[Terms], row: Row) -> list[EntryEvidence]:
    zero_scale = _zero_scale(row)
    return [
        compare(
            leaf.path,
            place_of(entry.index, leaf.shape),
            float(array.flat[entry.index]),
            entry.derivative,
            zero_scale,
            *(float(part.flat[entry.index]) for part in (terms[k] if terms else ())),
        )
        for k, (leaf, array) in enumerate(zip(row.leaves, arrays, strict=True))
        for entry in leaf.entries
    ]


def _unsampled(arrays: Arrays, row: Row) -> list[EntryEvidence]:
    """The first NaN or infinity outside the sample, if the row shows that all derivatives are finite."""
    if not any(math.isfinite(direction.derivative.size) for direction in row.directions):
        return []
    evidence = []
    for leaf, array in zip(row.leaves, arrays, strict=True):
        sampled = {entry.index for entry in leaf.entries}
        outside = (int(index) for index in np.flatnonzero(~np.isfinite(array)) if int(index) not in sampled)
        for index in itertools.islice(outside, 1):
            evidence.append(not_finite(leaf.path, place_of(index, leaf.shape), float(array.flat[index])))
    return evidence


def _directions(arrays: Arrays, allowances: Arrays, row: Row) -> list[EntryEvidence]:
    """<g, v> against the derivative along v, for every direction of the row."""
    if any(known.kind == "kink" for known in row.derivatives):
        # At a kink each entry of a gradient may be any mixture of one-sided derivatives, so sums are meaningless.
        return []
    total, evidence = sum(leaf.size for leaf in row.leaves), []
    numbers = _joined(arrays)
    for direction in row.directions:
        weights = direction_weights(row.seed, direction.number, [leaf.shape for leaf in row.leaves])
        v = _joined([leaf.scale * weight for leaf, weight in zip(row.leaves, weights, strict=True)])
        terms = np.abs(numbers * v)
        errors = precision().rounding * terms + (_joined(allowances) * np.abs(v) if allowances else 0.0)
        rounding = float(added_up(errors))
        where = f"the sum over direction {direction.number} (all {total} entries, weights from seed {row.seed})"
        typical = length(terms)
        got = weighted_sum(numbers, v)
        evidence.append(compare(where, (), got, direction.derivative, math.inf, rounding, typical))
    return evidence


def _joined(arrays: Arrays) -> Floats:
    return np.concatenate([np.ravel(array) for array in arrays]) if arrays else np.zeros(0)


def _zero_scale(row: Row) -> float:
    """The scale for a true zero: the largest known derivative, else the value, else 1."""
    sizes = [entry.derivative.size for leaf in row.leaves for entry in leaf.entries]
    largest = max((size for size in sizes if math.isfinite(size)), default=0.0)
    return largest or (row.value.size if math.isfinite(row.value.size) else 0.0) or 1.0
