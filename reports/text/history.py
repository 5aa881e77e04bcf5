"""`adbench history`: a line for each run, newest last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from adbench.results.history import Entry

from ..content import formatting
from .drawing import printed

SIDE_BY_SIDE = 100  # columns from which a table fits


def text(found: Sequence[Entry], width: int) -> str:
    """For people. No line is longer than `width`."""
    if not found:
        return "No runs found.\n"
    entries = _table(found) if width >= SIDE_BY_SIDE else "\n".join(map(_stacked, found))
    return printed([entries], width=width)


def data(found: Sequence[Entry]) -> list[dict[str, Any]]:
    """For other programs."""
    return [asdict(entry) | {"path": str(entry.path)} for entry in found]


def _table(found: Sequence[Entry]) -> Any:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("run", "date", "machine", "content"):
        table.add_column(name, overflow="fold")
    for name in ("cells", "wrong", "noise floor"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for entry in found:
        table.add_row(*(Text(part) for part in _parts(entry)))
    return table


def _parts(entry: Entry) -> tuple[str, ...]:
    path = formatting.visible(str(entry.path))
    if entry.state == "unreadable":
        return path, "", "", "", "", "", "", f"unreadable: {formatting.short(entry.reason or '', 200)}"
    made = _local_time(entry.created or "")
    floor = formatting.MISSING if entry.floor is None else _percent(entry.floor)
    return path, made, entry.machine or "", _what(entry), _cells(entry), str(entry.wrong), floor, entry.state


def _local_time(created: str) -> str:
    """In this machine's zone, which is named: folders of runs have local times too. What is no date stays as it is."""
    try:
        return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M %Z")
    except (ValueError, OverflowError, OSError):
        return formatting.visible(created[:16])


def _stacked(entry: Entry) -> str:
    path, made, machine, what, cells, wrong, floor, state = _parts(entry)
    if entry.state == "unreadable":
        return f"{path}\n  {state}"
    return f"{path}\n  {made}, machine {machine}, {state}\n  {what}: {cells} cells, {wrong} wrong, noise floor {floor}"


def _percent(share: float) -> str:
    """Whole percents: 1.38 -> "138 %", 0.004 -> "< 1 %"."""
    return "< 1 %" if 0 < share < 0.005 else f"{formatting.count(round(100 * share))} %"


def _cells(entry: Entry) -> str:
    return str(entry.done) if entry.done == entry.cells else f"{entry.done}/{entry.cells}"


def _what(entry: Entry) -> str:
    """The names where they are few, else how many."""
    return f"{_few(entry.cases, 'case')} × {_few(entry.backends, 'backend')}"


def _few(names: Sequence[str], kind: str) -> str:
    if len(names) > 2:
        return formatting.plural(len(names), kind)
    return formatting.listed([formatting.short(name, 24) for name in names]) or f"no {kind}"
