"""What double precision makes of a derivative, from the case's own text: Monte Carlo arithmetic under differences.

Each draw fixes the perturbation of every operation (`monte_carlo`) and takes the same one-sided quotient, at the same
step, as the truth was taken from: what differs is noise, truncation drops out. The standard deviation is about the
truth, not about the mean of the draws: a bias counts too.

This knows nothing of the adjoint operations a backend really does; an engine that can run its own tape in Monte Carlo
arithmetic knows better, and is preferred where one is handed in (`adbench.oracle.noise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mpmath import libmp

from adbench.oracle.highprecision.evaluation import COARSE, Move, Precision, Text, widened
from adbench.oracle.highprecision.monte_carlo import Stream, noisy_type
from adbench.oracle.highprecision.real import NAN
from adbench.oracle.highprecision.truth import Settled, nearest
from adbench.oracle.leaves import Point

SUSPICIOUS = 1e-9
"""Relative noise of a derivative that is worth a second look."""


def own_noise(
    xp_function: Callable[..., Any],
    point: Point,
    moves: Sequence[tuple[Move, int]],
    truths: Sequence[Settled],
    value: float,
    *,
    draws: int,
    seed: int,
    deadline: float,
) -> tuple[float, list[float]]:
    """The noise of the value, and of the derivative along every move (a move, and the log2 of its length).

    The right-hand quotient is compared with the truth's, the left-hand one where that is not known, at the precision
    that could resolve the truth. Infinite where a draw leaves the function's domain.
    """
    value_errors: list[float] = []
    errors: list[list[float]] = [[] for _ in moves]
    farther: list[list[float]] = [[] for _ in moves]
    for draw in range(draws):
        texts: dict[Precision, Text] = {}
        for precision in dict.fromkeys([COARSE, *(truth.precision for truth in truths)]):
            real = noisy_type(widened(precision, point).bits)
            real.stream = Stream(seed, draw)
            texts[precision] = Text(xp_function, point, real, deadline)
        value_errors.append(nearest(texts[COARSE].centre) - value)
        for k, ((move, exponent), truth) in enumerate(zip(moves, truths, strict=True)):
            left, right = truth.quotients.left, truth.quotients.right
            side, expected = (-1, left) if right == NAN else (1, right)
            text, power = texts[truth.precision], truth.precision.power
            near = text.quotient(move, power, side)
            error = nearest(libmp.mpf_sub(libmp.mpf_shift(near, -exponent), expected))
            errors[k].append(error)
            if not abs(error) <= SUSPICIOUS * truth.known.size:
                # f(x + 2h) - f(x + h): a branch taken at the point alone (x = 0 in sin(x)/x) jumps by a rounding,
                # which says nothing about the slope on either side of it.
                twice = libmp.mpf_shift(text.quotient(move, power - 1, side), 1)
                beyond = libmp.mpf_sub(twice, near)
                error = nearest(libmp.mpf_sub(libmp.mpf_shift(beyond, -exponent), expected))
            farther[k].append(error)
    spreads = [min(_spread(near), _spread(far)) for near, far in zip(errors, farther, strict=True)]
    return _spread(value_errors), spreads


def _spread(errors: Sequence[float]) -> float:
    """The root of the mean square; infinite where that is not a number."""
    largest = max(map(abs, errors), default=0.0)
    if any(map(math.isnan, errors)) or math.isinf(largest):
        return math.inf
    return largest and largest * math.sqrt(math.fsum((e / largest) ** 2 for e in errors) / len(errors))
