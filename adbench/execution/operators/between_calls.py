"""Relations between the calls of a timed operator: four calls, without preparing again.

A check without times tests many more relations (relations/).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import CasePoint, PointReferences
from adbench.execution.operators.rounding_spread import Judge
from adbench.model import tree
from adbench.model.backend import Backend


@dataclass(frozen=True)
class NamedInputs:
    """Named inputs with their reference."""

    at: CasePoint
    known: PointReferences
    name: str


def first_fault(judge: Judge, sites: Sequence[NamedInputs]) -> str | None:
    """Call at each site, twice in turns. Returns why a result is wrong or which state a call changed, or None.

    judge   of a call that was prepared at the inputs of the first site, and returns a finished result
    """
    backend, operator, call = judge.backend, judge.operator, judge.call
    inputs = [site.at.copied().native(backend, operator)[1] for site in sites]
    before = [_numbers(backend, native) for native in inputs]
    results, kept = [], []
    for native in inputs:
        results.append(call(*native))
        kept.append(_numbers(backend, results[-1]))
    again = [call(*native) for native in inputs]
    for site, native, old in zip(sites, inputs, before, strict=True):
        if not tree.are_equal(_numbers(backend, native), old):
            return f"a call at {site.name} changes its inputs"
    for site, result, old in zip(sites, results, kept, strict=True):
        if not tree.are_equal(_numbers(backend, result), old):
            return f"a later call changes the result of the call at {site.name}"
    for returned, when in ((kept, "called"), (again, "called again, after a call at other inputs,")):
        for site, result in zip(sites, returned, strict=True):
            numbers = backend.numpy_result(result) if returned is again else result
            verdict = judge.judged(site.at, numbers, site.known)
            if verdict.word == "wrong":
                return f"prepared at the case's inputs and {when} at {site.name}: {verdict.sentence}"
    return None


def _numbers(backend: Backend, native: Any) -> Any:
    """Copies in numpy; static leaves are unchanged."""

    def copied(leaf: Any) -> Any:
        if tree.is_static(leaf):
            return leaf
        numbers = leaf if hasattr(leaf, "tocsc") else backend.to_numpy(leaf)
        return numbers.copy() if hasattr(numbers, "copy") else tree.map_leaves(np.array, numbers)

    return tree.map_leaves(copied, native)
