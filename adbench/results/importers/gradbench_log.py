"""A log of gradbench's (`gradbench run … -o LOG.jsonl`) as a run: what its eval asked, its tool answered and it judged.

The figures are theirs: a time is what the tool told of itself, a verdict is what the eval said. A case is a module; its
size the count of numbers in the input, for the protocol tells no other; a cell's rounds are the runs that the tool told
of, all in one process, so that there is one launch and no interval.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adbench.model.errors import BadFile
from adbench.model.record import SCHEMA_VERSION, Job, Launch, Record, Round, Run, Time
from adbench.version import __version__

MOST_BYTES = 4 * 2**30  # of a log: it holds every input
OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(("objective", "primal", "cost", "square"), "value"),
    **dict.fromkeys(("gradient", "jacobian", "double"), "gradient"),
}
"""What a function is called here; of a module whose value is an array a `jacobian` is one."""

OF_ARRAYS = ("ba", "ht")
MADE_BY = "gradbench"


@dataclass(frozen=True)
class _Asked:
    """An `evaluate` with what came of it."""

    module: str
    function: str
    size: int
    description: str
    response: Mapping[str, Any] | None
    exchange_ns: int | None
    analysis: Mapping[str, Any] | None


def is_log(path: Path) -> bool:
    """Whether a file begins as a log of gradbench's does: with a message, after its time or not."""
    try:
        with path.open("rb") as file:
            first = file.read(4096).partition(b"\n")[0]
    except OSError:
        return False
    return b'"message"' in first and b'"kind"' in first and b'"records"' not in first


def read_log(path: Path) -> Run:
    """The run that a log tells of. Raises BadFile, in one line, where it is none, is damaged, or asks nothing."""
    messages: dict[int, dict[str, Any]] = {}
    responses: dict[int, dict[str, Any]] = {}
    elapsed: dict[tuple[str, int], int] = {}
    for number, line in _lines(path):
        for part, found in (("message", messages), ("response", responses)):
            if isinstance(told := line.get(part), dict):
                which = told.get("id")
                if not isinstance(which, int):
                    raise BadFile(f"{path}: line {number}: a {part} without an id; this is no log of gradbench's")
                found.setdefault(which, told)
                elapsed.setdefault((part, which), _nanoseconds(line.get("elapsed")))
    start = next((m for m in messages.values() if m.get("kind") == "start"), {})
    tool = _text(responses.get(start.get("id", -1), {}).get("tool")) or path.stem
    asked = [_asked(m, messages, responses, elapsed) for m in messages.values() if m.get("kind") == "evaluate"]
    defined = [m for m in messages.values() if m.get("kind") == "define"]
    refused = [m for m in defined if _refusal(responses.get(m["id"])) is not None]
    if not asked and not refused:
        raise BadFile(f"{path}: no log of gradbench's: nothing in it is evaluated; gradbench run … -o LOG makes one")
    backend = f"{tool} ({MADE_BY})"
    records = [_record(one, case, backend) for one, case in zip(asked, _cases(asked), strict=True)]
    for message in refused:
        job = Job(_text(message.get("module")) or "unnamed", 1, backend, "value")
        records.append(Record(job, "unsupported", _refusal(responses.get(message["id"]))))
    names = dict.fromkeys(record.job.case for record in records)
    return Run(
        schema_version=SCHEMA_VERSION,
        created=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        adbench_version=__version__,
        seed=0,
        settings={
            "made_by": MADE_BY,
            "verdicts": "of its eval",
            "times": "as its tool told them",
            "sizes": "numbers in the input",
        },
        machine={"processor": None},  # a log does not tell
        versions={backend: None},
        cases={name: f"gradbench's {name.partition('[')[0]}" for name in names},
        records=tuple(records),
    )


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadFile(f"{path}: larger than {MOST_BYTES // 2**30} GiB; gradbench trims a log: gradbench log trim")
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    data = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise BadFile(f"{path}: line {number} is not JSON, or damaged: {error}") from error
                if not isinstance(data, dict):
                    raise BadFile(f"{path}: line {number} is no object; this is no log of gradbench's")
                yield number, data
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}") from error


