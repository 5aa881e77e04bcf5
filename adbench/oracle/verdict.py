"""The verdict: is this derivative right, entry by entry, as far as double precision can tell?

For every entry known to the oracle, with truth g* (an interval at a kink), u = 2^-53:

    tau = 25 bar + 20 noise + 8 u |g*| + smallest normal number

    wrong          |g - g*| > tau, or NaN, or wrong shape or type
    right          tau < 0.5e-9 |g*|: an error in the ninth digit would have been seen
    inconclusive   else, with the digits that are correct and the digits that could be resolved

The bound belongs to the entry: a large neighbour excuses nothing. A true zero has no digits; it counts as right when
its tau is below 0.5e-9 of the largest entry.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.differences import UNIT_ROUNDOFF
from adbench.oracle.evidence import ROUNDINGS, EntryEvidence, Word, compare, not_finite, place_of, worst
from adbench.oracle.leaves import direction_signs
from adbench.oracle.reference import Row

WORDS: tuple[Word, ...] = ("right", "approximate", "inconclusive", "wrong")
"""From best to worst."""

Arrays = Sequence[NDArray[np.float64]]


@dataclass(frozen=True)
class Verdict:
    """The word, one sentence for people, and the evidence.

    value: None where no value was handed in; worst: the entry that decided, None where the structure was wrong or
    there is no entry. checked, right, wrong, inconclusive: how many entries and directions were compared, and how
    they came out. conventions: the derivative taken at each kink. method, reason: of the reference.
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


@dataclass(frozen=True)
class Comparison:
    """What was compared of a result: with one row of the reference, or one number of each output.

    value       the number of a scalar, where there is one
    entries     the derivatives by themselves, or the numbers of several outputs
    along       sums over all of them
    sum_size    what an error in a sum is a share of: |g| |v|
    value_size  what an error in the value is a share of, where that is larger than the value
    """

    value: EntryEvidence | None = None
    entries: Sequence[EntryEvidence] = ()
    along: Sequence[EntryEvidence] = ()
    sum_size: float = 0.0
    value_size: float = 0.0

    @property
    def evidence(self) -> list[EntryEvidence]:
        """All but the value."""
        return [*self.entries, *self.along]


def compared(arrays: Arrays, row: Row, allowances: Arrays = (), of: str = "") -> Comparison:
    """A gradient, one array for each leaf, with the row.

    allowances: for a gradient that is a sum of other gradients, the error that their roundings may add up to in each
    entry. of: text before the name of every entry, for a gradient that is one of several.
    """
    entries = _entries(arrays, allowances, row) + _unsampled(arrays, row)
    finite = all(np.isfinite(array).all() for array in arrays)
    along = _directions(arrays, allowances, row) if finite else []
    if of:
        entries, along = ([replace(item, where=of + item.where) for item in part] for part in (entries, along))
    # |<e, v>| <= |e| |v|, and |e| is a share of |g|
    longest = math.sqrt(sum(float(np.square(array).sum()) for array in arrays))
    length = math.sqrt(sum(leaf.size * leaf.scale**2 for leaf in row.leaves))
    return Comparison(None, entries, along, sum_size=longest * length)


def conclude(comparisons: Sequence[Comparison], row: Row, claim: float | None = None) -> Verdict:
    """One verdict on all of these; where there is a claim, each must be within it. Method and reason are the row's."""
    evidence = deciding = [item for comparison in comparisons for item in comparison.evidence]
    value = next((comparison.value for comparison in comparisons if comparison.value is not None), None)
    words = [item.word for item in evidence]
    if claim is None:
        word, sentence = _exactly(value, evidence)
    elif faults := {k: fault for k, one in enumerate(comparisons) if (fault := _beyond(one, claim))}:
        deciding = [item for k in faults for item in comparisons[k].evidence]
        word, sentence = "wrong", next(iter(faults.values()))
        if len(comparisons) > 1 and "wrong" in words:
            sentence = _wrong(words, worst(deciding))
    else:
        error = _relative_error(comparisons[0])
        word, sentence = "approximate", f"within the claimed relative error of {claim:g} (it is {error:.3g})"
    return Verdict(
        word=word,
        sentence=sentence,
        value=value,
        worst=worst(deciding),
        checked=len(words),
        right=words.count("right"),
        wrong=words.count("wrong"),
        inconclusive=words.count("inconclusive"),
        method=row.method,
        reason=row.reason,
        conventions=tuple(item for item in evidence if item.interval[0] < item.interval[1]),
    )


def _exactly(value: EntryEvidence | None, evidence: Sequence[EntryEvidence]) -> tuple[Word, str]:
    """The word and its sentence, by what double precision resolves."""
    words = [item.word for item in evidence]
    if value is not None and value.word == "wrong":
        beside = " beside a gradient without fault" if words and "wrong" not in words else ""
        return "wrong", f"wrong{beside}: {value}"
    if "wrong" in words:
        return "wrong", _wrong(words, worst(evidence))
    everything = [*evidence, *([value] if value else [])]
    least, unresolved = worst(everything), [item.word for item in everything].count("inconclusive")
    if unresolved:
        sentence = f"nothing wrong, but {unresolved} of {len(words)} cannot be resolved to nine digits, least {least}"
        return "inconclusive", sentence
    if not everything:
        return "right", "nothing to compare"
    return "right", f"all {len(everything)} compared numbers are right, the least sure is {least}"


