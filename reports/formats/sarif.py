"""Wrong derivatives as SARIF 2.1.0, with which GitHub annotates a pull request.

Each wrong cell is a result, and so is each failure and each known bug that no longer occurs. A result points at the
user's backend, else at the case or function, else at no existing file. Expected bugs and correct cells are no results.
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from adbench.model.operator import BATCH, EVERY_OPERATOR
from adbench.model.record import Record, Run
from adbench.results.comparison_inputs import name_of

from ..content.cells import outcome
from ..content.formatting import OUTCOMES

MOST_RESULTS: Final = 5000  # GitHub shows no more of a run
LONGEST: Final = 1000  # characters of a message
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

WRONG_RESULT: Final = "wrong-result"  # of an operator of a later version


def _rule_for(operator: str) -> str:
    return f"wrong-{operator.replace('_', '-')}"


_ABOUT: Final = {
    **{_rule_for(name): f"Wrong {name.replace('_', ' ')}" for name in EVERY_OPERATOR},
    WRONG_RESULT: "Wrong result",
    "known-bug-gone": "A known bug no longer occurs",
    "failed": "Error, crash or time-out",
}
_HELP: Final = {
    "known-bug-gone": "The list of known bugs may be out of date: adbench check --strict-known refuses such a list.",
    "failed": "The backend raised an error, crashed or did not answer in time, so nothing was compared.",
}
_LEVELS: Final = {"known-bug-gone": "note", "failed": "warning"}
_COMPARED: Final = "adbench compared each entry with a value that is correct to the digits shown."


def render(run: Run) -> str:
    """The JSON text: one SARIF run. It is marked as unsuccessful, with a notification, if it was interrupted or judged
    nothing of a selected part."""
    found = results(run)
    rules = list(dict.fromkeys(result["ruleId"] for result in found))
    for result in found:
        result["ruleIndex"] = rules.index(result["ruleId"])
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "adbench",
                        "version": run.adbench_version,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "automationDetails": {"id": "adbench/check/"},
                "invocations": [_invocation(run)],
                "columnKind": "unicodeCodePoints",
                "results": found,
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def left_out(run: Run) -> str | None:
    """The number of results that GitHub would not show."""
    more = sum(_rule_of(record) is not None for record in run.every_record) - MOST_RESULTS
    return f"{more} more findings left out: GitHub shows {MOST_RESULTS}" if more > 0 else None


def results(run: Run) -> list[dict[str, Any]]:
    """The results of a run in SARIF's fields, as many as GitHub shows."""
    found = (_result(run, record) for record in run.every_record)
    return [result for result in found if result is not None][:MOST_RESULTS]


def _result(run: Run, record: Record) -> dict[str, Any] | None:
    rule = _rule_of(record)
    if rule is None:
        return None
    job = record.job
    cell = _text(name_of(job))
    word, reason = outcome(record)
    where = f"{job.operator} of {job.case} at size {job.size} with {job.backend}"
    where += f", seed {job.seed}" if job.seed else ""
    where += f", {job.threads} threads" if job.threads else ""
    said = f"{where}: {reason or OUTCOMES[word].label}"
    if record.reproduce:
        said += f"\nReproduce: {record.reproduce}"
    places = [run.sources[key] for key in (f"backends/{job.backend}", f"cases/{job.case}") if key in run.sources]
    first, *others = places or [f"adbench/cases/{job.case}:1"]
    result: dict[str, Any] = {
        "ruleId": rule,
        "level": _LEVELS.get(rule, "error"),
        "message": {"text": _text(said[:LONGEST])},
        "locations": [{**_location(first), "logicalLocations": [{"fullyQualifiedName": cell, "kind": "function"}]}],
        "partialFingerprints": {"cell/v1": hashlib.sha256(cell.encode()).hexdigest()[:32]},
    }
    if others:
        named = {"message": {"text": "The function that is differentiated."}}
        result["relatedLocations"] = [{"id": 1, **_location(others[0]), **named}]
    return result


def _rule_of(record: Record) -> str | None:
    """The id of the rule that a record breaks; None for correct, unsupported and expected results."""
    if record.outcome.word == "wrong":
        operator = BATCH if record.job.operator.startswith(BATCH) else record.job.operator
        rule = _rule_for(operator)
        return rule if rule in _ABOUT else WRONG_RESULT
    if record.outcome.word == "surprise":
        return "known-bug-gone"
    return "failed" if record.outcome.is_fault else None


def _rule(rule: str) -> dict[str, Any]:
    text = _HELP.get(rule, _COMPARED)
    return {
        "id": rule,
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": _ABOUT[rule]},
        "fullDescription": {"text": text},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS.get(rule, "error")},
        "properties": {"tags": ["correctness"], "precision": "very-high"},
    }


def _text(text: str) -> str:
    """The text without lone surrogates, which UTF-8 and JSON cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _location(place: str) -> dict[str, Any]:
    """A location from "path:line"."""
    path, _, line = _text(place).rpartition(":")
    uri = quote(str(PurePosixPath(path)))
    region = {"startLine": max(1, int(line))} if line.isdecimal() else {"startLine": 1}
    return {"physicalLocation": {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}, "region": region}}


def _invocation(run: Run) -> dict[str, Any]:
    faults = [*([run.interruption] if run.interruption else []), *run.unjudged]
    found: dict[str, Any] = {"executionSuccessful": not faults}
    if faults:
        told = [{"level": "error", "message": {"text": _text(fault[:LONGEST])}} for fault in faults]
        found["toolExecutionNotifications"] = told
    return found
