"""How a run measures: the numbers that decide how long it takes and how much it can tell."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Settings:
    """Durations are in the unit of their name; `timeout_seconds` is for one request to a worker."""

    seed: int = 0
    threads: int = 1
    timeout_seconds: float = 60.0
    reference_seconds: float = 5.0  # for one case at one size: fewer entries are examined rather than more taken
    time: bool = True
    memory: bool = True
    rounds: int = 15
    epoch_ns: int = 10_000_000
    warm_ns: int = 200_000_000
    cell_ns: int = 10_000_000_000  # a slow cell gets fewer rounds, but at least three, rather than more than this
    quick: bool = False
    cache: str | None = None  # folder in which the oracle's references are kept for the next time

    def for_a_first_look(self) -> Settings:
        """The same with fewer and shorter epochs: a default run in under two minutes."""
        return replace(
            self,
            quick=True,
            rounds=7,
            epoch_ns=4_000_000,
            warm_ns=20_000_000,
            cell_ns=500_000_000,
            reference_seconds=2.0,
        )
