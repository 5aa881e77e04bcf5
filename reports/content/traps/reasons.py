"""Known bugs that a run found again, as lines of text: one for each reason, with its thread and the cases it covers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from adbench.model.backend import HERE
from adbench.model.case import DISCUSSED_IN
from adbench.model.record import grouped

from .. import formatting
from ..cells import Cell, Cells
from ..formatting import OUTCOMES

MOST_LINES = 12
"""For one backend, its heading included; of many backends, all together have `MOST_IN_ALL`."""

MOST_IN_ALL = 60
LONGEST_NAME = 30


def lines(cells: Cells, width: int, *, details: bool = False, more: str = "") -> Iterator[str]:
    """A heading for each backend, then its reasons, those of most cases first. No line is longer than `width`.

    details   every reason with every case; otherwise one line for each reason, and only the first reasons
    more      where the reasons that are left out are: "--json has all"
    """
    known = [cell for cell in cells.every_single() if cell.word == "known"]
    backends = grouped(known, lambda cell: cell.job.backend)
    most = min(MOST_LINES, MOST_IN_ALL // max(1, len(backends)))
    for backend in (name for name in cells.backends if name in backends):
        reasons = [(reason, _cases(of)) for reason, of in grouped(backends[backend], _reason).items()]
        reasons.sort(key=lambda item: -len(item[1]))
        number = formatting.plural(len(_cases(backends[backend])), "case")
        yield f"{OUTCOMES['known'].sign} {formatting.short(backend, LONGEST_NAME)}: known bugs in {number}"
        shown = reasons if details or len(reasons) < most else reasons[: max(0, most - 2)]
        for reason, cases in shown:
            if details:
                text = f"  {reason}: {', '.join(cases)}"
                yield from textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)
            else:
                yield _line(reason, cases, width)
        if shown and len(shown) < len(reasons):
            yield f"  … and {formatting.plural(len(reasons) - len(shown), 'more reason')}{more and f': {more}'}"
    traps = [cell.job.case for cell in known if cell.job.case in cells.traps]
    if traps:
        yield f"See a function step by step: adbench explain {formatting.short(traps[0], LONGEST_NAME)}"


def _line(reason: str, cases: Sequence[str], width: int) -> str:
    """One line: the reason, cut where it must be, its thread, and as many of the cases as there is room for."""
    thread = found.group() if (found := DISCUSSED_IN.search(reason)) else ""
    why, room = reason.removesuffix(thread), width - len("  : ") - len(thread)
    fits = [text for text in _shortened(cases) if len(text) + len(why) <= room]
    names = max(fits, key=len, default=min(_shortened(cases), key=len))
    if len(why) + len(names) > room:
        begin = why[: max(1, room - len(names) - 2)]
        why = f"{begin.rpartition(' ')[0] or begin} …"
    return f"  {why}{thread}: {names}"


def _shortened(cases: Sequence[str]) -> list[str]:
    """All names; or the first one, the first two, …, and how many more there are."""
    some = [f"{', '.join(cases[:n])} +{len(cases) - n}" for n in range(1, len(cases))]
    return [*some, ", ".join(cases)]


def _reason(cell: Cell) -> str:
    """The known fault, thread included."""
    return formatting.visible((cell.reason or "").partition(HERE)[0])


def _cases(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(formatting.short(c.job.case.removeprefix("trap_"), LONGEST_NAME) for c in cells))
