"""Which version to use: releases by their number of faults, and what each upgrade repairs and breaks."""

from __future__ import annotations

from dataclasses import dataclass

from adbench.atlas.table import Atlas, Row


@dataclass(frozen=True)
class Upgrade:
    """Two neighbouring releases with results that differ, and the rows that the later one repairs and breaks."""

    before: str
    after: str
    repaired: tuple[Row, ...]
    broken: tuple[Row, ...]


def faults(atlas: Atlas, release: int) -> int:
    """The number of traps and operations with a fault in the release."""
    return len({row.name for row in atlas.rows if row.is_faulty(release)})


def ranking(atlas: Atlas) -> list[tuple[int, list[str]]]:
    """(number of faults, releases with so many), the fewest first; the releases newest first."""
    found: dict[int, list[str]] = {}
    for k in reversed(atlas.usable):
        found.setdefault(faults(atlas, k), []).append(atlas.releases[k].name)
    return sorted(found.items())


def upgrades(atlas: Atlas) -> list[Upgrade]:
    """The upgrades that repair or break something, oldest first."""
    changed: dict[tuple[int, int], list[Row]] = {}
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
    """(first, last) of neighbouring releases with equal outcomes in every row, and of those without results."""
    found: list[tuple[int, int]] = []
    for k, release in enumerate(atlas.releases):
        last = found[-1] if found else None
        if (
            last is not None
            and _alike(atlas, last[1], k)
            and bool(release.reason) == bool(atlas.releases[k - 1].reason)
        ):
            found[-1] = (last[0], k)
        else:
            found.append((k, k))
    return found


def _alike(atlas: Atlas, a: int, b: int) -> bool:
    return all(row.is_faulty(a) == row.is_faulty(b) and row.kind(a) == row.kind(b) for row in atlas.rows)
