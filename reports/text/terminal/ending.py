"""The end of the output: the path of the page, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from adbench.model.record import Run

from ...content import ranking
from ...content.cells import Cells
from ...content.ranking import Lead

RIGOROUS_LAUNCHES = 20
OWN_FUNCTION = ("adbench check --function mymodule:f --at 1.0 2.0", "check a function of yours")
OTHER_BACKENDS = ("adbench list backends", "see which other libraries can be compared")
OTHER_CASES = ("adbench list cases", "see the other problems")
DOCTOR = ("adbench doctor", "find out what makes this machine noisy")


class Ending(NamedTuple):
    """What the command line knows of a run.

    page     where the page is
    more     the command that prints the details
    cases    the names that `-c` takes anywhere; none for a user's own file
    chosen   options that the user gave: -c, -b -> their values
    """

    page: Path | None = None
    more: str = ""
    cases: Collection[str] = ()
    chosen: Mapping[str, Sequence[str]] = MappingProxyType({})

    def options(self, run: Run, *names: str) -> str:
        """These of the user's options, and the type and device of the run, for a command line."""
        chosen = [(name, value) for name in names for value in self.chosen.get(name, ())]
        return "".join(f" {name} {shlex.quote(value)}" for name, value in [*chosen, *run.options.items()])


def commands(cells: Cells, ending: Ending) -> list[tuple[str, str]]:
    """(command, what it is good for): the two most useful ones."""
    noise = [DOCTOR] if cells.findings.floor.noisy else []
    own = not set(cells.subjects) & set(ending.cases) and bool(ending.cases)
    further = [OTHER_BACKENDS, OTHER_CASES] if own else [OWN_FUNCTION, OTHER_CASES]
    return [*noise, *_again(cells, ending), *further][:2]


def _again(cells: Cells, ending: Ending) -> Iterator[tuple[str, str]]:
    """More launches for the closest race, unless there were many."""
    run = cells.findings.run
    if not cells.timed:
        yield f"adbench run --quick{ending.options(run, '-c', '-b')}", "measure time and memory"
        return
    launches = run.settings.get("launches")
    races = [race for race in ranking.leads(cells) if race.contested and race.case in ending.cases]
    if races and not (isinstance(launches, int) and launches >= RIGOROUS_LAUNCHES):
        closest = min(races, key=_margin)
        chosen = f"-c {closest.case} -n {closest.size}{ending.options(run, '-b')}"
        yield f"adbench run {chosen} --rigorous", "more launches detect smaller differences"


def _margin(race: Lead) -> float:
    """How many times the first's time the second takes."""
    first, second = (cell.spread.median if cell.spread else 1.0 for cell in race.ranked[:2])
    return second / first
