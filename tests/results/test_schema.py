"""The schema that ships is the one of the dataclasses, and other programs understand it."""

import json
from dataclasses import fields

import jsonschema
import pytest

from adbench.results import schema
from adbench.model.serialization import to_plain
from adbench.model.record import Record, Run
from adbench.results.store import dumps
from tests.reports import runs


def test_the_file_is_made_from_the_dataclasses() -> None:
    assert schema.FILE.read_text("utf-8") == schema.text(), "python -m adbench.results.schema writes it"


def test_every_field_of_a_run_and_of_a_record_is_in_it() -> None:
    shipped = json.loads(schema.FILE.read_text("utf-8"))
    assert set(shipped["properties"]) == {field.name for field in fields(Run)}
    assert set(shipped["definitions"]["Record"]["properties"]) == {field.name for field in fields(Record)}


def test_another_programs_validator_accepts_a_run_and_refuses_a_damaged_one() -> None:
    shipped = json.loads(schema.FILE.read_text("utf-8"))
    jsonschema.Draft7Validator.check_schema(shipped)
    validator = jsonschema.Draft7Validator(shipped)
    records = [runs.record(memory=runs.memory()), runs.record(backend="b", status="wrong"), runs.record(word=None)]
    data = json.loads(dumps(runs.run(records)))
    assert not list(validator.iter_errors(data))
    schema.check(data)
    data["records"][0]["time"]["launches"][0]["rounds"] = []
    assert list(validator.iter_errors(data))
    with pytest.raises(ValueError, match=r"records\[0\].time.launches\[0\].rounds: breaks the rule minItems 1"):
        schema.check(data)


def test_a_field_that_a_dataclass_gains_changes_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema._NARROWER, (Run, "seed"), {"minimum": 7})
    assert schema.FILE.read_text("utf-8") != schema.text()
    with pytest.raises(ValueError, match="splendid"):
        schema.check(to_plain(runs.run()) | {"splendid": 1})
