"""The verdict: is this gradient right, entry by entry, as far as double precision can tell?

For every entry known to the oracle, with truth g* (an interval at a kink), u = 2^-53:

    tau = 25 bar + 20 noise + 8 u |g*| + smallest normal number

    wrong          |g - g*| > tau, or NaN, or wrong shape or type
    right          tau < 0.5e-9 |g*|: an error in the ninth digit would have been seen
    inconclusive   else, with the digits that are correct and the digits that could be resolved

The bound belongs to the entry: a large neighbour excuses nothing. A true zero has no digits; it counts as right when
its tau is below 0.5e-9 of the largest entry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.differences import UNIT_ROUNDOFF
from adbench.oracle.evidence import MOST_DIGITS, ROUNDINGS, EntryEvidence, Word, compare, worst
from adbench.oracle.leaves import direction_signs
from adbench.oracle.reference import Reference
from adbench.oracle.structure import Misshapen, gradient_arrays, single_number

WORDS: tuple[Word, ...] = ("right", "approximate", "inconclusive", "wrong")
"""From best to worst."""


@dataclass(frozen=True)
class Verdict:
    """The word, one sentence for people, and the evidence.

    value: None where no value was handed in; worst: the entry that decided, None where the structure was wrong or
    there is no entry. checked, right, wrong, inconclusive: how many entries and directions were compared, and how
    they came out. conventions: what was taken at each kink. method, reason: of the reference.
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


def judge(
    value: Any,
    gradient: Any,
    reference: Reference,
    *,
    claimed_relative_error: float | None = None,
    allowances: Sequence[NDArray[np.float64]] | None = None,
    of: str = "",
    value_from: float = 0.0,
) -> Verdict:
    """Compares a value and a gradient with what is known about them.

    gradient: a tuple with one part per differentiated argument, each nested and shaped like its argument, leaves
    anything that np.asarray turns into float64. value: one number, or None where the backend gave none.
    claimed_relative_error: for a backend that says it is approximate: within the claim, in the norm over what was
    compared, the word is "approximate". allowances: for a gradient that was itself summed up from right entries, what
    their roundings may make of each of its own; one array for each leaf of the reference. of: what stands before the
    name of every entry, for a gradient that is one of several. value_from: the size of what the value is made from,
    where that is larger than the value: a claim is about it, as of a gradient's product with a direction.
    """
    try:
        got = None if value is None else single_number(value)
        arrays = gradient_arrays(gradient, reference)
    except Misshapen as error:
        return misshapen(error, reference)
    with np.errstate(all="ignore"):  # a gradient of 1e300s is somebody's wrong answer, not our warning
        evidence = _entries(arrays, allowances, reference) + _unsampled(arrays, reference) + _zeros(arrays, reference)
        finite = all(np.isfinite(array).all() for array in arrays)
        along = _directions(arrays, allowances, reference) if finite else []
        if of:
            evidence, along = ([replace(item, where=of + item.where) for item in part] for part in (evidence, along))
        of_value = None if got is None else compare("the value", (), got, reference.value, 1.0)
        if claimed_relative_error is not None:
            return _approximate(of_value, evidence, along, arrays, reference, claimed_relative_error, value_from)
        return _exact(of_value, evidence + along, reference)


def misshapen(error: Misshapen, reference: Reference) -> Verdict:
    """The verdict on what cannot be compared."""
    return _verdict("wrong", str(error), None, [], reference)


def conclude(evidence: Sequence[EntryEvidence], reference: Reference, claim: float | None = None) -> Verdict:
    """The verdict on these compared numbers; within a claim, where there is one, in their norm."""
    if claim is None:
        return _exact(None, list(evidence), reference)
    return _approximate(None, list(evidence), [], [], reference, claim)


