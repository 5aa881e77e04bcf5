"""The verdict of a run in a few sentences, which head the page and the terminal: which library is fastest and right.

Libraries are compared with each other alone. adbench's own engine is named apart, and never as the fastest library;
hand-written derivatives and finite differences are not named at all, unless the run has nothing else. A wrong result is
never called fast, because `ranking` leaves it out, and only significant differences make a backend the fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import formatting, ranking, standings
from ..cells import Cells
from ..formatting import OUTCOMES, Word
from ..ranking import Lead
from ..traps.trap_map import trap_map

MOST_NAMES = 3
LONGEST_NAME = 24
FAULTS: tuple[tuple[Word, str], ...] = (
    ("wrong", "is wrong in"),
    ("failed", "raises an error in"),
    ("crashed", "crashes in"),
    ("timed_out", "gives no answer in time in"),
)
LABELS: dict[Word, str] = {"verified": "verified to fewer digits", "known": "a known bug"}


def summary_in_words(cells: Cells, *, without_own: bool = False) -> str:
    """The verdict as one line of plain text; `without_own` leaves out adbench's own engine."""
    libraries = cells.of_role("library")
    own = cells.of_role() if without_own else cells.of_role("own engine")
    judged = libraries if libraries.backends else own if own.backends else cells.of_role("comparison")
    sentences: list[str] = []
    if not libraries.backends and cells.backends:
        sentences.append("This run has no library, so there is nothing to choose from.")
    if cells.subjects and judged.backends:
        sentences += _of_cases(judged)
        sentences += _faults(judged)
    if libraries.backends:
        sentences += _traps(libraries)
    if libraries.backends and own.backends and cells.subjects:
        sentences += _own_engine(libraries, own)
    return " ".join(sentences) or "This run has no result."


def fastest_in_words(cells: Cells, case: str) -> str:
    """Who is fastest on a case: "jax is fastest at n = 10; jax and tape tie for fastest at n = 100.", or ""."""
    found: dict[str, list[int]] = {}
    fastest: dict[str, None] = {}
    for size in cells.sizes[case]:
        race = ranking.race(cells, case, size)
        if race and (race.winner or race.compared):
            names = sorted(cell.job.backend for cell in (race.leaders[0], *race.compared))
            found.setdefault(f"{_names(names)} {'is fastest' if race.winner else 'tie for fastest'}", []).append(size)
            fastest |= dict.fromkeys(names)
    if len(found) > MOST_NAMES:
        return f"{_names([*fastest])} are fastest or tie, each at some n."
    every = len(cells.sizes[case])
    at = {who: "every n" if len(sizes) == every > 1 else formatting.sizes(sizes) for who, sizes in found.items()}
    return f"{'; '.join(f'{who} at {where}' for who, where in at.items())}." if found else ""


def _name(backend: str) -> str:
    return formatting.short(backend, LONGEST_NAME)


def _names(backends: Sequence[str]) -> str:
    return formatting.listed([_name(backend) for backend in backends], most=MOST_NAMES)


def _count(number: int, cells: Cells) -> str:
    """ "4 of 6 cases", "all 6 cases", "the only case"."""
    total = len(cells.subjects)
    if number < total:
        return f"{number} of {formatting.plural(total, 'case')}"
    return "the only case" if total == 1 else f"all {total} cases"


def _cases_with(cells: Cells, backend: str, word: Word) -> int:
    """In how many cases a backend has that word at any size."""
    return sum(
        any(cells.cell(case, size, backend).word == word for size in cells.sizes[case]) for case in cells.subjects
    )


def _right(cells: Cells, backend: str) -> int:
    """In how many cases a backend is right at every size."""
    return sum(
        all(cells.cell(case, size, backend).word == "right" for size in cells.sizes[case]) for case in cells.subjects
    )


def _of_cases(cells: Cells) -> Iterator[str]:
    """Who is fastest, and right in how many cases."""
    races = ranking.leads(cells)
    wins = dict(ranking.wins(races))
    if len(cells.backends) == 1 or not cells.timed:
        yield from _right_only(cells)
    elif wins:
        yield from _winners(cells, wins)
    elif not any(race.contested for race in races):
        yield "No case has two libraries that are right and timed, so none is called the fastest."
        yield from _right_only(cells)
    else:
        yield _undecided(cells, races)


