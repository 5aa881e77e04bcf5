"""Judging a function at every input: the truth, the error in ulp of the type, and the reason for it.

The truth is float64 where the engine's evaluation of the definition and the libraries' own agree far below an ulp. If
they do not, balls decide which of them is right, and if none is, Taylor polynomials that balls prove are the truth.
Balls prove a sample of the others, and the worst input of each row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from adbench.findings.conform.judgement import FAILS
from adbench.findings.conform.places import Floats
from adbench.findings.every_input.sixteen_bits import OneArgument, functions
from adbench.oracle.enclosures.taylor import Pieces
from adbench.oracle.evidence import Precision
from adbench.oracle.leaves import Point
from adbench.oracle.series.ball import Insufficient, Special
from adbench.oracle.series.ball import ball as ball_of
from adbench.oracle.series.evaluation import Curve, Evaluations, NotTold, one_entry, one_number
from adbench.oracle.series.namespace import TooSlow, namespace_of
from adbench.oracle.series.number import Real

Reason = Literal["wrong rule", "saved value", "flushed", "out of range", "rounding"]
REASONS: Mapping[Reason, str] = {
    "wrong rule": "the formula is wrong: float64 is wrong in the same way",
    "saved value": "lost by the value that was saved for the backward pass, which was rounded to the type",
    "flushed": "an input or a result below the normal range was taken for zero",
    "out of range": "a number on the way left the range of the type",
    "rounding": "digits were lost to rounding on the way",
}
ORDERS = ("value", "gradient")

LIMIT = 4.0
"""Errors up to this many ulp are no fault: results are rounded, and libraries' functions are a few ulp off."""
AGREED = 1 / 16
"""Numbers in float64 agree if they differ by less, in ulp."""
PROOFS, SAMPLE, MOST_CORRECTIONS = 24, 4, 16
PROOF_SECONDS, ENCLOSURE_SECONDS = 1.0, 2.0

Interval = tuple[float, float]


def proved(function: OneArgument, x: float) -> dict[str, Interval]:
    """The value and the gradient as intervals that balls prove; at a jump or a kink between those of both sides.

    Without the unknown.
    """
    operation, point = function.as_operation(), Point((x,), (0,), ("x",))
    there = Evaluations(operation.definition, point, time.thread_time() + PROOF_SECONDS, one_number)
    curve = Curve.straight(one_entry(point, 0, 0))
    try:
        with np.errstate(all="ignore"):
            first = there.along(curve)
            both = [first, there.along(curve.mirrored)] if first.edged else [first]
        slopes = [_interval(one.coefficients[0]) for one in both]
        if len(slopes) == 2 and slopes[1] is not None:
            slopes[1] = -slopes[1][1], -slopes[1][0]
        sides = {"value": [_interval(one.starts[0]) for one in both], "gradient": slopes}
    except (*FAILS, Insufficient, NotTold, TooSlow):
        return {}
    ends = {order: [end for side in two if side for end in side] for order, two in sides.items() if all(two)}
    known = {order: (min(some), max(some)) for order, some in ends.items()}
    return {order: one for order, one in known.items() if math.isfinite(one[0] + one[1])}


def _interval(number: Any) -> Interval | None:
    if number is None or isinstance(number, float | Special):  # undefined, unknown or infinite
        return None
    ball = ball_of(number)
    middle, radius = float(ball.mid()), float(ball.rad())
    return middle - radius, middle + radius


@dataclass
class InputTruth:
    """The truth at every input.

    lower, upper   order -> its bounds; NaN: unknown, undefined, or outside of the domain
    contested      order -> the number of inputs where float64 evaluations differ
    proofs         the number of inputs that balls have proved
    """

    function: OneArgument
    x: Floats
    lower: dict[str, Floats]
    upper: dict[str, Floats]
    contested: dict[str, int]
    proofs: dict[int, dict[str, Interval]]

    def prove(self, k: int) -> dict[str, Interval]:
        """Balls at input k; they replace what float64 says."""
        if k not in self.proofs:
            self.proofs[k] = proved(self.function, float(self.x[k]))
            for order, (lower, upper) in self.proofs[k].items():
                self.lower[order][k], self.upper[order][k] = lower, upper
        return self.proofs[k]


