"""The truth of a definition with many numbers: enclosures of all of them, or else float64 by its library.

Differences of its values along random directions confirm a gradient that is not enclosed. What rounding explains is
measured: the errors of the same library with the definition in the kernel's precision, at inputs a rounding apart, each
against float64; or those of the definition's operations, each rounded at random, if it is written for another library.
Every entry is compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.execution.precision.called_kernel import CalledKernel, Numbers
from adbench.execution.precision.enclosed import Enclosed, rounded
from adbench.execution.precision.given import precision_of
from adbench.functions.derivative_table import CheckedMode
from adbench.functions.user_function import UserFunction, told
from adbench.model.errors import Unsupported, UsageError, contained
from adbench.oracle.enclosures import enclosed_row
from adbench.oracle.evidence import EntryEvidence, Precision, compare, judging_in, place_of, worst
from adbench.oracle.reference import UNIT_ROUNDOFF, Known
from adbench.oracle.verdict import Verdict

Floats = NDArray[np.float64]
DRAWS = 6
AGREEMENT = 1e-6
"""The relative distance of the gradient from differences, along random directions."""

SHOWN = 64
METHOD = "the definition's gradient in float64 by its library"
CONFIRMED = "differences of the definition's values confirm it along two directions"


@dataclass(frozen=True)
class Measured:
    """The value and the gradient in float64, and the standard deviation of the library's errors.

    names    of the active leaves
    radii    of the true numbers around `truth`
    proof    which numbers are proved how; "" if none is
    """

    names: tuple[str, ...]
    truth: Numbers
    radii: Numbers
    spread: Numbers
    precision: Precision
    reason: str
    proof: str = ""

    @staticmethod
    def of(
        f: UserFunction, definition: CalledKernel | None, leaves: Sequence[Any], weights: Any, seed: int, reason: str
    ) -> Measured:
        """Compute and prove, or confirm, the truth, and measure the errors; reason: why series do not prove it.

        f            the definition in float64
        definition   in the kernel's type; None if its library is not the kernel's

        Raises UsageError if the definition fails in these types, or if its values contradict its gradient; Unsupported
        if another library's definition is not enclosed.
        """
        names, precision = f.arguments.active, f.precision
        double = definition and definition.in_float64
        shifts = dict[int, bool]()
        try:
            bounds = Enclosed.of(f, leaves, weights)
            shifts = bounds.shifts
            (truth, radii), proof = bounds.tightest, bounds.told(names)
        except Unsupported as refusal:
            if double is None:
                raise
            truth, proof = double.run(leaves, weights).numbers, ""
            radii = tuple(np.broadcast_to(0.0, part.shape) for part in truth)
            _confirm(double, truth, leaves, weights, seed)
            reason = f"{reason}; {refusal}"
        rng, squares = np.random.default_rng([seed, 0x4D]), [np.zeros_like(part) for part in truth]
        draws = DRAWS if definition else precision.draws
        for draw in range(draws):
            exact, numbers = truth, truth
            if definition is None or double is None:
                numbers = rounded(f, leaves, weights, [seed, draw], shifts)
            else:
                there = leaves if draw == 0 else _nearby(leaves, definition.arguments.given, rng)
                exact = truth if draw == 0 else double.run(there, weights).numbers
                try:
                    with contained():
                        numbers = definition.run(there, weights).numbers
                except Exception as error:
                    raise UsageError(f"the definition raises {told(error)} in {precision.name}") from error
            for total, part, known in zip(squares, numbers, exact, strict=True):
                with np.errstate(all="ignore"):
                    apart = np.where(part == known, 0.0, np.abs(part - known))
                total += np.square(np.where(np.isfinite(apart), apart, np.inf))
        spread = tuple(np.sqrt(total / draws) for total in squares)
        if definition is None:
            spread = tuple(map(_at_least_of_row, spread))
        return Measured(names, truth, radii, spread, precision, reason, proof)

    def row(self, mode: str, where: str, got: Numbers, beside: Numbers | None) -> CheckedMode:
        """The row of the value or of the gradient, with the numbers of the definition in the kernel's type."""
        names, which = (["the value"], slice(0, 1)) if mode == "value" else (self.names, slice(1, None))
        columns = zip(names, got[which], self.truth[which], self.radii[which], self.spread[which], strict=True)
        parts = list(starmap(partial(all_entries, by=self.precision), columns))
        verdict, entries = _concluded(parts, self.precision, f"{self.reason}; {CONFIRMED}", is_proved=bool(self.proof))
        others = {} if beside is None else dict(zip(names, map(np.asarray, beside[which]), strict=True))
        rivals = {entry.place: float(others[entry.where][entry.index]) for entry in entries if others}
        return CheckedMode(mode, where, verdict, entries, "native", more=verdict.checked - len(entries), beside=rivals)


Entries = tuple[Counter[str], list[EntryEvidence]]
"""Of the compared entries of an array: the number of each word, and the worst."""


