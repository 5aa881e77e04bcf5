"""What a report says first, as plain values: who is correct, who is fastest, what a gradient costs, and the noise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adbench.catalog.installed import pip_command
from adbench.measure.statistics import Interval
from adbench.model.record import Run, grouped
from adbench.model.settings import FLOAT64, PROCESSOR, backend_and_device
from adbench.oracle.evidence import FLOAT64_DIGITS
from adbench.results.analysis import Ratio

from . import formatting, ranking
from .cells import Cell, Cells
from .formatting import OUTCOMES, Word
from .ranking import Score


@dataclass(frozen=True)
class GradientCost:
    """A backend's smallest and largest gradient cost in function calls, at the largest size of so many cases."""

    backend: str
    cases: int
    least: Interval
    most: Interval


@dataclass(frozen=True)
class Headline:
    """What the first screen says. `growing_costs`: backend -> the cases on which its gradient's cost grows with n."""

    scores: list[Score]
    gradient_costs: list[GradientCost]
    growing_costs: dict[str, list[str]]
    background: str | None

    def backends(self, word: Word) -> list[str]:
        """The backends whose gravest result is that word: "wrong", "right" or "approximate"; each in one of them."""
        graver: dict[Word, tuple[Word, ...]] = {"wrong": (), "right": ("wrong",), "approximate": ("wrong", "right")}
        return [s.backend for s in self.scores if s.words[word] and not any(s.words[w] for w in graver[word])]

    @property
    def broken(self) -> int:
        """How many cells crashed, failed or took too long."""
        bad = [word for word, outcome in OUTCOMES.items() if outcome.bad and word != "wrong"]
        return sum(score.words[word] for score in self.scores for word in bad)


def alarms(cells: Cells) -> list[dict[str, Any]]:
    """The banner of each backend with a wrong result: its first, and how many more there are. Known bugs are no alarm.

    It has the entry, the result, the expected value, how many digits are correct, and the command that reproduces it.
    """
    every = [cell for of_count in cells.every_count for name in of_count.backends for cell in of_count.column(name)]
    wrong = grouped((cell for cell in every if cell.word == "wrong"), lambda cell: cell.job.backend)
    return [_alarm(found) for found in wrong.values()]


def _alarm(found: Sequence[Cell]) -> dict[str, Any]:
    cell, record = found[0], found[0].record
    verdict = record.verdict if record else None
    worst = (verdict.worst or verdict.value) if verdict else None
    evidence = dict.fromkeys(("entry", "got", "expected", "digits"), "")
    if worst:
        digits = f"{max(worst.digits_correct, 0):.0f} of {min(worst.digits_resolvable, FLOAT64_DIGITS):.0f}"
        evidence = {"entry": worst.place, "got": repr(worst.got), "expected": worst.truth, "digits": digits}
    reason = cell.reason or ""
    return evidence | {
        "cell": cell,
        "reason": reason,
        "reproduce": record.reproduce if record else None,
        "more": len(found) - 1,
        "threads": reason.partition(": ")[0] if reason.startswith("with ") else "",
    }


def headline(cells: Cells) -> Headline:
    """Who is right on how much, what a gradient costs, who failed."""
    return Headline(ranking.scores(cells), _gradient_costs(cells), _growing_costs(cells), _background(cells))


def _background(cells: Cells) -> str | None:
    """The backends whose workers used a processor outside their turns, with the largest shares; None without any."""
    found: dict[str, float] = {}
    for cell in cells.every_single():
        time = cell.record.time if cell.record else None
        if time and time.background is not None:
            found[cell.job.backend] = max(time.background, found.get(cell.job.backend, 0.0))
    shares = [f"{formatting.short(name, 24)} ({formatting.percent(share)})" for name, share in found.items()]
    return f"{formatting.listed(shares)} used a processor outside its turns, and was paused there" if shares else None


def _gradient_costs(cells: Cells) -> list[GradientCost]:
    """Of right results only: a wrong gradient has no cost worth knowing."""
    found = []
    for backend in cells.backends:
        ratios = []
        for case in cells.subjects:
            cost = cells.findings.cost.get((case, backend))
            ranked = [at.ratio for at in cost.at if cells.cell(case, at.size, backend).ranked] if cost else []
            ratios += [ratio for ratio in ranked if ratio][-1:]
        if ratios:
            ratios.sort(key=lambda ratio: ratio.estimate)
            found.append(GradientCost(backend, len(ratios), ratios[0], ratios[-1]))
    return sorted(found, key=lambda cost: (-cost.cases, cost.most.estimate))


