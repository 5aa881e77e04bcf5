"""Run the traps on releases of a library: on a few releases all of them, between those only what changes.

Some releases, spread evenly, run every trap. Where two neighbours among them differ in a trap, the release in the
middle runs it, and so on, until the change lies between two releases. A trap that broke and was repaired between two
of the first releases is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from adbench.atlas.outcomes import Cell, NotRun, short, signature
from adbench.bisection.environments import Environments, NotInstalled
from adbench.bisection.interpreters import Interpreter
from adbench.bisection.judge import Undecided
from adbench.bisection.releases import Release
from adbench.bisection.trials import LineJournal

Found = dict[str, dict[str, Cell]]
"""Trap -> operator -> outcome."""


Supported = tuple[Release, tuple[Interpreter, ...]]
"""A release, and the Pythons of this machine that it supports, the preferred one first."""


@dataclass(frozen=True)
class SurveyPlan:
    """What to run.

    releases   oldest first
    traps      names of cases, or of operations
    full       on how many releases all of them run
    files      digests of the cases and the backend
    own        user's case -> its file
    kind       "traps" or "operations"
    """

    library: str
    backend: str
    backend_source: str
    releases: tuple[Supported, ...]
    traps: tuple[str, ...]
    full: int = 6
    files: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    kind: str = "traps"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the releases."""
        return tuple(release.name for release, _ in self.releases)


@dataclass
class ReleaseResults:
    """What is known about a release: its Python, why it has no results ("" if it may have some), and the results."""

    release: str
    python: str = ""
    reason: str = ""
    found: Found = field(default_factory=dict)


class SurveyJournal(LineJournal[ReleaseResults]):
    """The trials of a plan: one line for each run of traps."""

    def __missing__(self, release: str) -> ReleaseResults:
        return self.setdefault(release, ReleaseResults(release))

    def put(self, release: str, python: str, found: Found, reason: str = "") -> None:
        """Write down what was found of a release. A reason is only kept in memory: another try may succeed."""
        line = {"release": release, "python": python, "found": found}
        self._add({**line, "reason": reason})
        if not reason:
            self._append(line)

    def _add(self, line: Mapping[str, Any]) -> None:
        trial = self[line["release"]]
        trial.python, trial.reason = str(line["python"]), str(line.get("reason", ""))
        for trap, cells in line["found"].items():
            trial.found[trap] = {operator: (str(k), str(got), str(want)) for operator, (k, got, want) in cells.items()}


Runner = Callable[[Path, Release, Sequence[str]], Found]
"""Runs traps with the Python of an environment. Raises NotRun, Undecided."""


@dataclass(frozen=True)
class Survey:
    """The work on a plan.

    told    called with each step, as a sentence
    stored  called after each release
    """

    plan: SurveyPlan
    environments: Environments
    journal: SurveyJournal
    told: Callable[[str], None]
    stored: Callable[[], None]
    runner: Runner

    def run(self) -> None:
        """Run every trap on some releases, then the changed ones between them."""
        every = self.plan.releases
        chosen = spread(len(every), max(2, self.plan.full))
        for place, k in enumerate(chosen):
            low = chosen[place - 1] if place else -1
            high = chosen[place + 1] if place + 1 < len(chosen) else len(every)
            for candidate in sorted(range(low + 1, high), key=lambda one: (abs(one - k), one)):
                if self._try(candidate, self.plan.traps, f"{place + 1} of {len(chosen)} with all"):
                    break
        while wanted := self._wanted():
            place, traps = max(wanted.items(), key=lambda item: (len(item[1]), -item[0]))
            self._try(place, sorted(traps), f"{sum(map(len, wanted.values()))} changes left")

    def _wanted(self) -> dict[int, set[str]]:
        """Release -> the traps to run there."""
        trials = [self.journal[name] for name in self.plan.names]
        states = [{trap: signature(cells) for trap, cells in trial.found.items()} for trial in trials]
        return between(states, frozenset(k for k, trial in enumerate(trials) if trial.reason))

    def _try(self, place: int, traps: Sequence[str], why: str) -> bool:
        """Run those of the traps that were not run yet; whether the release has results."""
        release, pythons = self.plan.releases[place]
        trial = self.journal[release.name]
        missing = [trap for trap in traps if trap not in trial.found]
        if trial.reason or not missing:
            return not trial.reason
        reasons: list[str] = []
        for python in sorted(pythons, key=lambda one: one.version != trial.python):  # results are of one Python
            try:
                self.told(f"{self.plan.library} {release.name}: installing for Python {python.version}")
                program, _ = replace(self.environments, interpreter=python).python(release)
                self.told(f"{self.plan.library} {release.name}: {len(missing)} {self.plan.kind} ({why})")
                self.journal.put(release.name, python.version, self.runner(program, release, missing))
                self.stored()
                return True
            except (NotInstalled, NotRun, Undecided) as no:
                kind = "not installed" if isinstance(no, NotInstalled) else "does not run"
                reasons.append(f"{kind}: {short(str(no))}")
                self.told(f"{self.plan.library} {release.name}: {reasons[-1]}")
        self.journal.put(release.name, "", {}, reasons[0] if reasons else "not installed: no Python here is supported")
        return False


def spread(count: int, chosen: int) -> list[int]:
    """So many of the places 0, 1, …, at equal distances, with both ends."""
    most = min(count, max(chosen, 2))
    return sorted({round(k * (count - 1) / max(most - 1, 1)) for k in range(most)})


def between(states: Sequence[Mapping[str, Any]], dead: frozenset[int]) -> dict[int, set[str]]:
    """Release -> the traps to run there: it is in the middle between two releases that differ in them.

    states   of each release: trap -> the kinds of its faults, for traps that were run
    dead     releases without results
    """
    wanted: dict[int, set[str]] = {}
    for trap in {trap for state in states for trap in state}:
        ran = [k for k, state in enumerate(states) if trap in state]
        for low, high in pairwise(ran):
            left = [k for k in range(low + 1, high) if k not in dead]
            if left and states[low][trap] != states[high][trap]:
                wanted.setdefault(left[len(left) // 2], set()).add(trap)
    return wanted
