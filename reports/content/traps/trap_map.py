"""The heat map of the traps: for each backend and family how many gradients are wrong, and the bugs behind each number.

A run that checked traps shows its own results. Any other run shows what is known.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from adbench.model.backend import HERE, KnownBugs, Trap
from adbench.model.case import ARROW, parts_of_reason
from adbench.model.operator import EVERY_OPERATOR, OF_SECOND_ORDER
from adbench.model.record import grouped
from adbench.model.settings import PROCESSOR
from adbench.oracle.evidence import EntryEvidence

from .. import formatting
from ..cells import Cell, Cells
from ..formatting import OUTCOMES, Word

WRONG: frozenset[Word] = frozenset({"wrong", "known", "failed", "crashed", "timed_out"})
NOT_RUN: frozenset[Word] = frozenset({"unsupported", "skipped"})
NO_FAMILY = "traps"
"""For files of an adbench that did not record families."""

LEVELS = (0.0, 0.1, 0.25, 0.5)
"""The shares of wrong results above which a square has the next darker colour."""

MOST_NAMED = 16
LONGEST = 200  # characters of a reason
_Numbers = Mapping[tuple[str, str], int]
"""(backend, family) -> the number of the list of its bugs."""

THREAD = re.compile(r"(?:as )?([A-Za-z0-9-]+/[A-Za-z0-9_.-]*[A-Za-z0-9_-])#([0-9]+)")


def level(wrong: int, of: int) -> int:
    """The number of a square's colour, 0 (none is wrong) to 4."""
    return sum(wrong > share * of for share in LEVELS)


@dataclass(frozen=True)
class Bug:
    """One wrong result, as a line of a list.

    operators   the wrong operators, in words; "" if a value or a first derivative is wrong
    is_first    whether a value or a first derivative is among them
    word        "known" if the fault is listed, else the outcome
    thread      as in `KnownBug`; `url` is its address, "" where the thread is no plain owner/repository#number
    """

    trap: str
    function: str
    expected: str
    got: str
    reason: str
    thread: str
    operators: str
    is_first: bool
    word: Word = "known"

    @property
    def url(self) -> str:
        """The address of the thread."""
        found = THREAD.fullmatch(self.thread)
        return f"https://github.com/{found[1]}/issues/{found[2]}" if found else ""


@dataclass(frozen=True)
class TrapMapSquare:
    """A backend in a family.

    wrong    traps with a wrong value or first derivative; `others`: those where only second derivatives are wrong, or
             relations between calls
    of       traps in the family, without `unsupported` ones
    level    0 (none is wrong) to 4, for the colour
    list     the number of the list of its bugs; None without bugs
    """

    wrong: int
    others: int
    of: int
    unsupported: int
    list: int | None = None

    @property
    def level(self) -> int:
        """By the share of wrong gradients."""
        return level(self.wrong, self.of)


@dataclass(frozen=True)
class TrapMapRow:
    """A backend: one square for each family, and all families together."""

    backend: str
    squares: tuple[TrapMapSquare, ...]
    total: TrapMapSquare


@dataclass(frozen=True)
class BugList:
    """The bugs of one family that these backends have in common. `number` counts over the page."""

    number: int
    backends: tuple[str, ...]
    bugs: tuple[Bug, ...]


@dataclass(frozen=True)
class TrapMap:
    """The map.

    families   (name, how many traps), in the order of the columns
    rows       fewest wrong gradients first
    lists      family -> the lists of its bugs
    total      how many traps there are
    checked    whether these are results of the run; else what files list as known
    unlisted   backends without a row: their files list no bug, or they support no trap
    """

    families: tuple[tuple[str, int], ...]
    rows: tuple[TrapMapRow, ...]
    lists: dict[str, list[BugList]]
    total: int
    checked: bool
    unlisted: tuple[str, ...]

    @property
    def counts(self) -> str:
        """ "tape 1 · casadi 13 · torch 31 of 121": wrong gradients, fewest first."""
        shown = [f"{formatting.short(row.backend, 24)} {row.total.wrong}" for row in self.rows[:MOST_NAMED]]
        more = len(self.rows) - len(shown)
        return f"{' · '.join(shown)}{f' · {more} more,' if more else ''} of {formatting.count(self.total)}"

    @property
    def sentence(self) -> str:
        """The map in one line."""
        return f"{'Wrong' if self.checked else 'Known wrong'} on classical traps: {self.counts}"


