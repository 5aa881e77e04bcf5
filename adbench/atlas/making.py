"""Make an atlas: run what its plan lacks, and put the table together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adbench.atlas.plan_request import key_of
from adbench.atlas.runners import of_operations, of_traps
from adbench.atlas.survey import Runner, Survey, SurveyJournal, SurveyPlan
from adbench.atlas.table import Atlas, ReleaseRow, merged, rows_of
from adbench.bisection.environments import Environments
from adbench.findings.operations import OPERATIONS

FULL_OF_OPERATIONS = 2
"""On how many releases every operation runs."""


def made(
    plan: SurveyPlan,
    environments: Environments,
    told: Callable[[str], None],
    stored: Callable[[Atlas], None],
    today: str,
    operations: bool = False,
    runner: Runner | None = None,
    before: Atlas | None = None,
) -> Atlas:
    """The atlas of a plan. `stored` is called with what there is of it after each release.

    before   a table whose other rows stay. Raises UsageError if it has another backend or other releases

    A journal has what an interrupted one had found.
    """
    folder = environments.folder / "journals"
    journals = {"traps": SurveyJournal(folder, key_of(plan, environments))}
    of_each = [(plan, runner or of_traps(plan))]
    if operations:
        swept = replace(plan, kind="operations", traps=tuple(OPERATIONS), full=FULL_OF_OPERATIONS, files=())
        journals["operations"] = SurveyJournal(folder, [*key_of(swept, environments), "operations"])
        of_each.append((swept, of_operations(swept)))

    def so_far() -> Atlas:
        newer = table_of(plan, journals, today)
        return newer if before is None else merged(before, newer)

    so_far()  # refuses another table before anything is installed
    with environments.locked():
        for part, run in of_each:
            Survey(part, environments, journals[part.kind], told, lambda: stored(so_far()), run).run()
        environments.trim()
    return so_far()


def table_of(plan: SurveyPlan, journals: dict[str, SurveyJournal], today: str) -> Atlas:
    """The table from the journals of traps and of operations."""
    rows = {"operations": rows_of({}, 0, frozenset())}
    trials = [journals["traps"][name] for name in plan.names]
    dead = frozenset(k for k, trial in enumerate(trials) if trial.reason)
    for kind, journal in journals.items():
        trials_of = {k: of for k, name in enumerate(plan.names) if (of := journal[name].found)}
        rows[kind] = rows_of(trials_of, len(trials), dead)
    releases = tuple(ReleaseRow(trial.release, trial.python, trial.reason) for trial in trials)
    return Atlas(plan.library, plan.backend, today, releases, rows["traps"], rows["operations"])