def merged(verdicts: Sequence[Verdict], reference: Reference) -> Verdict:
    """One verdict on several parts of one result: the worst word, everything counted, the entry that decides."""
    word: Word = max((verdict.word for verdict in verdicts), key=WORDS.index, default="right")
    deciding = [verdict for verdict in verdicts if verdict.word == word]
    checked, right, wrong, unresolved = (
        sum(getattr(verdict, name) for verdict in verdicts) for name in ("checked", "right", "wrong", "inconclusive")
    )
    decisive = worst([verdict.worst for verdict in deciding if verdict.worst is not None])
    sentence = deciding[0].sentence if deciding else "nothing to compare"
    if word == "wrong" and wrong and decisive is not None:
        sentence = f"{wrong} of {checked} wrong, the worst is {decisive}"
    elif word == "inconclusive":
        sentence = f"nothing wrong, but {unresolved} of {checked} cannot be resolved to nine digits, least {decisive}"
    elif word == "right" and decisive is not None:
        sentence = f"all {checked} compared numbers are right, the least sure is {decisive}"
    conventions = tuple(item for verdict in verdicts for item in verdict.conventions)
    return Verdict(
        word=word,
        sentence=sentence,
        value=None,
        worst=decisive,
        checked=checked,
        right=right,
        wrong=wrong,
        inconclusive=unresolved,
        method=reference.method,
        reason=reference.reason,
        conventions=conventions,
    )


def _entries(
    arrays: Sequence[NDArray[np.float64]], allowances: Sequence[NDArray[np.float64]] | None, reference: Reference
) -> list[EntryEvidence]:
    zero_scale = _zero_scale(reference)
    return [
        compare(
            leaf.path,
            tuple(map(int, np.unravel_index(entry.index, leaf.shape))) if leaf.shape else (),
            float(array.flat[entry.index]),
            entry.derivative,
            zero_scale,
            float(allowances[k].flat[entry.index]) if allowances else 0.0,
        )
        for k, (leaf, array) in enumerate(zip(reference.leaves, arrays, strict=True))
        for entry in leaf.entries
    ]


def _unsampled(arrays: Sequence[NDArray[np.float64]], reference: Reference) -> list[EntryEvidence]:
    """The first NaN or infinity outside the sample, where the reference shows that all derivatives are finite."""
    finite = [d for d in reference.directions if math.isfinite(d.derivative.size)]
    if not finite:
        return []
    found = []
    for leaf, array in zip(reference.leaves, arrays, strict=True):
        sampled = {entry.index for entry in leaf.entries}
        for index in np.flatnonzero(~np.isfinite(array)):
            if int(index) not in sampled:
                place = tuple(map(int, np.unravel_index(int(index), leaf.shape)))
                got = float(array.flat[index])
                found.append(
                    EntryEvidence(leaf.path, place, got, math.nan, (-math.inf, math.inf), 0.0, "wrong", 0.0, 0.0)
                )
                break
    return found


def _zeros(arrays: Sequence[NDArray[np.float64]], reference: Reference) -> list[EntryEvidence]:
    """Entries declared to be zero for structural reasons must be exactly that; the first that is not."""
    found = []
    for leaf, array in zip(reference.leaves, arrays, strict=True):
        declared = np.array(leaf.zeros, dtype=np.intp)
        for index in declared[array.ravel()[declared] != 0][:1]:
            place = tuple(map(int, np.unravel_index(int(index), leaf.shape))) if leaf.shape else ()
            got = float(array.flat[index])
            found.append(EntryEvidence(leaf.path, place, got, 0.0, (0.0, 0.0), 0.0, "wrong", 0.0, MOST_DIGITS))
    return found


def _directions(
    arrays: Sequence[NDArray[np.float64]], allowances: Sequence[NDArray[np.float64]] | None, reference: Reference
) -> list[EntryEvidence]:
    """<g, v> against the derivative along v, for every direction of the reference."""
    total = sum(leaf.size for leaf in reference.leaves)
    if _has_kink(reference):
        # At a kink a gradient may be any mixture of one-sided derivatives, entry by entry: its sums say nothing.
        return []
    found = []
    for direction in reference.directions:
        signs = direction_signs(reference.seed, direction.number, [leaf.shape for leaf in reference.leaves])
        products = np.concatenate(
            [
                (sign * leaf.scale * array).ravel()
                for sign, leaf, array in zip(signs, reference.leaves, arrays, strict=True)
            ]
        )
        # Signs times powers of two make the products exact and fsum rounds once, but each entry of a right
        # gradient is itself rounded: 8 u |g_i v_i| each.
        entrywise = ROUNDINGS * UNIT_ROUNDOFF * float(np.abs(products).sum())
        for leaf, allowance in zip(reference.leaves, allowances or (), strict=bool(allowances)):
            entrywise += leaf.scale * float(allowance.sum())
        where = f"the sum over direction {direction.number} (all {total} entries, signs from seed {reference.seed})"
        found.append(compare(where, (), math.fsum(products), direction.derivative, math.inf, entrywise))
    return found


