"""What double precision makes of a derivative, from the case's own text: Monte Carlo arithmetic under differences.

Each draw fixes the perturbation of every operation (`monte_carlo`) and takes the same one-sided quotient, at the same
step, as the truth was taken from: what differs is noise, truncation drops out. The standard deviation is about the
truth, not about the mean of the draws: a bias counts too.

This knows nothing of the adjoint operations a backend really does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mpmath import libmp

from adbench.oracle.highprecision.evaluation import COARSE, Move, Runs, Text
from adbench.oracle.highprecision.real import NAN
from adbench.oracle.highprecision.truth import Settled, nearest

SUSPICIOUS = 1e-9
"""Relative noise of a derivative that is worth a second look."""


def own_noise(
    runs: Runs,
    moves: Sequence[tuple[Move, int]],
    truths: Sequence[Sequence[Settled]],
    values: Sequence[float],
    *,
    draws: int,
    seed: int,
) -> list[tuple[float, list[float]]]:
    """For each number that the runs examine: its noise, and that of its derivative along every move (a move, and the
    log2 of its length).

    The right-hand quotient is compared with the truth's, the left-hand one where that is not known, at the precision
    that could resolve the truth. Infinite where a draw leaves the function's domain.
    """
    value_errors: list[list[float]] = [[] for _ in values]
    errors: list[list[list[float]]] = [[[] for _ in moves] for _ in values]
    farther: list[list[list[float]]] = [[[] for _ in moves] for _ in values]
    for draw in range(draws):
        for which, value in enumerate(values):
            precisions = dict.fromkeys([COARSE, *(truth.precision for truth in truths[which])])
            texts = {precision: Text(runs.noisy(precision, seed, draw), which) for precision in precisions}
            value_errors[which].append(nearest(texts[COARSE].centre) - value)
            for k, (move, truth) in enumerate(zip(moves, truths[which], strict=True)):
                near, far = _errors(texts[truth.precision], *move, truth)
                errors[which][k].append(near)
                farther[which][k].append(far)
        runs.forget_noisy()
    spreads = [
        [min(_spread(near), _spread(far)) for near, far in zip(*both, strict=True)]
        for both in zip(errors, farther, strict=True)
    ]
    return [(_spread(of_value), spread) for of_value, spread in zip(value_errors, spreads, strict=True)]


def _errors(text: Text, move: Move, exponent: int, truth: Settled) -> tuple[float, float]:
    """How far one draw's quotient is from the truth's: near the point, and a step further on."""
    left, right = truth.quotients.left, truth.quotients.right
    side, expected = (-1, left) if right == NAN else (1, right)
    power = truth.precision.power
    near = text.quotient(move, power, side)
    error = nearest(libmp.mpf_sub(libmp.mpf_shift(near, -exponent), expected))
    if abs(error) <= SUSPICIOUS * truth.known.size:
        return error, error
    # f(x + 2h) - f(x + h): a branch taken at the point alone (x = 0 in sin(x)/x) jumps by a rounding, which says
    # nothing about the slope on either side of it.
    twice = libmp.mpf_shift(text.quotient(move, power - 1, side), 1)
    beyond = libmp.mpf_sub(twice, near)
    return error, nearest(libmp.mpf_sub(libmp.mpf_shift(beyond, -exponent), expected))


def _spread(errors: Sequence[float]) -> float:
    """The root of the mean square; infinite where that is not a number."""
    largest = max(map(abs, errors), default=0.0)
    if any(map(math.isnan, errors)) or math.isinf(largest):
        return math.inf
    return largest and largest * math.sqrt(math.fsum((e / largest) ** 2 for e in errors) / len(errors))
