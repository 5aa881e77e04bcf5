"""gradbench's messages: a JSON object on a line each way, the response with the `id` of its message."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from adbench.interop.line_protocol import id_in


class Malformed(Exception):
    """What arrived is no message. `id` is the number that it calls itself by, None where that cannot be told."""

    def __init__(self, id: int | None, reason: str) -> None:
        super().__init__(reason)
        self.id, self.reason = id, reason


@dataclass(frozen=True)
class Start:
    """The first message of a session."""

    id: int
    eval: str | None = None
    config: Any = None


@dataclass(frozen=True)
class Define:
    """Whether the tool has a module."""

    id: int
    module: str


@dataclass(frozen=True)
class Evaluate:
    """A function of a module at an input."""

    id: int
    module: str
    function: str
    input: Any
    description: str | None = None


@dataclass(frozen=True)
class Analysis:
    """What the eval thinks of the output for the message `of`."""

    id: int
    of: int
    valid: bool
    error: str | None = None


@dataclass(frozen=True)
class Other:
    """Of a kind that the tool need not know: it is answered with the `id` alone."""

    id: int
    kind: str


Message = Start | Define | Evaluate | Analysis | Other


@dataclass(frozen=True)
class Timing:
    """How long a part took; one of the name "evaluate" for each run of a function."""

    name: str
    nanoseconds: int


@dataclass(frozen=True)
class Response:
    """The tool's answer. What is None is not sent."""

    id: int | None
    success: bool | None = None
    output: Any = None
    timings: tuple[Timing, ...] | None = None
    error: str | None = None
    tool: str | None = None
    config: Any = None


def message(line: bytes) -> Message:
    """The message on a line. Raises Malformed."""
    data = decoded(line)
    number: Any = data.get("id")
    if not is_id(number):
        raise Malformed(None, "the message lacks an id that is a whole number")
    kind = _text(data, "kind", number)
    match kind:
        case "start":
            return Start(number, _text(data, "eval", number, needed=False), data.get("config"))
        case "define":
            return Define(number, _text(data, "module", number))
        case "evaluate":
            if "input" not in data:
                raise Malformed(number, "the message lacks input")
            names = _text(data, "module", number), _text(data, "function", number)
            return Evaluate(number, *names, data["input"], _text(data, "description", number, needed=False))
        case "analysis":
            return _analysis(data, number)
    return Other(number, kind)


def response(line: bytes) -> Response:
    """The response on a line. Raises Malformed."""
    data = decoded(line)
    number = data.get("id")
    if number is not None and not is_id(number):
        raise Malformed(None, "the response's id is no whole number")
    success = data.get("success")
    if success is not None and not isinstance(success, bool):
        raise Malformed(number, "the response's success is neither true nor false")
    timings = _timings(data.get("timings"), number)
    error, tool = _text(data, "error", number, needed=False), _text(data, "tool", number, needed=False)
    return Response(number, success, data.get("output"), timings, error, tool, data.get("config"))


def written(what: Message | Response) -> str:
    """The line. Raises ValueError for a number that JSON lacks."""
    kinds: dict[type, str] = {Start: "start", Define: "define", Evaluate: "evaluate", Analysis: "analysis"}
    data: dict[str, Any] = {"id": what.id}
    if type(what) in kinds:
        data["kind"] = kinds[type(what)]
    for name, value in vars(what).items():
        if name != "id" and value is not None:
            data[name] = [vars(timing) for timing in value] if name == "timings" else value
    return json.dumps(data, allow_nan=False)


def decoded(line: bytes) -> dict[str, Any]:
    """The object on a line. Raises Malformed for anything else, and for a number that JSON lacks."""
    try:
        data = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        deep = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise Malformed(id_in(line), str(error) if isinstance(error, NotFinite) else deep) from error
    if not isinstance(data, dict):
        raise Malformed(None, f"a message is an object; this is {type(data).__name__}")
    return data


def is_id(value: Any) -> bool:
    """Whether a value can be the number of a message."""
    return isinstance(value, int) and not isinstance(value, bool)


class NotFinite(ValueError):
    """A number that JSON lacks, or that no float64 can hold."""


def _refuse(text: str) -> NoReturn:
    raise NotFinite(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotFinite(f"{text} is beyond what a float64 can hold")
    return value


def _text(data: Mapping[str, Any], name: str, number: int | None, *, needed: bool = True) -> Any:
    value = data.get(name)
    if value is None and not needed:
        return None
    if name not in data:
        raise Malformed(number, f"the message lacks {name}")
    if not isinstance(value, str):
        raise Malformed(number, f"{name} must be a text; it is {type(value).__name__}")
    return value


def _analysis(data: Mapping[str, Any], number: int) -> Analysis:
    of: Any = data.get("of")
    valid = data.get("valid")
    if not is_id(of):
        raise Malformed(number, "an analysis needs `of`, the id of the message that it is about")
    if not isinstance(valid, bool):
        raise Malformed(number, "an analysis needs `valid`, true or false")
    error = data.get("error")
    return Analysis(number, of, valid, None if error is None else str(error))


def _timings(data: Any, number: int | None) -> tuple[Timing, ...] | None:
    if data is None:
        return None
    try:
        return tuple(Timing(str(each["name"]), _nanoseconds(each["nanoseconds"])) for each in data)
    except (TypeError, KeyError, ValueError) as error:
        raise Malformed(number, "timings must be a list of {name, nanoseconds}") from error


def _nanoseconds(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError(value)
    return int(value)