def _wrong(words: Sequence[Word], worst_of_all: EntryEvidence | None) -> str:
    return f"{words.count('wrong')} of {len(words)} wrong, the worst is {worst_of_all}"


def _beyond(comparison: Comparison, claim: float) -> str:
    """What is not within the claim: the entries in their norm, each sum, the value; "" where all is."""
    value = [comparison.value] if comparison.value is not None else []
    for item in (*value, *comparison.evidence):
        if item.word == "wrong" and not math.isfinite(item.got - item.expected):
            return f"not within any claim: {item}"
    bounds = [item.bound for item in comparison.entries if math.isfinite(item.expected)]
    error, size = _norms(comparison)
    if error > claim * size + math.hypot(*bounds):
        relative, decisive = _relative_error(comparison), worst(comparison.entries)
        return f"the claim is a relative error of {claim:g}; it is {relative:.3g}, worst {decisive}"
    sizes = [(item, comparison.sum_size) for item in comparison.along]
    sizes += [(item, max(abs(item.expected), comparison.value_size)) for item in value]
    for item, size in sizes:
        if abs(item.got - item.expected) > claim * size + item.bound:
            return f"beyond the claimed relative error of {claim:g}: {item}"
    return ""


def _norms(comparison: Comparison) -> tuple[float, float]:
    """The norms of the error and of the truth, over the entries that are known."""
    known = [item for item in comparison.entries if math.isfinite(item.expected)]
    return math.hypot(*(item.got - item.expected for item in known)), math.hypot(*(item.expected for item in known))


def _relative_error(comparison: Comparison) -> float:
    error, size = _norms(comparison)
    return error / (size or 1)


def _entries(arrays: Arrays, allowances: Arrays, row: Row) -> list[EntryEvidence]:
    zero_scale = _zero_scale(row)
    return [
        compare(
            leaf.path,
            place_of(entry.index, leaf.shape),
            float(array.flat[entry.index]),
            entry.derivative,
            zero_scale,
            float(allowances[k].flat[entry.index]) if allowances else 0.0,
        )
        for k, (leaf, array) in enumerate(zip(row.leaves, arrays, strict=True))
        for entry in leaf.entries
    ]


def _unsampled(arrays: Arrays, row: Row) -> list[EntryEvidence]:
    """The first NaN or infinity outside the sample, where the row shows that all derivatives are finite."""
    if not any(math.isfinite(direction.derivative.size) for direction in row.directions):
        return []
    found = []
    for leaf, array in zip(row.leaves, arrays, strict=True):
        sampled = {entry.index for entry in leaf.entries}
        outside = (int(index) for index in np.flatnonzero(~np.isfinite(array)) if int(index) not in sampled)
        for index in itertools.islice(outside, 1):
            found.append(not_finite(leaf.path, place_of(index, leaf.shape), float(array.flat[index])))
    return found


def _directions(arrays: Arrays, allowances: Arrays, row: Row) -> list[EntryEvidence]:
    """<g, v> against the derivative along v, for every direction of the row."""
    if any(known.kind == "kink" for known in row.derivatives):
        # At a kink a gradient may be any mixture of one-sided derivatives, entry by entry: its sums say nothing.
        return []
    total, found = sum(leaf.size for leaf in row.leaves), []
    for direction in row.directions:
        signs = direction_signs(row.seed, direction.number, [leaf.shape for leaf in row.leaves])
        terms = zip(signs, row.leaves, arrays, strict=True)
        products = np.concatenate([(sign * leaf.scale * array).ravel() for sign, leaf, array in terms])
        # Signs times powers of two make the products exact and fsum rounds once, but each entry of a right
        # gradient is itself rounded: 8 u |g_i v_i| each.
        entrywise = ROUNDINGS * UNIT_ROUNDOFF * float(np.abs(products).sum())
        for leaf, allowance in zip(row.leaves, allowances, strict=False):
            entrywise += leaf.scale * float(allowance.sum())
        where = f"the sum over direction {direction.number} (all {total} entries, signs from seed {row.seed})"
        found.append(compare(where, (), math.fsum(products), direction.derivative, math.inf, entrywise))
    return found


def _zero_scale(row: Row) -> float:
    """The size a true zero is measured against: the largest known derivative, else the value, else 1."""
    sizes = [entry.derivative.size for leaf in row.leaves for entry in leaf.entries]
    largest = max((size for size in sizes if math.isfinite(size)), default=0.0)
    return largest or (row.value.size if math.isfinite(row.value.size) else 0.0) or 1.0