@dataclass
class _FamilyBugs:
    """What is known of one backend in one family: its bugs, and how many traps it cannot run."""

    bugs: list[Bug] = field(default_factory=list)
    unsupported: int = 0


_ByFamily = Mapping[str, _FamilyBugs]


def trap_map(cells: Cells) -> TrapMap | None:
    """The map of a run; None where nothing is known of any trap."""
    known = cells.findings.run.known_bugs
    if cells.traps:
        families = Counter(_described(cells, known, trap).family for trap in cells.traps)
        found = _checked(cells, known)
    else:
        families = Counter(known.families)
        device = str(cells.findings.run.settings.get("device", PROCESSOR))
        listed = {b: _listed(known, b, device) for b in cells.backends if b in known.backends}
        found = {backend: bugs for backend, bugs in listed.items() if bugs}
    if not found:
        return None
    lists, numbers = _lists(families, found)
    rows = [_row(backend, families, of, numbers) for backend, of in found.items()]
    return TrapMap(
        families=tuple(families.items()),
        rows=tuple(sorted(rows, key=lambda row: (row.total.wrong, row.total.others))),
        lists=lists,
        total=families.total(),
        checked=bool(cells.traps),
        unlisted=tuple(backend for backend in cells.backends if backend not in found),
    )


def _listed(known: KnownBugs, backend: str, device: str) -> _ByFamily:
    """What is known of a backend on this device."""
    found: dict[str, _FamilyBugs] = {}
    for bug in known.backends[backend]:
        if not bug.was_seen_on(device):
            continue
        trap = known.traps.get(bug.trap, Trap(NO_FAMILY, bug.trap, ""))
        wrong = [name for name in EVERY_OPERATOR if bug.concerns(name)]
        first = _is_first(wrong)
        expected = trap.expected if first else ""
        words = _in_words(wrong, EVERY_OPERATOR)
        made = Bug(bug.trap, trap.function, expected, bug.got, bug.reason, bug.thread, words, first)
        found.setdefault(trap.family, _FamilyBugs()).bugs.append(made)
    return found


def _checked(cells: Cells, known: KnownBugs) -> dict[str, _ByFamily]:
    """What the run found, of the backends that can run any of the traps."""
    of_traps = (cell for cell in cells.every_single() if cell.job.case in cells.traps)
    results = grouped(of_traps, lambda cell: (cell.job.backend, cell.job.case))
    found: dict[str, dict[str, _FamilyBugs]] = {}
    for (backend, name), group in results.items():
        trap = _described(cells, known, name)
        here = found.setdefault(backend, {}).setdefault(trap.family, _FamilyBugs())
        here.unsupported += all(cell.word in NOT_RUN for cell in group)
        threads = {bug.reason: bug.thread for bug in known.backends.get(backend, ()) if bug.trap == name}
        wrong = grouped((cell for cell in group if cell.word in WRONG), lambda cell: (cell.word, _told(cell)))
        ran = [cell.job.operator for cell in group if cell.word not in NOT_RUN]
        here.bugs += [_found_now(trap, told, bugs, ran, threads) for (_, told), bugs in wrong.items()]
    none = {backend for backend, of in found.items() if sum(f.unsupported for f in of.values()) == len(cells.traps)}
    return {backend: of for backend, of in found.items() if backend not in none}


