"""Upgrades runs of earlier schema versions, as plain data, to the present one.

Version 1 had one process for each backend and its epochs in one list: version 2 calls this one launch.
"""

from __future__ import annotations

from typing import Any

from adbench.model.record import SCHEMA_VERSION

OLDEST = 1
_NOT_TAKEN = {"value": None, "reason": "schema version 1 has no such figure"}


def upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """The same run in the present version. Raises ValueError if adbench cannot read its version, and TypeError,
    KeyError or AttributeError if the data does not fit its version."""
    version = data.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise ValueError("schema_version is missing")
    if version > SCHEMA_VERSION:
        raise ValueError(
            f"schema version {version}, of a later adbench; this reads {OLDEST} to {SCHEMA_VERSION}: update adbench"
        )
    if version < OLDEST:
        raise ValueError(f"unknown schema version {version}; this adbench reads {OLDEST} to {SCHEMA_VERSION}")
    return _from_1(data) if version == 1 else data


def _from_1(data: dict[str, Any]) -> dict[str, Any]:
    return data | {"schema_version": 2, "records": [_record_from_1(record) for record in data["records"]]}


def _record_from_1(record: dict[str, Any]) -> dict[str, Any]:
    time, memory = record["time"], record["memory"]
    if time is not None:
        launch = {
            "number": 0,
            "import_seconds": None,
            "prepare_seconds": time["prepare_seconds"],
            "phases": {},
            "first_call_seconds": time["first_call_seconds"],
            "warm_up_calls": None,
            "steady": None,
            "rounds": time["epochs"],
        }
        time = {"launches": [launch]}
    if memory is not None:
        memory = {"allocated_peak_bytes": _NOT_TAKEN, **memory}
    return record | {"time": time, "memory": memory}
