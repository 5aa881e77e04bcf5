"""gradbench's messages: one JSON object per line, the response with the `id` of its message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from adbench.interop.line_protocol import Malformed, id_in
from adbench.model.serialization import converted

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
    nanoseconds: Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]


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
    if type(data.get("id")) is not int:
        raise Malformed(None, "the message needs an integer id")
    general = _read(Other, data)
    return _read(KINDS[general.kind], data) if general.kind in KINDS else general


def response(line: bytes) -> Response:
    """Parse a response. Raises Malformed."""
    return _read(Response, _object(line))


def written(what: Message | Response) -> str:
    """The line of a message. Raises ValueError for a number that JSON lacks."""
    kind = next((name for name, kind in KINDS.items() if isinstance(what, kind)), None)
    data = {"kind": kind, **vars(what)}
    sent = {name: value for name, value in data.items() if value is not None or name == "id"}
    return json.dumps(sent, allow_nan=False, default=vars)


def _object(line: bytes) -> dict[str, Any]:
    """The object on a line. Raises Malformed for anything else, and for a number that JSON lacks."""
    try:
        data = msgspec.json.decode(line)
    except RecursionError as error:
        raise Malformed(id_in(line), "nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(id_in(line), f"not JSON, or a number beyond float64: {error}") from error
    if not isinstance(data, dict):
        raise Malformed(None, f"a message must be an object; got {type(data).__name__}")
    return data


def _read(kind: type[T], data: dict[str, Any]) -> T:
    """The message or response of an object. Raises Malformed for a missing field, or one of another type."""
    try:
        return converted(data, kind)
    except ValueError as fault:
        raise Malformed(data["id"] if type(data.get("id")) is int else None, str(fault)) from fault
