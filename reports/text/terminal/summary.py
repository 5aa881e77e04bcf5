"""The few lines below the table: who is correct, who is fastest, what a gradient costs, the noise, known bugs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adbench.model.record import grouped

from ...content import formatting, ranking
from ...content.cells import Cells
from ...content.formatting import OUTCOMES, Word
from ...content.headline import GradientCost, Headline, device_of, headline, install_command, wins_of_devices
from ...content.ranking import Lead
from ...content.sections import fastest_batches, launch_sizes, speedups_of
from ...content.standings import Standing, standings
from ...content.traps.trap_map import trap_map
from ..marks import UNBROKEN

MOST_NAMES = 4
LONGEST_NAME = 24
LONGEST_REASON = 120
IN_WORDS: dict[Word, str] = {"verified": "verified to fewer digits", "known": "known bug"}


class Sentence(NamedTuple):
    """One line of the summary: its subject and the text."""

    about: str
    text: str


def sentences(cells: Cells) -> Iterator[Sentence]:
    """The lines of a run or of a check."""
    if cells.timed:
        found, order = headline(cells), standings(cells)
        yield Sentence("Correct", _correct(cells))
        yield from _fastest(ranking.leads(cells), order)
        yield from _gradient_cost(found, order)
        yield from _many_points(cells)
        yield from _threads(cells)
        if device := device_of(cells.findings.run):
            yield Sentence("Computed", device)
        yield from _devices(cells)
        yield from _source(cells)
        yield Sentence("Noise", _noise(cells))
        if found.background:
            yield Sentence("Background", found.background)
    else:
        proved, compared = cells.proved
        if proved:
            yield Sentence("Proved", f"{formatting.count(proved)} of {formatting.plural(compared, 'expected value')}")
        held, relations = cells.relations
        if relations:
            of = formatting.plural(relations, "relation")
            yield Sentence("Relations", f"{formatting.count(held)} of {of} between calls hold")
    yield from _known(cells)
    told: tuple[tuple[Word, str], ...] = (("unsupported", "Unsupported"), ("skipped", "Skipped"))
    for word, about in told:
        if counts := _with(cells, word):
            yield Sentence(about, f"{_counts(counts)} of {_results(cells)}")
    if untimed := [cell for cell in cells.every_single() if cells.timed and cell.why_untimed]:
        job, why = untimed[-1].job, formatting.short(untimed[-1].why_untimed, LONGEST_REASON)
        example = f"{formatting.short(job.backend, LONGEST_NAME)} on {formatting.short(job.case, LONGEST_NAME)}"
        counts = Counter(cell.job.backend for cell in untimed)
        yield Sentence("Not timed", f"{_counts(counts)} of {_results(cells)}; {example}: {why}")
    run = cells.findings.run
    if run.not_installed:
        more = formatting.plural(len(run.not_installed), "more library", "more libraries")
        yield Sentence("Install", f"{more}: {install_command(run)}")


def _correct(cells: Cells) -> str:
    """Backends that came out alike in one part: "5 backends in all 9 tests; torch in 7 (2 unsupported)"."""
    parts: list[str] = []
    tests = formatting.plural(cells.total, "test")
    for words, group in grouped(ranking.scores(cells), lambda score: tuple(sorted(score.words.items()))).items():
        counts: Counter[Word] = Counter(dict(words))
        names = [formatting.short(score.backend, LONGEST_NAME) for score in group]
        who = formatting.listed(names) if len(names) < 3 else f"{len(names)} backends"
        others = [f"{counts[w]} {IN_WORDS.get(w, OUTCOMES[w].label)}" for w in OUTCOMES if counts[w] and w != "right"]
        right = "all" if counts["right"] == cells.total > 1 else str(counts["right"])
        of = "" if parts else f" {tests}" if right == "all" else f" of {tests}"
        why = f" ({', '.join(others)})" if others else ""
        parts.append(f"{who} in {right}{of}{why}" if counts["right"] or not parts else f"{who}: {', '.join(others)}")
    more = [f"and {len(parts) - MOST_NAMES} more"] if len(parts) > MOST_NAMES else []
    return "; ".join([*parts[:MOST_NAMES], *more])


def _fastest(races: Sequence[Lead], order: Sequence[Standing]) -> Iterator[Sentence]:
    """Who wins how many cases, and the mean slowdown of each backend."""
    if not any(race.contested for race in races):
        return
    wins = [f"{formatting.short(backend, LONGEST_NAME)} in {cases}" for backend, cases in ranking.wins(races)]
    decided = sum(bool(race.winner or race.compared) for race in races)
    text = f"{formatting.listed(wins, most=MOST_NAMES)} of {formatting.plural(decided, 'case')}"
    if not decided:
        text = "unknown: too few launches to compare"
    elif not wins:
        text = f"tied in {formatting.plural(decided, 'case')}: nobody is significantly faster than all others"
    means = [f"{formatting.short(s.backend, 24)} {s.text}" for s in order if s.slowdown is not None]
    yield Sentence("Fastest", f"{text}; mean slowdown: {_joined(means)}")


def _gradient_cost(found: Headline, order: Sequence[Standing]) -> Iterator[Sentence]:
    by_backend = {cost.backend: cost for cost in found.gradient_costs}
    ranked = [by_backend[standing.backend] for standing in order if standing.backend in by_backend]
    costs = [f"{formatting.short(cost.backend, LONGEST_NAME)} {_span(cost)}" for cost in ranked]
    if costs:
        yield Sentence("Gradient cost", f"in function calls: {_joined(costs)}")


def _many_points(cells: Cells) -> Iterator[Sentence]:
    """For each of the first cases with batches, the fastest backends at the largest number of points."""
    found = {case: batches for case in cells.subjects if (batches := fastest_batches(cells, case))}
    for case, batches in list(found.items())[:MOST_NAMES]:
        times = [f"{formatting.short(name, LONGEST_NAME)} {formatting.seconds(each)}" for each, name, _ in batches]
        of = f"{formatting.short(case, LONGEST_NAME)}, {formatting.count(batches[0][2])} points"
        yield Sentence("Many points", f"{of}, time of each: {_joined(times)}")


def _threads(cells: Cells) -> Iterator[Sentence]:
    """For each further number of threads, the speed-ups of each backend over the cases, each at its largest size."""
    for count, of_count in cells.threaded.items():
        found = speedups_of(cells, count)
        spans = [
            f"{formatting.short(name, LONGEST_NAME)} "
            + "–".join(dict.fromkeys(formatting.ratio(end) for end in (times[0], times[-1])))
            for name, times in found.items()
        ]
        wrong = _with(of_count, "wrong")
        parts = [f"speed-up with {count}: {_joined(spans)}"] if spans else []
        parts += [f"wrong with {count}: {_counts(wrong)} of {_results(of_count)}"] if wrong else []
        yield Sentence("Threads", "; ".join(parts) or f"no speed-up with {count}: too few launches to compare")


def _devices(cells: Cells) -> Iterator[Sentence]:
    """From which size on a device wins, and its two times: of the first cases; the page has all."""
    for about, found in (("Devices", wins_of_devices(cells)), ("Latency", list(_latencies(cells)))):
        more = f"; {len(found) - MOST_NAMES} more on the page" if len(found) > MOST_NAMES else ""
        if found:
            yield Sentence(about, "; ".join(found[:MOST_NAMES]) + more)


def _latencies(cells: Cells) -> Iterator[str]:
    """For each case and backend on a device: latency and throughput at the largest size, and where both measure
    launches."""
    for case in cells.subjects:
        for cell in cells.row(case, cells.sizes[case][-1]):
            if cell.seconds and cell.time and (throughput := cell.time.throughput_seconds):
                launches = launch_sizes(cells, case, cell.job.backend)
                only = f" ({formatting.sizes(launches)}: mostly the launch of kernels)" if launches else ""
                times = f"{formatting.seconds(cell.seconds)}, throughput {formatting.seconds(throughput)} a call"
                yield f"{cell.job.backend} on {case} at {formatting.sizes([cell.job.size])}: {times}{only}"


def _source(cells: Cells) -> Iterator[Sentence]:
    """Which source was measured: each case's portable one, or one that was written for the library."""
    own = {c.job.backend for c in cells.every_single() if c.spread and c.record and c.record.text == "native"}
    names = formatting.listed([formatting.short(name, LONGEST_NAME) for name in cells.backends if name in own])
    written = f"; {names} also one in the library's own style" if names else ""
    yield Sentence("Source", f"each case's portable one, the same for all libraries{written}")


