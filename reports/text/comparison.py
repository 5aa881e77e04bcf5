"""`adbench compare`: the change of each cell, as text for a terminal, Markdown for a pull request, and plain data."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adbench.measure.statistics import Interval
from adbench.model.record import grouped
from adbench.results.compare import ComparedCell, Comparison, InstructionChange, Word
from adbench.results.comparison_inputs import ComparisonInput

from ..content import formatting
from .drawing import NARROWEST, printed


class WordStyle(NamedTuple):
    """How a word is shown: its sign, its style in a terminal, and what it means."""

    sign: str
    style: str
    meaning: str


KINDS: dict[Word, WordStyle] = {
    "now wrong": WordStyle("✗", "bold red", "wrong now, but not before"),
    "now failing": WordStyle("⊗", "bold red", "fails now, but not before"),
    "regression": WordStyle("▲", "bold red", "significantly slower, by more than the margin"),
    "improvement": WordStyle("▼", "bold green", "significantly faster, by more than the margin"),
    "now right": WordStyle("✓", "green", "was wrong or failing"),
    "still wrong": WordStyle("✗", "", "wrong in both runs"),
    "still failing": WordStyle("⊗", "", "failing in both runs"),
    "inconclusive": WordStyle("?", "yellow", "measure with more launches, or on a quieter machine"),
    "same": WordStyle("=", "", "the whole interval is within the margin"),
    "gone": WordStyle("−", "", "only in the old run"),
    "new": WordStyle("+", "", "only in the new run"),
}
QUIET: tuple[Word, ...] = ("still wrong", "still failing", "same", "gone", "new")  # many are counted, not listed
FOLDED: tuple[Word, ...] = ("inconclusive", *QUIET)  # in Markdown
NOTHING = "Nothing to compare"
LONGEST_NAME = 120
LONGEST_REASON = 300
APART = "\u200b"  # a space of no width
MOST_ROWS = 200  # in a comment on a pull request; GitHub takes 65 536 characters


def text(found: Comparison, *, width: int, colour: bool) -> str:
    """For a terminal: no line longer than `width`; readable without colour, since a sign carries each word."""
    return printed(_parts(found, max(width, NARROWEST)), width=width, colour=colour)


def markdown(found: Comparison) -> str:
    """For a pull request: a headline, a table of what changed, the rest folded away."""
    lines = [f"### {_headline(found)}", ""]
    lines += [f"* {_escaped(line)}" for line in _about(found)]
    loud = [row for row in found.rows if row.word not in FOLDED]
    if loud:
        lines += ["", "| | cell | before | after | change | |", "|---|---|--:|--:|--:|---|"]
        lines += [_markdown_row(row) for row in loud[:MOST_ROWS]]
        if len(loud) > MOST_ROWS:
            lines += ["", f"… and {len(loud) - MOST_ROWS} more; `--json` has all."]
    for word, meaning, rows in _kinds([row for row in found.rows if row.word in FOLDED]):
        head = f"{KINDS[word].sign} {_counted(len(rows), word, 'cell')}: {_escaped(meaning)}"
        names = [f"* {_code(row.name)} {_escaped(_figures(row))}".rstrip() for row in rows[:MOST_ROWS]]
        more = [f"* … and {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else []
        lines += ["", f"<details><summary>{head}</summary>", "", *names, *more, "", "</details>"]
    return "\n".join(lines) + "\n"


def data(found: Comparison, exit_code: int) -> dict[str, Any]:
    """Everything, for other programs: shares as numbers, seconds, bytes."""
    return {
        "old": {"name": found.old.name, "made_by": found.old.made_by, "created": found.old.created},
        "new": {"name": found.new.name, "made_by": found.new.made_by, "created": found.new.created},
        "basis": found.basis,
        "margin": found.margin,
        "memory_margin": found.memory_margin,
        "same_machine": found.same,
        "differences": list(found.differ),
        "reference": found.reference,
        "drift": None if found.drift is None else vars(found.drift),
        "floors": [found.old.floor, found.new.floor],
        "undecided": found.undecided,
        "margins": dict(found.margins),
        "one_launch": [found.old.one_launch, found.new.one_launch],
        "notes": list(found.notes),
        "untimed": found.untimed,
        "exit_code": exit_code,
        "cells": [
            {"name": row.name} | {name: value for name, value in asdict(row).items() if name != "key"}
            for row in found.rows
        ],
    }


def _parts(found: Comparison, width: int) -> Iterator[RenderableType]:
    yield Text(_headline(found), "bold")
    for line in _about(found):
        yield Text(line)
    for word, meaning, rows in _kinds(found.rows):
        yield ""
        yield Text(f"{KINDS[word].sign} {_counted(len(rows), word, 'cell')}: {meaning}", KINDS[word].style)
        if word in QUIET and len(rows) > 8:
            shown = formatting.listed([formatting.short(row.name, 40) for row in rows], most=4)
            yield Text(textwrap.indent(textwrap.fill(shown, max(width - 2, 1)), "  "))
        else:
            yield _table(rows) if width >= 90 else _stacked(rows, width)


def _kinds(rows: Sequence[ComparedCell]) -> Iterator[tuple[Word, str, list[ComparedCell]]]:
    """(word, its meaning, rows); inconclusive rows with different reasons are of different kinds."""
    ordered = sorted(rows, key=lambda row: list(KINDS).index(row.word))
    kinds = grouped(ordered, lambda row: (row.word, row.reason if row.word == "inconclusive" else None))
    for (word, reason), kind in kinds.items():
        yield word, KINDS[word].meaning if reason is None else formatting.short(reason, LONGEST_REASON), kind


def _table(rows: Sequence[ComparedCell]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=1)
    table.add_column(overflow="fold", ratio=1)
    for justify in ("right", "right", "left"):
        table.add_column(justify=justify, no_wrap=True)
    for row in rows:
        name = Text(formatting.short(row.name, LONGEST_NAME))
        for line in _remarks(row):
            name.append(f"\n{line}", "dim")
        table.add_row("", name, Text(_time(row.old_seconds)), Text(_time(row.new_seconds)), Text(_change(row)))
    return table


def _stacked(rows: Sequence[ComparedCell], width: int) -> Text:
    """Where columns do not fit: the name on a line, the figures below it."""
    lines = []
    for row in rows:
        name = formatting.short(row.name, LONGEST_NAME)
        lines += textwrap.wrap(name, width - 2, initial_indent="  ", subsequent_indent="    ")
        for line in filter(None, (_figures(row), *_remarks(row))):
            lines += textwrap.wrap(line, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return Text("\n".join(lines))


def _headline(found: Comparison) -> str:
    words = Counter(row.word for row in found.rows)
    return ", ".join(f"{KINDS[word].sign} {_counted(words[word], word)}" for word in KINDS if words[word]) or NOTHING


def _counted(number: int, word: Word, cells: str = "") -> str:
    """ "2 regressions", "6 same"; with a unit "6 cells same"."""
    if word in ("regression", "improvement"):
        return formatting.plural(number, word)
    return f"{formatting.plural(number, cells) if cells else formatting.count(number)} {word}"


def _about(found: Comparison) -> Iterator[str]:
    """The inputs, the basis, and remarks that a reader has to know."""
    named = "".join(f", {formatting.short(name, 40)} {_share(share)}" for name, share in found.margins.items())
    yield f"{_run_name(found.old)} → {_run_name(found.new)}, margin {_share(found.margin)}{named}"
    if found.basis == "clock":
        yield "Compared in seconds: a busier machine looks like a regression."
    elif found.reference:
        yield f"Times are relative to {formatting.short(found.reference, 40)}, measured in the same run."
    else:
        yield "The runs share no reference backend: times are relative to the other backends of the same run."
    if found.old.one_launch or found.new.one_launch:
        which = "One launch each" if found.old.one_launch and found.new.one_launch else "One launch in one of the runs"
        yield f"{which}: it shows no differences between processes; folders with several files do."
    if not found.same:
        how = "compared anyway" if found.basis == "clock" else "seconds are not compared (--absolute compares them)"
        yield f"Two machines: {how}. {_visible('; '.join(found.differ))}"
    if found.drift:
        drift = found.drift
        spread = f" ({_percent(drift.least)} … {_percent(drift.most)})" if drift.cells > 1 else ""
        cells = formatting.plural(drift.cells, "cell")
        yield f"{_visible(drift.backend)} itself changed by {_percent(drift.median)}{spread} in seconds, over {cells}."
    floors = (found.old.floor, found.new.floor)
    if floors != (None, None):
        known = " and ".join("unknown" if floor is None else formatting.percent(floor) for floor in floors)
        yield f"Noise floor (two runs of identical code differed by this much): {known}."
    if counted := [row for row in found.rows if row.instructions]:
        words = Counter(row.instructions.word for row in counted if row.instructions)
        more = f"more in {words['more']}, fewer in {words['less']}, within 1 % in {words['same']}"
        yield f"Instructions of a call ({found.new.counter}): {more} of {formatting.plural(len(counted), 'cell')}."
        worst = max(counted, key=lambda row: row.instructions.new / row.instructions.old if row.instructions else 0.0)
        if worst.instructions and worst.instructions.word == "more":
            yield f"Most added: {_visible(worst.name)}: {_instructions(worst.instructions)}."
    for note in found.notes:
        yield _visible(note[0].upper() + note[1:] + ".")
    if found.undecided:
        yield f"Cannot decide about regressions: {_visible(found.undecided)}."
    if found.untimed:
        yield f"{formatting.plural(found.untimed, 'cell')} correct in both, without times to compare."


def _run_name(side: ComparisonInput) -> str:
    day = f" ({formatting.moment(side.created, None, clock=False)})" if side.created else ""
    return formatting.short(side.name, 60) + day


def _remarks(row: ComparedCell) -> Iterator[str]:
    if row.reason and row.word != "inconclusive":
        yield formatting.short(row.reason, LONGEST_REASON)
    for change in row.memory:
        if change.word != "same":
            sizes = f"{formatting.byte_size(change.old_bytes)} → {formatting.byte_size(change.new_bytes)}"
            yield f"{change.method} memory {sizes}".replace("\u00a0", " ")
    if row.instructions and row.instructions.word != "same":
        yield _instructions(row.instructions)
    if row.prepare and (row.prepare.low > 1.1 or row.prepare.high < 1 / 1.1):
        yield f"time to the first result {_interval(row.prepare)}"


def _figures(row: ComparedCell) -> str:
    times = f"{_time(row.old_seconds)} → {_time(row.new_seconds)}" if row.old_seconds and row.new_seconds else ""
    return ", ".join(filter(None, (times, _change(row))))


def _change(row: ComparedCell) -> str:
    """The change, and what it is relative to."""
    if row.ratio is not None:
        return f"{_interval(row.ratio)} {_relative_to(row)}"
    return f"{_percent(row.clock)} in seconds" if row.clock is not None else ""


def _relative_to(row: ComparedCell) -> str:
    if not row.compared_to:
        return "in seconds"
    if len(row.compared_to) > 1:
        return f"vs {len(row.compared_to)} others"
    return f"vs {formatting.short(row.compared_to[0], 20)}"


def _instructions(change: InstructionChange) -> str:
    return f"instructions of a call {change.old:,.0f} → {change.new:,.0f} ({_percent(change.new / change.old)})"


def _interval(interval: Interval) -> str:
    return f"{_percent(interval.estimate)} ({_percent(interval.low)} … {_percent(interval.high)})"


def _percent(ratio: float) -> str:
    """A ratio as what it is more or less than equal: 1.123 -> "+12.3 %"; past threefold as a multiple."""
    if not math.isfinite(ratio):
        return formatting.MISSING
    return f"{ratio:.3g}×" if ratio >= 3 or ratio <= 1 / 3 else f"{(ratio - 1) * 100:+.1f} %".replace("-", "−")


def _share(value: float) -> str:
    return f"{value * 100:.3g} %"


def _time(seconds: float | None) -> str:
    return formatting.seconds(seconds).replace("\u00a0", " ") if seconds is not None else ""


def _visible(line: str) -> str:
    return formatting.short(line, LONGEST_REASON)


def _markdown_row(row: ComparedCell) -> str:
    sign = f"{KINDS[row.word].sign} {row.word}"
    remarks = "; ".join(_escaped(line) for line in _remarks(row))
    change = _escaped(_change(row))
    change = f"**{change}**" if row.word in ("regression", "improvement") else change
    times = f"{_time(row.old_seconds)} | {_time(row.new_seconds)}"
    return f"| {sign} | {_code(row.name)} | {times} | {change} | {remarks} |"


def _code(name: str) -> str:
    """A name as code: nothing in it is markup, and it stays in its cell of the table."""
    shown = formatting.short(name, LONGEST_NAME).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _escaped(line: str) -> str:
    """A sentence in which nothing is Markdown or HTML, and that calls nobody: a forge looks for @name and #1 after it
    has taken out the backslashes.
    """
    shown = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = "".join(f"\\{c}" if c in "\\`*_[]|" else c for c in shown)
    return shown.replace("@", f"@{APART}").replace("#", f"#{APART}")
