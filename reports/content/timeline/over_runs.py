"""The changes of a cell over runs, in words, for the terminal and the page alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adbench.results.timeline.cell_series import CLOCK, CellSeries, StateChange, TimeChange, Timeline

from .. import formatting

STATES = {"right": ("✓", "right"), "wrong": ("✗", "wrong"), "known": ("⊗", "known bug"), "failing": ("!", "failing")}
"""State of a result -> sign, word."""

MOST_NAME = 40
DOUBTFUL = "?"


@dataclass(frozen=True)
class TimelineChange:
    """One change: the number of its run, its sign, what the cell is since then, since when, and more about it.

    word   the outcome whose colour it has
    """

    run: int
    sign: str
    what: str
    since: str
    more: str
    word: str


def changes(series: CellSeries, names: Sequence[str]) -> list[TimelineChange]:
    """The changes of a cell in the order of the runs, whose names these are."""
    found = [_of_time(change, series.basis, names) for change in series.time_changes]
    found += [_of_state(change, names) for change in series.state_changes]
    return sorted(found, key=lambda change: change.run)


def undecided(timeline: Timeline) -> Iterator[str]:
    """Why no change could be found, with the number of cells, the most frequent reason first."""
    if len(timeline.runs) < 2:
        return
    reasons = Counter(series.undecided for series in timeline.cells if series.undecided and any(series.seconds))
    for reason, number in reasons.most_common():
        yield f"Time not judged in {formatting.plural(number, 'cell')}: {formatting.visible(reason)}"


def _of_time(change: TimeChange, basis: str, names: Sequence[str]) -> TimelineChange:
    slower = change.ratio.estimate > 1
    what = "slower" if slower else "faster"
    since = f"since {formatting.short(names[change.first], MOST_NAME)}"
    if change.earliest < change.latest:
        ends = (formatting.short(names[k], MOST_NAME) for k in (change.earliest, change.latest))
        since += f" (between {' and '.join(ends)})"
    more = f"{formatting.times(change.ratio)} the time before"
    if basis != CLOCK:
        more += f", relative to {formatting.short(basis, MOST_NAME)}"
    if change.doubt:
        return TimelineChange(
            change.first, DOUBTFUL, what, since, f"{more}; {formatting.visible(change.doubt)}", "blind"
        )
    return TimelineChange(change.first, "▲" if slower else "▼", what, since, more, "wrong" if slower else "right")


def _of_state(change: StateChange, names: Sequence[str]) -> TimelineChange:
    sign, after = STATES[change.after]
    since = f"since {formatting.short(names[change.run], MOST_NAME)}"
    more = f"was {STATES[change.before][1]}"
    if change.reason:
        more += f"; {formatting.short(change.reason, 300)}"
    return TimelineChange(change.run, sign, after, since, more, "right" if change.after == "right" else "wrong")
