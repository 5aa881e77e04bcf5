"""The families of cases, and the ranking of backends in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from adbench.model.case import ONE_BY_ONE

from ..content import standings
from ..content.standings import Standing

FAMILIES = (
    ("differential equations", {"ode"}),
    ("networks", {"network"}),
    ("Jacobians", {"array-valued"}),
    ("matrices", {"linear-algebra", "matrix"}),
    ("densities", {"density"}),
    ("loops of numbers", ONE_BY_ONE),
    ("arrays", {"vectorised", "elementwise", "random"}),
)
"""Name, and the tags of its cases. A case belongs to the first family that has one of its tags."""

OTHER = "other cases"
"""The family of cases that this adbench does not know, and of those without any of these tags."""


def family_of(tags: Iterable[str]) -> str:
    """The family of a case with these tags."""
    found = set(tags)
    return next((name for name, of in FAMILIES if found & of), OTHER)


@dataclass(frozen=True)
class Ranking:
    """Families with their number of races, and a line for each ranked backend, the fastest over all cases first.

    lines      how the backend stands over all cases, then in each family
    unranked   backends without a correct and timed result
    """

    families: tuple[tuple[str, int], ...]
    lines: tuple[tuple[Standing, ...], ...]
    unranked: tuple[str, ...]


def ranking(
    backends: Sequence[str], races: Sequence[tuple[str, Mapping[str, float]]], family: Callable[[str], str]
) -> Ranking:
    """The ranking from races: (case, backend -> slowdown relative to the fastest correct one)."""
    order = [*(name for name, _ in FAMILIES), OTHER]
    by_family = {name: [of for case, of in races if family(case) == name] for name in order}
    by_family = {name: found for name, found in by_family.items() if found}
    every = standings.of_races(backends, [of for _, of in races])
    lines = tuple(
        (found, *(standings.standing(found.backend, of) for of in by_family.values()))
        for found in every
        if found.slowdown is not None
    )
    families = tuple((name, len(of)) for name, of in by_family.items())
    return Ranking(families, lines, tuple(found.backend for found in every if found.slowdown is None))