def all_entries(name: str, got: Floats, truth: Floats, radius: Floats, spread: Floats, by: Precision) -> Entries:
    """Compare every entry of an array with its truth ± radius.

    spread: the standard deviation of errors that rounding explains

    The spread of an entry is at least a quarter of the array's, relative to the entries: six errors may all be small.
    """
    sizes = np.abs(truth)
    with np.errstate(all="ignore"):
        relative = spread / sizes
        typical = float(np.median(relative[np.isfinite(relative)])) if np.isfinite(relative).any() else 0.0
        sigma = np.maximum(spread, typical * sizes / 4)
        bound = by.sigmas * sigma + by.rounding * sizes + by.floor + radius
        error = np.abs(got - truth)
        is_wrong = ~(error <= bound) & np.isfinite(truth)
        is_right = ~is_wrong & (bound < by.resolved * sizes)
        is_blind = ~is_wrong & ~(bound < sizes)
        excess = np.where(np.isfinite(error / bound), error / bound, np.inf)
    counts = Counter(wrong=int(is_wrong.sum()), right=int(is_right.sum()), blind=int(is_blind.sum()))
    counts["verified"] = truth.size - counts.total()
    order = np.argsort(excess.ravel(), kind="stable")[::-1][:SHOWN]
    scale = float(sizes.max(initial=0.0)) or 1.0
    shown = list[EntryEvidence]()
    for index in order:
        exact, place = float(truth.flat[index]), place_of(int(index), truth.shape)
        known = Known(exact, exact, noise=float(sigma.flat[index]) * UNIT_ROUNDOFF / by.unit)
        with judging_in(by):
            shown.append(compare(name, place, float(got.flat[index]), known, scale, extra=float(radius.flat[index])))
    return counts, shown


def _concluded(
    parts: Sequence[Entries], by: Precision, reason: str, *, is_proved: bool
) -> tuple[Verdict, tuple[EntryEvidence, ...]]:
    counts = sum((of_part for of_part, _ in parts), Counter[str]())
    entries = tuple(entry for _, shown in parts for entry in shown)
    total, least = counts.total(), worst(entries)
    word: Any = "right"
    if counts["wrong"]:
        word = "wrong"
    elif 2 * counts["blind"] > total:
        word = "blind"
    elif counts["blind"] or counts["verified"]:
        word = "verified"
    wrong, blind = counts["wrong"], counts["blind"]
    sentence = f"in {by.name}: {wrong} of {total} numbers wrong, {blind} hidden by rounding; worst: {least}"
    digits = None if word == "wrong" else min((entry.digits_resolvable for entry in entries), default=None)
    seldom = counts["verified"] + counts["blind"]
    verdict = Verdict(
        word, sentence, None, least, total, counts["right"], counts["wrong"], seldom,
        enclosed_row.METHOD if is_proved else METHOD, reason, blind=counts["blind"], digits=digits, proved=is_proved,
    )  # fmt: skip
    return verdict, entries


def _at_least_of_row(spread: Floats) -> Floats:
    """A third of the median of the row, except where nothing is rounded: other formulas cancel at other entries."""
    if not spread.ndim:
        return spread
    return np.where(spread > 0, np.maximum(spread, np.median(spread, -1, keepdims=True) / 3), 0.0)


def _nearby(leaves: Sequence[Any], given: Sequence[Any], rng: np.random.Generator) -> list[Any]:
    """The leaves moved by about a rounding of their types, as numbers of these."""
    moved = []
    for leaf, like in zip(leaves, given, strict=True):
        form = precision_of(like)
        array = form.rounded(np.asarray(leaf) * (1 + 2 * form.unit * rng.integers(-1, 2, np.shape(leaf))))
        moved.append(array if np.ndim(leaf) else float(array))
    return moved


def _confirm(double: CalledKernel, truth: Numbers, leaves: Sequence[Any], weights: Any, seed: int) -> None:
    """Hold the gradient against differences of the weighted values along two random directions."""
    rng = np.random.default_rng([seed, 0xD1])
    for _ in range(2):
        moves = {k: rng.choice([-1.0, 1.0], np.shape(leaves[k])) * _scale(leaves[k]) for k in double.wrt}
        terms = [g * v for g, v in zip(truth[1:], moves.values(), strict=True)]
        along = math.fsum(float(term.sum()) for term in terms)
        length = math.sqrt(sum(float(np.square(term).sum()) for term in terms))

        def weighted(step: float, moves: Mapping[int, Any] = moves) -> float:
            there = [leaf + step * moves[k] if k in moves else leaf for k, leaf in enumerate(leaves)]
            return float(np.sum(double.run(there, weights).numbers[0] * weights))

        slopes = [(weighted(h) - weighted(-h)) / (2 * h) for h in (1e-3, 5e-4)]
        extrapolated, spread = (4 * slopes[1] - slopes[0]) / 3, abs(slopes[1] - slopes[0])
        if not abs(extrapolated - along) <= 3 * spread + AGREEMENT * max(length, abs(along)) + 1e-9:
            raise UsageError(
                "the definition's gradient in float64 contradicts its values: along a random direction it is "
                f"{along:.6g}, and differences give {extrapolated:.6g}; check the definition first"
            )


def _scale(leaf: Any) -> Any:
    """How far each number moves, relative to the step; an infinity of a mask stays."""
    return np.where(np.isfinite(leaf), np.abs(leaf) + 1e-3, 0.0)
