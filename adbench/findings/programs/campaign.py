"""A campaign of random programs: draw, examine, shrink, and keep one finding of each kind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from adbench.findings.finding import Finding
from adbench.findings.programs.generation import programs, with_nan
from adbench.findings.programs.judging import OPERATORS
from adbench.findings.programs.known import explanation
from adbench.findings.programs.laboratory import Laboratory
from adbench.findings.programs.random_program import Program
from adbench.findings.programs.shrinking import shrunk
from adbench.model.case import Case
from adbench.model.settings import PROCESSOR

SHRINK_SECONDS = 20.0
BELIEVED = 3
"""So often a program with the operations of a finding shrinks to it before further ones are only counted."""


@dataclass
class Campaign:
    """What a campaign has seen.

    judged       programs whose true derivatives are known; compared: others, in which answers were compared
    findings     key -> the smallest finding; times: how often each was met
    refused      library -> reasons why it had no answer
    answered     libraries of which an answer was judged
    without      operations that are not drawn
    nan          whether an input holds a NaN, where that reaches the value on numpy
    """

    laboratory: Laboratory
    seed: int
    traps: Mapping[str, Case] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    nan: bool = False
    programs: int = 0
    judged: int = 0
    compared: int = 0
    lost: int = 0
    seconds: float = 0.0
    shrinking: float = 0.0
    findings: dict[tuple[str, ...], Finding] = field(default_factory=dict)
    times: Counter[tuple[str, ...]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)

    @property
    def new(self) -> list[Finding]:
        """Findings that no known bug explains, at points where every operation has a derivative."""
        return [one for one in self.findings.values() if not one.known and not one.edge]

    @property
    def unjudged(self) -> list[str]:
        """A sentence with the most frequent reason for each library of which nothing was judged."""
        if not self.programs:
            return ["no program was examined: the time was over; give more with --seconds"]
        sentences = []
        for name in self.laboratory.libraries:
            if name not in self.answered:
                reasons = (reason for (who, reason), _ in self.refused.most_common() if who in (name, "the judge"))
                reason = next(reasons, f"the true derivatives of {self.programs} programs are unknown")
                sentences.append(f"no derivative was checked with the backend {name}: {reason}")
        return sentences

    @property
    def per_second(self) -> float:
        """Programs in a second, without the time for shrinking."""
        return self.programs / max(1e-9, self.seconds - self.shrinking)

    @property
    def summary(self) -> str:
        """A few lines."""
        every = self.findings.values()
        lines = [
            f"{self.programs} programs in {self.seconds:.0f} s ({self.per_second:.0f} a second; "
            f"{self.shrinking:.0f} s for shrinking)",
            f"{self.judged} compared with 50 digits, {self.compared} with each other, {self.lost} not judged",
            f"{len(every)} finding{'s' * (len(every) != 1)}: {len(self.new)} new, "
            f"{sum(bool(one.known) for one in every)} known, "
            f"{sum(one.edge and not one.known for one in every)} at edges; seed {self.seed}",
        ]
        for (library, reason), count in self.refused.most_common(5):
            lines.append(f"{library} refused {count}: {reason[:100]}")
        return "\n".join(lines)

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        counts = {name: getattr(self, name) for name in ("seed", "programs", "judged", "compared", "lost", "seconds")}
        findings = [{**one.to_plain(), "times": self.times[key]} for key, one in self.findings.items()]
        return {**counts, "per_second": self.per_second, "findings": findings}

    def run(
        self, seconds: float, most: int | None = None, told: Callable[[Campaign], None] = lambda _: None
    ) -> Iterator[Finding]:
        """Yield each new kind of finding, shrunk, until this time has passed or this many programs were examined.

        `told` gets the campaign after each program.
        """
        started, following = time.monotonic(), programs(self.seed, self.without)
        while (most is None or self.programs < most) and time.monotonic() - started < seconds:
            program = following()
            if self.nan:
                program = with_nan(program, np.random.default_rng([self.seed, self.programs]))
            yield from self._examined(program, started + seconds)
            self.seconds = time.monotonic() - started
            told(self)

    def _examined(self, program: Program, deadline: float) -> Iterator[Finding]:
        one_more = OPERATORS[1 + self.programs % (len(OPERATORS) - 1)]  # in turns
        operators = ("value_and_gradient",) if program.has_nan else ("gradient", one_more)
        self.programs += 1
        examined = self.laboratory.examine(program, operators)
        self.lost += examined.lost
        self.judged += examined.is_known
        self.compared += not (examined.is_known or examined.lost)
        self.refused.update(examined.refused.items())
        if examined.is_known or (len(self.laboratory.libraries) > 1 and not examined.lost):
            self.answered |= examined.answered
        # A wrong gradient often makes the second order wrong too: shrink one finding for each library.
        first: dict[str, Finding] = {}
        for one in sorted(examined.findings, key=lambda one: one.edge):
            first.setdefault(one.library, one)
        for one in first.values():
            kept = self._kept(one, deadline)
            if kept is not None:
                yield kept

    def _kept(self, one: Finding, deadline: float) -> Finding | None:
        """The shrunk finding if it is the first of its kind."""
        here = frozenset(one.program.operations)
        for key, other in self.findings.items():
            if self.times[key] >= BELIEVED and key[:3] == one.key[:3] and here.issuperset(other.program.operations):
                self.times[key] += 1
                return None
        started = time.monotonic()
        on = f" --device {one.device}" * (one.device != PROCESSOR) + " --nan" * self.nan
        command = f"adbench fuzz --seed {self.seed} -b {one.library}{on}, program {self.programs - 1}"
        seconds = max(2.0, min(SHRINK_SECONDS, deadline - started))
        small = minimised(self.laboratory, replace(one, origin=command), seconds)
        self.shrinking += time.monotonic() - started
        self.times[small.key] += 1
        if small.key in self.findings:
            return None
        small = replace(small, known=explanation(small, self.laboratory.known.get(one.library, ()), self.traps))
        self.findings[small.key] = small
        return small


def minimised(laboratory: Laboratory, one: Finding, seconds: float) -> Finding:
    """The finding in the smallest program that has a fault of the same kind."""
    return shrunk(one, partial(still, laboratory, one), seconds)


def still(laboratory: Laboratory, one: Finding, program: Program) -> Finding | None:
    """The finding of the same kind in another program, or None."""
    libraries = (one.library, one.peer) if one.peer else (one.library,)
    findings = laboratory.examine(program, (one.operator,), libraries).findings
    same = (other for other in findings if (other.library, other.kind) == (one.library, one.kind))
    return next((other for other in same if other.edge <= one.edge), None)
