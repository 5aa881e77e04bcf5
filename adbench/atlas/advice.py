"""Which version to use: releases by their number of faults, and what each upgrade repairs and breaks."""

from __future__ import annotations

from dataclasses import dataclass

from adbench.atlas.table import NONE, Atlas, AtlasRow


@dataclass(frozen=True)
class Upgrade:
    """Two neighbouring releases with results that differ, and the rows that the later one repairs and breaks."""

    before: str
    after: str
    repaired: tuple[AtlasRow, ...]
    broken: tuple[AtlasRow, ...]


Faults = tuple[int, int]
"""The number of traps and operations with a wrong gradient, and of those with another wrong derivative only."""


def faults(atlas: Atlas, release: int) -> Faults:
    """How many faults the release has, in the traps and operations that every release with results has run."""
    lacking = {row.name for row in atlas.rows if any(row.kind(k) == NONE for k in atlas.usable)}
    faulty = [row for row in atlas.rows if row.is_faulty(release) and row.name not in lacking]
    gradients = {row.name for row in faulty if "gradient" in row.operators}
    return len(gradients), len({row.name for row in faulty} - gradients)


def ranking(atlas: Atlas) -> list[tuple[Faults, list[str]]]:
    """(faults, releases with so many), the fewest first; neighbouring releases as "first to last", the newest first."""
    spans: dict[Faults, list[tuple[int, int]]] = {}
    for place, k in reversed(list(enumerate(atlas.usable))):
        of_count = spans.setdefault(faults(atlas, k), [])
        if of_count and of_count[-1][0] == place + 1:
            of_count[-1] = (place, of_count[-1][1])
        else:
            of_count.append((place, place))
    names = [atlas.releases[k].name for k in atlas.usable]
    return sorted(
        (count, [names[a] if a == b else f"{names[a]} to {names[b]}" for a, b in of_count])
        for count, of_count in spans.items()
    )


def upgrades(atlas: Atlas) -> list[Upgrade]:
    """The upgrades that repair or break something, oldest first."""
    changed: dict[tuple[int, int], list[AtlasRow]] = {}
    for row in atlas.rows:
        for pair in row.changes():
            changed.setdefault(pair, []).append(row)
    return [
        Upgrade(
            atlas.releases[before].name,
            atlas.releases[after].name,
            tuple(row for row in rows if row.is_faulty(before)),
            tuple(row for row in rows if row.is_faulty(after)),
        )
        for (before, after), rows in sorted(changed.items())
    ]


def columns(atlas: Atlas) -> list[tuple[int, int]]:
    """(first, last) of neighbouring releases with equal outcomes in every row that fails in some release; those without
    results are apart."""
    spans: list[tuple[int, int]] = []
    faulty = [row for row in atlas.rows if row.ever_faulty]
    for k, release in enumerate(atlas.releases):
        if (
            spans
            and all(row.kind(k - 1) == row.kind(k) for row in faulty)
            and bool(release.reason) == bool(atlas.releases[k - 1].reason)
        ):
            spans[-1] = (spans[-1][0], k)
        else:
            spans.append((k, k))
    return spans
