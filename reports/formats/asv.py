"""A run as the results folder of airspeed velocity (asv): for `asv publish`, `asv compare` and `asv show`.

    benchmarks.json            the benchmarks: one for each case and operator, with the parameters n and backend
    MACHINE/machine.json       the machine
    MACHINE/COMMIT-ENV.json    the results, in version 2 of the format

asv files results under the project's commit. Wrong results, crashes and time-outs are failures (null), other cells
without a figure were skipped (NaN): asv has no place for a reason.
Source: https://asv.readthedocs.io/en/latest/dev.html#benchmark-suite-layout-and-file-formats
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from adbench.model.errors import BadFile, UsageError
from adbench.model.record import Run
from adbench.optional import library

from ..content.cells import Cell, cell_of
from ..content.formatting import OUTCOMES
from ..figures.panels import MEMORY_METHODS, memory_bytes
from .timed_cells import text_of, untimed

COLUMNS: Final = (
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"),
    *("stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
)
PARAMETERS: Final = ("n", "backend")
_COMMIT = re.compile("[0-9a-f]{7,64}")

Figure = Callable[[Cell], float | None]


def files(run: Run, folder: Path) -> dict[Path, str]:
    """path -> text of the files to write into asv's `results_dir`; benchmarks that are already listed there stay.

    Raises UsageError if the run has no commit, BadFile if the folder's benchmarks.json cannot be read.
    """
    commit = run.commit.get("hash", "")
    if not _COMMIT.fullmatch(commit):
        raise UsageError("asv files results under the git commit, and this run has none; run it in a git checkout")
    about = _machine(run)
    # The project's own version changes from commit to commit, within one environment.
    versions = {name: version or "" for name, version in run.versions.items() if f"backends/{name}" not in run.sources}
    environment = f"py{about['python']}-{hashlib.sha256(json.dumps(versions).encode()).hexdigest()[:8]}"
    found = _benchmarks(run)
    results = {
        "commit_hash": commit,
        "env_name": environment,
        "date": _milliseconds(run.commit["date"]),
        "params": about,
        "python": about["python"],
        "requirements": versions,
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": {name: row for name, (_, row) in found.items()},
        "durations": {},
        "version": 2,
    }
    place = folder / about["machine"]
    return {
        folder / "benchmarks.json": _text(_listed(folder / "benchmarks.json", [entry for entry, _ in found.values()])),
        place / "machine.json": _text({**about, "version": 1}),
        place / f"{commit[:8]}-{environment}.json": _text(results),
    }


def left_out(run: Run) -> str | None:
    """The number of cells whose reasons asv cannot hold."""
    return untimed(run, "written as failed or skipped, without a reason")


def _benchmarks(run: Run) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """name -> (its entry in benchmarks.json, its row of results): the time, and memory by each method with a figure."""
    groups: dict[str, list[Cell]] = {}
    for record in run.records:
        points = f".seed{record.job.seed}" if record.job.seed else ""
        groups.setdefault(text_of(f"{record.job.case}.{record.job.operator}{points}"), []).append(cell_of(record))
    started, found = _milliseconds(run.created), {}
    for name, cells in groups.items():
        found[name] = _benchmark(name, cells, "time", "seconds", started, _seconds)
        for method, _ in MEMORY_METHODS:
            figure = _memory(method)
            if any(figure(cell) is not None for cell in cells):
                found[f"{name}.{method}"] = _benchmark(f"{name}.{method}", cells, "track", "bytes", started, figure)
    return {name: entry for name, entry in found.items() if entry[1][0] is not None}


def _seconds(cell: Cell) -> float | None:
    return cell.spread.median if cell.spread else None


def _memory(method: str) -> Figure:
    return lambda cell: memory_bytes(cell, method)[0]


def _benchmark(
    name: str, cells: list[Cell], kind: str, unit: str, started: int, figure: Figure
) -> tuple[dict[str, Any], list[Any]]:
    by_place = {(cell.job.size, cell.job.backend): cell for cell in cells}
    sizes = list(dict.fromkeys(size for size, _ in by_place))
    backends = list(dict.fromkeys(backend for _, backend in by_place))
    params = [[repr(size) for size in sizes], [repr(text_of(backend)) for backend in backends]]
    entry = {
        "code": "",
        "name": name,
        "pretty_name": name,
        "param_names": PARAMETERS,
        "params": params,
        "type": kind,
        "unit": unit,
        "version": "adbench",
    }
    grid = [by_place.get(place) for place in product(sizes, backends)]
    figures = [_figure(cell, figure) for cell in grid]
    row: list[Any] = [_none_if_empty(figures), params, "adbench", started, None]
    if kind == "time":
        row += map(_none_if_empty, zip(*map(_statistics, grid), strict=True))
    return entry, row


def _figure(cell: Cell | None, figure: Figure) -> float | None:
    """The figure; None of a failure, NaN of a cell that has no figure for another reason."""
    found = figure(cell) if cell else None
    if found is not None:
        return found
    return None if cell and (cell.word == "known" or OUTCOMES[cell.word].bad) else math.nan


def _statistics(cell: Cell | None) -> tuple[Any, ...]:
    """(99 % interval of the median, quartiles, number, repeat, samples) over launches; Nones without a time.

    The interval is distribution-free; below eight launches it is infinite, as asv itself writes it.
    """
    if cell is None or cell.spread is None or cell.time is None:
        return (None,) * 7
    samples = [launch.seconds_per_call for launch in cell.time.launches]
    quantile_test = library("scipy.stats", "the interval of a median for asv").quantile_test
    ends = quantile_test(samples, q=float(np.median(samples)), p=0.5).confidence_interval(0.99)
    low = float(ends.low) if math.isfinite(ends.low) else -math.inf
    high = float(ends.high) if math.isfinite(ends.high) else math.inf
    return low, high, cell.spread.low, cell.spread.high, 1, len(samples), samples


def _none_if_empty(values: Iterable[Any]) -> list[Any] | None:
    found = list(values)
    return None if all(value is None for value in found) else found


def _machine(run: Run) -> dict[str, str]:
    """The machine in asv's fields, all texts. Its name is the processor's, because a run does not name its host."""
    known = {name: "" if value is None else str(value) for name, value in run.machine.items()}
    python = re.search(r"\d+\.\d+", known.get("python", ""))
    threads = known.get("hardware_threads", "")
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{known.get('processor', '')} {threads}").strip("-").lower()
    return {
        "machine": name or "unknown",
        "arch": known.get("architecture", ""),
        "cpu": known.get("processor", ""),
        "num_cpu": threads,
        "os": known.get("system", ""),
        "ram": known.get("memory_bytes", ""),
        "python": python.group() if python else "",
    }


def _listed(path: Path, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of benchmarks.json with these benchmarks added; parameters of an earlier run stay."""
    try:
        there = json.loads(path.read_text("utf-8")) if path.exists() else {}
        for entry in entries:
            old = there.get(entry["name"], {}).get("params", [[], []])
            params = [list(dict.fromkeys([*a, *b])) for a, b in zip(old, entry["params"], strict=True)]
            there[entry["name"]] = entry | {"params": params}
        return there | {"version": 2}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise BadFile(f"{path}: not a list of benchmarks by asv: {error}; choose another folder") from error


def _milliseconds(date: str) -> int:
    try:
        return int(datetime.fromisoformat(date).timestamp() * 1000)
    except ValueError as error:
        raise UsageError(f"the run has a date that cannot be read: {date!r}") from error


def _text(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"
