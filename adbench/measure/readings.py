"""What was read from the clock and from memory, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Round:
    """One epoch: `calls` consecutive calls took `ns` nanoseconds, including the wait for results.

    gc_ns       the part of it in the garbage collector
    disturbed   why the time is suspect, such as "3 involuntary switches"; rounds are flagged, never deleted
    """

    calls: int
    ns: int
    gc_ns: int = 0
    disturbed: str | None = None


@dataclass(frozen=True)
class Figure:
    """A number whose unit is in its field's name, or None and the reason."""

    value: float | None
    reason: str | None = None