def truth_of(function: OneArgument, form: Precision, x: Floats, candidates: list[Mapping[str, Floats]]) -> InputTruth:
    """The truth from float64 evaluations, the engine's first, and balls where they differ."""
    inside = (x > function.domain.lower) & (x < function.domain.upper)
    lower, upper = ({order: np.full(x.shape, math.nan) for order in ORDERS} for _ in range(2))
    truth = InputTruth(function, x, lower, upper, {}, {})
    for order in ORDERS:
        parts = [one[f"{order}64"] for one in candidates if f"{order}64" in one]
        if not parts:
            parts = [np.full(x.shape, math.nan)]
        with np.errstate(all="ignore"):
            every = np.stack(parts)
            close = np.abs(every - every[0]) <= AGREED * form.ulps(every[0])
            same = (close & np.isfinite(every)).all(axis=0) & (len(parts) > 1)
            infinite = (every == every[0]).all(axis=0) & np.isinf(every[0])
        known = np.where(same & inside, every[0], math.nan)
        truth.lower[order][:] = truth.upper[order][:] = known
        for k, one in truth.proofs.items():
            if order in one:
                truth.lower[order][k], truth.upper[order][k] = one[order]
        contested = np.flatnonzero(inside & ~same & ~infinite)
        truth.contested[order] = len(contested)
        _settle(truth, form, order, every, contested)
        _enclose(truth, form, order, contested)
        for k in _spread_over(np.flatnonzero(same & inside), SAMPLE):
            before = known[k]
            if order in truth.prove(k) and _miss(truth, form, order, k, before):
                contested = np.flatnonzero(same & inside)  # they agree, and all are wrong: only proofs count
                truth.lower[order][contested] = truth.upper[order][contested] = math.nan
                truth.proofs.clear()
                _settle(truth, form, order, every[:1], contested)
                _enclose(truth, form, order, contested)
                break
    return truth


def _settle(truth: InputTruth, form: Precision, order: str, every: Floats, contested: Any) -> None:
    """Where evaluations differ, take one that is right at the nearest proved inputs on both sides; else none."""
    sample = [k for k in _spread_over(contested, PROOFS) if order in truth.prove(k)]
    if not sample:
        return
    right = np.array([[not _miss(truth, form, order, k, one[k]) for one in every] for k in sample])
    after = np.searchsorted(sample, contested)
    sides = right[np.clip(after - 1, 0, len(sample) - 1)] & right[np.clip(after, 0, len(sample) - 1)]
    for j, k in enumerate(contested):
        if k not in truth.proofs and sides[j].any():
            truth.lower[order][k] = truth.upper[order][k] = every[int(np.argmax(sides[j])), k]


def _enclose(truth: InputTruth, form: Precision, order: str, contested: Any) -> None:
    """Where no evaluation in float64 is right, as x - tanh x near 0, the truth is a proved Taylor polynomial."""
    left = contested[np.isnan(truth.lower[order][contested])]
    if not len(left):
        return
    namespace_of(Real).deadline = time.thread_time() + ENCLOSURE_SECONDS
    try:
        with np.errstate(all="ignore"):
            x = truth.x[left]
            pieces = Pieces.of(_on_series(truth.function.name), (math.nan, math.nan), x, np.zeros(x.shape))
            middle, radius = pieces.value() if order == "value" else pieces.slope()
            is_close = radius <= AGREED * form.ulps(middle)
    except (*FAILS, Insufficient, NotTold, TooSlow):
        return
    left, middle, radius = left[is_close], middle[is_close], radius[is_close]
    truth.lower[order][left], truth.upper[order][left] = middle - radius, middle + radius


