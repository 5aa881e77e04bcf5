"""The strongest reference: the case's own text at fifty and seventy-five digits, and float64's noise beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adbench.oracle.highprecision.evaluation import COARSE, Move, Runs, many_entries, one_entry, one_number
from adbench.oracle.highprecision.namespace import TooSlow, lift_deadlines
from adbench.oracle.highprecision.noise import own_noise
from adbench.oracle.highprecision.real import Raw
from adbench.oracle.highprecision.truth import Truth
from adbench.oracle.leaves import Point, direction_signs
from adbench.oracle.reference import Direction, Entry, Known, Leaf, Reference
from adbench.oracle.sampling import chosen_entries

METHOD = "central differences at 50 digits, confirmed at 75"
OWN_NOISE = "Monte Carlo arithmetic under differences of the case's text"
NO_NOISE = ""

OWN_DRAWS = 6
"""Fewer than an engine's: each costs as much as half of the truth, and twenty sigmas are allowed for."""

FEWEST_DRAWS = 3
"""Where time is short: three are off by a factor of three once in thirty times, and the bound has twenty to spare."""

NOISY_COST = 2.2
FINE_COST = 1.3
"""Time of an evaluation with perturbations, or at 75 digits, in evaluations at 50 digits (measured)."""

SECONDS_PER_NUMBER = 1.5e-4
"""What looking at one more number of a result takes for each move, about."""

OVERDUE = 3.0
"""Gives up after this many times the planned time: the plan rests on one evaluation.

Time is the thread's own: on a busy machine a reference takes longer, and is no weaker.
"""


class NotPrecise(Exception):
    """The text cannot be run at high precision, or not in the time allowed; the message is the reason."""


@dataclass(frozen=True)
class Plan:
    """How many entries (all of them: whole) and directions fit into the time, and the draws of the noise."""

    entries: int
    directions: int
    draws: int
    whole: bool


def plan(total: int, evaluations: float, max_entries: int, max_directions: int, draws: int) -> Plan:
    """What fits into the time of so many evaluations at 50 digits; raises NotPrecise where that is next to nothing."""
    per_entry = 2 + NOISY_COST * draws
    fixed = 6 * FINE_COST + NOISY_COST * draws
    if total <= max_entries and fixed + total * per_entry <= evaluations:
        return Plan(total, 0, draws, True)
    if draws > FEWEST_DRAWS:
        return plan(total, evaluations, max_entries, max_directions, FEWEST_DRAWS)
    directions = max_directions
    while True:
        left = evaluations - fixed - directions * (per_entry + 2 * FINE_COST)
        entries = min(total, max_entries, int(left / per_entry))
        if entries >= min(total, 4) or directions <= 1:
            break
        directions -= 1
    if entries < 1:
        raise NotPrecise("the text takes too long at 50 digits")
    # Powers of two, so that a slightly slower machine takes the same sample.
    return Plan(
        1 << (entries.bit_length() - 1) if entries < min(total, max_entries) else entries, directions, draws, False
    )


def by_high_precision(
    xp_function: Callable[..., Any],
    point: Point,
    *,
    seed: int,
    max_entries: int,
    max_directions: int,
    max_seconds: float,
    estimate_noise: bool,
    fallback: Callable[[int, int, int], Known],
    subtracts: float = 0.0,
    numbers: Callable[[Any], list[Raw]] = one_number,
) -> list[Reference]:
    """The references from the text itself; raises NotPrecise with the reason where they are not to be had.

    One for each of the ``numbers`` that are examined of what the text returns: one for a scalar. estimate_noise:
    whether the text's own noise is wanted (not where an engine measures it). fallback: (number, leaf, flat index) ->
    what differences in double precision say, for entries the high precision cannot settle. subtracts: as for `Truth`.
    """
    deadline = time.thread_time() + OVERDUE * max_seconds
    draws = OWN_DRAWS if estimate_noise else 0
    try:
        runs = Runs(xp_function, point, deadline, numbers)
        plain = runs.plain(COARSE)
        seconds = max(1e-6, plain.seconds) + SECONDS_PER_NUMBER * (len(plain.centre) - 1)
        total = sum(leaf.values.size for leaf in point.leaves)
        planned = plan(total, max_seconds / seconds, max_entries, max_directions, draws)
        return _references(runs, planned, seed, subtracts, fallback)
    except TooSlow:
        raise NotPrecise("the text takes too long at 50 digits") from None
    except NotPrecise:
        raise
    except Exception as error:  # the text is anybody's: whatever it raises is the reason, and differences take over
        first_line = (str(error).splitlines() or [""])[0]
        raise NotPrecise(f"the text does not run at 50 digits: {type(error).__name__}: {first_line}") from error
    finally:
        lift_deadlines()  # the namespaces are shared with whoever computes next


