"""What double precision makes of a coefficient: the text again, along the same curves, with random roundings.

Each draw fixes the perturbation of every operation (`adbench.oracle.series.noisy`). The standard deviation is about the
truth, not about the mean of the draws: a bias counts too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flint import arb

from adbench.oracle.series import ball
from adbench.oracle.series.ball import arithmetic
from adbench.oracle.series.evaluation import LEVELS, Curve, Evaluations
from adbench.oracle.series.noisy import noisy_type, spread
from adbench.oracle.series.truth import COMPARING, Settled


def noises(
    evaluations: Evaluations,
    curves: Sequence[tuple[Curve, float]],
    truths: Sequence[Sequence[Settled]],
    *,
    draws: int,
    seed: int,
) -> list[list[float]]:
    """For each curve and its scale, the noise of every number; truths: what is known along the same curves."""
    errors: list[list[list[float]]] = [[[] for _ in of_curve] for of_curve in truths]
    for draw in range(draws):
        real = noisy_type(seed, draw)
        for (curve, scale), of_curve, found in zip(curves, truths, errors, strict=True):
            for which, error in enumerate(_errors(evaluations, curve, scale, of_curve, real)):
                found[which].append(error)
    return [[spread(of_number) for of_number in of_curve] for of_curve in errors]


def _errors(
    evaluations: Evaluations, curve: Curve, scale: float, truths: Sequence[Settled], real: Any
) -> Sequence[float]:
    """How far one draw is from the truth, for every number."""
    followed = [truth.found for truth in truths if truth.found is not None]
    if not followed:
        return [math.inf] * len(truths)
    how = replace(LEVELS[0], bits=max(one.how.bits for one in followed), guess=1)  # the width of a ball is no noise
    try:
        found = evaluations.followed(curve, followed[0].path, how, real).coefficients
    except ball.Insufficient:
        return [math.inf] * len(truths)
    return [_error(value, truth.coefficient, scale) for value, truth in zip(found, truths, strict=True)]


def _error(value: Any, truth: Any, scale: float) -> float:
    if value is None or truth is None or isinstance(value, float):
        return math.inf
    with arithmetic(COMPARING):
        return float((arb(value) - arb(truth)).mid() / arb(scale))
