"""A run as JSON of Google Benchmark, for its tools/compare.py and for services that read its files.

Each launch is a repetition. adbench measures no processor time; `cpu_time` repeats `real_time`, because readers need a
number; the context states this. Readers take any entry for a time, so cells without one are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from adbench.model.record import Run

from ..content.cells import Cell
from . import timed_cells
from .timed_cells import left_out as left_out

NO_CPU_TIME = "not measured: cpu_time repeats real_time"


def render(run: Run) -> str:
    """The JSON text, in the fields of Google Benchmark's own reporter (schema version 1)."""
    found = {"context": _context(run), "benchmarks": list(_benchmarks(run))}
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _context(run: Run) -> dict[str, object]:
    megahertz = run.machine.get("max_mhz")
    return {
        "date": run.created,
        "host_name": str(run.machine.get("processor") or "unknown"),
        "executable": "adbench",
        "num_cpus": run.machine.get("hardware_threads"),
        **({"mhz_per_cpu": round(float(megahertz))} if megahertz else {}),
        "caches": [],
        "load_avg": [run.machine["load_1_minute"]] if run.machine.get("load_1_minute") is not None else [],
        "library_version": f"adbench {run.adbench_version}",
        "library_build_type": "release",
        "json_schema_version": 1,
        "adbench_cpu_time": NO_CPU_TIME,
        **({"adbench_commit": run.commit["hash"]} if run.commit else {}),
    }


def _benchmarks(run: Run) -> Iterator[dict[str, object]]:
    """An entry for each launch of each timed cell; cells of a case and operator are one family."""
    families: dict[tuple[str, str], int] = {}
    members: dict[tuple[str, str], int] = {}
    for name, cell in timed_cells.timed_cells(run):
        family = (cell.job.case, cell.job.operator)
        number = families.setdefault(family, len(families))
        members[family] = members.get(family, -1) + 1
        for entry in _launches(cell):
            yield {
                "name": name,
                "family_index": number,
                "per_family_instance_index": members[family],
                "run_name": name,
                **entry,
            }


def _launches(cell: Cell) -> Iterator[dict[str, object]]:
    launches = cell.time.launches if cell.time else ()
    for index, launch in enumerate(launches):
        nanoseconds = launch.seconds_per_call * 1e9
        yield {
            "run_type": "iteration",
            "repetitions": len(launches),
            "repetition_index": index,
            "threads": 1,
            "iterations": sum(round_.calls for round_ in launch.rounds),
            "real_time": nanoseconds,
            "cpu_time": nanoseconds,
            "time_unit": "ns",
        }
