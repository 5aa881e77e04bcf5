"""The outcomes of one release: a run of traps as kinds of outcomes, with what was returned and what was expected."""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.version import InvalidVersion, Version

from adbench.atlas.table import FAULTS
from adbench.model.backend import HERE
from adbench.model.record import Record, Run

KIND_OF = {
    **dict.fromkeys(("right", "approximate", "verified", "surprise"), "r"),
    **dict.fromkeys(("failed", "known"), "e"),
    "unsupported": "u",
    "crashed": "c",
}
"""Outcome of a record without a wrong derivative -> letter; the others are not decided."""
MOST = 160  # characters of a text

FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.@+-]+/)+")

Cell = tuple[str, str, str]
"""Kind, what was returned, and what was expected."""


class NotRun(Exception):
    """A release runs no trap; the message is one line with the reason."""


def outcomes_of(run: Run, backend: str, release: str) -> dict[str, dict[str, Cell]]:
    """Trap -> operator -> outcome. Raises NotRun if the library cannot be imported or is another release."""
    refuse_other_release(run.versions.get(backend), release)
    outcomes: dict[str, dict[str, Cell]] = {}
    for record in run.records:
        of_trap = outcomes.setdefault(record.job.case, {})
        cell = cell_of(record)
        before = of_trap.get(record.job.operator)
        if before is None or before[0] not in FAULTS:  # a fault at one size is the trap's
            of_trap[record.job.operator] = cell
    reasons = {record.reason for record in run.records if record.status in ("unsupported", "failed", "crashed")}
    if len(reasons) == 1 and all(record.verdict is None and record.reason in reasons for record in run.records):
        raise NotRun(short(str(reasons.pop())))
    return outcomes


def refuse_other_release(imported: str | None, release: str) -> None:
    """Raise NotRun if another release than the wanted one would be used."""
    try:
        is_other = imported is not None and Version(imported).public != Version(release).public
    except InvalidVersion:
        is_other = imported != release
    if is_other:
        raise NotRun(f"its environment has {imported}")


def cell_of(record: Record) -> Cell:
    """The outcome of a cell."""
    verdict = record.verdict
    if record.found_wrong and verdict is not None and verdict.worst is not None:
        worst = verdict.worst
        got = f"{worst.got}"
        kind = "n" if "nan" in got.lower() else "w"
        return kind, short(f"{worst.where} = {_number(worst.got)}"), short(_number(worst.expected))
    if record.found_wrong:
        return "w", short(record.verdict.sentence if record.verdict else record.reason or ""), ""
    kind = KIND_OF.get(record.outcome.word, "q")
    return kind, short((record.reason or "").rpartition(HERE)[2]) if kind in FAULTS else "", ""


def signature(of_trap: Mapping[str, Cell]) -> tuple[tuple[str, str], ...]:
    """What is compared between releases: the kind of each fault."""
    return tuple(sorted((operator, kind) for operator, (kind, _, _) in of_trap.items() if kind in FAULTS))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def short(text: str) -> str:
    """One line, without the folders of this machine."""
    line = FOLDERS.sub("", " ".join(text.split()))
    return line if len(line) <= MOST else line[: MOST - 1] + "…"
