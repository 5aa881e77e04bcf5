"""Compare two runs cell by cell: which cells became slower or wrong, and whether the data can decide that.

A regression is a cell that is significantly slower by more than the margin: by the one-sided Mann-Whitney test over
launches, whose null hypothesis is a change of at most the margin, with Holm's correction over all cells. The change is
relative to other backends of the same run (changes.py), and the clock must agree. The clock alone decides with
`absolute`, and about benchmarks of other programs, which have no backend.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from adbench.measure.statistics import SIGNIFICANT, Interval, holm
from adbench.measure.unpaired import FEWEST, exceeds_p, least_p, shift
from adbench.model.errors import UsageError
from adbench.model.record import Job
from adbench.results.changes import Change, Pair, by_the_clock, common_reference, groups, pairs, relative
from adbench.results.comparison_inputs import (
    USEFUL_ROUNDS,
    ComparisonInput,
    Key,
    Margins,
    Sample,
    differences,
    name_of,
)

Word = Literal[
    "now wrong",
    "now failing",
    "regression",
    "improvement",
    "now right",
    "still wrong",
    "still failing",
    "inconclusive",
    "same",
    "gone",
    "new",
]
"""What happened to a cell, in the order in which reports list it.

now wrong       wrong in the new run only
now failing     correct or absent before; raises, crashes or times out now
regression      significantly slower by more than the margin
improvement     significantly faster by more than the margin
now right       wrong or failing before
still wrong     wrong in both runs; still failing: failing in both
inconclusive    none of these can be decided, for the given reason, or because the interval is too wide
same            the whole interval is within the margin
gone, new       correct, and only in the old or the new run
"""

Amount = Literal["more", "less", "same"]

MORE_ROUNDS = (
    f"write files with {USEFUL_ROUNDS} or more (pytest --benchmark-min-rounds={USEFUL_ROUNDS} --benchmark-json=FILE), "
    "or compare folders with several files"
)
INSTRUCTION_MARGIN = 0.01
"""Changes of the number of instructions up to this share are ignored. Identical code differed by at most 0.9 %
(docs/how-to/run-in-ci.md)."""
MEMORY_SLACK = 65_536
"""Changes up to this many bytes are ignored, because processes take whole pages and blocks of them."""


@dataclass(frozen=True)
class MemoryChange:
    """The peak of a call by one method. `word`: beyond the memory margin and MEMORY_SLACK, or not."""

    method: str
    old_bytes: float
    new_bytes: float
    word: Amount


@dataclass(frozen=True)
class InstructionChange:
    """The instructions of a call. `word`: beyond INSTRUCTION_MARGIN, or not."""

    old: float
    new: float
    word: Amount


@dataclass(frozen=True)
class ComparedCell:
    """A cell.

    ratio     new time / old time, relative to `compared_to`
    compared_to   backends of the same run; empty if `ratio` compares seconds
    margin    changes in time below this share are ignored
    p         of a change within the margin, adjusted for all cells; None if no test was made
    launches  of the old and the new run that were used; blocks of rounds of an input that is `one_launch`
    clock     new time / old time by the clock; None for two machines, unless `absolute`
    prepare   new / old of the time until the first result, by the clock
    unclear   of two backends one changed by more than the margin, and the clock does not show which
    """

    key: Key
    word: Word
    reason: str | None = None
    ratio: Interval | None = None
    compared_to: tuple[str, ...] = ()
    margin: float = 0.05
    p: float | None = None
    launches: tuple[int, int] = (0, 0)
    old_seconds: float | None = None
    new_seconds: float | None = None
    clock: float | None = None
    prepare: Interval | None = None
    memory: tuple[MemoryChange, ...] = ()
    instructions: InstructionChange | None = None
    unclear: bool = False

    @property
    def name(self) -> str:
        """`case[size]-backend-operator`."""
        return name_of(self.key)


@dataclass(frozen=True)
class Drift:
    """The reference backend's own change by the clock: the median over its cells, the least and the most.

    Ratios, new / old. The machine causes it, unless the backend's own version changed.
    """

    backend: str
    cells: int
    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Comparison:
    """`new` against `old`.

    basis      how times are compared: relative to "reference" (other backends of the run) or all by the "clock"
    margin     for every cell but those of `margins`, each a cell, case or glob with its own margin
    same       whether both ran on one machine; `differ` lists the differences
    reference  the backend that both runs have; None without one
    undecided  why this comparison can find no regression; None if it can
    untimed    cells that are correct in both runs but have no times
    notes      further remarks, such as changed versions
    """

    old: ComparisonInput
    new: ComparisonInput
    basis: Literal["reference", "clock"]
    margin: float
    memory_margin: float
    same: bool
    differ: tuple[str, ...]
    reference: str | None
    drift: Drift | None
    undecided: str | None
    rows: tuple[ComparedCell, ...]
    untimed: int
    notes: tuple[str, ...]
    margins: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line instead of thousands of numbers."""
        words = ", ".join(f"{count} {word}" for word, count in Counter(row.word for row in self.rows).items())
        return f"<Comparison of {self.new.name!r} with {self.old.name!r}: {len(self.rows)} cells: {words}>"