def _growing_costs(cells: Cells) -> dict[str, list[str]]:
    growing = [key for key, cost in cells.findings.cost.items() if cost.grows and key[0] in cells.subjects]
    found = {backend: [case for case, of in growing if of == backend] for backend in cells.backends}
    return {backend: cases for backend, cases in found.items() if cases}


def title(cells: Cells) -> str:
    """What a run shows: "Speed and correctness of jax and torch on 4 cases"."""
    what = "Speed and correctness" if cells.timed else "Correctness"
    kinds = (cells.subjects, "case"), (cells.traps, "classical trap")
    where = [formatting.plural(len(found), one) for found, one in kinds if found]
    if len(cells.cases) == 1:
        where = [formatting.short(cells.cases[0], 60)]
    names = [formatting.short(name, 24) for name in cells.backends]
    who = formatting.listed(names) if len(names) < 4 else formatting.plural(len(names), "backend")
    return f"{what} of {who} on {formatting.listed(where)}" if where else "A run without results"


def sources(cells: Cells) -> str:
    """Which source of a case each backend ran, in words: the case's own, which all libraries share, or its library's
    idiom."""
    texts = {cell.job.backend: cell.record.text for cell in cells.every_single() if cell.record}
    native = [formatting.short(name, 24) for name, text in texts.items() if text == "native"]
    if not texts:
        return ""
    if not native:
        return "All backends ran the portable source: each case written once, in the names of the array API."
    verb = "runs" if len(native) == 1 else "run"
    return (
        f"{formatting.listed(native)} {verb} native source, written in the idiom of the library. The others run the "
        "portable source: each case written once, in the names of the array API."
    )


def device_of(run: Run) -> str:
    """Where a run computed, in which type, and whether its times include copies: "in float32, judged by its rounding".

    "" for float64 on the processor.
    """
    device, transfers = str(run.settings.get("device", PROCESSOR)), run.settings.get("transfers")
    kind = "" if run.dtype == FLOAT64 else f"in {run.dtype}, judged by its rounding"
    if device == PROCESSOR:
        return kind
    names = formatting.listed(dict.fromkeys(record.device for record in run.records if record.device))
    device = formatting.listed(device.split(","))
    what = f"on {device} ({names})" if names else f"on {device}, which no library used"
    included = "include" if transfers == "inside" else "exclude"
    what += f"; {kind}" if kind else ""
    return formatting.visible(f"{what}; times {included} copies of arguments to it and of results from it")


def wins_of_devices(cells: Cells) -> list[str]:
    """For each library on the processor and on a device, and each case: "jax on mlp: cuda is faster from n = 1,000".

    The size from which the device is significantly faster at all measured sizes.
    """
    found = []
    for name in cells.backends:
        backend, device = backend_and_device(name)
        for case in cells.subjects if device != PROCESSOR and backend in cells.backends else ():
            rows = [[cells.cell(case, size, each) for each in (name, backend)] for size in cells.sizes[case]]
            both = [ranking.pair(cells, here, there) for here, there in rows if here.ranked and there.ranked]
            if pairs := [pair for pair in both if pair]:
                found.append(f"{backend} on {case}: {_device_wins(device, pairs)}")
    return found


def _device_wins(device: str, pairs: Sequence[Ratio]) -> str:
    """In words; the pairs compare the device with the processor, at ascending sizes."""
    won = list(itertools.takewhile(lambda pair: pair.word == "faster", reversed(pairs)))
    last = formatting.count(pairs[-1].a.size)
    if won:
        every = ", at every measured size" if len(won) == len(pairs) > 1 else ""
        return f"{device} is faster from n = {formatting.count(won[-1].a.size)}{every}"
    if pairs[-1].word == "slower":
        return f"{device} is slower, up to n = {last}"
    same = f"{device} and cpu differ too little to tell at n = {last}"
    return same if pairs[-1].interval else "unknown: too few launches to compare"


def install_command(run: Run) -> str:
    """One line for a shell; empty where nothing is missing."""
    return formatting.visible(pip_command(run.not_installed.values())) if run.not_installed else ""
