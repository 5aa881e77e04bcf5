"""The JSON Schema of `run.json` (draft-07), derived from the dataclasses that a run is read into.

`python -m adbench.results.schema` writes it next to this file, so that other programs can check a run; a test compares
it with the dataclasses. adbench itself checks a file when it builds the dataclasses (model/serialization.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from adbench.model.record import SCHEMA_VERSION, Run
from adbench.model.serialization import strict_type

FILE = Path(__file__).with_name("run.schema.json")


def schema() -> dict[str, Any]:
    """The schema of the run version that this adbench writes."""
    _, definitions = msgspec.json.schema_components([strict_type(Run)], ref_template="#/definitions/{name}")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **definitions.pop(Run.__name__),
        "title": f"A run of adbench, schema version {SCHEMA_VERSION}",
        "definitions": dict(sorted(definitions.items())),
    }


def text() -> str:
    """The content of the schema's file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
