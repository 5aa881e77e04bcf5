"""Files of pytest-benchmark and pyperf as comparison inputs.

pytest-benchmark   one process, so one launch, whose rounds are compared in blocks; in a folder, each file is a launch.
                   A benchmark is the cell in its `extra_info` (case, size, backend, operator), or else the cell
                   with its name (comparison_inputs.py)
pyperf             each run is a fresh process: a launch
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, field

from adbench.measure.machine import fingerprint
from adbench.model.errors import BadFile
from adbench.model.operator import EVERY_OPERATOR
from adbench.model.record import Job, Run
from adbench.model.serialization import MOST_RECORDS, converted
from adbench.results.comparison_inputs import UNKNOWN, ComparisonInput, Key, Sample, in_blocks, key_called, of_run
from adbench.results.importers.gradbench_log import is_log, read_log
from adbench.results.matched_samples import Array
from adbench.results.store import JOURNAL, RUN, STORED, from_data, loaded, read_any, read_bytes

_Seconds = Annotated[float, Meta(gt=0)]
_Facts = dict[str, Any]


class _Stats(Struct):
    median: _Seconds
    data: tuple[Annotated[float, Meta(ge=0)], ...] = ()


class _Benchmark(Struct):
    name: str
    stats: _Stats
    fullname: str | None = None
    extra_info: _Facts = field(default_factory=dict)


class _MachineInfo(Struct):
    cpu: _Facts = field(default_factory=dict)
    processor: Any = None
    machine: Any = None
    system: Any = None
    python_implementation: Any = None
    python_version: Any = None


class _PytestBenchmark(Struct):
    """The parts read from a pytest-benchmark file."""

    benchmarks: Annotated[tuple[_Benchmark, ...], Meta(max_length=MOST_RECORDS)]
    machine_info: _MachineInfo
    datetime: Any = None


class _PyperfRun(Struct):
    values: tuple[_Seconds, ...] = ()
    metadata: _Facts = field(default_factory=dict)


class _PyperfBenchmark(Struct):
    runs: tuple[_PyperfRun, ...]
    metadata: _Facts = field(default_factory=dict)


class _Pyperf(Struct):
    """The parts read from a pyperf file."""

    benchmarks: Annotated[tuple[_PyperfBenchmark, ...], Meta(max_length=MOST_RECORDS)]
    version: Any
    metadata: _Facts = field(default_factory=dict)


def read_input(path: Path) -> ComparisonInput:
    """Read a run to compare: from anything that `read_run` reads, a gradbench log, a pytest-benchmark or pyperf file,
    or a folder of pytest-benchmark files.

    Raises BadFile with one line for anything else.
    """
    if path.is_dir() and not any((path / name).exists() for name in STORED):
        return _input_of_folder(path)
    if path.is_file() and is_log(path):
        return replace(of_run(read_log(path), str(path)), made_by="gradbench")
    found = read_any(path, lambda data, _: _foreign(data, path) or from_data(data, path))
    return of_run(found, str(path)) if isinstance(found, Run) else _of_one_launch(found)


def _of_one_launch(made: ComparisonInput) -> ComparisonInput:
    """A file of pytest-benchmark, with the rounds of its one launch in blocks; any other input unchanged."""
    if made.made_by != "pytest-benchmark":
        return made
    samples = {key: replace(sample, logs=in_blocks(sample.logs[0])) for key, sample in made.samples.items()}
    return replace(made, samples=samples, one_launch=True)


def _foreign(data: Any, path: Path) -> ComparisonInput | None:
    """The comparison input in another program's file, or None."""
    if not isinstance(data, dict) or "benchmarks" not in data:
        return None
    program = "pytest-benchmark" if "machine_info" in data else "pyperf"
    try:
        if program == "pyperf":
            return _pyperf(converted(data, _Pyperf), path)
        return _pytest_benchmark(converted(data, _PytestBenchmark), path)
    except ValueError as error:
        raise BadFile(f"{path}: not a valid file of {program}: {error}") from error