def _references(
    runs: Runs, planned: Plan, seed: int, subtracts: float, fallback: Callable[[int, int, int], Known]
) -> list[Reference]:
    point = runs.point
    chosen = chosen_entries([leaf.values.size for leaf in point.leaves], planned.entries, seed)
    sample = [(k, index) for k, indices in enumerate(chosen) for index in indices]
    along: list[Move] = []
    for number in range(planned.directions):
        signs = direction_signs(seed, number, [leaf.values.shape for leaf in point.leaves])
        along.append(many_entries([s * leaf.scale for s, leaf in zip(signs, point.leaves, strict=True)]))
    moves = [one_entry(point, *place) for place in sample] + [(move, 0) for move in along]
    truths = [Truth(runs, which, subtracts) for which in range(len(runs.plain(COARSE).centre))]
    values = [truth.value() for truth in truths]
    found = [truth.entries(sample, seed) + [truth.direction(move) for move in along] for truth in truths]
    known = [[settled.known for settled in of_truth] for of_truth in found]
    for which, of_truth in enumerate(known):
        for k, place in enumerate(sample):
            if of_truth[k].kind == "unsure":
                of_truth[k] = fallback(which, *place)
    noisy = [which for which, value in enumerate(values) if planned.draws and math.isfinite(value.size)]
    if noisy:
        sizes = [value.lower if which in noisy else 0.0 for which, value in enumerate(values)]
        noises = own_noise(runs, moves, found, sizes, draws=planned.draws, seed=seed)
        for which in noisy:
            of_value, of_moves = noises[which]
            values[which] = replace(values[which], noise=of_value)
            known[which] = [
                replace(one, noise=noise) if math.isfinite(one.size) else one
                for one, noise in zip(known[which], of_moves, strict=True)
            ]
    return [
        _reference(point, seed, value, chosen, of_truth, runs.count, OWN_NOISE if which in noisy else NO_NOISE)
        for which, (value, of_truth) in enumerate(zip(values, known, strict=True))
    ]


def _reference(
    point: Point,
    seed: int,
    value: Known,
    chosen: Sequence[Sequence[int]],
    known: Sequence[Known],
    evaluations: int,
    noise: str,
) -> Reference:
    """``known``: the derivatives in the chosen entries, leaf by leaf, then those along the directions."""
    following = iter(known)
    leaves = tuple(
        Leaf(
            leaf.position,
            leaf.keys,
            leaf.path,
            tuple(map(int, leaf.values.shape)),
            leaf.scale,
            tuple(Entry(index, next(following)) for index in chosen[k]),
        )
        for k, leaf in enumerate(point.leaves)
    )
    directions = tuple(Direction(number, derivative) for number, derivative in enumerate(following))
    return Reference(value, len(point.wrt), leaves, directions, seed, METHOD, "", evaluations, point.constants, noise)


def contradicted_zeros(
    xp_function: Callable[..., Any], point: Point, zeros: Sequence[tuple[int, ...]], seed: int
) -> str:
    """The path of a leaf whose entries declared as zeros do change f at fifty digits; "" where there is none."""
    truth = Truth(Runs(xp_function, point, math.inf))
    rng = np.random.default_rng([seed, 0x20])
    for k, leaf in enumerate(point.leaves):
        if zeros[k]:
            step = np.zeros(leaf.values.size)
            step[list(zeros[k])] = 2.0 * rng.integers(0, 2, len(zeros[k])) - 1.0
            move = many_entries([step.reshape(leaf.values.shape) if j == k else None for j in range(len(point.leaves))])
            if not truth.vanishes(move):
                return leaf.path
    return ""


__all__ = ["METHOD", "NotPrecise", "by_high_precision", "contradicted_zeros"]
