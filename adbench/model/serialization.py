"""Conversion of frozen dataclasses to plain data (for JSON) and back, checked by msgspec.

JSON has no NaN and no infinities, so they are written as the strings "nan", "inf", "-inf".
"""

from __future__ import annotations

import math
import re
import threading
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from adbench.model.record import SCHEMA_VERSION, Figure, Job, Launch, Record, Round, Run, Time

T = TypeVar("T")

MOST_RECORDS = 100_000

_NOT_NEGATIVE = Annotated[float, Meta(ge=0)]
_LIMITS: Mapping[tuple[type, str], Any] = {
    (Run, "schema_version"): Annotated[int, Meta(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)],
    (Run, "records"): Annotated[tuple[Record, ...], Meta(max_length=MOST_RECORDS)],
    (Run, "threaded"): Annotated[tuple[Record, ...], Meta(max_length=MOST_RECORDS)],
    (Job, "size"): Annotated[int, Meta(ge=0, le=2**53)],
    (Job, "seed"): Annotated[int, Meta(ge=0, le=2**53)],
    (Job, "threads"): Annotated[int, Meta(ge=0, le=2**53)],
    (Time, "launches"): Annotated[tuple[Launch, ...], Meta(min_length=1)],
    (Launch, "number"): Annotated[int, Meta(ge=0, le=2**53)],
    (Launch, "rounds"): Annotated[tuple[Round, ...], Meta(min_length=1)],
    (Launch, "prepare_seconds"): _NOT_NEGATIVE,
    (Launch, "first_call_seconds"): _NOT_NEGATIVE,
    (Round, "calls"): Annotated[int, Meta(ge=1, le=2**53)],
    (Round, "ns"): Annotated[int, Meta(ge=0, le=2**53)],
    (Figure, "value"): _NOT_NEGATIVE | None,
}
"""Limits that the types do not state: a measured figure is a number and not negative, a median needs a number, and a
whole number fits into a float."""

_ONE_AT_A_TIME = threading.Lock()
"""msgspec crashes if two threads convert to a dataclass that is new to it: one reads what the other has half built."""

_ALREADY_PLAIN = frozenset({str, int, bool, type(None)})


def to_plain(value: Any) -> Any:
    """Dataclasses as dicts, tuples as lists, non-finite floats as strings."""
    if type(value) in _ALREADY_PLAIN:  # the common case by far
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: to_plain(each) for name, each in value.items()}
    if isinstance(value, Round):  # halves files: of 100,000 rounds nearly all are undisturbed
        return {name: each for name, each in vars(value).items() if each != getattr(Round, name, MISSING)}
    if isinstance(value, Job) and not value.threads:  # nearly all have the run's own number
        return {name: each for name, each in vars(value).items() if name != "threads"}
    if is_dataclass(value):
        return {name: to_plain(each) for name, each in vars(value).items()}
    return value


def from_plain(data: Any, kind: type[T]) -> T:
    """The value of type `kind` from plain data. Raises ValueError with one line that names the place, for unknown or
    missing fields, wrong types and values beyond their limits."""
    converted(data, strict_type(cast(Any, kind)))
    return converted(data, kind, strict=False)  # reads "nan" as a float; the strict type has checked the rest


def from_json(text: bytes, kind: type[T]) -> T:
    """`from_plain` of JSON text, read straight into the type. Raises ValueError at the first wrong value."""
    try:
        with _ONE_AT_A_TIME:
            checked = msgspec.json.decode(text, type=strict_type(cast(Any, kind)))
            return msgspec.convert(checked, kind, strict=False, from_attributes=True)
    except (msgspec.DecodeError, RecursionError) as error:  # a ValidationError is a DecodeError
        raise ValueError(_fault(str(error), None)) from error


def converted(data: Any, kind: type[T], *, strict: bool = True) -> T:
    """`msgspec.convert`, but raises ValueError with one line that names the place."""
    try:
        with _ONE_AT_A_TIME:
            return msgspec.convert(data, kind, strict=strict)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(_fault(str(error), data)) from error


@cache
def strict_type(kind: Any) -> Any:
    """The type against which msgspec checks plain data: dataclasses with their limits and no unknown fields, floats
    that may be strings."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _struct(kind)
    if kind is float:
        return float | Literal["nan", "inf", "-inf"]
    if origin is Annotated:
        of, limit = arguments
        return kind if of is float else Annotated[strict_type(of), limit]
    if origin in (Union, types.UnionType):
        return kind if str in arguments else reduce(or_, map(strict_type, arguments))
    if origin in (None, Literal):
        return kind
    if origin is tuple and set(arguments) == {float}:  # as a list, because drafts of JSON Schema differ on tuples
        limit = Meta(min_length=len(arguments), max_length=len(arguments))
        return Annotated[list[strict_type(float)], limit]  # type: ignore[misc]
    return origin[tuple(each if each is ... else strict_type(each) for each in arguments)]


def _struct(kind: Any) -> Any:
    hints = get_type_hints(kind) | {name: limited for (of, name), limited in _LIMITS.items() if of is kind}
    members = [(each.name, strict_type(hints[each.name]), *_default(each)) for each in fields(kind)]
    return msgspec.defstruct(kind.__name__, members, forbid_unknown_fields=True)


def _default(field: Field[Any]) -> tuple[Any, ...]:
    """The end of msgspec's tuple for a field: its default, if any."""
    if field.default_factory is not MISSING:
        return (msgspec.field(default_factory=field.default_factory),)
    return () if field.default is MISSING else (field.default,)


def _fault(error: str, data: Any) -> str:
    """One line: the place, such as `.records[3].job.size`, the expected type, and the value if it is short."""
    what, _, place = error.replace("`", "").partition(" - at $")
    if (
        data is not None and what.startswith("Expected") and "[...]" not in place
    ):  # the name of a dict's key is not in the place
        for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", place):
            data = data[name or int(index)]
        if len(repr(data)) <= 60:
            what = what.partition(", got ")[0] + f", got {data!r}"
    what = " ".join(what.split())[:200]
    return f"{place}: {what[:1].lower()}{what[1:]}".removeprefix(": ")