@cache
def _on_series(name: str) -> Callable[[Any], Any]:
    """The definition of a function on one `Real`: the same object each time, whose cells are kept."""
    definition, xp = functions()[name].as_operation().definition, namespace_of(Real)
    return lambda x: definition(xp, x)


def _spread_over(indices: Any, count: int) -> list[int]:
    return (
        sorted({int(indices[k]) for k in np.linspace(0, len(indices) - 1, count).astype(int)}) if len(indices) else []
    )


def _miss(truth: InputTruth, form: Precision, order: str, k: int, number: float) -> bool:
    lower, upper = truth.proofs[k][order]
    room = AGREED * form.ulp(lower)
    return not lower - room <= number <= upper + room


@dataclass(frozen=True)
class InputFault:
    """A function whose results in a library are wrong at some inputs: one row of the table.

    ulp, x     the worst error and its input; got: the result there, expected: the truth, proved by balls
    reason     of the worst input; reasons: the number of inputs for each
    over_1, over_100, not_finite   the numbers of inputs with such errors; judged: of all inputs whose truth is known
    curve      the largest error in each of equal parts of the inputs, ascending; -1: nothing is judged; inf as 1e9
    """

    function: str
    library: str
    type: str
    order: str
    ulp: float
    x: float
    got: float
    expected: float
    reason: Reason
    reasons: dict[str, int]
    over_1: int
    over_100: int
    not_finite: int
    judged: int
    curve: list[float]
    thread: str = ""
    program: str = ""


@dataclass(frozen=True)
class InputCurve:
    """A function's results in a library without a fault, by a curve like that of a fault."""

    function: str
    library: str
    type: str
    order: str
    curve: list[float]


PARTS = 160


def errors_in_ulp(form: Precision, got: Floats, lower: Floats, upper: Floats) -> Floats:
    """The distance to the truth in ulp of the type; beyond its largest number, all are right. NaN: no truth."""
    beyond = form.largest + form.ulp(form.largest)
    with np.errstate(all="ignore"):
        lower, upper = np.clip(lower, -beyond, beyond), np.clip(upper, -beyond, beyond)
        held = np.where((got > form.largest) & (upper >= form.largest), beyond, got)
        held = np.where((got < -form.largest) & (lower <= -form.largest), -beyond, held)
        off = np.maximum(np.maximum(lower - held, held - upper), 0.0) / form.ulps(np.where(held > upper, upper, lower))
        off = np.where(np.isfinite(held), off, math.inf)
    return np.asarray(np.where(np.isnan(lower), math.nan, off))


def fault_of(
    truth: InputTruth,
    form: Precision,
    library: str,
    order: str,
    answer: Mapping[str, Floats],
    model: Mapping[str, Floats],
) -> InputFault | None:
    """The row of a library's results, or None if all are right. ``model``: its float64 results, if it has any."""
    got = answer[order]
    worst = _worst(truth, form, order, got)
    if worst is None:
        return None
    errors = errors_in_ulp(form, got, truth.lower[order], truth.upper[order])
    reasons = reasons_of(truth, form, order, got, errors, model)
    count = {reason: int((reasons == reason).sum()) for reason in REASONS if (reasons == reason).any()}
    known = errors[~np.isnan(errors)]
    lower = float(truth.lower[order][worst])
    return InputFault(
        truth.function.name, library, form.name, order, float(errors[worst]), float(truth.x[worst]), float(got[worst]),
        lower, str(reasons[worst]), count, int((known > 1).sum()), int((known > 100).sum()),  # type: ignore[arg-type]
        int(np.isinf(known).sum()), len(known), curve_of(errors),
    )  # fmt: skip