def _has_kink(reference: Reference) -> bool:
    known = [entry.derivative for leaf in reference.leaves for entry in leaf.entries]
    return any(one.kind == "kink" for one in [*known, *(d.derivative for d in reference.directions)])


def _zero_scale(reference: Reference) -> float:
    """The size a true zero is measured against: the largest known derivative, else the value, else 1."""
    sizes = [entry.derivative.size for leaf in reference.leaves for entry in leaf.entries]
    largest = max((size for size in sizes if math.isfinite(size)), default=0.0)
    return largest or (reference.value.size if math.isfinite(reference.value.size) else 0.0) or 1.0


def _exact(value: EntryEvidence | None, evidence: list[EntryEvidence], reference: Reference) -> Verdict:
    words = [item.word for item in evidence]
    if value is not None and value.word == "wrong":
        beside = " beside a gradient without fault" if words and "wrong" not in words else ""
        return _verdict("wrong", f"wrong{beside}: {value}", value, evidence, reference)
    if "wrong" in words:
        wrong = words.count("wrong")
        sentence = f"{wrong} of {len(words)} wrong, the worst is {worst(evidence)}"
        return _verdict("wrong", sentence, value, evidence, reference)
    unresolved = words.count("inconclusive") + (value is not None and value.word == "inconclusive")
    if unresolved:
        least = worst([*evidence, *([value] if value else [])])
        sentence = f"nothing wrong, but {unresolved} of {len(words)} cannot be resolved to nine digits, least {least}"
        return _verdict("inconclusive", sentence, value, evidence, reference)
    compared = [*evidence, *([value] if value else [])]
    sentence = f"all {len(compared)} compared numbers are right, the least sure is {worst(compared)}"
    return _verdict("right", sentence if compared else "nothing to compare", value, evidence, reference)


def _approximate(
    value: EntryEvidence | None,
    entries: list[EntryEvidence],
    along: list[EntryEvidence],
    arrays: Sequence[NDArray[np.float64]],
    reference: Reference,
    claim: float,
    value_from: float = 0.0,
) -> Verdict:
    """Within the claim in the norm over the compared entries, along every direction, and in the value."""
    evidence = entries + along
    known = [item for item in entries if math.isfinite(item.expected)]
    unfit = [
        item
        for item in [*([value] if value else []), *evidence]
        if item.word == "wrong" and not math.isfinite(item.got - item.expected)
    ]
    if unfit:
        return _verdict("wrong", f"not within any claim: {unfit[0]}", value, evidence, reference)
    error = math.hypot(*(item.got - item.expected for item in known))
    size = math.hypot(*(item.expected for item in known))
    allowed = claim * size + math.hypot(*(item.bound for item in known))
    if error > allowed:
        sentence = (
            f"the claim is a relative error of {claim:g}; it is {error / (size or 1):.3g}, worst {worst(entries)}"
        )
        return _verdict("wrong", sentence, value, evidence, reference)
    # |<e, v>| <= |e| |v| and |e| <= claim |g|
    longest = math.sqrt(sum(float(np.square(array).sum()) for array in arrays))
    length = math.sqrt(sum(leaf.size * leaf.scale**2 for leaf in reference.leaves))
    allowances = [(item, claim * longest * length + item.bound) for item in along]
    if value is not None:
        allowances.append((value, claim * max(abs(value.expected), value_from) + value.bound))
    for item, allowance in allowances:
        if abs(item.got - item.expected) > allowance:
            sentence = f"beyond the claimed relative error of {claim:g}: {item}"
            return _verdict("wrong", sentence, value, evidence, reference)
    sentence = f"within the claimed relative error of {claim:g} (it is {error / (size or 1):.3g})"
    return _verdict("approximate", sentence, value, evidence, reference)


def _verdict(
    word: Word,
    sentence: str,
    value: EntryEvidence | None,
    evidence: list[EntryEvidence],
    reference: Reference,
) -> Verdict:
    words = [item.word for item in evidence]
    return Verdict(
        word=word,
        sentence=sentence,
        value=value,
        worst=worst(evidence),
        checked=len(words),
        right=words.count("right"),
        wrong=words.count("wrong"),
        inconclusive=words.count("inconclusive"),
        method=reference.method,
        reason=reference.reason,
        conventions=tuple(item for item in evidence if item.interval[0] < item.interval[1]),
    )
