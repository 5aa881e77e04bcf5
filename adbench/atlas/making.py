"""Make an atlas: run what its plan lacks with the Python of each release, and put the table together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adbench.atlas.outcomes import MOST, Cell, NotRun, outcomes_of, refuse_other_release
from adbench.atlas.plan_request import key_of
from adbench.atlas.survey import Found, Runner, Survey, SurveyJournal, SurveyPlan
from adbench.atlas.table import Atlas, ReleaseRow, merged, rows_of
from adbench.bisection.environments import Environments, environment_of, ran, reason_in
from adbench.bisection.judge import run_in
from adbench.bisection.releases import Release
from adbench.findings.operations import OPERATIONS
from adbench.model.operator import OF_TRAPS

FULL_OF_OPERATIONS = 2
"""On how many releases every operation runs."""

TIMEOUT_SECONDS = 240.0
"""Of a request to a worker: a release that compiles slowly on a busy machine has no fault."""
POINTS = 24
"""The first points of an operation: ordinary ones, zeros, ties and edges of its domain. They decide most of its faults;
the rest of a sweep is about numbers near overflow and underflow."""
KINDS: Mapping[str, str] = {"nan": "n", "raises": "e", "crashes": "c", "hangs": "c"}
"""Kind of a fault of `adbench conform` -> letter; the others are wrong numbers."""


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
    journals = {"traps": SurveyJournal(folder, key_of(plan, environments), "atlas-")}
    of_each = [(plan, runner or of_traps(plan))]
    if operations:
        swept = replace(plan, kind="operations", traps=tuple(OPERATIONS), full=FULL_OF_OPERATIONS, files=())
        journals["operations"] = SurveyJournal(folder, [*key_of(swept, environments), "operations"], "atlas-")
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


def of_traps(plan: SurveyPlan) -> Runner:
    """Runs traps by `adbench.bisection.probe`."""

    def run(python: Path, release: Release, traps: Sequence[str]) -> Found:
        request = {
            "cases": [plan.own.get(trap, trap) for trap in traps],
            "backends": [plan.backend_source],
            "operators": list(OF_TRAPS),
            "time": False,
            "memory": False,
            "quick": True,
            "timeout": TIMEOUT_SECONDS,
        }
        return outcomes_of(run_in(python, request), plan.backend, release.name)

    return run


def of_operations(plan: SurveyPlan) -> Runner:
    """Runs operations by `adbench conform`."""

    def run(python: Path, release: Release, operations: Sequence[str]) -> Found:
        command = [str(python), "-P", "-m", "adbench", "--no-defaults", "conform", "-b", plan.backend_source, "--json"]
        command += ["--points", str(POINTS), *(word for name in operations for word in ("--operation", name))]
        code, out, err = ran(command, env=environment_of(PYTHONUTF8="1"))
        if code not in (0, 1):
            raise NotRun(reason_in("", err) or f"exit code {code}")
        data = json.loads(out)
        refuse_other_release(data["libraries"].get(plan.backend), release.name)
        return {cell["operation"]: _cells(cell) for cell in data["cells"]}

    return run


def _cells(cell: Mapping[str, Any]) -> dict[str, Cell]:
    """Operator -> outcome, for operators with a fault or a refusal."""
    cells: dict[str, Cell] = dict.fromkeys(cell["refused"], ("u", "", ""))
    for fault in reversed(cell["faults"]):
        at = ", ".join(f"{name} = {value}" for name, value in fault["point"].items() if name != "w")
        got = f"{fault['got']} at {at}"
        cells[fault["operator"]] = KINDS.get(fault["kind"], "w"), got[:MOST], str(fault["expected"])[:MOST]
    return cells or {"gradient": ("r" if cell["checked"] else "q", "", "")}
