"""The JSON Schema of `run.json` (draft-07), made from the dataclasses that a run is read into.

`python -m adbench.results.schema` writes it beside this file, for other programs to hold a run to; a test holds it to the
dataclasses. Every file is held to it when it is loaded, by fastjsonschema, before anything else looks at it.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from adbench.measure.clock import Round
from adbench.measure.memory import Figure
from adbench.model.record import SCHEMA_VERSION, Launch, Run, Time

FILE = Path(__file__).with_name("run.schema.json")
MOST_RECORDS = 100_000

_NOT_NEGATIVE: dict[str, Any] = {"type": "number", "minimum": 0}
_NARROWER: dict[tuple[type, str], dict[str, Any]] = {
    (Run, "schema_version"): {"enum": [SCHEMA_VERSION]},
    (Run, "records"): {"maxItems": MOST_RECORDS},
    (Time, "launches"): {"minItems": 1},
    (Launch, "rounds"): {"minItems": 1},
    (Launch, "prepare_seconds"): _NOT_NEGATIVE,
    (Launch, "first_call_seconds"): _NOT_NEGATIVE,
    (Round, "calls"): {"minimum": 1},
    (Round, "ns"): {"minimum": 0},
    (Figure, "value"): {"anyOf": [_NOT_NEGATIVE, {"type": "null"}]},
}
"""What the types do not say: a measured figure is no NaN and not negative, and a median needs a number."""


def schema() -> dict[str, Any]:
    """The schema of a run of the version that this adbench writes."""
    definitions: dict[str, Any] = {
        "float": {
            "description": "A number; what JSON has no number for is a text.",
            "anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}],
        }
    }
    root = _of(Run, definitions)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"A run of adbench, schema version {SCHEMA_VERSION}",
        **root,
        "definitions": dict(sorted(definitions.items())),
    }


def text() -> str:
    """The schema as it stands in its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def check(data: Any) -> None:
    """Holds plain data to the schema. Raises ValueError, in one short line, where it does not fit."""
    _check(data, None, "")


def _check(data: Any, part: dict[str, Any] | None, place: str) -> None:
    """Holds data to a part of the schema, or to all of it; `place` is where the data is in the file."""
    import fastjsonschema

    try:
        _validator(None if part is None else json.dumps(part))(data)
    except fastjsonschema.JsonSchemaValueException as error:
        found = place + _place(error.path)
        if error.rule == "anyOf" and isinstance(error.value, dict):
            for rule in error.rule_definition:  # "must be a Time or null" helps nobody
                if rule.get("type") == "object":
                    _check(error.value, rule, found)
        raise ValueError(f"{found.lstrip('.') or 'the file'}: {_fault(error)}") from error


@cache
def _validator(part: str | None) -> Callable[[Any], Any]:
    """The compiled schema of a run, or of a part of it, given as JSON text."""
    import fastjsonschema

    whole = json.loads(FILE.read_text("utf-8"))
    if part is not None:
        whole = json.loads(part) | {"definitions": whole["definitions"]}
    compiled: Callable[[Any], Any] = fastjsonschema.compile(whole, use_default=False)
    return compiled


def _fault(error: Any) -> str:
    """What is wrong, without the value, which may be the whole file."""
    value = repr(error.value)
    there = f"; there is {value}" if len(value) <= 60 else ""
    rule = error.rule_definition
    match error.rule:
        case "required":
            missing = [name for name in rule if name not in error.value]
            return f"lacks {', '.join(missing)}"
        case "additionalProperties":
            extra = sorted(set(error.value) - set(error.definition["properties"]))
            return " ".join(f"has what no run has: {', '.join(map(repr, extra))}".split())[:200]
        case "enum":
            return f"must be one of {', '.join(map(str, rule))}{there}"
        case "type":
            return f"must be of type {rule}{there}"
        case "anyOf":
            return f"must be {' or '.join(_kinds(rule))}{there}"
        case _:
            return f"breaks the rule {error.rule} {json.dumps(rule)}{there}"


def _kinds(rules: list[dict[str, Any]]) -> list[str]:
    return [str(rule.get("type") or rule.get("enum") or rule.get("$ref", "").rpartition("/")[2]) for rule in rules]


def _place(path: list[Any]) -> str:
    """`.records[3].time.launches[0]`, from fastjsonschema's list of names."""
    place = "".join(f"[{part}]" if str(part).isdigit() else f".{part}" for part in path[1:])
    return " ".join(place.split())[:120]


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        if kind is not Run and kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # taken, while its own fields are looked at
            definitions[kind.__name__] = _of_dataclass(kind, definitions)
        return _of_dataclass(kind, definitions) if kind is Run else {"$ref": f"#/definitions/{kind.__name__}"}
    if origin in (Union, types.UnionType):
        kinds = [_of(argument, definitions) for argument in arguments]
        return (
            {"anyOf": kinds} if any(set(found) != {"type"} for found in kinds) else {"type": [k["type"] for k in kinds]}
        )
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return {"type": "array", "items": _of(arguments[0], definitions)}
        n = len(arguments)
        return {"type": "array", "items": [_of(a, definitions) for a in arguments], "minItems": n, "maxItems": n}
    if kind is float:
        return {"$ref": "#/definitions/float"}
    return {"type": {str: "string", int: "integer", bool: "boolean", type(None): "null"}[kind]}


def _of_dataclass(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for each in fields(kind):
        found = _of(hints[each.name], definitions)
        narrower = _NARROWER.get((kind, each.name), {})
        replaces = {"anyOf", "enum"} & set(narrower) or ("$ref" in found and narrower)
        properties[each.name] = narrower if replaces else found | narrower
        if each.default is MISSING and each.default_factory is MISSING:
            required.append(each.name)
        elif isinstance(each.default, str | int | float | None):
            properties[each.name] = properties[each.name] | {"default": each.default}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
