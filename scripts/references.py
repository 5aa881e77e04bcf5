"""Compute the shipped references of built-in cases, at the default seed and at the sizes of a check, a quick run, a
default run, the published figures of finance and the measured workloads.

This includes the perturbed inputs of timed calls. With --keep, compute only missing references.

Points are the same as those of `adbench check` and `adbench run`, so both find the references by key. The large sizes
of runs get more time here, so that more of their expected values are proved.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import Catalog, catalog
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import Request
from adbench.execution.workers.context import Context
from adbench.execution.workers.supervisor import Supervisor
from adbench.execution.workers.worker import WorkerState, answer
from adbench.model.operator import needs
from adbench.model.record import Job
from adbench.model.settings import Settings
from adbench.oracle.cache import SHIPPED, pack, shipped
from scripts.published import FINANCE

WORKLOADS = (
    ("attention", 100),
    ("convolution", 100),
    ("implicit_layer", 100),
    ("mlp", 100),
    ("normalising_flow", 100),
    ("transformer", 10),
    ("burgers_equation", 100),
    ("gaussian_process", 100),
    ("heat_equation", 30),
    ("kalman_filter", 100),
    ("lennard_jones", 100),
    ("optimal_control", 100),
    ("robot_arm", 8),
    ("robot_arm_rollout", 100),
)
"""Of machine learning and science in docs/reference/workloads.md."""

EFFORT_SECONDS = 300.0  # at most, for a reference at a size of a quick run or of a published figure
RUN_SECONDS = 15.0  # at a size of a default run or of a workload: most take all of it


def requests(known: Catalog) -> list[dict[str, Any]]:
    """The requests of checks and runs of every built-in case, each once; those with second order first."""
    settings = Settings()
    wanted = [
        (Request(backends=["tape"], quick=True, time=False), settings.reference_seconds),
        (Request(backends=["tape"], quick=True), EFFORT_SECONDS),
        (Request(backends=["tape"]), RUN_SECONDS),
    ]
    for sizes, seconds in ((FINANCE, EFFORT_SECONDS), (WORKLOADS, RUN_SECONDS)):
        wanted += [
            (Request(backends=["tape"], cases=[case], sizes=[str(n)], operators=["gradient"]), seconds)
            for case, n in sizes
        ]
    jobs: dict[Any, Job] = {}
    effort: dict[Any, float] = {}
    for request, seconds in wanted:
        for job in plan(known, request).jobs:
            key = job.case, job.size, *needs(job.operator).values()
            jobs[key], effort[key] = job, max(seconds, effort.get(key, 0.0))
    context = Context(Supervisor(), known, settings)
    found = []
    for key in sorted(jobs, key=lambda key: key[2:], reverse=True):
        job = jobs[key]
        if known.case_sources[job.case].builtin:
            asked = needs(job.operator) | {"effort_seconds": effort[key], "reference_seconds": effort[key]}
            found.append(context.request(job, "reference", **asked))
            if not known.cases[job.case].is_trap:
                found.append(context.request(job, "reference", **asked, perturbed=True))
    return found


def main() -> None:
    """Compute all references in a temporary folder and pack it."""
    kept = dict(shipped(SHIPPED)) if "--keep" in sys.argv[1:] else {}
    if not kept:
        SHIPPED.unlink(missing_ok=True)  # or the old references would be found
    with tempfile.TemporaryDirectory() as folder:
        for request in requests(catalog()):
            found = answer(WorkerState(), request | {"cache": folder})
            if "value" not in found and "unsupported" not in found:  # unsupported: no input can be perturbed
                sys.exit(f"{request['case']['name']} at size {request['size']}: {found}")
        count = pack(Path(folder), SHIPPED, kept)
    print(f"{SHIPPED}: {count} references, {SHIPPED.stat().st_size:_} bytes")


if __name__ == "__main__":
    main()
