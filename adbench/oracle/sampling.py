"""Which entries of large arguments are examined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def chosen_entries(sizes: Sequence[int], most: int, seed: int) -> list[list[int]]:
    """Flat indices to examine, per leaf: all where they fit, else an equal share of ``most`` for each leaf.

    A leaf smaller than its share leaves the rest to the others; first and last entry are always among the chosen:
    that is where loops and slices go wrong.
    """
    rng = np.random.default_rng([seed, 0x5A])
    chosen: list[list[int]] = [[] for _ in sizes]
    left = most
    for rank, which in enumerate(sorted(range(len(sizes)), key=lambda k: sizes[k])):
        share = max(1, left // (len(sizes) - rank))
        size = sizes[which]
        if size <= share:
            chosen[which] = list(range(size))
        else:
            ends = [0, size - 1][:share]
            drawn = (rng.choice(size - 2, share - len(ends), replace=False) + 1).tolist() if share > 2 else []
            chosen[which] = sorted({*ends, *map(int, drawn)})
        left -= len(chosen[which])
    return chosen
