"""The parts of fuzzing that run in a worker: a library's derivatives of a program, and their judgement.

Libraries and the judge run in separate workers, so that a crash of the judge is not taken for a library's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from adbench.execution.operators.on_device import create_there
from adbench.execution.operators.source_text_call import answers
from adbench.findings.finding import program_of
from adbench.findings.programs.expressions import Expression, table
from adbench.findings.programs.judging import ProgramTrial, agree, differing
from adbench.model.backend import Backend
from adbench.model.errors import MissingFunction, Unsupported

CALLS = re.compile(r"\bxp\.((?:linalg\.|fft\.)?\w+)")


def answer(backend: Backend, request: Mapping[str, Any]) -> dict[str, Any]:
    """The library's results for a program; request: the program, operators, seed."""
    create_there(backend)
    trial = ProgramTrial(program_of(request["program"]), request["seed"])
    text = trial.program.source(backend.name.partition("_")[0])
    return answers(backend, text, trial.args, trial.wrt, trial.vector, request["operators"])


def lacking(backend: Backend, request: Mapping[str, Any]) -> list[str]:
    """The operations of the table that the library lacks, and whose definition it cannot compute either."""
    family = backend.name.partition("_")[0]

    def lacks(one: Expression) -> bool:
        calls = CALLS.findall(one.text + one.definition)
        return family not in one.own and not all(has(backend.xp, path) for path in calls)

    return [one.name for one in table() if lacks(one)]


def has(xp: Any, path: str) -> bool:
    """Whether a namespace has a function, such as linalg.inv."""
    try:
        attrgetter(path)(xp)
    except (AttributeError, MissingFunction, Unsupported, ImportError):
        return False
    return True


def judge(backend: Backend | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """The faults in the answers of all libraries: library -> operator -> fault, and whether the truth is known.

    Where it is not known quickly, answers that agree with each other are believed. Where it is not known at all,
    variants of one library are compared.
    """
    trial = ProgramTrial(program_of(request["program"]), request["seed"])
    answers_of: Mapping[str, Mapping[str, Any]] = request["answers"]
    faults: dict[str, dict[str, Any]] = {}
    is_known = trial.program.has_nan or trial.quick is not None
    believed = not is_known and agree(trial, [pair for of in answers_of.values() for pair in of.items()])
    for library, of_library in answers_of.items():
        for operator, one in of_library.items():
            if believed and "result" in one:
                continue
            if (fault := trial.fault(operator, one)) is not None:
                faults.setdefault(library, {})[operator] = vars(fault)
    if not is_known and not believed:
        for library, peer in variants(answers_of):
            for operator in answers_of[library].keys() & answers_of[peer].keys() - faults.get(library, {}).keys():
                fault = differing(trial, operator, answers_of[library][operator], answers_of[peer][operator], peer)
                if fault is not None and operator not in faults.get(peer, {}):
                    faults.setdefault(library, {})[operator] = vars(fault)
    return {"faults": faults, "known": is_known}


def variants(libraries: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of backends of one library: (jax_eager, jax)."""
    every = list(libraries)
    return [(one, base) for one in every if (base := one.partition("_")[0]) != one and base in every]
