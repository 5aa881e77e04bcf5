"""The strongest reference: the case's own text at fifty and seventy-five digits, with float64's noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from adbench.oracle.highprecision.evaluation import COARSE, Runs, many_entries, one_entry
from adbench.oracle.highprecision.namespace import TooSlow, lift_deadlines
from adbench.oracle.highprecision.noise import own_noise
from adbench.oracle.highprecision.truth import Truth
from adbench.oracle.reference import Known, Row
from adbench.oracle.subject import Effort, Numbers, Subject, chosen_entries

METHOD = "central differences at 50 digits, confirmed at 75"
OWN_NOISE = "Monte Carlo arithmetic under differences of the case's text"
NO_NOISE = ""

OWN_DRAWS = 6
"""Each costs as much as half of the truth, and twenty sigmas are allowed for."""

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
    subject: Subject, effort: Effort, numbers: Numbers, fallback: Callable[[int, int, int], Known]
) -> list[Row]:
    """The rows of these numbers from the text itself; raises NotPrecise with the reason where that does not work.

    fallback: (number, leaf, flat index) -> what differences in double precision say, for entries that high precision
    cannot settle.
    """
    assert subject.text is not None
    deadline = time.thread_time() + OVERDUE * effort.max_seconds
    draws = OWN_DRAWS if subject.subtracts is None else 0
    try:
        runs = Runs(subject.text, subject.point, deadline, numbers.exact)
        plain = runs.plain(COARSE)
        seconds = max(1e-6, plain.seconds) + SECONDS_PER_NUMBER * (len(plain.centre) - 1)
        total, most_directions = sum(subject.point.sizes), effort.directions_of(subject.shape)
        planned = plan(total, effort.max_seconds / seconds, effort.max_entries, most_directions, draws)
        return _rows(runs, planned, effort.seed, subject.subtracts or 0.0, fallback)
    except TooSlow:
        raise NotPrecise("the text takes too long at 50 digits") from None
    except NotPrecise:
        raise
    except Exception as error:  # the text is anybody's: whatever it raises is the reason, and differences take over
        first_line = (str(error).splitlines() or [""])[0]
        raise NotPrecise(f"the text does not run at 50 digits: {type(error).__name__}: {first_line}") from error
    finally:
        lift_deadlines()  # the next computation uses the same namespaces


def _rows(
    runs: Runs, planned: Plan, seed: int, subtracts: float, fallback: Callable[[int, int, int], Known]
) -> list[Row]:
    point = runs.point
    chosen = chosen_entries(point.sizes, planned.entries, seed)
    sample = [(k, index) for k, indices in enumerate(chosen) for index in indices]
    along = [many_entries(point.steps(seed, number)) for number in range(planned.directions)]
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
        moves = [one_entry(point, *place) for place in sample] + [(move, 0) for move in along]
        sizes = [value.lower if which in noisy else 0.0 for which, value in enumerate(values)]
        noises = own_noise(runs, moves, found, sizes, draws=planned.draws, seed=seed)
        for which in noisy:
            of_value, of_moves = noises[which]
            values[which] = replace(values[which], noise=of_value)
            known[which] = [
                replace(one, noise=noise) if math.isfinite(one.size) else one
                for one, noise in zip(known[which], of_moves, strict=True)
            ]
    rows = [point.row(seed, value, chosen, of_row) for value, of_row in zip(values, known, strict=True)]
    return [
        replace(row, method=METHOD, evaluations=runs.count, noise=OWN_NOISE if which in noisy else NO_NOISE)
        for which, row in enumerate(rows)
    ]