def compare(
    old: ComparisonInput,
    new: ComparisonInput,
    *,
    margin: float = 0.05,
    margins: Mapping[str, float] | None = None,
    memory_margin: float = 0.1,
    absolute: bool = False,
) -> Comparison:
    """Compare every cell of both runs. `absolute`: compare times by the clock alone, also between machines.

    Raises UsageError if the two have no cell in common, or no cell for a name in `margins`.
    """
    if not old.samples.keys() & new.samples.keys():
        raise UsageError(
            f"{old.name} and {new.name} have no cell in common (the first cells are {_first(old)} and {_first(new)}); "
            "compare runs of the same cases, sizes and backends"
        )
    limits = Margins(margin, margins or {}, (*old.samples, *new.samples))
    differ = tuple(differences(old.machine, new.machine))
    timed = pairs(old, new)
    seconds = absolute or (bool(timed) and not differ and all(isinstance(pair.key, str) for pair in timed))
    reference = common_reference(old, new, timed)
    changes: dict[Key, tuple[Pair, Change | None]] = {}
    for group in groups(timed):
        found = relative(group, reference, same_machine=not differ)
        if absolute or (isinstance(group[0].key, str) and not differ):  # without a backend there is nothing else
            found = ((pair, by_the_clock(pair)) for pair in group)
        changes |= {pair.key: (pair, moved) for pair, moved in found}
    rows = [
        _timed(
            pair, moved, limits.of(pair.key), one_launch=(old.one_launch, new.one_launch), clock=absolute or not differ
        )
        for pair, moved in changes.values()
    ]
    rows = _corrected(rows, changes)
    timed_rows = {row.key: row for row in rows}
    every, untimed, counted = [], 0, not differ and old.counter == new.counter
    for key in dict.fromkeys((*old.samples, *new.samples)):
        a, b = old.samples.get(key, Sample(key, "absent")), new.samples.get(key, Sample(key, "absent"))
        if row := timed_rows.get(key) or _state(a, b):
            instructions = _instructions(a, b) if counted else None
            every.append(replace(row, memory=_memory(a, b, memory_margin), instructions=instructions))
        else:
            untimed += a.state == b.state == "right"
    order = {word: place for place, word in enumerate(get_args(Word))}
    return Comparison(
        old=old,
        new=new,
        basis="clock" if seconds else "reference",
        margin=margin,
        memory_margin=memory_margin,
        same=not differ,
        differ=differ,
        reference=reference,
        drift=_drift(timed, reference) if not differ or absolute else None,
        undecided=_undecided(old, new, rows),
        rows=tuple(sorted(every, key=lambda row: order[row.word])),
        untimed=untimed,
        notes=tuple(_notes(old, new, reference)),
        margins=limits.named,
    )


