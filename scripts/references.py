"""Compute the shipped references: built-in cases at the sizes of a first look and the default seed.

Those at the perturbed inputs of timed calls are among them.

Each is asked for as `adbench check` and `adbench run` ask for it, so that they find it by the same key.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import Catalog, catalog
from adbench.execution.operators.prepared_point import needs
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import Request
from adbench.execution.workers.context import Context
from adbench.execution.workers.resident_worker import PERTURBED_SHARE
from adbench.execution.workers.supervisor import Supervisor
from adbench.execution.workers.worker import WorkerState, answer
from adbench.model.settings import Settings
from adbench.oracle.cache import SHIPPED, pack

SETTINGS = (Settings().for_a_first_look(), Settings())  # of `check` and `run --quick`, and of `run`


def requests(known: Catalog, settings: Settings) -> list[dict[str, Any]]:
    """What a run of every built-in case at its quick sizes asks for, each once; with second order before without."""
    context = Context(Supervisor(), known, settings)
    planned = plan(known, Request(backends=["tape"], quick=True, time=False))
    jobs = {(job.case, job.size, *needs(job.operator).values()): job for job in planned.jobs}
    seconds = settings.reference_seconds
    found = []
    for _, job in sorted(jobs.items(), key=lambda item: item[0][2:], reverse=True):
        if known.case_sources[job.case].builtin:
            asked = context.request(job, "reference", **needs(job.operator))
            found.append(asked | {"reference_seconds": seconds})
            if not known.cases[job.case].is_trap:
                found.append(asked | {"reference_seconds": seconds * PERTURBED_SHARE, "perturbed": True})
    return found


def main() -> None:
    """Compute all of them in a folder of their own, and pack it."""
    SHIPPED.unlink(missing_ok=True)  # what is in it would be found, not computed
    with tempfile.TemporaryDirectory() as folder:
        for settings in SETTINGS:
            for request in requests(catalog(), settings):
                found = answer(WorkerState(), request | {"cache": folder})
                if "value" not in found and "unsupported" not in found:  # the latter: nothing can be perturbed
                    sys.exit(f"{request['case']['name']} at size {request['size']}: {found}")
        count = pack(Path(folder), SHIPPED)
    print(f"{SHIPPED}: {count} references, {SHIPPED.stat().st_size:_} bytes")


if __name__ == "__main__":
    main()
