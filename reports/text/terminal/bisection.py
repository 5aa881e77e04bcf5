"""`adbench bisect`: the releases that were tried, and the first with a change."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from adbench.bisection.bisect import Bisection
from adbench.bisection.decision import most_installed
from adbench.bisection.question import Question
from adbench.bisection.trials import Trial

from ...content import formatting
from ..drawing import printed

MOST_DETAIL = 300


def planned(question: Question) -> str:
    """The releases, and how many would be installed."""
    names = formatting.listed((release.name for release in question.releases), most=60)
    count = len(question.releases)
    return f"{count} releases: {names}\nAt most {most_installed(count)} are installed, if none has to be skipped.\n"


def text(found: Bisection, width: int) -> str:
    """A table of the releases that were tried, oldest first, and the result."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("release", "environment", "outcome"):
        table.add_column(name, no_wrap=True)
    timed = found.question.margin is not None
    table.add_column("time / tape" if timed else "wrong entry, or why it was skipped", overflow="fold")
    for trial in found.trials:
        table.add_row(*(Text(formatting.visible(part)) for part in _cells(trial)))
    return printed([table, Text(), *(Text(line) for line in _conclusion(found))], width=width)


def data(found: Bisection) -> dict[str, Any]:
    """Everything, for other programs."""
    asked = found.question
    return {
        "library": asked.library,
        "good": asked.good,
        "bad": asked.bad,
        "releases": [release.name for release in asked.releases],
        "margin": asked.margin,
        "finds_fix": asked.finds_fix,
        "culprits": [{"name": each.name, "requirement": each.requirement} for each in found.culprits],
        "decided": len(found.culprits) == 1,
        "slowdown": found.slowdown,
        "installed": found.installed,
        "most_installed": found.most_installed,
        "trials": [
            {
                "release": trial.release,
                "outcome": trial.outcome,
                "detail": trial.detail,
                "environment": trial.environment,
                "ratio": trial.ratio,
                "launches": len(trial.logs),
            }
            for trial in found.trials
        ],
    }


def _cells(trial: Trial) -> tuple[str, str, str, str]:
    said = formatting.short(trial.detail, MOST_DETAIL)
    if trial.ratio is not None:
        said = ": ".join(
            filter(None, (f"{trial.ratio:.3g} in {formatting.plural(len(trial.logs), 'launch', 'launches')}", said))
        )
    return trial.release, trial.environment or formatting.MISSING, trial.outcome or "", said


def _conclusion(found: Bisection) -> list[str]:
    asked, names = found.question, [each.name for each in found.culprits]
    kind = "commit" if asked.releases[0].title else "release"
    which = f"First {'good' if asked.finds_fix else 'bad'} {kind}"
    if len(names) > 1:
        first = f"{which}: one of {', '.join(names)}; those before {names[-1]} were skipped"
    else:
        title = found.culprits[0].title
        first = f"{which}: {names[0]}{f' ({formatting.visible(title)})' if title else ''}{_by_how_much(found)}"
    skipped = sum(trial.is_skipped for trial in found.trials)
    more = f", {skipped} skipped" if skipped else ""
    count = len(asked.releases)
    most = f"without skips at most {found.most_installed}"
    return [first, f"Installed {found.installed} of {formatting.plural(count, kind)}{more}; {most}."]


def _by_how_much(found: Bisection) -> str:
    if found.slowdown is not None:
        ratio = formatting.digits(found.slowdown)
        return (
            f": {found.question.bad} took {ratio} times as long"
            if found.question.finds_fix
            else f": {ratio} times the time of {found.question.good}"
        )
    if found.question.finds_fix:
        return ""
    entry = next(trial.detail for trial in found.trials if trial.release == found.culprits[0].name)
    return f": {formatting.visible(formatting.short(entry, MOST_DETAIL))}"
