"""gradbench's messages: one JSON object per line, the response with the `id` of its message."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, NoReturn, TypeVar

from adbench.interop.line_protocol import Malformed, id_in

T = TypeVar("T")


@dataclass(frozen=True)
class Start:
    """The first message of a session."""

    id: int
    eval: str | None = None
    config: Any = None


@dataclass(frozen=True)
class Define:
    """A request whether the tool has a module."""

    id: int
    module: str


@dataclass(frozen=True)
class Evaluate:
    """A request for a function of a module at an input."""

    id: int
    module: str
    function: str
    input: Any
    description: str | None = None


@dataclass(frozen=True)
class Analysis:
    """The eval's judgement of the output for the message `of`."""

    id: int
    of: int
    valid: bool
    error: Any = None


@dataclass(frozen=True)
class Other:
    """A message of another kind, which is answered by the `id` alone."""

    id: int
    kind: str


Message = Start | Define | Evaluate | Analysis | Other
KINDS: Mapping[str, type[Message]] = {"start": Start, "define": Define, "evaluate": Evaluate, "analysis": Analysis}


@dataclass(frozen=True)
class Timing:
    """The time of a part; one named "evaluate" for each run of a function."""

    name: str
    nanoseconds: int


@dataclass(frozen=True)
class Response:
    """The tool's answer. A field that is None is not sent."""

    id: int | None
    success: bool | None = None
    output: Any = None
    timings: tuple[Timing, ...] | None = None
    error: str | None = None
    tool: str | None = None
    config: Any = None


def message(line: bytes) -> Message:
    """Parse a message. Raises Malformed."""
    data = _object(line)
    number: Any = data.get("id")
    if not _is_whole(number):
        raise Malformed(None, "the message needs an integer id")
    general = _read(Other, data, number)
    return _read(KINDS[general.kind], data, number) if general.kind in KINDS else general


def response(line: bytes) -> Response:
    """Parse a response. Raises Malformed."""
    data = _object(line)
    number = data.get("id")
    if number is not None and not _is_whole(number):
        raise Malformed(None, "the response needs an integer id")
    return _read(Response, data, number)


def written(what: Message | Response) -> str:
    """The line of a message. Raises ValueError for a number that JSON lacks."""
    kind = next((name for name, kind in KINDS.items() if isinstance(what, kind)), None)
    data = {"kind": kind, **vars(what)}
    sent = {name: value for name, value in data.items() if value is not None or name == "id"}
    return json.dumps(sent, allow_nan=False, default=vars)


class NotFinite(ValueError):
    """A number that JSON lacks, or beyond the range of float64."""


def _object(line: bytes) -> dict[str, Any]:
    """The object on a line. Raises Malformed for anything else, and for a number that JSON lacks."""
    try:
        data = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except NotFinite as error:
        raise Malformed(id_in(line), str(error)) from error
    except RecursionError as error:
        raise Malformed(id_in(line), "nested too deeply") from error
    except ValueError as error:
        raise Malformed(id_in(line), f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise Malformed(None, f"a message must be an object; got {type(data).__name__}")
    return data


def _refuse(text: str) -> NoReturn:
    raise NotFinite(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotFinite(f"{text} exceeds the range of float64")
    return value


def _read(kind: type[T], data: Mapping[str, Any], number: int | None) -> T:
    """The dataclass from an object, each field of its type; null means that a field with a default is not sent."""
    values: dict[str, Any] = {"id": number}
    for field in fields(kind):  # type: ignore[arg-type]  # each kind is a dataclass
        value = data.get(field.name)
        if field.name == "id" or (value is None and field.default is not MISSING):
            continue
        if field.name not in data:
            raise Malformed(number, f"the message lacks {field.name}")
        is_right, must_be = TYPES[str(field.type).removesuffix(" | None")]
        if not is_right(value):
            raise Malformed(number, f"{field.name} must be {must_be}; got {type(value).__name__}")
        values[field.name] = _timings(value) if field.name == "timings" else value
    return kind(**values)


def _timings(data: Any) -> tuple[Timing, ...]:
    return tuple(Timing(str(each["name"]), int(each["nanoseconds"])) for each in data)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_timings(value: Any) -> bool:
    try:
        times = [each["nanoseconds"] for each in value if str(each["name"])]
    except (TypeError, KeyError):
        return False
    return all(isinstance(ns, int | float) and not isinstance(ns, bool) and ns >= 0 for ns in times)


# the annotation of a field -> (a test of a value, the expected type in words)
TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "Any": (lambda value: True, "anything"),
    "str": (lambda value: isinstance(value, str), "a string"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "int": (_is_whole, "an integer"),
    "tuple[Timing, ...]": (_are_timings, "a list of {name, nanoseconds}"),
}