def _winners(cells: Cells, wins: dict[str, int]) -> Iterator[str]:
    most = max(wins.values())
    first = [backend for backend in cells.backends if wins.get(backend) == most]
    among = "Of the libraries in this run, " if _is_library(cells) else ""
    if len(first) > 1:
        yield f"{among}{_names(first)} are each fastest in {_count(most, cells)}."
        yield from _right_only(cells)
        return
    (backend,) = first
    text, right = f"{among}{_name(backend)} is fastest in {_count(most, cells)}", _right(cells, backend)
    first_of_all = standings.standings(cells)[0].backend
    mean = "" if first_of_all == backend else f"; over all cases, {_name(first_of_all)} has the lowest mean slowdown"
    if right == len(cells.subjects):
        yield f"{text}{', and right' if right == 1 else ' and right in all'}{mean}."
        return
    others = {word: _cases_with(cells, backend, word) for word in OUTCOMES if word not in ("right", *dict(FAULTS))}
    why = ", ".join(f"{LABELS.get(w, OUTCOMES[w].label)} in {number}" for w, number in others.items() if number)
    yield f"{text} and right in {right}{f' ({why})' if why else ''}{mean}."


def _undecided(cells: Cells, races: Sequence[Lead]) -> str:
    """Nobody wins: ties, or too few launches to compare."""
    first = standings.standings(cells)[0]
    what = "time" if len(races) == 1 else "mean slowdown"
    right = f"is right in {_count(_right(cells, first.backend), cells)}"
    mean = f"{_name(first.backend)} has the lowest {what}, and {right}."
    kind = "library" if _is_library(cells) else "backend"
    if not any(race.compared for race in races):
        return f"This run has too few launches to tell which {kind} is fastest: {mean}"
    return f"No {kind} is significantly faster than all others in any case: {mean}"


def _right_only(cells: Cells) -> Iterator[str]:
    """The backends that are right in the most cases."""
    right = {backend: _right(cells, backend) for backend in cells.backends}
    most = max(right.values())
    best = [backend for backend, number in right.items() if number == most]
    alone = ", the only library in this run," if len(right) == 1 and _is_library(cells) else ""
    where = _count(most, cells) if most else "no case"
    yield f"{_names(best)}{alone} {'is' if len(best) == 1 else 'are'} right in {where}."


def _is_library(cells: Cells) -> bool:
    return cells.findings.run.role_of(cells.backends[0]) == "library"


def _faults(cells: Cells) -> Iterator[str]:
    """The backends that are wrong, or fail, in any case."""
    for word, verb in FAULTS:
        numbers = {backend: _cases_with(cells, backend, word) for backend in cells.backends}
        bad = [f"{_name(backend)} {verb} {_count(number, cells)}" for backend, number in numbers.items() if number]
        if bad:
            yield f"{formatting.listed(bad, most=MOST_NAMES)}."


def _traps(cells: Cells) -> Iterator[str]:
    """How many traps the fastest library gets wrong, or the best one, and how many the worst."""
    found = trap_map(cells)
    rows = [row for row in found.rows if row.backend in cells.backends] if found else []
    if not found or not any(row.total.wrong for row in rows):
        return
    wins = dict(ranking.wins(ranking.leads(cells)))
    fastest = [row for row in rows if wins and wins.get(row.backend) == max(wins.values())]
    first, last = (fastest or rows)[0], rows[-1]
    verb = "is wrong on" if found.checked else "is known to be wrong on"
    of = f" of {formatting.plural(first.total.of, 'classical trap')}"
    text = f"{_name(first.backend)} {verb} {first.total.wrong}{of}"
    if last is not first:
        of = "" if last.total.of == first.total.of else f" of {last.total.of}"
        text += f", {_name(last.backend)} on {last.total.wrong}{of}"
    yield f"{text}."


def _own_engine(libraries: Cells, own: Cells) -> Iterator[str]:
    """adbench's own engine, its fastest variant, compared with the fastest library of each case."""
    backend = standings.standings(own)[0].backend
    engine, fastest = f"adbench’s own engine, {_name(backend)},", "the fastest library"
    if len(libraries.backends) == 1:
        fastest = _name(libraries.backends[0])
    races = ranking.leads(libraries)
    pairs = [ranking.pair(own, own.cell(race.case, race.size, backend), race.leaders[0]) for race in races]
    faster = sorted(1 / p.interval.estimate for p in pairs if p and p.word == "faster" and p.interval)
    slower = sum(bool(p and p.word == "slower") for p in pairs)
    cases = formatting.plural(len(races), "case")
    if faster:
        ends = dict.fromkeys(formatting.slowdown(end) for end in (faster[0], faster[-1]))
        where = "" if len(faster) == len(races) else f" in {len(faster)} of {cases}"
        more = f", and slower in {slower}" if slower else ""
        yield f"{engine} is {' to '.join(ends)} times as fast as {fastest}{where}{more}."
    elif slower:
        yield f"{engine} is slower than {fastest} in {'the only case' if len(races) == 1 else f'{slower} of {cases}'}."
    elif any(p and p.interval for p in pairs):
        yield f"{engine} and {fastest} do not differ significantly."
    for word, verb in FAULTS:
        if number := _cases_with(own, backend, word):
            yield f"{engine} {verb} {_count(number, own)}."
