"""`adbench conform --variants`: the point of an operation at which its eager and its compiled form differ most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import examined
from adbench.findings.conform.judgement import OperationReferences
from adbench.findings.conform.operation_worker import THIRD
from adbench.findings.script_libraries import LIBRARIES
from adbench.findings.scripts import of_fault
from adbench.findings.variants.forms import FORMS, FormResult, FormsOfCase
from adbench.model.atomic_file import write_whole
from adbench.model.settings import PROCESSOR
from adbench.oracle.evidence import EntryEvidence

Answers = Sequence[Mapping[str, Any]]


def compared_forms(
    truths: Sequence[OperationReferences],
    answers: Mapping[str, Answers],
    scripts: Path | None,
    device: str = PROCESSOR,
) -> list[FormsOfCase]:
    """Both forms of each library of which these are the answers of all backends, at all points of an operation."""
    found = [
        _widest(library, truths, answers[eager], answers[compiled], scripts, device)
        for library, (eager, compiled) in FORMS.items()
        if {eager, compiled} <= answers.keys()
    ]
    return [one for one in found if one is not None]


def _widest(
    library: str,
    truths: Sequence[OperationReferences],
    eager: Answers,
    compiled: Answers,
    scripts: Path | None,
    device: str,
) -> FormsOfCase | None:
    """The derivative and the point with the largest difference of correct digits; None if nothing can be compared.

    Digits that the point itself does not hold count as correct. scripts: the folder for a program that shows it.
    """
    widest, chosen = -1.0, None
    for truth, *answers in zip(truths, eager, compiled, strict=True):
        if truth.known is None:
            continue
        for operator in answers[0].keys() & answers[1].keys() - {THIRD}:
            pair = [_worst(truth, operator, one[operator]) for one in answers]
            if pair[0] is None or pair[1] is None:
                continue
            gap = abs(_digits(pair[0]) - _digits(pair[1]))
            if gap > widest:
                widest, chosen = gap, (truth, operator, pair[0], pair[1])
    if chosen is None:
        return None
    truth, operator, *both = chosen
    names = FORMS[library]
    results = [
        FormResult(name, _digits(one), abs(one.got - one.expected) / truth.precision.ulp(one.expected))
        for name, one in zip(names, both, strict=True)
    ]
    worse = min(both, key=_digits)
    place = ", ".join(f"{name} = {np.asarray(value).tolist()}" for name, value in truth.place.inputs.items())
    where = f"at {place[:200]}: eager {both[0].got!r}, compiled {both[1].got!r}, expected {worse.truth}"
    found = {operator: (results[0], results[1])}
    file = _written(library, truth, operator, worse, scripts, device) if scripts is not None and widest >= 1 else ""
    return FormsOfCase(truth.operation.name, 0, 0, library, found, where, file)


def _worst(truth: OperationReferences, operator: str, answer: Mapping[str, Any]) -> EntryEvidence | None:
    """The number of an answer with the fewest correct digits; None without numbers to compare."""
    if "value" not in answer or truth.known is None:
        return None
    entries = examined(truth.at, operator, truth.result(answer), truth.known, None)[1]
    return min((one for one in entries if math.isfinite(one.expected)), key=_digits, default=None)


def _digits(one: EntryEvidence) -> float:
    return one.digits_correct if one.digits_correct < one.digits_resolvable else 15.9


def _written(
    library: str, truth: OperationReferences, operator: str, worst: EntryEvidence, folder: Path, device: str
) -> str:
    """The file of the program with both forms; "" for a library without one."""
    eager, compiled = FORMS[library]
    if eager not in LIBRARIES:
        return ""
    numbers = worst.digits_correct, repr(worst.got), worst.truth, worst.place
    fault = replace(truth.fault(eager, operator, "digits", *numbers), device=device)
    file = folder / f"{library}_{truth.operation.name}_{operator}.py"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, of_fault(fault, truth.operation.expression(library) or "", compiled).encode())
    return str(file)
