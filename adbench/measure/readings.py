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


@dataclass(frozen=True)
class Rate:
    """An amount per second, or None and the reason.

    spread   the quartiles of the repetitions lie so far apart, relative to their median
    """

    per_second: float | None
    spread: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Rates:
    """What a machine or a device does in a second: bytes of a copy, read and written; operations of a product of
    matrices.
    """

    copy: Rate
    arithmetic: Rate
