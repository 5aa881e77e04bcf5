"""A gradbench log (`gradbench run … -o LOG.jsonl`) as a run: requests, answers and verdicts.

The tool reports the times and the eval the verdicts. A case is a module. Its size is the count of numbers in the input,
because the protocol has no other. A cell's rounds are the runs that the tool reports, all in one process: there is one
launch and no interval.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from adbench.model.errors import BadFile
from adbench.model.record import SCHEMA_VERSION, Job, Launch, Record, Round, Run, Time
from adbench.model.serialization import converted
from adbench.version import __version__

MOST_BYTES = 4 * 2**30  # a log holds every input
OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(("objective", "primal", "cost", "square"), "value"),
    **dict.fromkeys(("gradient", "jacobian", "double"), "gradient"),
}
"""Names of functions here; for array-valued modules, `jacobian` is one."""

OF_ARRAYS = ("ba", "ht")
MADE_BY = "gradbench"


class _Timing(Struct):
    nanoseconds: Annotated[float, Meta(ge=0, lt=2.0**63)]
    name: str = ""


class _Message(Struct):
    id: int
    kind: str
    module: str | None = None
    function: str | None = None
    input: Any = None
    description: str | None = None
    of: int | None = None
    valid: bool | None = None
    error: str | None = None


class _Response(Struct):
    id: int
    tool: str | None = None
    success: bool | None = None
    error: str | None = None
    timings: tuple[_Timing, ...] | None = None


class _Line(Struct):
    elapsed: _Timing | None = None
    message: _Message | None = None
    response: _Response | None = None


@dataclass(frozen=True)
class _Exchange:
    """A message with its response, if any, and the nanoseconds between them."""

    message: _Message
    response: _Response | None
    nanoseconds: float

    @property
    def case(self) -> str:
        """The module, with the function if that is not an operator of adbench."""
        module, function = self.message.module, self.message.function
        return _text(module, "unnamed") + ("" if function in OPERATORS else f"_{_text(function, 'unnamed')}")

    @property
    def size(self) -> int:
        return max(1, _count(self.message.input))

    @property
    def operator(self) -> str:
        operator = OPERATORS.get(self.message.function or "", "value")
        return "jacobian" if operator == "gradient" and self.message.module in OF_ARRAYS else operator


def is_log(path: Path) -> bool:
    """Whether a file begins like a gradbench log: with a message, with or without its time."""
    try:
        with path.open("rb") as file:
            first = file.read(4096).partition(b"\n")[0]
    except OSError:
        return False
    return b'"message"' in first and b'"kind"' in first and b'"records"' not in first


def read_log(path: Path) -> Run:
    """The run in a log. Raises BadFile with one line for other or damaged files, and if nothing is evaluated."""
    exchanges = _exchanges(path)
    tool = next((each.response.tool for each in exchanges if each.message.kind == "start" and each.response), None)
    backend = f"{_text(tool, path.stem)} ({MADE_BY})"
    evaluations = [each for each in exchanges if each.message.kind == "evaluate"]
    analyses = {each.message.of: each.message for each in reversed(exchanges) if each.message.kind == "analysis"}
    records = [
        _record(each, Job(case, each.size, backend, each.operator), analyses.get(each.message.id))
        for each, case in zip(evaluations, _cases(evaluations), strict=True)
    ]
    for each in exchanges:
        if each.message.kind == "define" and each.response is not None and each.response.success is False:
            job = Job(_text(each.message.module, "unnamed"), 1, backend, "value")
            reason = _text(each.response.error, "unsupported by the tool, without a reason")
            records.append(Record(job, "unsupported", reason))
    if not records:
        raise BadFile(f"{path}: not a gradbench log: it holds no evaluation; write one with gradbench run … -o LOG")
    return Run(
        schema_version=SCHEMA_VERSION,
        created=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        adbench_version=__version__,
        seed=0,
        settings={
            "made_by": MADE_BY,
            "verdicts": "by its eval",
            "times": "reported by its tool",
            "sizes": "numbers in the input",
        },
        machine={"processor": None},  # unknown in a log
        versions={backend: None},
        cases={record.job.case: f"gradbench's {record.job.case.partition('[')[0]}" for record in records},
        records=tuple(records),
    )


def _exchanges(path: Path) -> list[_Exchange]:
    """Every message of a log with its response; of two with one id, the first counts."""
    sent: dict[int, tuple[_Message, float]] = {}
    answered: dict[int, tuple[_Response, float]] = {}
    for line in _lines(path):
        elapsed = line.elapsed.nanoseconds if line.elapsed else 0.0
        if line.message is not None:
            sent.setdefault(line.message.id, (line.message, elapsed))
        if line.response is not None:
            answered.setdefault(line.response.id, (line.response, elapsed))
    found = []
    for message, start in sent.values():
        response, end = answered.get(message.id, (None, start))
        found.append(_Exchange(message, response, end - start))
    return found


def _lines(path: Path) -> Iterator[_Line]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadFile(f"{path}: larger than {MOST_BYTES // 2**30} GiB; shorten it with gradbench log trim")
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                place = f"{path}: line {number}"
                if line.strip():
                    yield converted(json.loads(line), _Line)
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{place} is damaged, or this is not a gradbench log: {error}") from error


def _cases(evaluations: Sequence[_Exchange]) -> list[str]:
    """A name for each, with its description, and a number if others have the same name, size and operator."""
    plain = [(each.case, each.size, each.operator) for each in evaluations]
    times, names, seen = Counter(plain), [], Counter[Any]()
    for each, key in zip(evaluations, plain, strict=True):
        name, description = key[0], _text(each.message.description)
        if times[key] > 1 and description:
            name = f"{name}[{description[:60]}]"
        seen[name, *key[1:]] += 1
        names.append(name if seen[name, *key[1:]] == 1 else f"{name}#{seen[name, *key[1:]]}")
    return names


def _record(evaluation: _Exchange, job: Job, analysis: _Message | None) -> Record:
    response = evaluation.response
    if response is None:
        return Record(job, "crashed", "the log ends without its answer")
    if response.success is not True:
        return Record(job, "failed", _text(response.error, "the tool reports a failure without a reason"))
    if analysis is not None and analysis.valid is False:
        return Record(job, "wrong", _text(analysis.error, "the eval reports an invalid result without a reason"))
    return Record(job, "ok", time=_time(response.timings or (), evaluation.nanoseconds))


def _time(timings: Sequence[_Timing], exchange: float) -> Time | None:
    """The tool's times: each `evaluate` is a round of one call, and the rest of the exchange is preparation."""
    runs = [int(timing.nanoseconds) for timing in timings if timing.name == "evaluate" and timing.nanoseconds >= 1]
    if not runs:
        return None
    phases: dict[str, float] = {}
    for timing in timings:
        if timing.name != "evaluate":
            phases[timing.name] = phases.get(timing.name, 0.0) + timing.nanoseconds * 1e-9
    prepare = max(sum(phases.values()), (exchange - sum(runs)) * 1e-9)
    rounds = tuple(Round(1, ns) for ns in runs)
    return Time((Launch(0, None, prepare, phases, runs[0] * 1e-9, None, None, rounds),))


def _count(value: Any) -> int:
    """The count of numbers in an input, without the number and duration of runs."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return 1
    if isinstance(value, list):
        return sum(map(_count, value))
    if isinstance(value, dict):
        return sum(_count(part) for name, part in value.items() if name not in ("min_runs", "min_seconds", "runs"))
    return 0


def _text(value: str | None, otherwise: str = "") -> str:
    """The text in one line, shortened; `otherwise` if it is empty."""
    return " ".join((value or "").split())[:500] or otherwise
