"""The shipped schema equals the dataclasses', and other programs understand it."""

import json
import math
from dataclasses import fields, make_dataclass, replace
from typing import Any

import jsonschema
import pytest

from adbench.model.record import Record, Run
from adbench.model.serialization import from_plain, to_plain
from adbench.oracle.evidence import EntryEvidence
from adbench.results import schema
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
    from_plain(data, Run)
    data["records"][0]["time"]["launches"][0]["rounds"] = []
    assert list(validator.iter_errors(data))
    with pytest.raises(ValueError, match=r"records\[0\].time.launches\[0\].rounds: expected array of length >= 1"):
        from_plain(data, Run)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("seed",), True),
        (("splendid",), 1),
        (("schema_version",), 1),
        (("loop_overhead_ns",), "none"),
        (("records", 0, "status"), "splendid"),
        (("records", 0, "memory", "python_peak_bytes", "value"), "nan"),
        (("records", 0, "verdict", "worst", "interval"), [0.0]),
        (("records", 0, "verdict", "worst", "interval"), [0.0, "x"]),
        (("records", 0, "time", "launches", 0, "prepare_seconds"), -1.0),
        (("records", 0, "time", "launches", 0, "rounds", 0, "calls"), 0),
    ],
)
def test_the_schema_and_adbench_refuse_the_same(place: tuple[Any, ...], value: Any) -> None:
    validator = jsonschema.Draft7Validator(json.loads(schema.FILE.read_text("utf-8")))
    verdict = replace(
        runs.verdict(), worst=EntryEvidence("x", (0,), 1.0, 1.0, (-math.inf, 2.0), 0.0, "right", 9.0, 9.0)
    )
    record = replace(runs.record(memory=runs.memory()), verdict=verdict)
    data = json.loads(dumps(runs.run([record])))
    validator.validate(data)
    from_plain(data, Run)
    part = data
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    assert not validator.is_valid(data)
    with pytest.raises(ValueError, match=r"expected|unknown field|invalid enum value"):
        from_plain(data, Run)


def test_a_field_that_a_dataclass_gains_changes_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = make_dataclass("Run", [("splendid", int, 1)], bases=(Run,), frozen=True)
    monkeypatch.setattr(schema, "Run", longer)
    assert set(schema.schema()["properties"]) == {field.name for field in fields(Run)} | {"splendid"}
    assert schema.FILE.read_text("utf-8") != schema.text()
    with pytest.raises(ValueError, match="unknown field splendid"):
        from_plain(to_plain(runs.run()) | {"splendid": 1}, Run)