def _worst(truth: InputTruth, form: Precision, order: str, got: Floats) -> int | None:
    """The input with the largest error that balls confirm; None: no error beyond the limit is confirmed.

    Where balls say nothing, or another number, the search goes on; where nothing, at some distance.
    """
    searched = np.ones(got.shape, dtype=bool)
    for _ in range(MOST_CORRECTIONS):
        errors = np.where(searched, errors_in_ulp(form, got, truth.lower[order], truth.upper[order]), math.nan)
        bad = np.flatnonzero(errors > LIMIT)
        if not len(bad):
            return None
        worst = int(bad[np.argmax(errors[bad])])
        if order in truth.prove(worst):
            after = errors_in_ulp(form, got, truth.lower[order], truth.upper[order])[worst]
            if after > LIMIT and after >= 0.49 * errors[worst]:  # an ulp doubles at a power of two
                return worst
        else:
            near = len(bad) // MOST_CORRECTIONS
            searched[max(0, worst - near) : worst + near + 1] = False
    return None


def curve_of(errors: Floats) -> list[float]:
    """The largest error in each of equal parts, to three digits; see `InputFault`."""
    return [_largest(part) for part in np.array_split(errors, PARTS)]


def _largest(part: Floats) -> float:
    known = part[~np.isnan(part)]
    return -1.0 if not len(known) else float(f"{min(known.max(), 1e9):.3g}")


def reasons_of(
    truth: InputTruth, form: Precision, order: str, got: Floats, errors: Floats, model: Mapping[str, Floats]
) -> Any:
    """The reason for each error of more than the limit, "" elsewhere.

    float64   where the library's float64 is wrong too, the rule is: unless the same kind of result (0, infinite, other)
              begins where float64 is right, as 1 - tanh² does, which float64 loses a little later
    saved     float64 with rounded saved values gives the same result
    """
    lower, upper, x = truth.lower[order], truth.upper[order], truth.x
    nothing = np.full(x.shape, math.nan)
    own, kept = model.get(f"{order}64", lower), model.get("kept64", nothing) if order == "gradient" else nothing
    with np.errstate(all="ignore"):
        bad = errors > LIMIT
        double_off = ~(errors_in_ulp(form, own, lower, upper) <= 1.0)
        near_kept = (np.abs(got - kept) <= LIMIT * form.ulps(kept)) | ((got == 0) & (np.abs(kept) < form.smallest))
        near_kept |= ~np.isfinite(got) & ~np.isfinite(kept) & ~np.isnan(nothing if order == "value" else got * 0 + 1)
        explained = near_kept & (double_off | ~(errors_in_ulp(form, kept, lower, upper) <= 1.0))
        zero = np.flatnonzero(x == 0)
        at_zero = own[zero[0]] if len(zero) else math.nan
        near_zero = (np.abs(got - at_zero) <= LIMIT * form.ulp(at_zero)) | (~np.isfinite(got) & ~np.isfinite(at_zero))
        small = (np.maximum(np.abs(lower), np.abs(upper)) < form.smallest) & (np.abs(got) <= form.smallest)
        flushed = small | ((np.abs(x) < form.smallest) & near_zero)
        square = x * x
        far = (square > form.largest) | (square < form.smallest)
        ranged = ~np.isfinite(got) | ((got == 0) & far)
        explained &= ~(far & ranged & (kept == got))  # jax saves slopes, which have left the range before
    reasons = np.select(
        [~bad, flushed, explained & ~double_off, ranged, np.ones_like(bad)],
        ["", "flushed", "saved value", "out of range", "rounding"],
        "",
    ).astype(object)
    kinds = np.where(~np.isfinite(got), 2, np.where(got == 0, 1, 0))
    for kind in range(3):
        unsure = bad & double_off & (kinds == kind) & ~flushed
        certain = reasons[bad & ~double_off & (kinds == kind) & ~flushed]
        names, counts = np.unique(certain.astype(str), return_counts=True)
        reasons[unsure] = names[np.argmax(counts)] if len(names) else "wrong rule"
    return reasons
