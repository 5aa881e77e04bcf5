"""Run traps or operations with the Python of a release's environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adbench.atlas.outcomes import MOST, Cell, NotRun, outcomes_of, refuse_other_release
from adbench.atlas.survey import Found, Runner, SurveyPlan
from adbench.bisection.environments import environment_of, ran, reason_in
from adbench.bisection.judge import run_in
from adbench.bisection.releases import Release
from adbench.model.operator import OF_TRAPS

TIMEOUT_SECONDS = 240.0
"""Of a request to a worker: a release that compiles slowly on a busy machine has no fault."""
POINTS = 24
"""The first points of an operation: ordinary ones, zeros, ties and edges of its domain. They decide most of its faults;
the rest of a sweep is about numbers near overflow and underflow."""
KINDS: Mapping[str, str] = {"nan": "n", "raises": "e", "crashes": "c", "hangs": "c"}
"""Kind of a fault of `adbench conform` -> letter; the others are wrong numbers."""


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
