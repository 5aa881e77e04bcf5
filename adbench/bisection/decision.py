"""Whether a release is slower, from its launches; pure functions of numbers.

Each number is the log of a time relative to the control, of one launch. GOOD and BAD are compared first: BAD must be
slower by more than the margin. A release between them is then compared with both: it is bad if it exceeds GOOD by more
than half of their distance, and good if BAD exceeds it by more than half. Half the distance is far from both, so few
launches decide, and a release that lies between them stays undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from adbench.measure.statistics import check_margin
from adbench.measure.unpaired import exceeds_p, shift

LOOKS = (6, 12, 24)
"""After so many launches of a release it may be decided."""

ALLOWED = 0.01
"""The allowed share of wrong decisions about one release, for all looks together (Bonferroni)."""

Floats = Sequence[float]


def is_slower(bad: Floats, good: Floats, margin: float) -> bool | None:
    """Whether BAD is slower than GOOD by more than the margin (0.2 is 20 %); None if these launches do not decide it.

    Raises ValueError for a margin that is not positive, and for fewer than four launches.
    """
    check_margin(margin)
    edge = math.log1p(margin)
    if exceeds(bad, good, edge):
        return True
    return False if exceeds([-x for x in bad], [-x for x in good], -edge) else None


def side_of(release: Floats, good: Floats, bad: Floats) -> Literal["good", "bad"] | None:
    """The end whose time this release has, "good" or "bad"; None if these launches do not decide it."""
    half = half_distance(good, bad)
    is_bad, is_good = exceeds(release, good, half), exceeds(bad, release, half)
    if is_bad == is_good:
        return None
    return "bad" if is_bad else "good"


def half_distance(good: Floats, bad: Floats) -> float:
    """Half the distance between GOOD and BAD."""
    return shift(bad, good).estimate / 2


def middle(states: Sequence[bool | None], skipped: Sequence[bool]) -> int | None:
    """The release to try next: the middle one of those between the last known old and the first known new state.

    states    of each release: False as the oldest, True as the newest, None where unknown
    skipped   releases that cannot be tried

    Returns None if none is left. Each answer halves the rest, so n releases need at most ⌈log₂ n⌉ answers.
    """
    low, high = around(states)
    left = [k for k in range(low + 1, high) if not skipped[k]]
    return left[len(left) // 2] if left else None


def around(states: Sequence[bool | None]) -> tuple[int, int]:
    """The last release known to be as the oldest, and the first known to be as the newest."""
    low = max(k for k, state in enumerate(states) if state is False)
    return low, min(k for k, state in enumerate(states) if state is True)


def most_installed(releases: int) -> int:
    """The most installed releases that n releases need, if none has to be skipped: ⌈log₂ n⌉ + 2."""
    return math.ceil(math.log2(releases)) + 2


def exceeds(a: Floats, b: Floats, by: float) -> bool:
    """Whether the times `a` are longer than `b` by more than this difference of logs."""
    return exceeds_p(a, b, by) <= ALLOWED / len(LOOKS)