def _timed(
    pair: Pair, moved: Change | None, margin: float, *, one_launch: tuple[bool, bool], clock: bool
) -> ComparedCell:
    """The row of a timed cell, before all are tested together."""
    prepare = None
    if clock and min(len(pair.old.prepare), len(pair.new.prepare)) >= FEWEST:
        prepare = shift(list(pair.new.prepare.values()), list(pair.old.prepare.values())).exp()
    row = ComparedCell(
        pair.key,
        "inconclusive",
        margin=margin,
        old_seconds=pair.old.seconds_per_call if clock else None,
        new_seconds=pair.new.seconds_per_call if clock else None,
        clock=math.exp(pair.clock) if clock else None,
        prepare=prepare,
        launches=(len(pair.old.logs), len(pair.new.logs)),
    )
    if moved is None:
        return replace(
            row,
            reason="no other backend was measured in the same run, so drift of the machine cannot be separated; "
            "--absolute compares seconds",
        )
    row = replace(row, launches=(len(moved.old), len(moved.new)), compared_to=moved.compared_to)
    if min(row.launches) < FEWEST:
        if any(one_launch):
            rounds = [sum(map(len, side.logs.values())) for side in (pair.old, pair.new)]
            return replace(row, reason=f"{_listed(rounds)} rounds are too few; {MORE_ROUNDS}")
        return replace(row, reason=f"needs {FEWEST} launches in each run; there are {_listed(row.launches)}")
    return replace(row, ratio=shift(moved.new, moved.old).exp())


def _corrected(rows: Sequence[ComparedCell], changes: dict[Key, tuple[Pair, Change | None]]) -> list[ComparedCell]:
    """The rows with their words: each tested, corrected for all tests."""
    edges = {row.key: math.log1p(row.margin) for row in rows}
    tested = {row.key: change for row in rows if row.ratio and (change := changes[row.key][1])}
    slower = dict(zip(tested, holm([exceeds_p(c.new, c.old, edges[k]) for k, c in tested.items()]), strict=True))
    faster = dict(zip(tested, holm([exceeds_p(c.old, c.new, edges[k]) for k, c in tested.items()]), strict=True))
    found = []
    for row in rows:
        change = tested.get(row.key)
        if row.ratio and change:
            p = min(slower[row.key], faster[row.key])
            sign = 1 if slower[row.key] <= faster[row.key] else -1
            word, reason = _judged(row.ratio, p, sign, change, edges[row.key], len(tested))
            unclear = change.other is not None and p <= SIGNIFICANT and word == "inconclusive"
            row = replace(row, word=word, reason=reason, p=p, unclear=unclear)
        old, new = changes[row.key][0].old.how, changes[row.key][0].new.how
        if old != new:
            row = replace(row, reason="; ".join(filter(None, (row.reason, f"computed differently: {old} → {new}"))))
        found.append(row)
    return _cleared(found, changes)


def _cleared(rows: Sequence[ComparedCell], changes: dict[Key, tuple[Pair, Change | None]]) -> list[ComparedCell]:
    """In a group of two, a change of one by the clock clears the other.

    A reference that seems faster does not clear the other: a regression of the other on a machine that got faster looks
    the same.
    """
    steady = {key for key, (_, found) in changes.items() if found and found.steady}
    moved = {r.key for r in rows if r.word == "regression" or (r.word == "improvement" and r.key not in steady)}
    found = []
    for row in rows:
        other = changes[row.key][1] if row.unclear else None
        if other and isinstance(row.key, Job) and replace(row.key, backend=other.compared_to[0]) in moved:
            row = replace(row, unclear=False, reason=f"{other.compared_to[0]} changed, not this backend")
        found.append(row)
    return found


def _judged(ratio: Interval, p: float, sign: int, moved: Change, edge: float, tests: int) -> tuple[Word, str | None]:
    against = _listed(moved.compared_to) or "the clock"
    if p <= SIGNIFICANT:
        if moved.by_clock_too(sign, edge):
            return ("regression" if sign > 0 else "improvement"), None
        reason = f"{'slower' if sign > 0 else 'faster'} relative to {against}, but not in seconds"
        if moved.other is not None:
            reason += ": either backend or the machine may have changed; measure a third backend in the same run"
        return "inconclusive", reason
    if ratio.level >= 0.9 and -edge <= math.log(ratio.low) and math.log(ratio.high) <= edge:
        return "same", None
    if least_p(len(moved.old), len(moved.new)) * tests > SIGNIFICANT:
        return "inconclusive", f"{len(moved.old)} and {len(moved.new)} launches are too few for {tests} cells"
    return "inconclusive", None


