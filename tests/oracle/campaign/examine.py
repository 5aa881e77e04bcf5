"""The result of checking a fault: caught, not resolvable, or missed."""

import warnings
from functools import cache
from typing import Any, Literal

import numpy as np

from adbench import Case
from adbench.execution.operators import fallback, prepared_point
from adbench.execution.operators.prepared_point import PointReferences, point
from adbench.execution.operators.references import known_at
from adbench.execution.operators.relations import Setting, related, sentences
from adbench.model.backend import Backend
from adbench.model.errors import Unsupported
from adbench.model.operator import definition
from tests.oracle.campaign import cases as at
from tests.oracle.campaign.fault import Fault

Found = Literal["caught", "not resolvable", "got past"]
SEED = 4_000
TOO_LARGE = (at.LARGE_WAVES, at.LARGE_STEEP)
"""These skip second order and Jacobians by columns."""


@cache
def known(case: Case, seed: int) -> PointReferences:
    second = case not in TOO_LARGE and not case.is_array_valued
    return known_at(point(case, 1, seed), second_order=second, hessian=second, seconds=2.0)


def words(backend: Backend, case: Case, operators: tuple[str, ...], seed: int) -> dict[str, str]:
    """The word for each operator, and for the relations."""
    here, truth = point(case, 1, seed), known(case, seed)
    found: dict[str, str] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # warnings of libraries are not verdicts
        for operator in operators:
            prepared_with, native = here.native(backend, operator)
            f = backend.function(case, here.names, 1)
            try:
                made = fallback.prepare(backend, definition(operator).name, f, prepared_with, here.wrt)
                result: Any = backend.numpy_result(made.call(*native))
            except Exception as error:  # a fault that raises is always seen
                found[operator] = f"raises {type(error).__name__}"
                continue
            found[operator] = prepared_point.examined(here, operator, result, truth, None)[0].word
        try:
            broken = sentences(related(Setting(backend, case, 1, seed, truth)))
        except Unsupported:
            broken = []
        found["relations"] = "wrong" if broken else "right"
    return found


def examined(fault: Fault, seed: int = SEED) -> Found:
    """The outcome through the operators that can show the fault and through the relations."""
    found = words(fault.make(), fault.case, fault.operators, seed)
    if any(word == "wrong" or word.startswith("raises") for word in found.values()):
        return "caught"
    return "not resolvable" if {"verified", "blind"} & set(found.values()) else "got past"