def _span(cost: GradientCost) -> str:
    """The least and the largest cost over the cases."""
    return "–".join(dict.fromkeys(formatting.slowdown(end.estimate) for end in (cost.least, cost.most)))


def _noise(cells: Cells) -> str:
    floor = cells.findings.floor
    if floor.reach is None:
        return f"unknown: {formatting.short(floor.reason or 'nothing was measured twice', 120)}"
    return f"two runs of identical code differed by {formatting.percent(floor.reach)}; ignore smaller differences"


def _known(cells: Cells) -> Iterator[Sentence]:
    """How many traps each backend gets wrong, how many other results are known bugs, and how many of these are gone."""
    found = trap_map(cells)
    others = Counter(
        cell.job.backend for cell in cells.every_single() if cell.word == "known" and cell.job.case not in cells.traps
    )
    traps = f"{re.sub(' (?=[0-9·])', UNBROKEN, found.counts)} classical traps" if found else ""
    if found and found.checked:
        yield Sentence("Wrong on traps", traps)
    parts = [f"{traps} (listed, not checked here)"] if found and not found.checked else []
    parts += [f"{_counts(others)} of {_results(cells)}"] if others else []
    if parts:
        yield Sentence("Known bugs", "; ".join(parts))
    if gone := _with(cells, "surprise"):
        yield Sentence("Now correct", f"{_counts(gone)} of {_results(cells)}, although listed as known bugs")


def _counts(found: Counter[str]) -> str:
    """ "tape 6, casadi 13, torch 31", the fewest first."""
    fewest_first = reversed(found.most_common())
    return _joined([f"{formatting.short(name, LONGEST_NAME)} {formatting.count(n)}" for name, n in fewest_first])


def _joined(items: Sequence[str]) -> str:
    """ "tape 6 · casadi 13 · 2 more"."""
    shown = items if len(items) <= MOST_NAMES + 1 else [*items[:MOST_NAMES], f"{len(items) - MOST_NAMES} more"]
    return f"{UNBROKEN}· ".join(item.replace(" ", UNBROKEN) for item in shown)


def _with(cells: Cells, word: Word) -> Counter[str]:
    """Backend -> how many of its results came out with that word."""
    return Counter(cell.job.backend for cell in cells.every_single() if cell.word == word)


def _results(cells: Cells) -> str:
    return formatting.plural(max((of.total() for of in cells.outcomes.values()), default=0), "result")
