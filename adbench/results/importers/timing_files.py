"""Files of pytest-benchmark and pyperf, as sides of a comparison.

pytest-benchmark   one process, so one launch; several files in a folder are as many launches. A benchmark is the cell
                   that its `extra_info` says (case, size, backend, operator), or that its name is (sides.py)
pyperf             each run is a fresh process: a launch
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from adbench.measure.machine import fingerprint
from adbench.model.backend import OPERATORS
from adbench.model.errors import BadFile
from adbench.model.record import Job
from adbench.results.comparison_inputs import UNKNOWN, Key, Sample, Side, key_called, of_run
from adbench.results.importers.gradbench_log import is_log, read_log
from adbench.results.matched_samples import Array
from adbench.results.store import JOURNAL, RUN, from_data, is_journal, load, no_garbage, read_run

_SECONDS = {"type": "number", "exclusiveMinimum": 0}
_OBJECT = {"type": "object"}

PYTEST_BENCHMARK: dict[str, Any] = {
    "type": "object",
    "required": ["benchmarks", "machine_info"],
    "properties": {
        "machine_info": {"type": "object", "properties": {"cpu": _OBJECT}},
        "benchmarks": {
            "type": "array",
            "maxItems": 100_000,
            "items": {
                "type": "object",
                "required": ["name", "stats"],
                "properties": {
                    "name": {"type": "string"},
                    "fullname": {"type": "string"},
                    "extra_info": _OBJECT,
                    "stats": {
                        "type": "object",
                        "required": ["median"],
                        "properties": {
                            "median": _SECONDS,
                            "data": {"type": "array", "items": {"type": "number", "minimum": 0}},
                        },
                    },
                },
            },
        },
    },
}

PYPERF: dict[str, Any] = {
    "type": "object",
    "required": ["benchmarks", "version"],
    "properties": {
        "metadata": _OBJECT,
        "benchmarks": {
            "type": "array",
            "maxItems": 100_000,
            "items": {
                "type": "object",
                "required": ["runs"],
                "properties": {
                    "metadata": _OBJECT,
                    "runs": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"metadata": _OBJECT, "values": {"type": "array", "items": _SECONDS}},
                        },
                    },
                },
            },
        },
    },
}


def read_side(path: Path) -> Side:
    """A run to compare: what `read_run` reads, a log of gradbench's, a file of pytest-benchmark or pyperf, or a folder
    of those of pytest-benchmark.

    Raises BadFile, in one line, for anything else.
    """
    if path.is_dir() and not (path / RUN).exists() and not (path / JOURNAL).exists():
        return _side_of_folder(path)
    if path.is_file() and is_log(path):
        return replace(of_run(read_log(path), str(path)), made_by="gradbench")
    if path.is_dir() or is_journal(path):
        return of_run(read_run(path), str(path))
    with no_garbage():
        data = load(path)
        foreign = _foreign(data, path)
        return foreign if foreign is not None else of_run(from_data(data, path), str(path))


def _foreign(data: Any, path: Path) -> Side | None:
    if not isinstance(data, dict) or "benchmarks" not in data:
        return None
    if "machine_info" in data:
        _check(data, "pytest-benchmark", path)
        return _pytest_benchmark(data, path)
    _check(data, "pyperf", path)
    return _pyperf(data, path)


def _check(data: Any, program: str, path: Path) -> None:
    import fastjsonschema

    try:
        _validator(program)(data)
    except fastjsonschema.JsonSchemaValueException as error:
        where = " ".join(str(error.name).removeprefix("data.").split())[:120]
        raise BadFile(f"{path}: not a file of {program}: {where} breaks the rule {error.rule}") from error


@cache
def _validator(program: str) -> Callable[[Any], Any]:
    import fastjsonschema

    rules = {"pytest-benchmark": PYTEST_BENCHMARK, "pyperf": PYPERF}[program]
    compiled: Callable[[Any], Any] = fastjsonschema.compile(rules, use_default=False)
    return compiled


def _side_of_folder(folder: Path) -> Side:
    """The files of pytest-benchmark in a folder, in the order of their names, a launch each."""
    sides: list[Side] = []
    for file in sorted(folder.glob("*.json")):
        found = _foreign(load(file), file)
        if found is None or found.made_by != "pytest-benchmark":
            raise BadFile(f"{file}: in a folder that holds no run, only files of pytest-benchmark can be compared")
        if sides and found.machine != sides[0].machine:
            raise BadFile(f"{file}: was made on another machine than {sides[0].name}; compare them one by one")
        sides.append(found)
    if not sides:
        raise BadFile(f"{folder}: holds no run: there is neither {RUN} nor {JOURNAL}, nor a file of pytest-benchmark")
    samples: dict[Key, Sample] = {}
    for number, side in enumerate(sides):
        for key, sample in side.samples.items():
            there = samples.get(key, replace(sample, logs={}))
            samples[key] = replace(there, logs={**there.logs, number: sample.logs[0]})
    return replace(sides[-1], name=str(folder), samples=samples)


def _pytest_benchmark(data: Mapping[str, Any], path: Path) -> Side:
    benchmarks: Sequence[Mapping[str, Any]] = data["benchmarks"]
    names = [benchmark["name"] for benchmark in benchmarks]
    samples: dict[Key, Sample] = {}
    for benchmark in benchmarks:
        told = benchmark.get("extra_info", {})
        name = benchmark["name"]
        if names.count(name) > 1:  # of two files
            name = benchmark.get("fullname", name)
        key = _job(told) or key_called(name)
        seconds = benchmark["stats"].get("data") or [benchmark["stats"]["median"]]
        samples[key] = Sample(key, "right", None, {0: _logs(seconds)}, memory=_memory(told.get("memory")))
    about = data["machine_info"]
    cpu = about.get("cpu", {})
    machine = _machine(
        processor=cpu.get("brand_raw") or about.get("processor"),
        architecture=about.get("machine"),
        hardware_threads=cpu.get("count"),
        system=about.get("system"),
        python=f"{about.get('python_implementation')} {about.get('python_version')}",
    )
    return Side(str(path), "pytest-benchmark", _text(data.get("datetime")), machine, samples)


def _pyperf(data: Mapping[str, Any], path: Path) -> Side:
    common = data.get("metadata", {})
    samples: dict[Key, Sample] = {}
    for benchmark in data["benchmarks"]:
        told = common | benchmark.get("metadata", {})
        launches = [run["values"] for run in benchmark["runs"] if run.get("values")]  # others only calibrate
        if told.get("unit", "second") == "second" and launches:
            key = key_called(_text(told.get("name")) or "unnamed")
            samples[key] = Sample(key, "right", None, {k: _logs(seconds) for k, seconds in enumerate(launches)})
    if not samples:
        raise BadFile(f"{path}: a file of pyperf without a benchmark that was timed")
    implementation = {"cpython": "CPython", "pypy": "PyPy"}.get(str(common.get("python_implementation")))
    machine = _machine(
        processor=common.get("cpu_model_name"),
        architecture=None,
        hardware_threads=common.get("cpu_count"),
        system=(_text(common.get("platform")) or "").partition("-")[0] or None,
        python=f"{implementation} {str(common.get('python_version')).partition(' ')[0]}",
    )
    dates = (run.get("metadata", {}).get("date") for benchmark in data["benchmarks"] for run in benchmark["runs"])
    return Side(str(path), "pyperf", next((date for date in dates if isinstance(date, str)), None), machine, samples)


def _machine(**facts: Any) -> str:
    """A fingerprint that says of everything else that it is not known; Python as `implementation version`."""
    known = {name: fact for name, fact in facts.items() if isinstance(fact, str | int) and fact != ""}
    if "None" in str(known.get("python")):
        known["python"] = UNKNOWN
    if "system" not in known:
        known["system"] = UNKNOWN
    return fingerprint(known)


def _job(told: Mapping[str, Any]) -> Job | None:
    case, size, backend = told.get("case"), told.get("size"), told.get("backend")
    operator, seed = told.get("operator"), told.get("seed", 0)
    if isinstance(case, str) and isinstance(size, int) and isinstance(backend, str) and operator in OPERATORS:
        return Job(case, size, backend, str(operator), seed if isinstance(seed, int) else 0)
    return None


def _memory(told: Any) -> dict[str, float]:
    """`{"allocated_peak_bytes": 8192.0 or {"value": 8192.0}, …}`, as our plugin for pytest writes it."""
    found = {}
    for name, figure in told.items() if isinstance(told, dict) else ():
        value = figure.get("value") if isinstance(figure, dict) else figure
        if isinstance(value, int | float) and math.isfinite(value) and name.endswith("_peak_bytes"):
            found[str(name).removesuffix("_peak_bytes")] = float(value)
    return found


def _logs(seconds: Iterable[float]) -> Array:
    """Log seconds, NaN for a round that took no time, which a coarse clock may say."""
    return np.array([math.log(s) if s > 0 else math.nan for s in seconds], np.float64)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
