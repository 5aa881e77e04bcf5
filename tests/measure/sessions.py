"""Synthetic sessions with realistic noise, for tests of the statistics.

layout    each process is slower or faster than the next by a constant: where its code and data came to lie
drift     a random walk over the rounds of a launch, common to both sides: the processor's clock, neighbours
noise     of every round for itself, with one in twenty disturbed, by a fifth on average
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROUNDS = 12
TYPICAL_NS = 10_000_000


def nanoseconds(
    rng: np.random.Generator,
    sessions: int,
    launches: int,
    *,
    slowdown: float = 0.0,
    sides: int = 2,
    rounds: int = ROUNDS,
    layout: float = 0.008,
) -> NDArray[np.int64]:
    """Duration of every round, shape (sides, sessions, launches, rounds); the first side is slower by `slowdown`."""
    of_launch = (sessions, launches, 1)
    log = layout * rng.normal(size=(sides, *of_launch))
    log = log + np.cumsum(0.003 * rng.normal(size=(sessions, launches, rounds)), axis=-1)
    shape = (sides, sessions, launches, rounds)
    log += 0.01 * rng.normal(size=shape)
    log += np.where(rng.random(shape) < 0.05, rng.exponential(0.2, shape), 0.0)
    log[0] += np.log1p(slowdown)
    return np.round(TYPICAL_NS * np.exp(log)).astype(np.int64)