def _input_of_folder(folder: Path) -> ComparisonInput:
    """The pytest-benchmark files of a folder, in the order of their names, one launch each."""
    sides: list[ComparisonInput] = []
    for file in sorted(folder.glob("*.json")):
        found = _foreign(loaded(read_bytes(file), file), file)
        if found is None or found.made_by != "pytest-benchmark":
            raise BadFile(f"{file}: a folder without a run must contain only pytest-benchmark files")
        if sides and found.machine != sides[0].machine:
            raise BadFile(f"{file}: measured on another machine than {sides[0].name}; compare the files one by one")
        sides.append(found)
    if not sides:
        raise BadFile(f"{folder}: contains no run: neither {RUN} nor {JOURNAL} nor pytest-benchmark files")
    if len(sides) == 1:
        return replace(_of_one_launch(sides[0]), name=str(folder))
    samples: dict[Key, Sample] = {}
    for number, side in enumerate(sides):
        for key, sample in side.samples.items():
            there = samples.get(key, replace(sample, logs={}))
            samples[key] = replace(there, logs={**there.logs, number: sample.logs[0]})
    return replace(sides[-1], name=str(folder), samples=samples)


def _pytest_benchmark(found: _PytestBenchmark, path: Path) -> ComparisonInput:
    names = Counter(benchmark.name for benchmark in found.benchmarks)
    samples: dict[Key, Sample] = {}
    for benchmark in found.benchmarks:
        told, name = benchmark.extra_info, benchmark.name
        if names[name] > 1 and benchmark.fullname is not None:  # the same name in two test files
            name = benchmark.fullname
        key = _job(told) or key_called(name)
        # A coarse clock measures rounds of zero time.
        seconds = tuple(s for s in benchmark.stats.data if s > 0) or (benchmark.stats.median,)
        samples[key] = Sample(key, "right", None, {0: _logs(seconds)}, memory=_memory(told.get("memory")))
    about = found.machine_info
    machine = _machine(
        processor=about.cpu.get("brand_raw") or about.processor,
        architecture=about.machine,
        hardware_threads=about.cpu.get("count"),
        system=about.system,
        python=f"{about.python_implementation} {about.python_version}",
    )
    return ComparisonInput(str(path), "pytest-benchmark", _text(found.datetime), machine, samples)


def _pyperf(found: _Pyperf, path: Path) -> ComparisonInput:
    samples: dict[Key, Sample] = {}
    for benchmark in found.benchmarks:
        told = found.metadata | benchmark.metadata
        launches = [run.values for run in benchmark.runs if run.values]  # the others only calibrate
        if told.get("unit", "second") == "second" and launches:
            key = key_called(_text(told.get("name")) or "unnamed")
            samples[key] = Sample(key, "right", None, {k: _logs(seconds) for k, seconds in enumerate(launches)})
    if not samples:
        raise BadFile(f"{path}: a pyperf file without a timed benchmark")
    about = found.metadata
    implementation = {"cpython": "CPython", "pypy": "PyPy"}.get(str(about.get("python_implementation")))
    machine = _machine(
        processor=about.get("cpu_model_name"),
        architecture=None,
        hardware_threads=about.get("cpu_count"),
        system=(_text(about.get("platform")) or "").partition("-")[0] or None,
        python=f"{implementation} {str(about.get('python_version')).partition(' ')[0]}",
    )
    dates = (_text(run.metadata.get("date")) for benchmark in found.benchmarks for run in benchmark.runs)
    return ComparisonInput(str(path), "pyperf", next(filter(None, dates), None), machine, samples)


def _machine(**facts: Any) -> str:
    """A fingerprint with unknown other facts; Python as `implementation version`."""
    known = {name: fact for name, fact in facts.items() if isinstance(fact, str | int) and fact != ""}
    if "None" in str(known.get("python")):
        known["python"] = UNKNOWN
    if "system" not in known:
        known["system"] = UNKNOWN
    return fingerprint(known)


def _job(told: Mapping[str, Any]) -> Job | None:
    case, size, backend = told.get("case"), told.get("size"), told.get("backend")
    operator, seed = told.get("operator"), told.get("seed", 0)
    if isinstance(case, str) and isinstance(size, int) and isinstance(backend, str) and operator in EVERY_OPERATOR:
        return Job(case, size, backend, str(operator), seed if isinstance(seed, int) else 0)
    return None


def _memory(told: Any) -> dict[str, float]:
    """`{"allocated_peak_bytes": 8192.0 or {"value": 8192.0}, …}`, as written by adbench's pytest plugin."""
    found = {}
    for name, figure in told.items() if isinstance(told, dict) else ():
        value = figure.get("value") if isinstance(figure, dict) else figure
        if isinstance(value, int | float) and math.isfinite(value) and name.endswith("_peak_bytes"):
            found[str(name).removesuffix("_peak_bytes")] = float(value)
    return found


def _logs(seconds: Iterable[float]) -> Array:
    return np.log(np.array(list(seconds), np.float64))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
