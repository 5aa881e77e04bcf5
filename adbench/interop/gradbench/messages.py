"""gradbench's messages: one JSON object per line, the response with the `id` of its message."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from adbench.interop.line_protocol import Malformed, id_in
from adbench.model.serialization import converted


class Message(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag=str.lower):
    """A message of an eval; the name of its class is its kind. One of a further kind is answered by the `id` alone."""

    id: int


class Start(Message, frozen=True):
    """The first message of a session."""

    eval: str | None = None
    config: Any = None


class Define(Message, frozen=True):
    """A request whether the tool has a module."""

    module: str


class Evaluate(Message, frozen=True):
    """A request for a function of a module at an input."""

    module: str
    function: str
    input: Any
    description: str | None = None


class Analysis(Message, frozen=True):
    """The eval's judgement of the output for the message `of`."""

    of: int
    valid: bool
    error: Any = None


KINDS = ("start", "define", "evaluate", "analysis")


class Timing(msgspec.Struct, frozen=True):
    """The time of a part; one named "evaluate" for each run of a function."""

    name: str
    nanoseconds: Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]


class Response(msgspec.Struct, frozen=True, omit_defaults=True):
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
    is_other = isinstance(kind := data.get("kind"), str) and kind not in KINDS
    return Message(data["id"]) if is_other else _read(Start | Define | Evaluate | Analysis, data)


def response(line: bytes) -> Response:
    """Parse a response. Raises Malformed."""
    answer: Response = _read(Response, _object(line))
    return answer


def written(what: Message | Response) -> str:
    """The line of a message. Raises ValueError for a number that JSON lacks."""
    return json.dumps(msgspec.to_builtins(what), allow_nan=False)


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


def _read(kind: Any, data: dict[str, Any]) -> Any:
    """The message or response of an object. Raises Malformed for a missing field, or one of another type."""
    try:
        return converted(data, kind)
    except ValueError as fault:
        raise Malformed(data["id"] if type(data.get("id")) is int else None, str(fault)) from fault