def _asked(
    message: Mapping[str, Any],
    messages: Mapping[int, Mapping[str, Any]],
    responses: Mapping[int, Mapping[str, Any]],
    elapsed: Mapping[tuple[str, int], int],
) -> _Asked:
    which = message["id"]
    analysis = next((m for m in messages.values() if m.get("kind") == "analysis" and m.get("of") == which), None)
    exchange = elapsed.get(("response", which), 0) - elapsed.get(("message", which), 0)
    return _Asked(
        module=_text(message.get("module")) or "unnamed",
        function=_text(message.get("function")) or "unnamed",
        size=max(1, _count(message.get("input"))),
        description=_text(message.get("description")) or "",
        response=responses.get(which),
        exchange_ns=exchange if exchange > 0 else None,
        analysis=analysis,
    )


def _cases(asked: list[_Asked]) -> list[str]:
    """A name for each: the module, with the function where that is no operator of ours, and with what tells it from
    others of the same name, size and operator."""
    plain = [(_case(one), one.size, _operator(one)) for one in asked]
    times, names, seen = Counter(plain), [], Counter[Any]()
    for one, key in zip(asked, plain, strict=True):
        name = key[0]
        if times[key] > 1 and one.description:
            name = f"{name}[{one.description[:60]}]"
        seen[name, *key[1:]] += 1
        names.append(name if seen[name, *key[1:]] == 1 else f"{name}#{seen[name, *key[1:]]}")
    return names


def _case(one: _Asked) -> str:
    return one.module if one.function in OPERATORS else f"{one.module}_{one.function}"


def _operator(one: _Asked) -> str:
    operator = OPERATORS.get(one.function, "value")
    return "jacobian" if operator == "gradient" and one.module in OF_ARRAYS else operator


def _record(one: _Asked, case: str, backend: str) -> Record:
    job = Job(case, one.size, backend, _operator(one))
    if one.response is None:
        return Record(job, "crashed", "the log ends without an answer to it")
    if one.response.get("success") is not True:
        return Record(job, "failed", _text(one.response.get("error")) or "the tool says that it failed, and no reason")
    if one.analysis is not None and one.analysis.get("valid") is False:
        return Record(job, "wrong", _text(one.analysis.get("error")) or "invalid, says the eval, and no reason")
    return Record(job, "ok", time=_time(one))


def _time(one: _Asked) -> Time | None:
    """What the tool told: each `evaluate` a round of one call; what the exchange took beside them is preparation."""
    timings = (one.response or {}).get("timings")
    parts = [part for part in timings if isinstance(part, dict)] if isinstance(timings, list) else []
    told = [(part.get("name"), _nanoseconds(part)) for part in parts]
    runs = [ns for name, ns in told if name == "evaluate" and ns > 0]
    if not runs:
        return None
    phases: dict[str, float] = {}
    for name, ns in told:
        if name != "evaluate":
            phases[str(name)] = phases.get(str(name), 0.0) + ns * 1e-9
    beside = sum(phases.values())
    if one.exchange_ns is not None:
        beside = max(beside, (one.exchange_ns - sum(runs)) * 1e-9, 0.0)
    rounds = tuple(Round(1, ns) for ns in runs)
    return Time((Launch(0, None, beside, phases, runs[0] * 1e-9, None, None, rounds),))


def _refusal(response: Mapping[str, Any] | None) -> str | None:
    """Why a module was refused; None where it was not."""
    if response is None or response.get("success") is not False:
        return None
    return _text(response.get("error")) or "the tool has it not, and gives no reason"


def _count(value: Any) -> int:
    """The numbers in an input, but for how often and how long it is to be run."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return 1
    if isinstance(value, list):
        return sum(map(_count, value))
    if isinstance(value, dict):
        return sum(_count(part) for name, part in value.items() if name not in ("min_runs", "min_seconds", "runs"))
    return 0


def _nanoseconds(value: Any) -> int:
    found = value.get("nanoseconds") if isinstance(value, dict) else None
    return int(found) if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 2**63 else 0


def _text(value: Any) -> str | None:
    """One line of a text; None for anything else, and for an empty one."""
    return " ".join(value.split())[:500] or None if isinstance(value, str) else None