def _state(old: Sample, new: Sample) -> ComparedCell | None:
    """The row of a cell that was not timed in both runs; None if there is nothing to report."""
    before, after, key = old.state, new.state, new.key
    bad = ("wrong", "known")
    if after in bad:
        known = after == "known" and before == "absent"
        return None if known else ComparedCell(key, "still wrong" if before in bad else "now wrong", new.reason)
    if after == "failing":
        word: Word = "still failing" if before == "failing" else "new" if before == "absent" else "now failing"
        return ComparedCell(key, word, new.reason)
    if after == "absent":
        return None if before == "absent" else ComparedCell(key, "gone", new.reason or "not in the new run")
    if before == "absent":
        return ComparedCell(key, "new")
    if before != "right":
        return ComparedCell(key, "now right", old.reason)
    if bool(old.logs) != bool(new.logs):
        return ComparedCell(key, "inconclusive", f"timed in the {'old' if old.logs else 'new'} run only")
    return None


def _memory(old: Sample, new: Sample, margin: float) -> tuple[MemoryChange, ...]:
    both = [(method, before, new.memory[method]) for method, before in old.memory.items() if method in new.memory]
    return tuple(MemoryChange(*of, _beyond(*of[1:], max(MEMORY_SLACK, margin * of[1]))) for of in both)


def _instructions(old: Sample, new: Sample) -> InstructionChange | None:
    """The change of the number of instructions; None if they were not counted in both runs."""
    a, b = old.instructions, new.instructions
    return None if a is None or b is None else InstructionChange(a, b, _beyond(a, b, INSTRUCTION_MARGIN * a))


def _beyond(before: float, after: float, slack: float) -> Amount:
    return "same" if abs(after - before) <= slack else "more" if after > before else "less"


def _drift(timed: Sequence[Pair], reference: str | None) -> Drift | None:
    moved = [pair.clock for pair in timed if getattr(pair.key, "backend", None) == reference]
    if reference is None or not moved:
        return None
    middle, least, most = (math.exp(float(value)) for value in (np.median(moved), min(moved), max(moved)))
    return Drift(reference, len(moved), middle, least, most)


def _undecided(old: ComparisonInput, new: ComparisonInput, rows: Sequence[ComparedCell]) -> str | None:
    """Why this comparison can find no regression, and what to do; None if it can."""
    if quick := [side for side in (old, new) if side.quick]:
        names = _listed([side.name for side in quick])
        return f"{names}: measured with --quick, too short for a decision; measure again: {quick[0].again}"
    for side in (old, new):
        if side.floor is not None and side.floor > min((row.margin for row in rows), default=math.inf):
            differed = f"two runs of identical code differed by {side.floor * 100:.1f} %"
            return f"too noisy: in {side.name} {differed}, more than the margin"
    if not rows:
        return "no correct cell was timed in both runs"
    tested = [row for row in rows if row.p is not None]
    if not tested:
        reasons = [row.reason or "" for row in rows]
        return max(set(reasons), key=reasons.count)
    if all(least_p(*row.launches) * len(tested) > SIGNIFICANT for row in tested):
        if old.one_launch or new.one_launch:
            return f"too few rounds for {len(tested)} benchmarks; {MORE_ROUNDS}"
        return f"too few launches for {len(tested)} cells; measure with more launches, or fewer cells"
    return None


def _notes(old: ComparisonInput, new: ComparisonInput, reference: str | None) -> list[str]:
    changed = [
        f"{name} {old.conditions.get(name, '—')} → {new.conditions.get(name, '—')}"
        for name in dict.fromkeys((*old.conditions, *new.conditions))
        if old.conditions.get(name) != new.conditions.get(name)
    ]
    found = [f"changed versions: {', '.join(changed)}"] if changed else []
    if reference and old.conditions.get(reference) != new.conditions.get(reference):
        found.append(f"the reference backend {reference} has changed its version")
    return found


def _first(side: ComparisonInput) -> str:
    return repr(name_of(next(iter(side.samples)))) if side.samples else "none, it has no cells"


def _listed(values: Collection[object]) -> str:
    return " and ".join(map(str, values))