def _found_now(trap: Trap, told: str, wrong: Sequence[Cell], ran: Sequence[str], threads: Mapping[str, str]) -> Bug:
    """The results that are wrong for one reason; `told` is the known fault, "" if it is none."""
    first, operators = wrong[0], [cell.job.operator for cell in wrong]
    listed, why, thread = parts_of_reason(told)
    verdict = first.record.verdict if first.record else None
    entry = verdict.worst if verdict and verdict.word == "wrong" else None
    is_first = _is_first(operators)
    expected, got = _numbers(entry) if entry else ("", listed or OUTCOMES[first.word].label)
    return Bug(
        first.job.case,
        trap.function,
        trap.expected if is_first and trap.expected else expected,
        got,
        formatting.short(why if told else "" if entry else first.reason or "", LONGEST),
        thread or threads.get(why, ""),
        _in_words(operators, ran),
        is_first,
        first.word,
    )


def _told(cell: Cell) -> str:
    """The known fault that the result shows; "" if it is none."""
    return (cell.reason or "").partition(HERE)[0] if cell.word == "known" else ""


def _described(cells: Cells, known: KnownBugs, name: str) -> Trap:
    """The trap; from the summary of its case in a file that says no more."""
    function, _, expected = cells.findings.run.cases.get(name, name).removesuffix(".").partition(ARROW)
    return known.traps.get(name, Trap(NO_FAMILY, function, expected))


def _numbers(entry: EntryEvidence) -> tuple[str, str]:
    """(expected, got) of the entry that decides; the second with its place if it is one of several."""
    low, high = entry.interval
    for digits in (6, 15):
        got, expected = (f"{number + 0.0:.{digits}g}" for number in (entry.got, entry.expected))
        if got != expected:
            break
    if math.isnan(entry.expected):
        expected = "a finite number"
    elif low < high:
        expected = f"{low:.6g} to {high:.6g}"
    return expected, f"{got} in {entry.place}" if entry.index else got


def _is_first(operators: Iterable[str]) -> bool:
    """Whether any of them is a value or a first derivative."""
    return any(name in EVERY_OPERATOR and name not in OF_SECOND_ORDER for name in operators)


def _in_words(wrong: Sequence[str], ran: Iterable[str]) -> str:
    """Which operators are wrong, where it is not the gradient."""
    if _is_first(wrong):
        return ""
    every = OF_SECOND_ORDER.intersection(ran) <= set(wrong)
    return "all second derivatives" if every else formatting.listed(wrong, most=4)


def _lists(families: Iterable[str], found: Mapping[str, _ByFamily]) -> tuple[dict[str, list[BugList]], _Numbers]:
    """The lists by family, the same one for all backends that have the same bugs; and its number for each of them."""
    lists: dict[str, list[BugList]] = {}
    numbers: dict[tuple[str, str], int] = {}
    for family in families:
        same: dict[tuple[Bug, ...], list[str]] = {}
        for backend, of in found.items():
            if family in of and of[family].bugs:
                same.setdefault(tuple(of[family].bugs), []).append(backend)
        for bugs, backends in same.items():
            numbers |= {(backend, family): len(set(numbers.values())) for backend in backends}
            lists.setdefault(family, []).append(BugList(numbers[backends[0], family], tuple(backends), bugs))
    return lists, numbers


def _row(backend: str, families: Mapping[str, int], found: _ByFamily, numbers: _Numbers) -> TrapMapRow:
    squares = []
    for family, total in families.items():
        here = found.get(family, _FamilyBugs())
        wrong = {bug.trap for bug in here.bugs if bug.is_first}
        others = {bug.trap for bug in here.bugs} - wrong
        of = total - here.unsupported
        squares.append(TrapMapSquare(len(wrong), len(others), of, here.unsupported, numbers.get((backend, family))))
    sums = (sum(getattr(square, name) for square in squares) for name in ("wrong", "others", "of", "unsupported"))
    return TrapMapRow(backend, tuple(squares), TrapMapSquare(*sums))
