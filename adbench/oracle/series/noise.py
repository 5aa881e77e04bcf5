"""The error of a coefficient in an arithmetic: the source again, along the same curves, with random rounding.

Each draw fixes the perturbation of every operation (`adbench.oracle.series.noisy`). The standard deviation is about the
reference, not about the mean of the draws, so it includes bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flint import arb

from adbench.oracle.evidence import DOUBLE, Precision
from adbench.oracle.reference import UNIT_ROUNDOFF
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, arithmetic
from adbench.oracle.series.evaluation import LEVELS, MOST_TERMS, Curve, Evaluated, Evaluations, Path
from adbench.oracle.series.noisy import noisy_type, spread
from adbench.oracle.series.truth import COMPARING, Settled

LOST = 2.0**-15
"""The relative noise of a derivative that double precision can compute."""

FINER = (4, 64)
"""The roundoff over that of two finer arithmetics: noise of first order is proportional to it."""

NEARLY = 3.0
"""Up to this factor, because draws are few."""


Along = Sequence[tuple[tuple[Curve, float], Sequence[Settled]]]
"""Curves with their scales, and the references of all numbers along them."""


def noises(evaluations: Evaluations, known: Along, draws: int, seed: int, form: Precision) -> list[list[float]]:
    """For each curve the noise of every number.

    form: the arithmetic. Its noise is given in proportion to that of float64, by the ratio of their unit roundoffs.
    """
    deviations = _deviations(evaluations, known, draws, seed, form)
    if form is not DOUBLE:
        sizes = _sizes(known)
        hidden = [k for k, one in enumerate(deviations) if any(map(_hides, one, sizes[k]))]
        for ratio in FINER:
            finer = replace(form, unit=form.unit / ratio, inside=min(form.inside, form.unit / ratio))
            finer_ones = _deviations(evaluations, [known[k] for k in hidden], draws, seed, finer)
            for k, there in zip(hidden, finer_ones, strict=True):
                expected = [ratio * one for one in there]
                deviations[k] = list(map(_of_first_order, deviations[k], expected, sizes[k]))
    return [[one * UNIT_ROUNDOFF / form.unit for one in of_curve] for of_curve in deviations]


def _deviations(evaluations: Evaluations, known: Along, draws: int, seed: int, form: Precision) -> list[list[float]]:
    """The root mean square error of every number along every curve, in this arithmetic."""
    errors: list[list[list[float]]] = [[[] for _ in of_curve] for _, of_curve in known]
    for draw in range(draws):
        real = noisy_type(seed, draw, form)
        for ((curve, scale), of_curve), errors_of_numbers in zip(known, errors, strict=True):
            for which, error in enumerate(_errors(evaluations, curve, scale, of_curve, real)):
                errors_of_numbers[which].append(error)
    return [list(map(spread, of_curve)) for of_curve in errors]


def _sizes(known: Along) -> list[list[float]]:
    """The size of every number; of a zero, that of the largest derivative of the same function."""
    derivatives = [of_curve for (curve, _), of_curve in known if curve.moves]
    largest = [max(one.known.size for one in of_number) for of_number in zip(*derivatives, strict=True)]
    return [
        [one.known.size or (largest[which] if curve.moves else 0.0) for which, one in enumerate(of_curve)]
        for (curve, _), of_curve in known
    ]


def _hides(deviation: float, size: float) -> bool:
    """Whether the noise hides all digits of a number of this size."""
    return 0 < size <= deviation < math.inf


def _of_first_order(deviation: float, expected: float, size: float) -> float:
    """The noise of a number of this size, infinite if it hides all digits and is not proportional to the roundoff.

    Then numbers on the way err by as much as their own size, and no few draws bound the errors: 1 / y⁴ near y = 0 has
    no variance. expected: the noise if it were proportional.
    """
    is_of_first_order = expected / NEARLY < deviation < expected * NEARLY
    return math.inf if _hides(deviation, size) and not is_of_first_order else deviation


def _errors(
    evaluations: Evaluations, curve: Curve, scale: float, truths: Sequence[Settled], real: Any
) -> Sequence[float]:
    """The error of one draw for every number."""
    sides: dict[bool, Evaluated | None] = {}
    # Use as many bits as the reference, because a ball's width is not noise.
    how = replace(
        LEVELS[0], bits=max((truth.evaluated.how.bits for truth in truths if truth.evaluated), default=0), guess=1
    )
    for truth in truths:
        if truth.evaluated is not None and truth.mirrored not in sides:
            there = curve.mirrored if truth.mirrored else curve
            sides[truth.mirrored] = _followed(evaluations, there, truth.evaluated.path, how, real)
    second = curve.power > 1
    return [_error(which, sides.get(truth.mirrored), truth, scale, second) for which, truth in enumerate(truths)]


def _followed(evaluations: Evaluations, curve: Curve, path: Path, how: Arithmetic, real: Any) -> Evaluated | None:
    """The noisy evaluation, with more terms or bits where it needs them, as for a zero pivot; None if none suffice."""
    while True:
        try:
            return evaluations.followed(curve, path, how, real)
        except ball.NeedsTerms:
            if path.last or path.more >= MOST_TERMS:
                return None
            path = replace(path, more=2 * path.more)
        except ball.NeedsBits:
            if how.bits >= LEVELS[-1].bits:
                return None
            how = replace(how, bits=2 * how.bits)
        except ball.Insufficient:
            return None


def _error(which: int, evaluated: Evaluated | None, truth: Settled, scale: float, second_order: bool) -> float:
    """The distance of a noisy coefficient from the reference.

    A finite reference with a lost coefficient means that float64 overflows in these formulas. Other formulas for the
    value and the first order might not overflow, so a finite result must have three digits.
    """
    if truth.coefficient is None or evaluated is None:
        return math.inf
    value, start = evaluated.coefficients[which], evaluated.starts[which]
    with arithmetic(COMPARING):
        if value is None or isinstance(value, float) or not arb(value).is_finite():
            lost = isinstance(start, ball.Special) and math.isnan(start.value)
            return math.inf if lost or second_order else LOST * truth.known.size
        value = -value if truth.mirrored else value
        return float((arb(value) - arb(truth.coefficient)).mid() / arb(scale))
