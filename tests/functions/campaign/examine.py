"""The check of a row, compared with its truth."""

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from mpmath import mp, mpf

import adbench
from tests.functions.campaign.row import Row
from tests.functions.campaign.truth import WORKING, Between, derivatives

RIGHT = ("right", "verified", "approximate")
PROVED_DIGITS = 12.0  # to which a proved number, rounded to a double, agrees with the truth


@dataclass(frozen=True)
class Outcome:
    """What `adbench.check` says about a row.

    word       of the check, or "refused" with the error in `sentence`
    agree      digits to which the library's derivatives agree with the truth in the worst entry
    expected   the same for the numbers that the check expects
    sure       digits that the check verified
    sampled    only some entries were compared one by one
    """

    word: str
    proved: bool = False
    sentence: str = ""
    agree: float = 0.0
    expected: float = 0.0
    sure: float = 0.0
    sampled: bool = False


@cache
def outcome(row: Row) -> Outcome:
    with np.errstate(all="ignore"):
        try:
            found = adbench.check(row.f, *row.args, **row.options)
        except adbench.UsageError as refusal:
            return Outcome("refused", sentence=str(refusal))
    if row.expected == "elsewhere":  # the truth is known at the given point only
        return Outcome(found.word, found.proved, found.sentence)
    entries = [one for one in found.entries if "sum over direction" not in one.place]
    truth = derivatives(row.truth, row.at)
    sampled = 0 < len(entries) < len(truth)
    if sampled:
        by_place = dict(zip(places(row), truth, strict=True))
        truth = [by_place[one.place] for one in entries]
    if len(entries) != len(truth):
        raise AssertionError(f"{row}: the check compares {len(entries)} numbers, the truth has {len(truth)}: {entries}")
    size = max((abs(one) for one in truth if not isinstance(one, Between)), default=mpf(1)) or mpf(1)
    return Outcome(
        found.word,
        found.proved,
        found.sentence,
        min(digits(one.got, true, size) for one, true in zip(entries, truth, strict=True)),
        min(digits(one.expected, true, size) for one, true in zip(entries, truth, strict=True)),
        found.digits or 0.0,
        sampled,
    )


def places(row: Row) -> list[str]:
    """The names of a gradient's entries, if all arguments are numbers and arrays."""
    named = zip(inspect.signature(row.f).parameters, map(np.shape, row.at), strict=False)
    return [name + (f"{list(index)}" if index else "") for name, shape in named for index in np.ndindex(shape)]


def digits(number: float, truth: Any, size: Any) -> float:
    """Decimal digits to which they agree, at most 17; size: the scale of an error in a true zero."""
    if not np.isfinite(number) or (not isinstance(truth, Between) and mp.isinf(truth)):
        return 17.0 if not isinstance(truth, Between) and number == truth else 0.0
    with mp.workdps(WORKING):
        low, high = (truth.low, truth.high) if isinstance(truth, Between) else (truth, truth)
        error = max(low - mpf(number), mpf(number) - high, mpf(0))
        if error <= abs(high) * mpf(2) ** -53 or error < mpf(2) ** -1074:  # the nearest double
            return 17.0
        scale = max(abs(low), abs(high)) or size
        return float(max(mpf(0), min(mpf(17), -mp.log10(error / scale))))


def fault(row: Row) -> str:
    """ "false ✗", "false ✓", "false proof", "refused" or ""; "expectation" if the row itself is mistaken."""
    found = outcome(row)
    if found.word == "refused":
        return "refused"
    if row.expected == "elsewhere":
        return "false ✓" if found.word in RIGHT else ""
    if row.expected == "either":
        return "false ✓" if found.word in RIGHT and found.agree < found.sure - 1 else ""
    if not (found.sampled and row.expected == "wrong") and (found.agree >= row.digits) != (row.expected == "right"):
        return "expectation"
    if row.expected == "right" and found.word == "wrong":
        return "false ✗"
    if row.expected == "wrong" and found.word in RIGHT and (found.word != "verified" or found.agree < found.sure - 1):
        return "false ✓"
    if (
        found.proved
        and not getattr(row.truth, "is_convention", False)
        and found.expected < min(PROVED_DIGITS, row.digits + 3)
    ):
        return "false proof"
    return ""
